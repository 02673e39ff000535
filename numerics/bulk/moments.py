"""Moments of the bulk from the Laurent series of its resolvent at infinity, G = sum_k m_k / z^(k+1)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from numerics.bulk.branch import Branch
from numerics.bulk.curve import Curve
from numerics.bulk.support import series_moments
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point


def moments(branch: Branch, count: int, like: Branch | None = None) -> list[float]:
    """Return moments 0 to `count`: exact ones from the curve, rounded once, or by a contour integral of the resolvent.

    like: a branch with nearly the same spectrum whose contour can be reused.
    """
    exact = exact_moments(branch, count)
    if exact is not None:
        return [float(m) for m in exact]
    return [float(m) for m in series_moments(branch, count, like)]


def exact_moments(branch: Branch, count: int) -> list[Fraction] | None:
    """Return moments 0 to `count` as fractions; None without a rational curve, or if it branches at infinity.

    With G = w u and w = 1/z the curve is a polynomial in w and u. The series of u starts at 1, and each further
    coefficient enters its order linearly (Newton-Puiseux).
    """
    moments = _from_curve(branch.law, branch.own, count) if branch.eliminated else None
    return None if moments is None else list(moments)


@lru_cache(maxsize=256)
def _from_curve(law: BulkLaw, p: Point, count: int) -> tuple[Fraction, ...] | None:
    curve = Curve.of(law, p)
    if curve is None:
        return None
    terms = [(i, i - j, c) for i, row in enumerate(curve.exact) for j, c in enumerate(row) if c]
    lowest = min(power for _, power, _ in terms)
    terms = [(i, power - lowest, Fraction(c)) for i, power, c in terms]
    value = sum((c for _, power, c in terms if power == 0), Fraction(0))
    slope = sum((i * c for i, power, c in terms if power == 0), Fraction(0))
    if value != 0 or slope == 0:
        return None
    series = [Fraction(1)]
    for order in range(1, count + 1):
        truncated = [*series, Fraction(0)]
        series.append(-_coefficient(terms, truncated, order) / slope)
    return tuple(series)


def _coefficient(terms: list[tuple[int, int, Fraction]], series: list[Fraction], order: int) -> Fraction:
    """Return the coefficient of w^order of the polynomial at the truncated series."""
    powers = [[Fraction(1)] + [Fraction(0)] * order]
    for _ in range(max(i for i, _, _ in terms)):
        last = powers[-1]
        powers.append([sum((last[a] * series[k - a] for a in range(k + 1)), Fraction(0)) for k in range(order + 1)])
    return sum((c * powers[i][order - power] for i, power, c in terms if power <= order), Fraction(0))
