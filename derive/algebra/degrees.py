"""Bounds on the degrees of the bulk curve before its elimination, from the resolvent's expansion at infinity.

At random values of the parameters modulo a prime, the resolvent is a power series in t = 1/z. A curve P(z, G) of
degrees (d, e) in G and z is a linear relation between the series z^j G^k with j <= e and k <= d; the rank of their
coefficients decides whether one exists. A relation with symbolic parameters also holds at random values, unless all its
coefficients happen to vanish there. Hence no curve is missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import flint
import numpy as np
import sympy as sp

from derive.algebra.generators import Generators
from derive.algebra.nodes import Z
from derive.language.symbols import symbol_order

PRIME = 67_108_859
"""The largest prime below 2^26, so that products of residues stay below 2^52."""
MOST_ORDERS = 2**11
"""Largest number of series coefficients, so that a sum of products of residues stays below 2^63."""
SPARE = 20
"""Series coefficients beyond the unknowns of a curve: a chance relation has probability PRIME^-SPARE."""
FEW_ORDERS = 24
"""Series coefficients of the resolvent that decide whether it depends on a parameter."""
MOST_ROUNDS = 100
"""Newton steps for the values at infinity, which solve a triangular system."""

Monomial = tuple[int, ...]
"""Ascending indices of the unknowns in a product, repeated by their powers."""


class NoExpansion(Exception):
    """The expansion at infinity does not follow order by order from a linear recursion."""


@dataclass(frozen=True)
class ResolventExpansion:
    """Bulk equations in t = 1/z, with coefficients that are polynomials in the parameters.

    `size` is the number of unknowns; the resolvent comes first. `values` are random values of the parameters. `terms`
    maps equation, power of t and monomial to the coefficient, as powers of the parameters and residues.
    """

    size: int
    values: tuple[int, ...]
    terms: dict[tuple[int, int, Monomial], list[tuple[tuple[int, ...], int]]]

    @staticmethod
    def of(equations: Sequence[sp.Expr], unknowns: Sequence[sp.Symbol]) -> ResolventExpansion:
        """Return the expansion of a square system of equations; functions of parameters count as parameters."""
        generators = Generators.of(equations)
        encoded = [sp.fraction(sp.together(generators.encode(e)))[0] for e in equations]
        symbols = {s for e in encoded for s in e.free_symbols}
        parameters = sorted(symbols - {*unknowns, Z}, key=symbol_order)
        count = len(unknowns)
        terms: dict[tuple[int, int, Monomial], list[tuple[tuple[int, ...], int]]] = {}
        for number, equation in enumerate(encoded):
            try:
                poly = sp.Poly(equation, Z, *unknowns, *parameters, domain="QQ").clear_denoms(convert=True)[1]
            except sp.CoercionFailed:
                raise NoExpansion("a coefficient is not rational") from None
            for (power, *powers), c in poly.terms():
                monomial = tuple(i for i, times in enumerate(powers[:count]) for _ in range(times))
                key = (number, poly.degree(Z) - power, monomial)
                terms.setdefault(key, []).append((tuple(powers[count:]), int(c) % PRIME))
        values = np.random.default_rng(0).integers(2, PRIME - 1, len(parameters))
        return ResolventExpansion(count, tuple(map(int, values)), terms)

    @cached_property
    def parameters_in_resolvent(self) -> int:
        """Return the number of parameters on which the first moments of the bulk depend."""
        first = self._at(self.values).resolvent(FEW_ORDERS)
        number = 0
        for k, value in enumerate(self.values):
            other = self._at((*self.values[:k], value * value % PRIME, *self.values[k + 1 :]))
            number += not np.array_equal(first, other.resolvent(FEW_ORDERS))
        return number

    def lowest_degrees(self, allowed: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
        """Return the first pair of degrees, in the resolvent and in z, for which a curve exists; None without one."""
        pairs = list(allowed)
        orders = max((d + 1) * (e + 1) for d, e in pairs) + SPARE
        if orders > MOST_ORDERS:
            raise NoExpansion(f"{orders} orders are more than {MOST_ORDERS}")
        series = flint.nmod_poly(self._at(self.values).resolvent(orders).tolist(), PRIME)
        powers = [[1] + [0] * (orders - 1)]
        for _ in range(max(d for d, _ in pairs)):
            product = [int(c) for c in (flint.nmod_poly(powers[-1], PRIME) * series).coeffs()][:orders]
            powers.append(product + [0] * (orders - len(product)))
        return next(((d, e) for d, e in pairs if _dependent(powers[: d + 1], e)), None)

    def _at(self, values: Sequence[int]) -> _System:
        """Return the equations at values of the parameters."""
        numbers = {}
        for key, parts in self.terms.items():
            total = 0
            for powers, number in parts:
                for value, power in zip(values, powers, strict=True):
                    number = number * pow(value, power, PRIME) % PRIME
                total += number
            numbers[key] = total % PRIME
        return _System(self.size, numbers)


def _dependent(powers: Sequence[list[int]], degree: int) -> bool:
    """Return whether the series z^j G^k, j <= degree, with the given powers of G are linearly dependent."""
    used = len(powers) * (degree + 1) + SPARE
    rows = [[0] * shift + power[: used - shift] for power in powers for shift in range(degree + 1)]
    return bool(flint.nmod_mat(len(rows), used, [x for row in rows for x in row], PRIME).rank() < len(rows))


@dataclass(frozen=True)
class _System:
    """Equations in t modulo the prime: coefficients by equation, power of t and monomial."""

    size: int
    terms: dict[tuple[int, int, Monomial], int]

    def resolvent(self, count: int) -> np.ndarray:
        """Return the first `count` coefficients of the first unknown.

        At each order the equations are linear in its coefficients, with the same matrix: the Jacobian at t = 0.
        """
        start = self._at_infinity()
        try:
            inverse = self._slope(start).inv()
        except ZeroDivisionError:
            raise NoExpansion("the equations are singular at infinity") from None
        solve = np.array([[int(x) for x in row] for row in inverse.tolist()], dtype=np.int64)
        products = _Products(self, start, count)
        for order in range(1, count):
            products.convolve(order)
            products.put(order, np.zeros(self.size, dtype=np.int64))
            products.put(order, -(solve @ products.residual(order)) % PRIME)
        return products.series[0]

    def _at_infinity(self) -> list[int]:
        """Return the unknowns at t = 0, by Newton's method from zero."""
        values = [0] * self.size
        for _ in range(MOST_ROUNDS):
            off = [0] * self.size
            for (row, shift, monomial), c in self.terms.items():
                if shift == 0:
                    off[row] = (off[row] + _product(c, values, monomial)) % PRIME
            if not any(off):
                return values
            try:
                step = self._slope(values).solve(flint.nmod_mat(self.size, 1, off, PRIME))
            except ZeroDivisionError:
                break
            values = [(v - int(step[i, 0])) % PRIME for i, v in enumerate(values)]
        raise NoExpansion("the values at infinity are not reached from zero")

    def _slope(self, values: Sequence[int]) -> flint.nmod_mat:
        """Return the Jacobian of the equations at t = 0."""
        slope = [0] * self.size**2
        for (row, shift, monomial), c in self.terms.items():
            if shift == 0:
                for k, column in enumerate(monomial):
                    place = row * self.size + column
                    slope[place] = (slope[place] + _product(c, values, monomial[:k] + monomial[k + 1 :])) % PRIME
        return flint.nmod_mat(self.size, self.size, slope, PRIME)


def _product(number: int, values: Sequence[int], monomial: Monomial) -> int:
    for i in monomial:
        number = number * values[i] % PRIME
    return number


class _Products:
    """Power series of 1, of the unknowns and of all monomials; each monomial is a shorter monomial times an unknown."""

    def __init__(self, system: _System, start: Sequence[int], count: int) -> None:
        places: dict[Monomial, int] = {(i,): i for i in range(system.size)} | {(): system.size}
        for monomial in sorted({m[:k] for _, _, m in system.terms for k in range(2, len(m) + 1)}, key=len):
            places[monomial] = len(places)
        longer = [m for m in places if len(m) > 1]
        self.size = system.size
        self.left = np.array([places[m[:-1]] for m in longer], dtype=int)
        self.right = np.array([m[-1] for m in longer], dtype=int)
        lengths = np.array([len(m) for m in longer], dtype=int)
        self.levels = [np.flatnonzero(lengths == k) for k in sorted(set(lengths.tolist()))]
        self.middle = np.zeros(len(longer), dtype=np.int64)
        self.series = np.zeros((len(places), count), dtype=np.int64)
        self.series[:, 0] = [_product(1, start, m) for m in places]
        rows, shifts, terms = zip(*((row, shift, places[m]) for row, shift, m in system.terms), strict=True)
        self.rows, self.shifts, self.terms = np.array(rows), np.array(shifts), np.array(terms)
        self.numbers = np.array(list(system.terms.values()), dtype=np.int64)

    def convolve(self, order: int) -> None:
        """Add the products of lower-order coefficients to one order of each monomial."""
        left, right = self.series[self.left, 1:order], self.series[self.right, order - 1 : 0 : -1]
        self.middle = np.einsum("ij,ij->i", left, right) % PRIME

    def put(self, order: int, coefficients: np.ndarray) -> None:
        """Set one order of the unknowns and of all monomials."""
        series = self.series
        series[: self.size, order] = coefficients
        for level in self.levels:
            left, right = self.left[level], self.right[level]
            ends = series[left, 0] * series[right, order] + series[left, order] * series[right, 0]
            series[self.size + 1 + level, order] = (self.middle[level] + ends) % PRIME

    def residual(self, order: int) -> np.ndarray:
        """Return one order of all equations."""
        there = self.shifts <= order
        parts = self.numbers[there] * self.series[self.terms[there], order - self.shifts[there]] % PRIME
        residual = np.zeros(self.size, dtype=np.int64)
        np.add.at(residual, self.rows[there], parts)
        return residual % PRIME
