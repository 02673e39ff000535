"""The spectrum at one rational point of the parameters, decided with certified arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import flint
import mpmath
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.physical import physical_values
from derive.algebra.polynomials import branch_points
from derive.cells.balls import (
    above,
    ascending,
    ball,
    below,
    decided,
    enclosure,
    irreducible_factors,
    real_roots,
    real_roots_of_balls,
    simplest_between,
)
from derive.cells.branch import RootBranch, roots_within
from derive.cells.decomposition import univariate
from derive.records.probe import Bulk

HALVINGS = 400
"""The most times that the distance to a point mass is halved."""
FAR = 4096
"""How many times farther than the spectrum the physical branch is identified."""

Point = dict[sp.Symbol, Any]


@dataclass(frozen=True)
class Roots:
    """The real zeros of polynomials in one symbol, at values of the parameters: each as a ball, as fine as asked."""

    polynomials: tuple[sp.Expr, ...]
    symbol: sp.Symbol
    point: tuple[tuple[sp.Symbol, Any], ...]

    @cached_property
    def _exact(self) -> list[flint.fmpz_poly] | None:
        """The irreducible factors, where all coefficients are rational."""
        given = [sp.Poly(polynomial.subs(dict(self.point)), self.symbol) for polynomial in self.polynomials]
        if not all(c.is_Rational for poly in given for c in poly.all_coeffs()):
            return None
        return irreducible_factors(univariate(poly.as_expr(), self.symbol) for poly in given)

    def balls(self) -> list[flint.arb]:
        """In ascending order, at the working precision."""
        if self._exact is not None:
            return real_roots(self._exact)
        found: list[flint.arb] = []
        for polynomial in self.polynomials:
            coefficients = sp.Poly(polynomial, self.symbol).all_coeffs()
            found += real_roots_of_balls([enclosure(c, dict(self.point)) for c in reversed(coefficients)])
        return ascending(found)

    def ball(self, index: int) -> Callable[[], flint.arb]:
        """One of the zeros, as a ball of any precision."""
        return lambda: self.balls()[index]

    @cached_property
    def separators(self) -> list[Fraction]:
        """Fractions between neighbouring zeros, and beyond the first and the last."""

        def separated() -> list[Fraction]:
            roots = self.balls()
            ends = [None, *[f for root in roots for f in (below(root), above(root))], None]
            return [simplest_between(ends[i], ends[i + 1]) for i in range(0, len(ends), 2)]

        return decided(separated)

    def index_of(self, number: Callable[[], flint.arb]) -> int | None:
        """Which zero a number may be: None if it is none. It is that zero if it is known to be one of them."""

        def found() -> tuple[int | None] | None:
            value = number()
            near = [i for i, root in enumerate(self.balls()) if root.overlaps(value)]
            return (near[0] if near else None,) if len(near) < 2 else None

        return decided(found)[0]


@dataclass(frozen=True)
class BulkCurve:
    """A bulk: its equations, the polynomial of its resolvent, and polynomials in z with its branch points and poles."""

    equations: tuple[sp.Expr, ...]
    unknowns: tuple[sp.Symbol, ...]
    resolvent: sp.Symbol
    curve: sp.Expr
    singular: tuple[sp.Expr, ...]

    @staticmethod
    def of(bulk: Bulk) -> BulkCurve:
        """That of a derived bulk whose responses are eliminated; TooLarge where its discriminant is."""
        assert bulk.curve is not None, "what is claimed of a bulk without a curve is refused before"
        projected = bulk.projected
        found = BulkCurve(projected.algebraic, projected.bulk_symbols, projected.resolvent, bulk.curve, ())
        return replace(found, singular=found.branch_points())

    def branch_points(self) -> tuple[sp.Expr, ...]:
        """Factors of the discriminant and of the leading coefficient of the curve."""
        singular, poles = branch_points(self.curve, self.resolvent)
        return tuple(f for f in (*singular, *poles) if f.free_symbols)

    @property
    def symbols(self) -> set[sp.Symbol]:
        """What the equations and the curve depend on."""
        return {s for e in (*self.equations, self.curve) for s in e.free_symbols}


class CellSpectrum:
    """The bulk at given parameters: where its density is positive, and what lies outside."""

    def __init__(self, bulk: BulkCurve, point: Point):
        self.equations, self.unknowns, self.resolvent = bulk.equations, bulk.unknowns, bulk.resolvent
        self.curve, self.point = bulk.curve, {p: v for p, v in point.items() if p in bulk.symbols}
        self.zeros = Roots(tuple(f for f in bulk.singular if f.has(Z)), Z, tuple(self.point.items()))
        self.branch = RootBranch(self.curve, self.resolvent, self.point, lambda place: self.far(place, self.resolvent))

    # the physical branch

    @cached_property
    def size(self) -> Fraction:
        """A bound on the spectrum."""
        ends = self.zeros.separators
        return 1 + max(abs(ends[0]), abs(ends[-1]))

    def far(self, place: Fraction, expression: sp.Expr) -> tuple[Fraction, flint.acb]:
        """A function of the bulk far above a real place."""
        height = FAR * Fraction((self.size + abs(place)).__ceil__())
        digits = max(60, int(flint.ctx.prec / 3.3))
        with mpmath.workdps(digits):
            at = mpmath.mpc(mpmath.mpf(place.numerator) / place.denominator, int(height))
            values = physical_values(self.equations, self.unknowns, self.point, digits, at)
            found = sp.lambdify(list(values), expression.subs(self.point), "mpmath")(*values.values())
            texts = [mpmath.nstr(part, digits) for part in (mpmath.re(found), mpmath.im(found))]
        return height, flint.acb(*(flint.arb(text) for text in texts))

    def dense(self, place: Fraction) -> bool:
        """Whether the density is positive at a real place that is no branch point."""
        return decided(lambda: not self.branch.is_real(place, self.branch.at(place)))

    # the support

    @cached_property
    def filled(self) -> list[bool]:
        """Whether the density is positive between neighbouring zeros."""
        return [self.dense(place) for place in self.zeros.separators]

    @cached_property
    def ends(self) -> list[int]:
        """Which zeros are ends of the support, in ascending order."""
        return [i for i, (left, right) in enumerate(zip(self.filled, self.filled[1:], strict=False)) if left != right]

    def interval_of(self, number: Callable[[], flint.arb], solves: tuple[sp.Expr, ...]) -> int | None:
        """Between which zeros a number lies: i if it follows i of them, None if it is one of them.

        `solves` are polynomials in z of which the number is a zero.
        """
        together = Roots((*self.zeros.polynomials, *solves), Z, tuple(self.point.items()))
        place = together.index_of(number)
        marks = [together.index_of(self.zeros.ball(i)) for i in range(len(self.zeros.separators) - 1)]
        if place is None or place in marks:
            return None
        return sum(mark is not None and mark < place for mark in marks)

    def outside(self, number: Callable[[], flint.arb], solves: tuple[sp.Expr, ...]) -> bool:
        """Whether a real number lies outside the bulk, and is no branch point."""
        interval = self.interval_of(number, solves)
        return interval is not None and not self.filled[interval]

    # what a function of the bulk is outside

    def follow(self, polynomial: sp.Expr, unknown: sp.Symbol, function: sp.Expr) -> RootBranch:
        """A function of the bulk as a branch of the polynomial that it satisfies."""
        return RootBranch(polynomial, unknown, self.point, lambda place: self.far(place, function))

    def takes(self, branch: RootBranch, where: Callable[[], flint.arb], value: Callable[[], flint.arb]) -> bool:
        """Whether a branch has a value at an algebraic place outside the bulk, where both solve its polynomial."""

        def found() -> bool | None:
            place, wanted = where(), flint.acb(value())
            near = below(place) if place.is_exact() else simplest_between(below(place), above(place))
            disc = branch.enclosing(branch.at(near), near, place)
            if bool(abs(wanted - disc.centre) < disc.radius):
                return True
            return None if disc.ball.overlaps(wanted) else False

        return decided(found)

    # point masses

    def residue(self, position: Fraction, weight: sp.Symbol, leading: sp.Expr) -> int:
        """Which real zero of a polynomial in the weight is the mass at a position, in ascending order.

        `leading` is what remains of the curve where G = weight / (z - position) and z goes to the position.
        """
        shift = sp.Rational(position.numerator, position.denominator)
        given = self.curve.subs(self.point).subs(Z, Z + shift).subs(self.resolvent, weight / Z)
        moved = sp.fraction(sp.cancel(sp.together(given)))[0]

        def far(place: Fraction) -> tuple[Fraction, flint.acb]:
            return self.far(place + position, (Z - shift) * self.resolvent)

        branch = RootBranch(moved, weight, {}, far)
        limits = Roots((leading,), weight, tuple(self.point.items()))
        if len(limits.separators) == 2:  # one real zero: the mass is real, and a zero
            return 0
        squarefree = sp.Poly(sp.sqf_part(leading.subs(self.point)), weight)
        lowest_first = list(reversed(squarefree.all_coeffs()))

        def found() -> int | None:
            height, here = branch.start(Fraction(0))
            polynomial = flint.acb_poly([enclosure(c, {}) for c in lowest_first])
            for _ in range(HALVINGS):
                height, here = branch.lowered(Fraction(0), height, here, (Fraction(1, 2),))
                within = flint.arb(0, ball(height).real.abs_upper())
                for index, value in enumerate(limits.balls()):
                    centre = flint.acb(value.mid())
                    radius = 2 * (abs(here.centre - centre) + here.radius)
                    alone = roots_within(polynomial(flint.acb_poly([centre, 1])), radius) == 1
                    if alone and branch.count(flint.acb(within, within), centre, radius) is not None:
                        return index
            return None

        return decided(found)
