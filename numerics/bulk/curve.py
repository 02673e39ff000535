"""The curve P(z, G) = 0 at given parameters: exact coefficients, isolated roots of its discriminant,
continuation in G."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import Improved, Kernel
from numerics.bulk.parameters import exactly, updated
from numerics.runtime.interface import BulkLaw, CoefficientTable
from numerics.runtime.point import Point, exact as exact_point
from numerics.support.rebinding import with_names


def _evaluated(coefficients: CoefficientTable, law: BulkLaw, p: Point) -> tuple[tuple[tuple[Fraction, ...], ...], bool]:
    """Return the coefficients as fractions, and whether they are exact.

    They are exact if their variables are rational in the parameters and in updated coefficients. Other variables are
    rounded once, before terms cancel.
    """
    try:
        values = _exact_variables(coefficients)(exact_point(p), *exactly(updated(law, p)))
    except (TypeError, ValueError, AttributeError):  # a root of a parameter
        values = coefficients.variables(p, *updated(law, p))
    numbers = [_plain(value) for value in values]
    try:
        return coefficients.of([Fraction(x) for x in numbers]), not any(isinstance(x, float) for x in numbers)
    except (OverflowError, ValueError):
        raise NumericalError(
            "the coefficients of the bulk's curve are not finite at these parameters; try less extreme values"
        ) from None


@lru_cache(maxsize=256)
def _exact_variables(coefficients: CoefficientTable) -> Callable[..., Sequence[Any]]:
    """Return the variables evaluated exactly, at fractions."""
    return with_names(coefficients.variables, {"jnp": _Fractions()})


class _Fractions:
    """A substitute for NumPy on fractions: signs, moduli and extrema are exact, and roots raise TypeError."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def select(conditions: Sequence[Any], values: Sequence[Any], default: Any) -> Any:
        """Return the first value whose condition holds, unlike NumPy without rounding."""
        return next((value for value, holds in zip(values, conditions, strict=True) if holds), default)

    @staticmethod
    def heaviside(x: Any, at_zero: Any) -> Any:
        """Return the step function."""
        return Fraction(at_zero) if x == 0 else int(x > 0)


def _plain(value: Any) -> int | float | Fraction:
    """Convert a scalar of any array library to int, float or Fraction."""
    while hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, int | Fraction) else float(value)


def _integers(coefficients: tuple[Fraction, ...]) -> list[int]:
    """Return the polynomial multiplied by its common denominator."""
    denominator = int(np.lcm.reduce([1, *(c.denominator for c in coefficients)], dtype=object))
    return [int(c * denominator) for c in coefficients]


@lru_cache(maxsize=256)
def singular_points(law: BulkLaw, p: Point) -> tuple[complex, ...] | None:
    """Return every z at which branches of the curve meet or diverge; real ones have imaginary part zero.

    Roots are isolated in exact arithmetic and correct to the last digit, nearly double ones included. None if there is
    no edge polynomial, or it vanishes at these parameters or is not exact.
    """
    if law.edge_polynomials is None:
        return None
    points: list[complex] = []
    polynomials, exact = _evaluated(law.edge_polynomials, law, p)
    if not exact:
        return None
    for polynomial in polynomials:
        whole = flint.fmpz_poly(_integers(polynomial)[::-1])
        if whole.degree() < 0:
            return None
        if whole.degree() > 0:
            for root, _ in whole.complex_roots():
                root = flint.acb(root)
                points.append(complex(float(root.real), 0.0 if root.imag == 0 else float(root.imag)))
    if not all(np.isfinite(points)):
        raise NumericalError("an edge of the bulk is beyond the range of numbers; try less extreme parameters")
    return tuple(sorted(set(points), key=lambda z: (z.real, z.imag)))


@dataclass(frozen=True)
class Curve:
    """The algebraic curve sum_ij table[i, j] G^i z^j = 0, with bounds on the rounding of its evaluation."""

    table: np.ndarray
    exact: tuple[tuple[Fraction, ...], ...]

    @staticmethod
    def of(law: BulkLaw, p: Point) -> Curve | None:
        """Return the curve at these parameters; None if it degenerates."""
        return _curve(law, p)

    def polynomials(self, z: np.ndarray) -> np.ndarray:
        """Return the coefficients in G at each z, lowest power first, one row per power."""
        powers = np.ones((self.table.shape[1], z.size), complex)
        for j in range(1, len(powers)):
            powers[j] = powers[j - 1] * z
        return self.table @ powers

    @property
    def kernel(self) -> Kernel:
        """Newton's method on the curve, as a corrector for `follow`."""
        slope_table = self.table[:, 1:] * np.arange(1, self.table.shape[1])

        def run(z: np.ndarray, r: np.ndarray, usual: np.ndarray) -> Improved:
            rows = self.polynomials(z)
            g, steps = r[:, 0], []
            for _ in range(2):
                value, slope = horner(rows, g)
                steps.append(value / slope)
                g = g - steps[-1]
            powers = np.ones((slope_table.shape[1], z.size), complex)
            for j in range(1, len(powers)):
                powers[j] = powers[j - 1] * z
            rate = horner(slope_table @ powers, g)[0]
            measure = np.maximum(np.abs(g), usual[:, 0]) + 1e-300
            return g[:, None], np.abs(steps[0]) / measure, np.abs(steps[1]) / measure, (-rate / slope)[:, None]

        return run

    def rounding(self, z: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return a bound on the error of a root G from evaluating the curve in double precision."""
        sizes = np.abs(self.table) @ np.abs(z) ** np.arange(self.table.shape[1])[:, None]
        _, slope = horner(self.polynomials(z), g)
        with np.errstate(all="ignore"):
            return 4e-16 * horner(sizes, np.abs(g))[0] / np.abs(slope)

    def residues(self, at: float) -> np.ndarray:
        """Return all residues w such that a branch may behave like w / (z - at) near the point `at`."""
        point = Fraction(at)
        terms: dict[int, dict[int, Fraction]] = {}
        for i, row in enumerate(self.exact):
            expanded = _shifted(row, point)
            size = sum(abs(c) * abs(point) ** j for j, c in enumerate(row))
            for k, c in enumerate(expanded):
                if c != 0 and (point == 0 or abs(c) > size * Fraction(1, 10**10)):
                    terms.setdefault(k - i, {})[i] = c
        if not terms:
            return np.zeros(0)
        lowest = terms[min(terms)]
        polynomial = flint.fmpz_poly(_integers(tuple(lowest.get(i, Fraction(0)) for i in range(max(lowest) + 1))))
        roots = [flint.acb(root) for root, _ in polynomial.complex_roots()] if polynomial.degree() > 0 else []
        return np.array([float(r.real) for r in roots if r.imag == 0 and float(r.real) > 0])


@lru_cache(maxsize=256)
def _curve(law: BulkLaw, p: Point) -> Curve | None:
    if law.curve is None:
        return None
    exact, _ = _evaluated(law.curve, law, p)
    largest = max((abs(c) for row in exact for c in row), default=Fraction(0))
    if largest == 0 or not any(c != 0 for row in exact[1:] for c in row):
        return None
    table = np.array([[float(c / largest) for c in row] for row in exact])
    return Curve(table, exact)


def _shifted(row: tuple[Fraction, ...], point: Fraction) -> list[Fraction]:
    """Return the coefficients of a polynomial in powers of (z - point)."""
    coefficients = list(row)
    if point == 0:
        return coefficients
    for k in range(len(coefficients) - 1):
        for j in range(len(coefficients) - 2, k - 1, -1):
            coefficients[j] += point * coefficients[j + 1]
    return coefficients


def horner(rows: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a polynomial (lowest power first) and its derivative by Horner's rule."""
    value, slope = rows[-1].astype(complex), np.zeros(g.shape, complex)
    for row in rows[-2::-1]:
        slope = slope * g + value
        value = value * g + row
    return value, slope
