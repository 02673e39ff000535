"""The spectrum at one rational point of the parameters, decided in ball arithmetic."""

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
from derive.algebra.polynomials import branch_points, rational_factors
from derive.cells.balls import (
    above,
    ascending,
    ball,
    below,
    constant,
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
"""Maximal number of halvings of the distance to a point mass."""
FAR = 4096
"""Height at which the physical branch is identified, in units of the spectral radius."""

Point = dict[sp.Symbol, Any]


@dataclass(frozen=True)
class Roots:
    """The real zeros of polynomials in one symbol at values of the parameters, as balls of any precision."""

    polynomials: tuple[sp.Expr, ...]
    symbol: sp.Symbol
    point: tuple[tuple[sp.Symbol, Any], ...]

    @cached_property
    def _exact(self) -> list[flint.fmpz_poly] | None:
        """The irreducible factors; None if a coefficient is not rational."""
        substituted = [sp.Poly(polynomial.subs(dict(self.point)), self.symbol) for polynomial in self.polynomials]
        if not all(c.is_Rational for poly in substituted for c in poly.all_coeffs()):
            return None
        return irreducible_factors(univariate(poly.as_expr(), self.symbol) for poly in substituted)

    def balls(self) -> list[flint.arb]:
        """Return the zeros in ascending order at the working precision."""
        if self._exact is not None:
            return real_roots(self._exact)
        roots: list[flint.arb] = []
        for polynomial in self.polynomials:
            coefficients = sp.Poly(polynomial, self.symbol).all_coeffs()
            roots += real_roots_of_balls([enclosure(c, dict(self.point)) for c in reversed(coefficients)])
        return ascending(roots)

    def ball(self, index: int) -> Callable[[], flint.arb]:
        """Return one zero as a function of the working precision."""
        return lambda: self.balls()[index]

    @cached_property
    def separators(self) -> list[Fraction]:
        """Fractions between neighbouring zeros, and beyond the first and last."""

        def separated() -> list[Fraction]:
            roots = self.balls()
            ends = [None, *[f for root in roots for f in (below(root), above(root))], None]
            return [_simplest_in_the_middle(ends[i], ends[i + 1]) for i in range(0, len(ends), 2)]

        return decided(separated)

    def index_of(self, number: Callable[[], flint.arb]) -> int | None:
        """Return the index of the only zero that a number may equal; None if it is not a zero."""

        def nearest() -> tuple[int | None] | None:
            value = number()
            near = [i for i, root in enumerate(self.balls()) if root.overlaps(value)]
            return (near[0] if near else None,) if len(near) < 2 else None

        return decided(nearest)[0]


def _simplest_in_the_middle(low: Fraction | None, high: Fraction | None) -> Fraction:
    """Return a simple fraction in the middle half of an interval. Near the ends of an interval continuation takes many
    steps."""
    if low is None or high is None:
        return simplest_between(low, high)
    margin = (high - low) / 4
    return simplest_between(low + margin, high - margin)


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
        """Return the curve of a bulk whose responses are eliminated.

        Raises:
            TooLarge: the discriminant is too large.
        """
        assert bulk.curve is not None, "claims about a bulk without a curve are refused earlier"
        projected = bulk.projected
        curve = BulkCurve(projected.algebraic, projected.bulk_symbols, projected.resolvent, bulk.curve, ())
        return replace(curve, singular=curve.branch_points())

    def branch_points(self) -> tuple[sp.Expr, ...]:
        """Return the factors of the discriminant and of the leading coefficient of the curve."""
        singular, poles = branch_points(self.curve, self.resolvent)
        return tuple(f for f in (*singular, *poles) if f.free_symbols)

    @cached_property
    def symbols(self) -> set[sp.Symbol]:
        """The symbols on which the equations and the curve depend."""
        return {s for e in (*self.equations, self.curve) for s in e.free_symbols}

    def at(self, point: Point) -> BulkCurve:
        """Return the curve at values of the parameters, with its own branch points if the general ones degenerate.

        They do if the degree in the resolvent falls or a polynomial with branch points vanishes identically.
        """
        given = {p: v for p, v in point.items() if p in self.symbols}
        if not any(sp.expand(f.subs(given)) == 0 for f in (self._leading, *self.singular)):
            return self
        factors = (f for f in rational_factors(self.curve.subs(given)) if f.has(self.resolvent))
        special = replace(self, curve=sp.expand(sp.Mul(*factors)), singular=())
        return replace(special, singular=special.branch_points())

    @cached_property
    def _leading(self) -> sp.Expr:
        """The leading coefficient of the curve in the resolvent."""
        return sp.Poly(self.curve, self.resolvent).LC()


class CellSpectrum:
    """The bulk at fixed parameters: the support of its density, and the real axis outside it."""

    def __init__(self, bulk: BulkCurve, point: Point):
        self.equations, self.unknowns, self.resolvent = bulk.equations, bulk.unknowns, bulk.resolvent
        here = bulk.at(point)
        self.curve, self.point = here.curve, {p: v for p, v in point.items() if p in bulk.symbols}
        self.zeros = Roots(tuple(f for f in here.singular if f.has(Z)), Z, tuple(self.point.items()))
        self.branch = RootBranch(self.curve, self.resolvent, self.point, lambda place: self.far(place, self.resolvent))

    # the physical branch

    @cached_property
    def size(self) -> Fraction:
        """A bound on the modulus of the spectrum."""
        ends = self.zeros.separators
        return 1 + max(abs(ends[0]), abs(ends[-1]))

    def far(self, place: Fraction, expression: sp.Expr) -> tuple[Fraction, flint.acb]:
        """Return a function that gives the bulk responses far above a real point."""
        height = FAR * Fraction((self.size + abs(place)).__ceil__())
        digits = max(60, int(flint.ctx.prec / 3.3))
        with mpmath.workdps(digits):
            at = mpmath.mpc(mpmath.mpf(place.numerator) / place.denominator, int(height))
            values = physical_values(self.equations, self.unknowns, self.point, digits, at)
            value = sp.lambdify(list(values), expression.subs(self.point), "mpmath")(*values.values())
            texts = [mpmath.nstr(part, digits) for part in (mpmath.re(value), mpmath.im(value))]
        return height, flint.acb(*(flint.arb(text) for text in texts))

    def dense(self, place: Fraction) -> bool:
        """Return whether the density is positive at a real point that is not a branch point."""
        return decided(lambda: not self.branch.is_real(place, self.branch.at(place)))

    # the support

    @cached_property
    def filled(self) -> list[bool]:
        """Whether the density is positive, for each interval between neighbouring zeros."""
        return [self.dense(place) for place in self.zeros.separators]

    @cached_property
    def ends(self) -> list[int]:
        """The indices of the zeros that are edges of the support, in ascending order."""
        return [i for i, (left, right) in enumerate(zip(self.filled, self.filled[1:], strict=False)) if left != right]

    def interval_of(self, number: Callable[[], flint.arb], solves: tuple[sp.Expr, ...]) -> int | None:
        """Return the number of zeros below a number; None if it is one of them.

        `solves` are polynomials in z that vanish at that number.
        """
        together = Roots((*self.zeros.polynomials, *solves), Z, tuple(self.point.items()))
        place = together.index_of(number)
        marks = [together.index_of(self.zeros.ball(i)) for i in range(len(self.zeros.separators) - 1)]
        if place is None or place in marks:
            return None
        return sum(mark is not None and mark < place for mark in marks)

    def outside(self, number: Callable[[], flint.arb], solves: tuple[sp.Expr, ...]) -> bool:
        """Return whether a real number lies outside the support and is not a point mass."""
        interval = self.interval_of(number, solves)
        if interval is not None:
            return not self.filled[interval]
        zero = self.zeros.index_of(number)
        return zero is not None and not any(self.filled[zero : zero + 2]) and not self._diverges(zero)

    def _diverges(self, zero: int) -> bool:
        """Return whether the resolvent has a pole at a zero between intervals without density.

        Otherwise it is analytic there, and the zero belongs to other branches of the curve.
        """
        inverse = sp.Dummy("inverse")
        degree = sp.degree(self.curve, self.resolvent)
        reverse = sp.expand(self.curve.subs(self.resolvent, 1 / inverse) * inverse**degree)
        poles = Roots((reverse.subs(inverse, 0),), Z, self.zeros.point)
        at_poles = [self.zeros.index_of(poles.ball(i)) for i in range(len(poles.separators) - 1)]
        if zero not in at_poles:
            return False
        branch = self.follow(reverse, inverse, 1 / self.resolvent)
        return self.takes(branch, self.zeros.ball(zero), constant(Fraction(0)))

    # functions of the bulk outside the support

    def follow(self, polynomial: sp.Expr, unknown: sp.Symbol, function: sp.Expr) -> RootBranch:
        """Return a function of the bulk as a branch of the polynomial that it satisfies."""
        return RootBranch(polynomial, unknown, self.point, lambda place: self.far(place, function))

    def takes(self, branch: RootBranch, where: Callable[[], flint.arb], value: Callable[[], flint.arb]) -> bool:
        """Return whether a branch has a value at an algebraic point outside the bulk; both satisfy its polynomial."""

        def compared() -> bool | None:
            place, wanted = where(), flint.acb(value())
            near = below(place) if place.is_exact() else simplest_between(below(place), above(place))
            disc = branch.enclosing(branch.at(near), near, place)
            if bool(abs(wanted - disc.centre) < disc.radius):
                return True
            return None if disc.ball.overlaps(wanted) else False

        return decided(compared)

    # point masses

    def residue(self, position: Fraction, weight: sp.Symbol, leading: sp.Expr) -> int:
        """Return the index, among the real zeros of a polynomial in the weight, of the point mass at a position.

        `leading` is the leading coefficient of the curve as z goes to the position with G = weight / (z - position).
        """
        shift = sp.Rational(position.numerator, position.denominator)
        substituted = self.curve.subs(self.point).subs(Z, Z + shift).subs(self.resolvent, weight / Z)
        moved = sp.fraction(sp.cancel(sp.together(substituted)))[0]

        def far(place: Fraction) -> tuple[Fraction, flint.acb]:
            return self.far(place + position, (Z - shift) * self.resolvent)

        branch = RootBranch(moved, weight, {}, far)
        limits = Roots((leading,), weight, tuple(self.point.items()))
        if len(limits.separators) == 2:  # one real zero: the mass is real, and a zero
            return 0
        squarefree = sp.Poly(leading.subs(self.point), weight).sqf_part()
        lowest_first = list(reversed(squarefree.all_coeffs()))

        def located() -> int | None:
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

        return decided(located)
