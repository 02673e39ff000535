"""Newton's method on the bulk equations in multiple precision.

Next to an edge at which the density diverges, the leading parts of all responses cancel in the equations, and double
precision loses every digit. The responses themselves are well-conditioned, so few points in multiple precision suffice.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import flint
import numpy as np

from numerics.bulk.polynomials import Monomial, Terms, terms_of
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point

BITS = 400
"""Precision of the arithmetic, in bits."""
STEPS, ENOUGH = 6, 1e-17
"""Most Newton steps along the real axis, and the relative correction at which they stop."""
VANISHING = 2.0 ** -(BITS // 2)
"""Responses below VANISHING, relative to the largest, are zero up to rounding: no correction is small beside them."""


@dataclass(frozen=True)
class LongSystem:
    """The polynomial bulk equations and their derivatives in multiple precision."""

    count: int
    terms: tuple[Terms, Terms, Terms]

    def improved(self, z: complex, guess: np.ndarray, usual: np.ndarray) -> tuple[np.ndarray, float, float, np.ndarray]:
        """Take two Newton steps at one z; return the responses, first and last relative correction, and dr/dz."""
        with flint.ctx.workprec(BITS):
            point, r = flint.acb(z.real, z.imag), [flint.acb(x.real, x.imag) for x in guess]
            sizes, along = [], None
            for _ in range(2):
                residual, rate, slope = self._values(point, r)
                try:
                    both = slope.solve(flint.acb_mat([[a, -b] for a, b in zip(residual, rate, strict=True)]))
                except ZeroDivisionError:
                    return np.full(self.count, np.nan, complex), np.inf, np.inf, np.full(self.count, np.nan, complex)
                r = [(x - both[i, 0]).mid() for i, x in enumerate(r)]
                moved, along = np.array([complex(both[i, 0]) for i in range(self.count)]), both
                now = np.array([complex(x) for x in r])
                size = np.maximum(np.abs(now), usual)
                sizes.append(float(np.max(np.abs(moved) / (size + 1e-12 * np.max(size) + 1e-300))))
            assert along is not None
            return now, sizes[0], sizes[1], np.array([complex(along[i, 1]) for i in range(self.count)])

    def at_fixed(self, index: int, z: float, guess: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float, float]:
        """Solve for real z and all responses but number `index` by Newton's method.

        Returns: z, the responses, their derivatives with respect to the fixed response (that of z at `index`), first
            and last relative correction.
        """
        nothing = z, guess, guess, np.inf, np.inf
        with flint.ctx.workprec(BITS):
            point, r, sizes = flint.acb(z), [flint.acb(float(x)) for x in guess], []
            for _ in range(STEPS):
                residual, rate, slope = self._values(point, r)
                along = [slope[i, index] for i in range(self.count)]
                for i in range(self.count):
                    slope[i, index] = rate[i]
                try:
                    both = slope.solve(flint.acb_mat([[a, -b] for a, b in zip(residual, along, strict=True)]))
                except ZeroDivisionError:
                    return nothing
                moved = np.array([float(both[i, 0].real) for i in range(self.count)])
                point = (point - both[index, 0]).mid()
                r = [x if i == index else (x - both[i, 0]).mid() for i, x in enumerate(r)]
                now = np.array([float(x.real) for x in r])
                size = np.abs(now) + VANISHING * np.max(np.abs(now)) + 1e-300
                size[index] = abs(float(point.real)) + abs(z) + 1e-300
                sizes.append(float(np.max(np.abs(moved) / size)))
                if not np.isfinite(sizes[-1]) or sizes[-1] < ENOUGH:
                    break
            return (
                float(point.real),
                now,
                np.array([float(both[i, 1].real) for i in range(self.count)]),
                sizes[0],
                sizes[-1],
            )

    def _values(self, z: Any, r: list[Any]) -> tuple[list[Any], list[Any], Any]:
        variables = [z, *r]
        residual, rate = ([flint.acb(0)] * self.count for _ in range(2))
        slope = flint.acb_mat(self.count, self.count)
        for place, coefficient, monomial in self.terms[0]:
            residual[place] += _product(coefficient, monomial, variables)
        for place, coefficient, monomial in self.terms[1]:
            rate[place] += _product(coefficient, monomial, variables)
        for place, coefficient, monomial in self.terms[2]:
            row, column = divmod(place, self.count)
            slope[row, column] = slope[row, column] + _product(coefficient, monomial, variables)
        return residual, rate, slope


def _product(coefficient: Any, monomial: Monomial, variables: list[Any]) -> Any:
    for k in monomial:
        coefficient = coefficient * variables[k]
    return coefficient


def _long(number: Any) -> Any:
    if isinstance(number, Fraction):
        return flint.fmpq(number.numerator, number.denominator)
    return flint.fmpq(*float(number).as_integer_ratio())


@lru_cache(maxsize=64)
def long_system(law: BulkLaw, p: Point) -> LongSystem:
    """Return the equations with rational coefficients, exact unless they contain roots of parameters."""
    try:
        terms = terms_of(law, p, in_fractions=True)
    except (TypeError, ValueError):
        terms = terms_of(law, p)
    residual, rate, slope = ([(place, _long(c), monomial) for place, c, monomial in part] for part in terms)
    return LongSystem(len(law.responses), (residual, rate, slope))


def long_kernel(law: BulkLaw, p: Point) -> Any:
    """Return Newton's method in multiple precision as a corrector for `follow`."""
    system = long_system(law, p)

    def run(z: np.ndarray, r: np.ndarray, usual: np.ndarray) -> tuple[np.ndarray, ...]:
        solutions = [system.improved(complex(x), row, size) for x, row, size in zip(z, r, usual, strict=True)]
        better, first, last, slope = zip(*solutions, strict=True)
        return np.array(better), np.array(first), np.array(last), np.array(slope)

    return run
