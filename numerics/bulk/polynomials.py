"""The bulk equations as polynomials: residual and Jacobian at many points in NumPy, without compilation.

A generated bulk lists its equations term by term, which gives their derivatives as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from numerics.bulk.parameters import exactly, updated
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point, exact
from numerics.support.precision import in_float64

Monomial = tuple[int, ...]
"""Indices of the factors, ascending and repeated by power: 0 is z, 1 the first response."""
Number = float | Fraction
Terms = list[tuple[int, Number, Monomial]]
"""Index of the sum that a term belongs to, its coefficient, and its monomial."""


@dataclass(frozen=True)
class Sums:
    """Sums of terms in flat arrays: coefficients, factors of each term (padded by the constant 1), and the start of
    each sum."""

    coefficients: np.ndarray
    factors: np.ndarray
    starts: np.ndarray
    places: np.ndarray

    @staticmethod
    def of(terms: Terms, one: int) -> Sums:
        """Build the sums from terms (index of the sum, coefficient, monomial); `one` is the index of the constant."""
        terms = sorted(terms, key=lambda term: term[0])
        most = max((len(monomial) for _, _, monomial in terms), default=0) or 1
        factors = np.full((most, len(terms)), one)
        for n, (_, _, monomial) in enumerate(terms):
            factors[: len(monomial), n] = monomial
        places, starts = np.unique([place for place, _, _ in terms], return_index=True)
        return Sums(np.array([c for _, c, _ in terms], float), factors, starts, places.astype(int))

    def at(self, variables: np.ndarray) -> np.ndarray:
        """Return the sums at many points, one row per point, in the order of `places`."""
        if not self.places.size:
            return np.zeros((len(variables), 0), variables.dtype)
        values = self.coefficients * variables[:, self.factors[0]]
        for factor in self.factors[1:]:
            values *= variables[:, factor]
        return np.add.reduceat(values, self.starts, axis=1)


@dataclass(frozen=True)
class PolynomialSystem:
    """A square polynomial system in the responses, with its derivatives with respect to z and the responses."""

    count: int
    residual: Sums
    rate: Sums
    slope: Sums
    groups: int = 1

    def __call__(self, z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return residual, derivative with respect to z and Jacobian with respect to r at many points; the results are
        real at real points.
        """
        residual, rate, values = self.values(z, r)
        return residual, rate, self.matrices(values)

    def scaled(self, z: np.ndarray, r: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the system with each equation divided by its largest Jacobian entry times the size of its unknown."""
        residual, rate, values = self.values(z, r)
        widest = self.widest(values, sizes)
        return residual / widest, rate / widest, self.matrices(values / self.by_equation(widest))

    def widest(self, values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the largest scaled Jacobian entry of each equation, from the sparsity pattern."""
        rows, columns, equations, starts = self._places
        found = np.ones((len(values), self.count))
        if equations.size:
            largest = np.maximum.reduceat(np.abs(values) * sizes[:, columns], starts, axis=1)
            found[:, equations] = np.where(largest > 0, largest, 1.0)
        return found

    def times(self, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the products of sparse Jacobians, with these entries, and columns."""
        _, columns, equations, starts = self._places
        found = np.zeros(x.shape, np.result_type(values, x))
        found[:, equations] = np.add.reduceat(values[..., None] * x[:, columns], starts, axis=1)
        return found

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The sparsity pattern: row and column of each Jacobian entry, the non-empty rows, and the first entry in each
        of them.
        """
        rows, columns = np.divmod(self.slope.places, self.count)
        equations, starts = np.unique(rows, return_index=True)
        return rows, columns, equations, starts

    def by_equation(self, numbers: np.ndarray) -> np.ndarray:
        """Return a value per equation, repeated for each of its Jacobian entries."""
        return numbers[:, self._places[0]]

    def values(self, z: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return residual, derivative by z, and the entries of the Jacobian's sparsity pattern."""
        variables = np.concatenate([z[:, None], r, np.ones_like(z)[:, None]], axis=1)
        residual, rate = (np.zeros((z.size, self.count), variables.dtype) for _ in range(2))
        for into, sums in ((residual, self.residual), (rate, self.rate)):
            into[:, sums.places] = sums.at(variables)
        return residual, rate, self.slope.at(variables)

    def matrices(self, values: np.ndarray) -> np.ndarray:
        """Return dense Jacobians with these entries."""
        slope = np.zeros((len(values), self.count * self.count), values.dtype)
        slope[:, self.slope.places] = values
        return slope.reshape(-1, self.count, self.count)


def _plain(value: Any) -> Number:
    """Return integers and rationals as exact fractions, other numbers as floats."""
    return Fraction(value) if isinstance(value, int | Fraction) else float(value)


def monomial_of(name: str, variables: Sequence[str]) -> Monomial:
    """Parse a product of z and named variables; "1" is the empty product."""
    return () if name == "1" else tuple(sorted(("z", *variables).index(word) for word in name.split()))


def differentiated(monomial: Monomial) -> list[tuple[int, int, Monomial]]:
    """Return (variable, power, remaining monomial) for each variable of a monomial."""
    found = []
    for k in dict.fromkeys(monomial):
        at = monomial.index(k)
        found.append((k, monomial.count(k), monomial[:at] + monomial[at + 1 :]))
    return found


def polynomials_of(equations: Iterable[Iterable[tuple[str, Any]]], variables: Sequence[str]) -> tuple[Terms, Terms]:
    """Return the terms of generated equations and of their derivatives with respect to z and to variables.

    The derivative of an equation with respect to variable k has index equation * (variables + 1) + k.
    """
    residual: Terms = []
    slope: Terms = []
    for place, terms in enumerate(equations):
        for name, number in terms:
            coefficient, monomial = _plain(number), monomial_of(name, variables)
            residual.append((place, coefficient, monomial))
            for k, times, rest in differentiated(monomial):
                slope.append((place * (len(variables) + 1) + k, coefficient * times, rest))
    return residual, slope


def terms_of(law: BulkLaw, p: Point, in_fractions: bool = False) -> tuple[Terms, Terms, Terms]:
    """Return the terms of the generated equations and of their derivatives with respect to z and to the responses.

    in_fractions: use coefficients that are exact fractions of the parameters.
    """
    count, given = len(law.responses), updated(law, p)
    found = law.polynomials(exact(p), *exactly(given)) if in_fractions else law.polynomials(p, *given)
    residual, slope = polynomials_of(found, law.responses)
    placed = [(*divmod(place, count + 1), c, monomial) for place, c, monomial in slope]
    by_z = [(row, c, monomial) for row, k, c, monomial in placed if k == 0]
    return residual, by_z, [(row * count + k - 1, c, monomial) for row, k, c, monomial in placed if k]


@lru_cache(maxsize=64)
@in_float64
def polynomial_system(law: BulkLaw, p: Point) -> PolynomialSystem:
    """Return the generated equations at these parameters."""
    count = len(law.responses)
    sums = [Sums.of(terms, count + 1) for terms in terms_of(law, p)]
    return PolynomialSystem(count, sums[0], sums[1], sums[2])
