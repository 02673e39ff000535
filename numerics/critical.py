"""The largest stable rate of linear training, from the equations of its limit of many steps.

Responses R(z) obey F(z, R) = 0 and are analytic outside the circle |1 + z| = 1 as long as training is stable: their
singularities are the spectrum of the recursion that a step of training applies. At the critical rate a branch point,
where the Jacobian dF/dR is singular, reaches the circle. A bracket comes from bisection of stability itself, by
Cauchy's formula; Newton's method for the fold, F = 0 and (dF/dR) v = 0 with |1 + z| = 1, then gives the rate to
rounding. No step of training is run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from derive.errors import NumericalError
from numerics.limit import Growing, Way, way_at
from numerics.precision import in_float64
from numerics.runtime.interface import NODES, LabelledLimitOf, LimitOf
from numerics.runtime.point import Point

RADII = (0.25, 0.05, 0.01, 2e-3, 4e-4, 8e-5)
"""Radii around z = 0, where modes without a ridge stay for ever, that are tried until nothing else lies inside."""
FARTHEST = 60
"""Factors of two by which the search may leave the rate that it starts from."""
BRACKET, FINEST = 1e-3, 1e-7
"""Relative width of the bracket from which Newton's method starts, and of the one that is given where it fails."""
ANGLES = 400
"""Points of the half circle on which the most singular one is sought."""
CONVERGED = 1e-12
"""Relative size of the last Newton step."""


@dataclass(frozen=True)
class CriticalRate:
    """The rate at which training stops to be stable, how far it may be off, and the angle of the mode on the unit
    circle that then lasts for ever: pi for one that changes its sign at every step."""

    rate: float
    error: float
    angle: float


@in_float64
def critical_rate(
    limit: LimitOf | LabelledLimitOf, point_at: Callable[[float], Point], start: float
) -> CriticalRate | None:
    """The largest stable rate; None where stability cannot be decided, as where modes decay arbitrarily slowly."""
    nodes = NODES
    found = _critical(limit, point_at, start, nodes)
    while limit.settles and found is not None:
        nodes *= 2
        finer = _critical(limit, point_at, found.rate, nodes)
        if finer is None or nodes > 4096:
            return None
        moved, found = abs(finer.rate - found.rate), finer
        if moved <= 1e-10 * found.rate:
            break
    return found


def _critical(
    limit: LimitOf | LabelledLimitOf, point_at: Callable[[float], Point], start: float, nodes: int
) -> CriticalRate | None:
    def way(rate: float) -> Way:
        return way_at(limit, point_at(rate), nodes)

    bracket = _bracket(lambda rate: stable_radius(way(rate)) is not None, start)
    if bracket is None:
        return None
    low, high = bracket
    polished = _fold(way, low, high)
    if polished is not None:
        return polished
    low, high = _bisected(lambda rate: stable_radius(way(rate)) is not None, low, high, FINEST)
    return CriticalRate((low + high) / 2, (high - low) / 2, math.nan)


def stable_radius(way: Way) -> float | None:
    """The largest radius around z = 0 outside of which training is seen to be stable; None if there is none."""
    for radius in RADII:
        try:
            way.check_stable(radius)
        except Growing:
            return None
        except (NumericalError, np.linalg.LinAlgError):
            continue
        return radius
    return None


def _bracket(stable: Callable[[float], bool], start: float) -> tuple[float, float] | None:
    """A stable and an unstable rate close to each other."""
    low = start
    for _ in range(FARTHEST):
        if stable(low):
            break
        low /= 2
    else:
        return None
    high = 2 * low
    for _ in range(FARTHEST):
        if not stable(high):
            return _bisected(stable, low, high, BRACKET)
        low, high = high, 2 * high
    return None


def _bisected(stable: Callable[[float], bool], low: float, high: float, width: float) -> tuple[float, float]:
    while high / low - 1 > width:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low, high


def _fold(way: Callable[[float], Way], low: float, high: float) -> CriticalRate | None:
    """Newton's method for a branch point on the circle, from the most singular point at a stable rate."""
    here = way(low)
    count = here.equations.count
    radius = stable_radius(here)
    if count == 0 or radius is None:
        return None
    angles = np.linspace(2 * math.asin(radius / 2), math.pi, ANGLES)
    reached = here.along(np.exp(1j * angles) - 1, here.on_circle(radius))
    slopes = [here.equations.system(one.z, one.responses)[2] for one in reached]
    sizes = [np.linalg.svd(slope / np.max(np.abs(slope), axis=1, keepdims=True), compute_uv=False) for slope in slopes]
    place = int(np.argmin([s[-1] for s in sizes]))
    null = np.linalg.svd(slopes[place])[2][-1].conj()
    real = place == ANGLES - 1
    responses = reached[place].responses
    weights = null.conj()

    def unpack(x: np.ndarray) -> tuple[float, float, np.ndarray, np.ndarray]:
        if real:
            return x[0] * low, math.pi, x[1 : count + 1], x[count + 1 :]
        parts = x[2:].reshape(4, count)
        return x[0] * low, x[1], parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]

    def residual(x: np.ndarray) -> np.ndarray:
        rate, angle, r, v = unpack(x)
        value, _, slope = way(rate).equations.system(complex(np.exp(1j * angle) - 1), np.asarray(r, complex))
        found = np.concatenate([value, slope @ v, [weights @ v - 1]])
        return found.real if real else np.concatenate([found.real, found.imag])

    if real:
        phase = np.exp(-1j * np.angle(null[np.argmax(np.abs(null))]))
        null, weights = (null * phase).real, (null * phase).real
        x = np.concatenate([[1.0], responses.real, null / (weights @ null)])
    else:
        x = np.concatenate([[1.0, angles[place]], responses.real, responses.imag, null.real, null.imag])
    x, step = _newton(residual, x)
    rate = x[0] * low
    if not (step <= CONVERGED and low * (1 - BRACKET) <= rate <= high * (1 + BRACKET)):
        return None
    return CriticalRate(float(rate), float(max(step, 1e-13) * rate), math.pi if real else float(x[1]))


def _newton(residual: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> tuple[np.ndarray, float]:
    """A zero by Newton's method with central differences, and the relative size of the last step in the first entry."""
    last = math.inf
    with np.errstate(all="ignore"):
        for _ in range(40):
            value = residual(x)
            widths = 1e-6 * (np.abs(x) + 1e-3)
            columns = []
            for k, width in enumerate(widths):
                shift = np.zeros_like(x)
                shift[k] = width
                columns.append((residual(x + shift) - residual(x - shift)) / (2 * width))
            try:
                step = np.linalg.lstsq(np.array(columns).T, value, rcond=None)[0]
            except np.linalg.LinAlgError:
                return x, math.inf
            if not np.isfinite(step).all():
                return x, math.inf
            x, last = x - step, abs(step[0] / x[0])
            if last <= CONVERGED / 10:
                break
    return x, last
