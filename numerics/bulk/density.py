"""The density of the bulk, -Im G / pi: at given points, and as Chebyshev series on adaptive panels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import CLOSEST, Branch, begun, follow, polish
from numerics.bulk.curve import Curve
from numerics.bulk.law import NODES, DensityPanel, DensityPiece, Panelled
from numerics.support.precision import in_float64
from numerics.support.progress import Report, part, quiet

PANEL_ERROR = 3e-14
MOST_PANELS = 600
MOST_ROOT = 12
"""Largest denominator q of an exponent p/q with which the density may start at an edge."""
DIVERGES = -0.1
"""Exponent below which the density counts as divergent at an edge."""
DECADES, TIP = 12, 1e-12
"""Where sites differ, a divergent density is resolved over DECADES decades of the distance to the edge, down to the
fraction TIP of the piece, and is a power law below."""


@in_float64
def resolvent_at(branch: Branch, z: np.ndarray, tell: Report = quiet) -> tuple[np.ndarray, np.ndarray]:
    """Return G at points with Im z >= 0, and an estimate of its absolute error.

    If there is a curve, only G is continued. Points at which the curve is ill-conditioned or continuation fails are
    repeated with the full system.
    """
    z = np.asarray(z, complex)
    g, errors = np.zeros(z.shape, complex), np.full(z.shape, np.inf)
    curve = Curve.of(branch.law, branch.own) if branch.eliminated else None
    if curve is not None and z.size:
        g, errors = _on_curve(branch, curve, z)
    again = ~(errors <= 1e-11 * np.maximum(np.abs(g), 1 / branch.start.height))
    if again.any():
        r, relative = branch.certain(z[again], tell, "density of the bulk")
        whole = r[:, branch.resolvent_index]
        absolute = (relative + 1e-15) * np.abs(whole)
        better = ~(absolute > errors[again])
        places = np.flatnonzero(again)[better]
        g[places], errors[places] = whole[better], absolute[better]
    return g, errors


def _on_curve(branch: Branch, curve: Curve, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    heights = np.maximum(branch.start.height, np.abs(z))
    kernel, own = curve.kernel, [branch.resolvent_index]
    with np.errstate(all="ignore"):
        try:
            r, tangent = begun(kernel, 1j * heights, branch.start.above(heights)[:, own])
        except NumericalError:
            return np.zeros(z.shape, complex), np.full(z.shape, np.inf)
        typical = branch.start.responses[own]
        r, errors = polish(kernel, z, *follow(kernel, 1j * heights, z, r, tangent, 0), typical)
        g = r[:, 0]
        bound = np.where(np.isfinite(errors), errors * np.abs(g) + curve.rounding(z, g).real, np.inf)
    return g, np.where(np.isfinite(bound), bound, np.inf)


def pieces_of(
    branch: Branch, intervals: Sequence[tuple[float, float]], breaks: np.ndarray
) -> tuple[list[DensityPiece], list[DensityPiece]]:
    """Cut intervals at the given points; return the pieces with the exponents of the density at their ends, and the
    tips. A tip is an interval next to a divergent edge, too close to it for continuation.
    """
    cuts = []
    for low, high in intervals:
        inner = [float(x) for x in breaks if low < x < high]
        cuts += list(itertools.pairwise([low, *inner, high]))
    exponents = _exponents(branch, cuts)
    if not branch.by_factors:
        return [DensityPiece(*cut, *map(_root_of, pair)) for cut, pair in zip(cuts, exponents, strict=True)], []
    pieces, tips = [], []
    for (low, high), (first, last) in zip(cuts, exponents, strict=True):
        width = high - low
        closest = max(TIP, 10 * CLOSEST * branch.start.height / width)
        below, above = first < DIVERGES, last < DIVERGES
        shares = [share for share in 10.0 ** -np.arange(DECADES, 0, -1) if share >= closest]
        if not shares:  # too short to be computed: tips alone
            shares = [1 / 2] if below and above else [1.0]
        ends = [float(low + width * share) for share in shares if below]
        if below:
            tips.append(DensityPiece(low, ends[0], _tip_root(first), 1))
        ends += [float(high - width * share) for share in shares[::-1] if above]
        if above:
            tips.append(DensityPiece(ends[-1], high, 1, _tip_root(last)))
        places = sorted({*ends, *([] if below else [low]), *([] if above else [high])})
        within = [DensityPiece(a, b, 2, 2) for a, b in itertools.pairwise(places)]
        if within and not above:
            within[-1] = replace(within[-1], b=_root_of(last))
        pieces += within
    return pieces, tips


def _tip_root(exponent: float) -> int:
    """Return the q for which a density with this divergent exponent is smooth in (distance)^(1/q)."""
    return min(max(round(1 / max(1 + exponent, 1e-3)), 2), MOST_ROOT)


def tip_panel(branch: Branch, tip: DensityPiece) -> DensityPanel:
    """Return the density next to a divergent edge as the power law that matches at the other end of the tip."""
    upper = tip.b > 1
    width, x = tip.high - tip.low, tip.low if upper else tip.high
    g, _ = resolvent_at(branch, x + (-1 if upper else 1) * width * np.array([0.0, 1.0]))
    exponent = np.log(g[1].imag / g[0].imag) / np.log(2.0)
    mass = -g[0].imag / np.pi * width / max(1 + exponent, 1 / (2 * MOST_ROOT))
    return DensityPanel(tip, 0.0, 1.0, np.array([mass]), 0.0)


def roots_of(branch: Branch, intervals: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """Return, for both ends of each interval, the q for which the density is smooth in (distance)^(1/q)."""
    return [(_root_of(first), _root_of(last)) for first, last in _exponents(branch, intervals)]


def out_of_reach(branch: Branch, intervals: Sequence[tuple[float, float]]) -> dict[float, float]:
    """Return the edges at which the density diverges, each with the distance below which it cannot be computed."""
    if not branch.by_factors:
        return {}
    pairs = zip(intervals, _exponents(branch, intervals), strict=True)
    exponents = {end: power for ends, powers in pairs for end, power in zip(ends, powers, strict=True)}
    return {
        end: 100 * CLOSEST * (branch.start.height + abs(end)) for end, power in exponents.items() if power < DIVERGES
    }


def _exponents(branch: Branch, intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the exponent of the density at both ends of each interval."""
    if not intervals:
        return []
    lows, highs = np.array(intervals).T
    width = highs - lows
    ends = np.concatenate([lows, highs])
    side = np.concatenate([np.ones(lows.size), -np.ones(highs.size)])
    spans = np.concatenate([width, width])
    closest = 1e-12 if not branch.by_factors else max(TIP, 10 * CLOSEST * branch.start.height / float(np.min(width)))
    near = np.where(ends == 0, closest, np.maximum(1e-7, 1e-9 * np.abs(ends) / spans)) * spans
    samples = [-resolvent_at(branch, ends + side * near * factor)[0].imag for factor in (1.0, 4.0)]
    with np.errstate(all="ignore"):
        exponents = np.log(samples[1] / samples[0]) / np.log(4.0)
    return list(zip(exponents[: lows.size].tolist(), exponents[lows.size :].tolist(), strict=True))


def _root_of(exponent: float) -> int:
    """Return q if the density starts like (distance)^(p/q): 1/2 and 1/3 at edges, -k/(k+1) and -1/3 at hard edges.

    The measured exponent is affected by the next term of the expansion, so the simplest of the exponents that fit
    almost equally well is chosen.
    """
    if not np.isfinite(exponent) or exponent > DIVERGES:
        return 3 if 0.28 < exponent < 0.4 else 2
    powers = [(p, q) for q in range(2, MOST_ROOT + 1) for p in range(1, q)]
    return min(powers, key=lambda power: abs(exponent + power[0] / power[1]) + 2e-3 * power[1])[1]


def build_panels(branch: Branch, pieces: list[DensityPiece], tell: Report = quiet) -> Panelled:
    """Bisect panels until each Chebyshev series has converged; all panels of a generation are evaluated at once."""
    angle = (2 * np.arange(NODES) + 1) * np.pi / (2 * NODES)
    nodes = -np.cos(angle)
    to_series = np.linalg.inv(np.polynomial.chebyshev.chebvander(nodes, NODES - 1))
    pending = [(piece, k / 2, (k + 1) / 2) for piece in pieces for k in range(2)]
    done: list[DensityPanel] = []
    zeros: list[float] = []
    while pending:
        t = np.array([(t0 + t1) / 2 + (t1 - t0) / 2 * nodes for _, t0, t1 in pending])
        x = np.array([piece.x(row) for (piece, _, _), row in zip(pending, t, strict=True)])
        rate = np.array([piece.rate(row) for (piece, _, _), row in zip(pending, t, strict=True)])
        done_share = sum(p.t1 - p.t0 for p in done) / max(1, len(pieces))
        g, errors = resolvent_at(branch, x.ravel(), part(tell, done_share, 1.0))
        if not np.all(np.isfinite(errors)):
            lost = x.ravel()[~np.isfinite(errors)][0]
            raise NumericalError(f"the density of the bulk could not be found at x = {lost:.6g}")
        values = (-g.imag / np.pi).reshape(x.shape)
        noise = (errors.reshape(x.shape) * rate).max(axis=1)
        following = []
        for i, (piece, t0, t1) in enumerate(pending):
            inside = (x[i] > piece.low) & (x[i] < piece.high)
            empty = inside & (g.reshape(x.shape)[i].imag == 0)
            zeros += [float(v) for v in x[i][empty]]
            series = to_series @ (values[i] * rate[i])
            tail = float(np.max(np.abs(series[-3:]))) * (t1 - t0)
            floor = 20 * float(noise[i]) * (t1 - t0) + 1e-15 * float(np.max(np.abs(series))) * (t1 - t0)
            small = t1 - t0 < 1e-8 or len(done) + len(pending) > MOST_PANELS
            if tail <= max(PANEL_ERROR, floor) or small or empty.any():
                done.append(DensityPanel(piece, t0, t1, series, tail + floor))
            else:
                middle = (t0 + t1) / 2
                following += [(piece, t0, middle), (piece, middle, t1)]
        pending = following
    done.sort(key=lambda p: (p.piece.low, p.t0))
    return Panelled(tuple(done), tuple(sorted(zeros)))
