"""The support of the bulk: from the roots of the edge polynomials, or from continuation along the real axis."""

from __future__ import annotations

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import CLOSEST, Branch
from numerics.bulk.curve import Curve, singular_points
from numerics.bulk.density import resolvent_at
from numerics.bulk.folds import End, march
from numerics.support.progress import Report, quiet

Intervals = list[tuple[float, float]]


def edge_candidates(branch: Branch) -> np.ndarray:
    """Return the real roots of the edge polynomials, ascending; empty if the curve degenerates at these parameters."""
    points = singular_points(branch.law, branch.own) if branch.eliminated else None
    return np.array([z.real for z in points or () if z.imag == 0])


def nearly_edges(branch: Branch) -> np.ndarray:
    """Return points of the support close to a complex branch point of the curve, where the density varies rapidly."""
    points = singular_points(branch.law, branch.own) if branch.eliminated else None
    real = edge_candidates(branch)
    return np.array(
        [z.real for z in points or () if z.imag > 0 and real.size and z.imag < 1e-3 * np.min(np.abs(real - z.real))]
    )


def support_from_curve(branch: Branch) -> Intervals | None:
    """Return the intervals between edge candidates on which the density is positive; None if candidates are missing."""
    if not branch.eliminated or singular_points(branch.law, branch.own) is None:
        return None
    points = edge_candidates(branch)
    if points.size < 2:
        return []
    g, errors = resolvent_at(branch, (points[1:] + points[:-1]) / 2)
    if not np.all(np.isfinite(errors)):
        return None
    dense = -g.imag > 10 * errors
    intervals: list[list[float]] = []
    for low, high, filled in zip(points[:-1], points[1:], dense, strict=True):
        if not filled:
            continue
        if (
            intervals
            and intervals[-1][1] == low
            and not _vanishes(branch, low, min(low - intervals[-1][0], high - low))
        ):
            intervals[-1][1] = float(high)
        else:
            intervals.append([float(low), float(high)])
    return [(low, high) for low, high in intervals]


def _vanishes(branch: Branch, x: float, width: float) -> bool:
    """Return whether the density vanishes at an edge candidate inside the support, where two intervals touch."""
    g, _ = resolvent_at(branch, x + 1j * width * np.array([1e-5, 1e-8]))
    return bool(abs(g[1].imag) < 0.3 * abs(g[0].imag))


def support_from_branch(
    branch: Branch, more: tuple[float, ...] = (), tell: Report = quiet
) -> tuple[Intervals, np.ndarray]:
    """Return the intervals of the support by continuation along the real axis, and the sampled points outside it.

    From infinity on either side the branch is followed to its first fold or pole. The density is sampled between these
    ends, and from the outermost samples of each gap the branch is followed to the folds that bound it. `more` adds
    sample points. A gap below about 1e-9 of the width of the bulk may be missed.
    """
    far = 10 * branch.start.height
    r, _ = branch.followed(np.array([far, -far]))
    top, bottom = march(branch, far, r[0], upward=False), march(branch, -far, r[1], upward=True)
    if top.z <= bottom.z:
        return [], np.zeros(0)
    finest = 1e-14 if not branch.by_factors else 10 * CLOSEST
    x = _samples(bottom.z, top.z, more, finest)
    r, errors = branch.certain(x, tell, "support of the bulk")
    converged = np.isfinite(errors) & (errors < 1e-6)
    spare = (np.minimum(x - bottom.z, top.z - x) < 1e-4 * (top.z - bottom.z)) | np.isin(x, more)
    if np.any(~converged & ~spare):
        raise NumericalError(f"the bulk could not be continued to x = {x[~converged & ~spare][0]:.6g}")
    x, r = x[converged], r[converged]
    empty = r[:, branch.resolvent_index].imag == 0
    intervals: Intervals = []
    begin: float | None = None if empty[0] else bottom.z
    for i in range(x.size - 1):
        if empty[i] and not empty[i + 1]:
            begin = _met(march(branch, x[i], r[i], upward=True), x[i], x[i + 1])
        elif not empty[i] and empty[i + 1] and begin is not None:
            intervals.append((begin, _met(march(branch, x[i + 1], r[i + 1], upward=False), x[i], x[i + 1])))
            begin = None
    if begin is not None:
        intervals.append((begin, top.z))
    return intervals, x[empty]


def _met(end: End, low: float, high: float) -> float:
    """Return the position of a gap's end, after a check that it lies between the samples that bracket it."""
    slack = 1e-12 * (abs(low) + abs(high))
    if not low - slack <= end.z <= high + slack:
        raise NumericalError(f"the edge of the bulk between {low:.6g} and {high:.6g} could not be found")
    return end.z


def _samples(low: float, high: float, more: tuple[float, ...], finest: float) -> np.ndarray:
    """Return points inside an interval, graded geometrically towards its ends."""
    width = high - low
    smooth = (1 - np.cos(np.pi * (np.arange(80) + 0.5) / 160)) / 2  # each half from its own end
    fine = np.geomspace(finest, 0.03, 57)
    offsets = np.concatenate([width * smooth, width * fine])
    lower, upper = offsets[offsets > 1e-12 * abs(low)], offsets[offsets > 1e-12 * abs(high)]
    x = np.concatenate([low + lower, high - upper, np.asarray(more, float)])
    return np.unique(x[(x > low) & (x < high)])


def decades(intervals: Intervals) -> np.ndarray:
    """Return points at 10^-k of the width above the lower end of each interval, k = 1, ..., 14."""
    return np.array([low + (high - low) * 10.0**-k for low, high in intervals for k in range(1, 15)])


def hidden_masses(branch: Branch, empty: np.ndarray) -> list[tuple[float, float, float]]:
    """Return (low, high, mass) for neighbouring empty points with mass between them, by a contour integral of G."""
    if empty.size < 2:
        return []
    low, high = empty[:-1], empty[1:]
    turn = np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32)
    around = (high - low)[:, None] / 2 * turn
    g, _ = resolvent_at(branch, ((low + high)[:, None] / 2 + around).ravel())
    masses = np.mean((g.reshape(around.shape) * around).real, axis=1)
    return [(float(a), float(b), float(m)) for a, b, m in zip(low, high, masses, strict=True) if m > 1e-9]


def atom_at(branch: Branch, x: float, intervals: Intervals) -> float:
    """Return the weight of the point mass at x, or zero."""
    inside = any(low <= x <= high for low, high in intervals)
    height = branch.start.height
    gaps = [abs(e - x) for pair in intervals for e in pair if e != x]
    reach = min([height, *gaps])
    if not inside and not branch.eliminated:
        around = _around(branch, x, reach)
        return around if around > 1e-12 else 0.0
    levels = np.array([1e-18, 1e-20]) * height if x == 0 else np.array([1e-6, 1e-7]) * reach
    if x == 0 and branch.by_factors:
        levels = np.array([1e-9, 10 * CLOSEST]) * height
    if not inside:
        levels = np.minimum(levels, 1e-3 * reach * np.array([1.0, 0.01]))
    g, errors = resolvent_at(branch, x + 1j * levels)
    weights = (1j * levels * g).real
    if not np.all(np.isfinite(errors)) or weights[1] < 1e-12 or weights[1] < 0.9 * weights[0]:
        return 0.0
    weight = float(weights[1])
    curve = Curve.of(branch.law, branch.own) if branch.eliminated else None
    if curve is not None:
        residues = curve.residues(x)
        if residues.size and np.min(np.abs(residues - weight)) < 1e-2 * weight:
            return float(residues[np.argmin(np.abs(residues - weight))])
    return weight if inside else _around(branch, x, reach)


def _around(branch: Branch, x: float, reach: float) -> float:
    """Return the mass within a circle around an isolated point, by a contour integral of G."""
    turn = np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32) * reach / 2
    return float(np.mean((resolvent_at(branch, x + turn)[0] * turn).real))
