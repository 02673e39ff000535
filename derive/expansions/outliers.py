"""The outliers of an eigenproblem at one rational point, decided in ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import flint
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.polynomials import common_roots, rational_factors
from derive.cells.balls import decided, enclosure, is_zero, real_roots_of_balls
from derive.cells.region import Point
from derive.cells.selection import CellSelection
from derive.cells.spectrum import CellSpectrum, Roots
from derive.expansions.eigenproblems import Eigenproblem
from derive.records.probe import MAP


class Outliers:
    """The outliers of an eigenproblem at a point of the parameters, each as a ball of any precision.

    `solves` are polynomials in z whose zeros include all of them.
    """

    def __init__(self, selection: CellSelection, problem: Eigenproblem, point: Point, solves: Iterable[sp.Expr]):
        self.problem, self.point = problem, point
        self.solves = tuple(polynomial.subs(point) for polynomial in solves)
        self.spectrum: CellSpectrum = selection.spectrum(point)
        self.given = tuple(point.items())

    @property
    def levels(self) -> list[Callable[[], flint.arb]]:
        """The nonzero real eigenvalues."""
        numerator = sp.fraction(sp.together(self.problem.characteristic))[0]
        roots = Roots((numerator,), MAP, self.given)
        count = len(decided(roots.balls))
        return [level for level in map(roots.ball, range(count)) if not is_zero(level)]

    @property
    def places(self) -> list[Callable[[], flint.arb]]:
        """The points outside the bulk where the physical branch of the map equals an eigenvalue."""
        return [place for level in self.levels for place in self.of_level(level)]

    def of_level(self, level: Callable[[], flint.arb]) -> list[Callable[[], flint.arb]]:
        """Return the outliers of one eigenvalue: zeros of the relation on the physical branch of the map."""
        branch = self.spectrum.follow(self.problem.relation, MAP, self.problem.scalar_map)

        def zeros() -> list[flint.arb]:
            return self._zeros(level())

        def zero(index: int) -> Callable[[], flint.arb]:
            return lambda: zeros()[index]

        candidates = map(zero, range(len(decided(zeros))))
        return [
            z for z in candidates if self.spectrum.outside(z, self.solves) and self.spectrum.takes(branch, z, level)
        ]

    def _zeros(self, level: flint.arb) -> list[flint.arb]:
        coefficients = sp.Poly(self.problem.relation, Z).all_coeffs()
        values = {**self.point, MAP: flint.acb(level)}
        return real_roots_of_balls([enclosure(c, values) for c in reversed(coefficients)])


def map_changes(problem: Eigenproblem) -> list[sp.Expr]:
    """Return polynomials in z that vanish where branches of the map meet or diverge."""
    poly = sp.Poly(problem.relation, MAP)
    factors = rational_factors(poly.LC())
    if poly.degree() > 1:
        factors += common_roots(problem.relation, sp.diff(problem.relation, MAP), MAP)
    return [f for f in factors if f.has(Z)]
