"""Selection of the root that is an edge, an outlier or a threshold, in each cell of the parameters.

Near the limit the real roots keep their order, so one rational value of the small parameter identifies the physical
root. If it tends to a simple root, it stays the same branch in a cell between the zeros of the limiting polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import flint
import mpmath
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.polynomials import rational_factors
from derive.cells.balls import Inconclusive, ball, enclosure
from derive.cells.branch import roots_within
from derive.cells.decomposition import Cells, between_zeros
from derive.cells.region import Point, Region
from derive.cells.selection import CellSelection, Sites
from derive.cells.spectrum import BulkCurve, Roots
from derive.errors import NumericalError
from derive.expansions.cases import Case
from derive.expansions.limits import SMALL
from derive.expansions.series import DIGITS, PuiseuxSeries, expand_root

Pick = Callable[[CellSelection, Point], Callable[[], flint.arb] | None]
"""Returns the physical root at a point of all parameters; None if there is none."""
LIMIT_BITS = 256
"""Precision, in bits, at which branches are separated in the limit."""
BITS_OF_POWER = (40, 60)
"""Two distances from the limit, as powers of 1/2 of the largest, between which the power of a root is measured."""
STEPS, CLOSER = 20, 16
"""Maximal number of steps towards the limit before roots count as inseparable, and the factor of a step."""


@dataclass(frozen=True)
class CellSeries:
    """A series, sample points of the cells in which it holds, and whether that is proved for each whole cell."""

    expansion: PuiseuxSeries | None
    points: tuple[Point, ...]
    whole_cells: bool


class Branches:
    """A root of polynomials in z, or in the parameter of a threshold, expanded in each cell of a region.

    Where a factor without the root, in `degenerate`, vanishes, the root obeys another equation.
    """

    def __init__(
        self,
        case: Case,
        region: Region,
        bulk: BulkCurve,
        polynomials: Iterable[sp.Expr],
        pick: Pick,
        unknown: sp.Symbol = Z,
    ):
        self.case, self.pick, self.unknown = case, pick, unknown
        factors = dict.fromkeys(f for p in polynomials for f in rational_factors(p) if f.free_symbols)
        self.unscaled = [f for f in factors if f.has(unknown)]
        self.degenerate = [f for f in factors if not f.has(unknown)]
        inside = replace(region, parameters=tuple(p for p in region.parameters if p != unknown))
        self.selection = CellSelection(_in_the_limit(inside, case), bulk)

    @cached_property
    def power(self) -> int:
        """power: The exponent with which the root diverges at a point, or 0: root / SMALL**power is followed."""
        point = next(iter(self.selection.region.points(1)), None)
        root = None if self.case.limit is None or point is None else self._root_of(self.unscaled, point, 0)
        if root is None:
            return 0
        with flint.ctx.workprec(LIMIT_BITS):
            far, near = (abs(float(root.ball(root.small / 2**bits))) for bits in BITS_OF_POWER)
        slope = math.log2(far / near) / (BITS_OF_POWER[1] - BITS_OF_POWER[0]) if far and near else 0.0
        return min(round(slope), 0) if abs(slope - round(slope)) < 0.1 else 0

    @cached_property
    def factors(self) -> list[sp.Expr]:
        """factors: The polynomials that the followed root satisfies."""
        if not self.power:
            return self.unscaled
        scaled = self.unknown * SMALL**self.power
        cleared = (sp.fraction(sp.together(f.subs(self.unknown, scaled)))[0] for f in self.unscaled)
        return list(dict.fromkeys(f for p in cleared for f in rational_factors(p) if f.has(self.unknown)))

    @cached_property
    def limits(self) -> list[sp.Expr]:
        """The leading coefficients of the polynomials in the limit."""
        return [_lowest(f) for f in self.factors]

    @cached_property
    def sites(self) -> Sites:
        """A sample point of each cell of the open parameters."""
        return (
            self._all_orders
            if self._all_orders.all_cells
            else self.selection.sites((*self.limits, *map(_lowest, self.degenerate)), (), (self.unknown,))
        )

    @cached_property
    def _all_orders(self) -> Sites:
        """Cells in which the order of the roots near the limit is constant: each has one series, to all orders."""
        inner = (self.unknown,) if self.case.limit is None else (SMALL, self.unknown)
        return self.selection.sites((*self.factors, *self.degenerate, *inner[:-1]), (), inner)

    def series(self, order: sp.Rational) -> list[CellSeries]:
        """Return the distinct series with their cells; a cell without a root has no expansion."""
        return [
            replace(s, expansion=None if s.expansion is None else s.expansion.times(self.power))
            for s in self._followed(order - self.power)
        ]

    def _followed(self, order: sp.Rational) -> list[CellSeries]:
        """Return the series of the followed root, which is finite in the limit, at least near one point."""
        cells: list[CellSeries] = []
        for point in self.sites:
            root = self._root(point)
            limit = None if root is None else self._limit(point, root)
            matching = (
                s
                for s in cells
                if limit is not None and self._determines(limit, order) and limit.index == self._tends(s, point)
            )
            held = next(matching, None) if root is not None else next((s for s in cells if s.expansion is None), None)
            if held is None:
                expansion = None if root is None else self._expanded(root, point, order)
                held = next((s for s in cells if s.expansion == expansion), CellSeries(expansion, (), True))
            sure = limit is not None and self._determines(limit, order) and limit.index == self._tends(held, point)
            sure = sure or root is None or self._all_orders.all_cells
            extended = CellSeries(held.expansion, (*held.points, point), held.whole_cells and sure)
            cells = [*(s for s in cells if s is not held), extended]
        return cells

    def continues_to(self, point: Point, order: sp.Rational) -> bool:
        """Return whether coefficients through an order are continuous at a point on a wall between cells.

        They are if the branch tends to a simple root; the leading one is also continuous where roots meet.
        """
        if any(sp.expand(f.subs(point)) == 0 for f in (*self.factors, *self.limits, *self.degenerate)):
            return False
        try:
            root = self._root(point)
            limit = None if root is None else self._limit(point, root)
        except NumericalError:
            return False
        return limit is not None and self._determines(limit, order - self.power)

    # one point

    def _root(self, point: Point) -> Root | None:
        """Return the physical root near the limit; None if there is none at this point."""
        return self._root_of(self.factors, point, self.power)

    def _root_of(self, polynomials: list[sp.Expr], point: Point, power: int) -> Root | None:
        """Return the physical root divided by SMALL**power, as a root of one of the rescaled polynomials."""
        factors, small = tuple(f.subs(point) for f in polynomials), self._small(polynomials, point)
        meant = self.pick(self.selection, {**point, SMALL: small})
        if meant is None:
            return None
        index = Roots(factors, self.unknown, ((SMALL, small),)).index_of(lambda: meant() / ball(small**power).real)
        if index is None:
            raise NumericalError("the quantity is not a root of a derived polynomial; expand in another parameter")
        return Root(factors, self.unknown, index, small)

    def small(self, point: Point) -> sp.Rational:
        """Return a value of the small parameter below which no two roots meet."""
        return self._small(self.factors, point)

    def _small(self, polynomials: list[sp.Expr], point: Point) -> sp.Rational:
        if self.case.limit is None:
            return sp.S.One
        box = {SMALL: (sp.S.Zero, None), self.unknown: (None, None)}
        factors = [f.subs(point) for f in polynomials]
        cells = Cells.of([*factors, SMALL], box, (SMALL, self.unknown), lambda polynomial: False)
        level = dict(zip(cells.variables, cells.levels, strict=True)).get(SMALL, ())
        return between_zeros(level, SMALL, {}, box[SMALL])[0]

    @staticmethod
    def _determines(limit: Tendency, order: sp.Rational) -> bool:
        """Return whether the limit determines all coefficients through an order: a simple root has one series."""
        return limit.roots == 1 or order <= 0

    def _limit(self, point: Point, root: Root) -> Tendency | None:
        """Return the root of the limiting polynomials to which the branch tends; None if undecided."""
        if self.case.limit is None:
            return Tendency(root.index, 1)
        finite = Roots(tuple(f.subs(point) for f in self.limits), self.unknown, ())
        product = sp.Poly(sp.expand(sp.Mul(*(f / SMALL ** _order(f) for f in root.polynomials))), SMALL)
        rows = [list(reversed(sp.Poly(c, self.unknown).all_coeffs())) for c in reversed(product.all_coeffs())]
        finite_product = sp.Mul(*(f.subs(point) for f in self.limits))
        distinct = list(reversed(sp.Poly(finite_product, self.unknown).sqf_part().all_coeffs()))
        small = root.small
        with flint.ctx.workprec(LIMIT_BITS):
            limits = flint.acb_poly([ball(c) for c in distinct])
            by_power = [flint.acb_poly([ball(c) for c in row]) for row in rows]
            for _ in range(STEPS):
                small = small / CLOSER
                place, around = flint.acb(root.ball(small)), flint.arb(0).union(ball(small).real)
                for index, limit in enumerate(finite.balls()):
                    centre = flint.acb(limit.mid())
                    moved = [row(flint.acb_poly([centre, 1])) for row in by_power]
                    total = sum((row * flint.acb(around) ** k for k, row in enumerate(moved)), flint.acb_poly([]))
                    radius = 2 * abs(place - centre)
                    roots, alone = (
                        roots_within(total, radius),
                        roots_within(limits(flint.acb_poly([centre, 1])), radius),
                    )
                    if roots is not None and alone == 1:
                        return Tendency(index, roots)
        return None

    def _tends(self, series: CellSeries, point: Point) -> int | None:
        """Return the index of the limiting root to which a series tends; None if its coefficient is not a formula."""
        expansion = series.expansion
        if expansion is None or expansion.minimal is not None or expansion.powers[0] < 0:
            return None
        first = expansion.coefficients[0] if expansion.powers[0] == 0 else sp.S.Zero
        try:
            return Roots(tuple(f.subs(point) for f in self.limits), self.unknown, ()).index_of(
                lambda: enclosure(first, point).real
            )
        except Inconclusive:
            return None

    def _expanded(self, root: Root, point: Point, order: sp.Rational) -> PuiseuxSeries:
        probe = sp.S.One if self.case.limit is None else sp.Rational(1, 2**23)
        place = root.index
        for factor in self.factors:
            own = Roots((factor.subs(point),), self.unknown, ((SMALL, probe),))
            if place in [root.index_of(own.ball(i), probe) for i in range(len(own.separators) - 1)]:
                return expand_root(factor, self.unknown, SMALL, order, root.number, point)
        raise NumericalError("the root is not one of a derived polynomial; expand in another parameter")


@dataclass(frozen=True)
class Tendency:
    """A root of the limiting polynomials by its index, and the number of roots that tend to it."""

    index: int
    roots: int


@dataclass(frozen=True)
class Root:
    """One of the real roots of polynomials, by its rank, for small parameters below a bound."""

    polynomials: tuple[sp.Expr, ...]
    unknown: sp.Symbol
    index: int
    small: sp.Rational

    def _roots(self, small: sp.Rational) -> Roots:
        if small > self.small:
            raise NumericalError(f"the branch changes at {SMALL} = {self.small}, too close to the limit to be expanded")
        return Roots(self.polynomials, self.unknown, ((SMALL, small),))

    def ball(self, small: sp.Rational) -> flint.arb:
        """Return the root at the working precision."""
        return self._roots(small).balls()[self.index]

    def index_of(self, number: Callable[[], flint.arb], small: sp.Rational) -> int | None:
        """Return the rank of a number among all roots; None if it is not a root."""
        return self._roots(small).index_of(number)

    def number(self, small: Any) -> Any:
        """Return the root to many digits."""
        with flint.ctx.workprec(int(3.4 * DIGITS) + 40), mpmath.workdps(DIGITS):
            mantissa, exponent = self.ball(exact(small)).mid().man_exp()
            return mpmath.ldexp(mpmath.mpf(int(mantissa)), int(exponent))


def exact(small: Any) -> sp.Rational:
    """Return a number as a nearby fraction."""
    if isinstance(small, sp.Rational):
        return small
    mantissa, exponent = mpmath.frexp(small)
    return sp.Rational(int(mantissa * 2**200), 2**200) * sp.Integer(2) ** int(exponent)


def _in_the_limit(region: Region, case: Case) -> Region:
    """Return the region of the open parameters: its inequalities in the limit."""
    open_ones = tuple(p for p in region.parameters if p not in case.substitution)
    conditions = []
    for condition in region.conditions:
        there = sp.together(condition.subs(case.substitution))
        if there.has(SMALL):
            top, bottom = sp.fraction(there)
            there = _lowest(sp.expand(top)) * _lowest(sp.expand(bottom))
        if there.free_symbols:
            conditions.append(there)
        elif not there > 0:
            conditions.append(sp.S.NegativeOne)
    return Region(region.place, open_ones, region.text, tuple(conditions))


def _lowest(polynomial: sp.Expr) -> sp.Expr:
    """Return the coefficient of the lowest power of the small parameter."""
    if not polynomial.has(SMALL):
        return polynomial
    return sp.Poly(polynomial, SMALL).EC()


def _order(polynomial: sp.Expr) -> int:
    """Return the lowest power of the small parameter in a polynomial."""
    return min(k for (k,), _ in sp.Poly(polynomial, SMALL).terms()) if polynomial.has(SMALL) else 0
