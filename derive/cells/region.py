"""Regions of validity of a claim: inequalities between the parameters, and rational sample points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import mpmath
import sympy as sp

from derive.cells.balls import Inconclusive, is_positive
from derive.cells.decomposition import Interval
from derive.errors import ClaimError
from derive.language.symbols import Parameter, parameter_values

POINTS = 3
"""Number of sample points of an identity."""
TRIES = 4000
"""Number of sample points of the domains after which a region counts as empty."""
LEAP = 673
"""Stride of the leaped Halton sequence: its first points are small in large bases."""
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)

Point = dict[sp.Symbol, sp.Expr]


@dataclass(frozen=True)
class Region:
    """A part of the parameter domain. `conditions` are positive inside; `text` is their form in the claim.

    Where a condition in `closed` vanishes, the boundary belongs to the region.
    """

    place: str
    parameters: tuple[Parameter, ...]
    text: str = ""
    conditions: tuple[sp.Expr, ...] = ()
    closed: tuple[sp.Expr, ...] = ()

    @cached_property
    def box(self) -> dict[Parameter, Interval]:
        """An interval per parameter that contains the region: its domain, cut by numerical bounds."""
        intervals: dict[Parameter, Interval] = {p: _domain(p) for p in self.parameters}
        for condition in self.conditions:
            if len(condition.free_symbols) != 1:
                continue
            (parameter,) = condition.free_symbols
            if not condition.is_polynomial(parameter) or sp.degree(condition, parameter) != 1:
                continue
            slope, rest = sp.Poly(condition, parameter).all_coeffs()
            bound = -rest / slope
            if not (slope.is_Rational and bound.is_Rational):
                continue
            low, high = intervals[parameter]
            if slope > 0:
                intervals[parameter] = (bound if low is None else max(low, bound), high)
            else:
                intervals[parameter] = (low, bound if high is None else min(high, bound))
        for parameter, (low, high) in intervals.items():
            if low is None or high is None or low < high or (not self.conditions and low == high):
                continue
            low_end, high_end = _domain(parameter)
            outside = low == low_end or high == high_end
            why = f"lies outside the domain of {parameter}, {parameter.domain}" if outside else "is empty"
            raise ClaimError(f"{self.place}: the region {self.text!r} {why}; correct its bounds")
        return intervals

    @cached_property
    def typical(self) -> Point:
        """A rational value for each parameter, near its default."""
        return self._near_defaults(0)

    def contains(self, point: Point) -> bool:
        """Return whether all inequalities hold at a point."""
        try:
            return all(is_positive(condition, point) for condition in self.conditions)
        except Inconclusive:  # one of them is an equality here
            return False

    @cached_property
    def ends(self) -> dict[sp.Symbol, list[sp.Rational]]:
        """The ends of the box's intervals that belong to the region."""

        def included(parameter: Parameter, end: sp.Rational | None) -> bool:
            if end is None or not parameter.domain.contains(float(end)):
                return False
            own = (c for c in self.conditions if c.free_symbols == {parameter} and c not in self.closed)
            return all(c.subs(parameter, end) != 0 for c in own)

        return {p: [end for end in box if end is not None and included(p, end)] for p, box in self.box.items()}

    def holds_at(self, point: Point) -> bool:
        """Return whether a point, which may lie on a wall, belongs to the region."""
        if not all(p.domain.contains(float(v)) for p, v in parameter_values(point).items()):
            return False
        for condition in (c for c in self.conditions if c.free_symbols <= set(point)):
            value = sp.sympify(condition.subs(point))
            if value == 0 or not value.is_Rational and sp.simplify(value) == 0:
                if condition not in self.closed:
                    return False
            elif not is_positive(value, {}):
                return False
        return True

    def allows(self, fixed: Point) -> bool:
        """Return whether values of some parameters violate neither their domains nor a condition on them alone."""
        held = tuple(c for c in self.conditions if c.free_symbols <= set(fixed))
        return Region(self.place, (), self.text, held, self.closed).holds_at(fixed)

    def where(self, parameter: sp.Symbol, value: sp.Expr) -> Region:
        """Return the slice in which a parameter equals a value or formula of the others; its domain is dropped."""
        put = {condition: condition.subs(parameter, value) for condition in self.conditions}
        others = tuple(p for p in self.parameters if p != parameter)
        return Region(self.place, others, self.text, tuple(put.values()), tuple(put[c] for c in self.closed))

    def points(self, count: int = POINTS, fixed: Point | None = None) -> list[Point]:
        """Return rational points of the region, the same in every run.

        The first lie near the defaults, the others are spread over the region. `fixed` values are kept.
        """
        points: list[Point] = []
        for point in self._candidates(fixed or {}):
            if (not self.conditions or point not in points) and self.contains(point):
                points.append(point)
                if len(points) == count:
                    break
        if not points:
            raise ClaimError(
                f"{self.place}: no point of the region {self.text!r} was found in the domains of the parameters; an "
                "empty region says nothing, and a thin one needs bounds by numbers, such as 1 < nu < 2"
            )
        return points

    def _candidates(self, fixed: Point) -> Iterator[Point]:
        for attempt in range(POINTS):
            yield {**self._near_defaults(attempt), **fixed}
        box = self.box
        lowest = {p: low for p, (low, _) in box.items() if p.domain.whole and low is not None}
        least = {p: v for p, v in lowest.items() if v != self.typical[p] and p.domain.contains(float(v))}
        if least:
            yield {**self.typical, **least, **fixed}
        for n in range(1, TRIES if self.conditions else 64):
            point = {
                p: _spread(p, box[p], _radical_inverse(LEAP * n, PRIMES[i % len(PRIMES)])) for i, p in enumerate(box)
            }
            if all(p.domain.contains(float(v)) for p, v in point.items()):
                yield {**point, **fixed}

    def _near_defaults(self, attempt: int) -> Point:
        point: Point = {}
        for i, parameter in enumerate(self.parameters):
            default = sp.nsimplify(parameter.default, rational=True)
            if parameter.domain.whole:
                value = default + attempt
            else:
                factors = (sp.Rational(41 + 4 * i, 37), sp.Rational(31, 73 + 6 * i), sp.Rational(97, 53 + 2 * i))
                value = (default or sp.S.One) * factors[attempt]
            point[parameter] = value if parameter.domain.contains(float(value)) else default
        return point


def _domain(parameter: Parameter) -> Interval:
    low, high = parameter.domain.low, parameter.domain.high
    return (
        None if low == -mpmath.inf else sp.Rational(repr(float(low))),
        None if high == mpmath.inf else sp.Rational(repr(float(high))),
    )


def _radical_inverse(n: int, base: int) -> sp.Rational:
    """Return the radical inverse of n in a base: the van der Corput sequence, which is equidistributed in (0, 1)."""
    total, scale = sp.S.Zero, sp.Rational(1, base)
    while n:
        n, digit = divmod(n, base)
        total, scale = total + digit * scale, scale / base
    return total


def _spread(parameter: Parameter, interval: Interval, share: sp.Rational) -> sp.Rational:
    """Return a value of an interval: uniform if it is bounded, logarithmic otherwise."""
    low, high = interval
    default = sp.nsimplify(parameter.default, rational=True)
    odds = share / (1 - share)
    if low is not None and high is not None:
        value = low + (high - low) * share
    elif low is not None:
        value = low + (abs(default - low) or sp.S.One) * odds**2
    elif high is not None:
        value = high - (abs(high - default) or sp.S.One) * odds**2
    else:
        away = abs(2 * share - 1) / (1 - abs(2 * share - 1))
        value = default + (abs(default) or sp.S.One) * away * sp.sign(2 * share - 1)
    return sp.floor(value) if parameter.domain.whole else value
