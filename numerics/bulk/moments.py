"""Moments of the bulk from the Laurent series of its resolvent at infinity, and traces with other matrices.

The moments are G = sum_k m_k / z^(k+1). Of the traces tr R A, tr R A R and tr R A R B the first is one of the
responses. Adding epsilon A to the matrix changes the resolvent by epsilon R A R, so the others are derivatives of
responses, which solve linear equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from numerics.bulk.branch import Branch, solve_batch
from numerics.bulk.curve import Curve
from numerics.bulk.settling import not_converged
from numerics.bulk.support import series_moments
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point
from numerics.support.precision import in_float64


def moments(branch: Branch, count: int, like: Branch | None = None) -> list[float]:
    """Return moments 0 to `count`: exact ones from the curve, rounded once, or by a contour integral of the resolvent.

    like: a branch with nearly the same spectrum whose contour can be reused.
    """
    exact = _rounded(branch.law, branch.own, count) if branch.eliminated else None
    if exact is not None:
        return list(exact)
    return [float(m) for m in series_moments(branch, count, like)]


def exact_moments(branch: Branch, count: int) -> list[Fraction] | None:
    """Return moments 0 to `count` as fractions; None without a rational curve, or if it branches at infinity.

    With G = w u and w = 1/z the curve is a polynomial in w and u. The series of u starts at 1, and each further
    coefficient enters its order linearly (Newton-Puiseux).
    """
    moments = _from_curve(branch.law, branch.own, count) if branch.eliminated else None
    return None if moments is None else list(moments)


@lru_cache(maxsize=256)
def _rounded(law: BulkLaw, p: Point, count: int) -> tuple[float, ...] | None:
    exact = _from_curve(law, p, count)
    return None if exact is None else tuple(map(float, exact))


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


SETTLED, MOST = 1e-9, 4096
"""Relative change of traces on doubling the quadrature nodes at which they have converged, and most nodes."""


@dataclass(frozen=True)
class ResolventTraces:
    """Traces at one point: beside[k] = tr R A_k, between[k] = tr R A_k R, both[k][l] = tr R A_k R A_l."""

    beside: np.ndarray
    between: np.ndarray
    both: np.ndarray


@in_float64
def traced(law: BulkLaw, branch: Branch, z: np.ndarray) -> list[ResolventTraces]:
    """Return the traces at points with Im z >= 0; branch: the branch of the bulk alone."""
    nodes = branch.law.nodes
    coarse = _traced(Branch(replace(law, nodes=nodes), branch.p), z)
    while law.settles:
        nodes *= 2
        finer = _traced(Branch(replace(law, nodes=nodes), branch.p), z)
        moved = max(_moved(a, b) for a, b in zip(finer, coarse, strict=True))
        coarse = finer
        if moved <= SETTLED:
            break
        if nodes >= MOST:
            raise not_converged(law.densities, f"with {nodes} values traces still change by {moved:.1e}")
    return coarse


def _moved(a: ResolventTraces, b: ResolventTraces) -> float:
    parts = ((a.beside, b.beside), (a.between, b.between), (a.both, b.both))
    return float(max(np.max(np.abs(x - y)) / max(np.max(np.abs(x)), 1e-300) for x, y in parts))


def _traced(branch: Branch, z: np.ndarray) -> list[ResolventTraces]:
    law = branch.law
    assert law.sources is not None
    z = np.asarray(z, complex)
    r = branch.responses(z).T
    _, _, slope = branch.equations(z, r)
    given = (*(() if law.sites is None else (law.sites(branch.p, law.nodes),)), *law.updated(branch.p))
    rates = law.sources(branch.p, z, list(r.T), *given)
    right = np.array([[np.broadcast_to(np.asarray(e), z.shape) for e in one] for one in rates])
    slope = np.array(slope, complex)
    if law.slopes is not None:
        for place, one in zip(law.vanishing, law.slopes(branch.p, z, list(r.T), *given), strict=True):
            slope[:, :, place] = np.array([np.broadcast_to(np.asarray(e), z.shape) for e in one]).T
    with np.errstate(all="ignore"):
        moved = solve_batch(slope, -np.moveaxis(right, (0, 1, 2), (2, 1, 0)))
    places = [place for _, place in law.images]
    # tr R A R B is symmetric in A and B, so the order of derivatives does not matter
    return [ResolventTraces(r[i, places], moved[i, law.resolvent], moved[i, places].T) for i in range(z.size)]
