"""Functions of real z outside the bulk as piecewise Chebyshev series, for finding all their real zeros.

Next to an edge they are smooth in a root of the distance, mostly the square root, and far away in 1/z. Each interval
has a variable in which both are smooth, and panels are bisected until the series converge to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev

from derive.errors import NumericalError
from numerics.bulk.law import DensityPiece

Array = np.ndarray
Evaluate = Callable[[Array], Array]
"""Real values at many real points: one number, or matrix, per point."""

NODES = 16
"""Chebyshev nodes per panel."""
SETTLED, NARROWEST = 1e-10, 1e-7
"""Relative size of the last coefficients of a converged series, and the width below which panels are not bisected
because of a point mass or rounding."""
NOISE = 1e-7
"""Last coefficients below this relative size that do not decrease on bisection are rounding."""
MOST = 20000
"""Most panels; more would mean that rounding or a singularity is being resolved."""
FIRST = 4
"""Initial panels per interval."""

_ANGLES = np.pi * (np.arange(NODES) + 0.5) / NODES
_PLACES = np.cos(_ANGLES)
_TO_COEFFICIENTS = 2 / NODES * np.cos(np.arange(NODES)[:, None] * _ANGLES)
_TO_COEFFICIENTS[0] /= 2


@dataclass(frozen=True)
class Interval:
    """An interval of the real axis, possibly infinite at one end, as the image of [0, 1].

    unit: a typical distance. roots: q at each end for which functions are smooth in (distance)^(1/q).
    """

    low: float
    high: float
    unit: float
    roots: tuple[int, int] = (2, 2)

    def z(self, u: Array) -> Array:
        with np.errstate(divide="ignore"):
            away: Array = self.unit * u ** self.roots[1 if np.isinf(self.low) else 0] / ((1 - u) * (1 + u))
        if np.isinf(self.high):
            return self.low + away
        if np.isinf(self.low):
            return self.high - away
        if self.roots != (2, 2):
            return DensityPiece(self.low, self.high, *self.roots).x(u)
        between: Array = self.low + (self.high - self.low) * np.sin(np.pi / 2 * u) ** 2
        return between


def intervals_outside(
    excluded: Sequence[tuple[float, float]], roots: Mapping[float, int] | None = None
) -> list[Interval]:
    """Return the complement of the excluded intervals. roots: the exponent q at ends where it is not 2."""
    ends, root = sorted(excluded), roots or {}
    low, high = ends[0][0], max(top for _, top in ends)
    unit = high - low or abs(high) or 1.0
    intervals, reached = [Interval(-np.inf, low, unit, (2, root.get(low, 2)))], ends[0][1]
    for bottom, top in ends[1:]:
        if bottom > reached:
            intervals.append(Interval(reached, bottom, unit, (root.get(reached, 2), root.get(bottom, 2))))
        reached = max(reached, top)
    return [*intervals, Interval(high, np.inf, unit, (root.get(high, 2), 2))]


@dataclass(frozen=True)
class ChebyshevPanel:
    """A function on part of an interval: Chebyshev coefficients, one row per degree."""

    interval: Interval
    begin: float
    end: float
    coefficients: Array

    def u(self, x: Array) -> Array:
        """Return the variable of the interval at places in [-1, 1]."""
        return (self.begin + self.end) / 2 + (self.end - self.begin) / 2 * x

    def z(self, x: Array) -> Array:
        return self.interval.z(self.u(x))

    def halves(self) -> tuple[ChebyshevPanel, ChebyshevPanel]:
        """Return the same series on both halves of the panel."""
        middle, rows = (self.begin + self.end) / 2, self.coefficients.reshape(len(self.coefficients), -1)
        to_left, to_right = (
            _TO_COEFFICIENTS @ chebyshev.chebvander((_PLACES + side) / 2, len(rows) - 1) for side in (-1, 1)
        )
        left, right = ((to @ rows).reshape(NODES, *self.coefficients.shape[1:]) for to in (to_left, to_right))
        return (
            ChebyshevPanel(self.interval, self.begin, middle, left),
            ChebyshevPanel(self.interval, middle, self.end, right),
        )


def panels(evaluate: Evaluate, intervals: Sequence[Interval], floor: float = 0.0) -> list[ChebyshevPanel]:
    """Return functions on all intervals on adaptively bisected panels; all panels of one width are evaluated together.

    floor: values below it count as zero.
    """
    steps = np.linspace(0, 1, FIRST + 1)
    open_ones = [(one, a, b, np.inf) for one in intervals for a, b in zip(steps, steps[1:], strict=False)]
    converged: list[ChebyshevPanel] = []
    while open_ones:
        u = np.array([(a + b) / 2 + (b - a) / 2 * _PLACES for _, a, b, _ in open_ones])
        z = np.concatenate([one.z(row) for (one, *_), row in zip(open_ones, u, strict=True)])
        values = evaluate(z)
        shape, values = values.shape[1:], values.reshape(len(open_ones), NODES, -1)
        narrower = []
        for (one, a, b, before), rows in zip(open_ones, values, strict=True):
            coefficients = _TO_COEFFICIENTS @ rows
            size = np.max(np.abs(coefficients))
            rest = np.max(np.abs(coefficients[-3:]))
            rounding = before / 8 < rest <= NOISE * size  # halves of a smooth function have far smaller ones
            settled = rest <= SETTLED * size or size <= floor or rounding
            if not settled and b - a > NARROWEST:
                narrower += [(one, a, (a + b) / 2, rest), (one, (a + b) / 2, b, rest)]
            else:
                converged.append(ChebyshevPanel(one, a, b, coefficients.reshape(NODES, *shape)))
        open_ones = narrower
        if len(open_ones) + len(converged) > MOST:
            raise NumericalError(
                "a function of z outside the bulk is not smooth on the real axis, so its zeros are uncertain; "
                "try other parameters"
            )
    return converged


def places_of(value: float, pieces: Sequence[ChebyshevPanel]) -> list[tuple[ChebyshevPanel, float]]:
    """Return where a real function on panels takes a value: the panels, and the positions in [-1, 1]."""
    places = []
    for panel in pieces:
        coefficients = panel.coefficients.copy()
        coefficients[0] -= value
        if not abs(coefficients[0]) <= np.sum(np.abs(coefficients[1:])) * (1 + 1e-6):
            continue
        size = np.max(np.abs(coefficients))
        significant = np.flatnonzero(np.abs(coefficients) > 1e-14 * size)
        roots = chebyshev.chebroots(coefficients[: significant[-1] + 1])
        roots = roots[(np.abs(roots.imag) < 1e-3) & (np.abs(roots.real) < 1 + 1e-6)].real
        places += [(panel, float(x)) for x in np.clip(roots, -1, 1)]
    return places


def crossings(evaluate: Evaluate, values: Sequence[float], pieces: Sequence[ChebyshevPanel]) -> list[list[float]]:
    """Return the points where a function takes each value, by Newton's method with slopes of the Chebyshev series."""
    starts = [(k, panel, x) for k, value in enumerate(values) for panel, x in places_of(value, pieces)]
    if not starts:
        return [[] for _ in values]
    goals = np.array([values[k] for k, _, _ in starts])
    x = np.array([place for _, _, place in starts])
    slopes = [chebyshev.chebder(panel.coefficients) for _, panel, _ in starts]
    for _ in range(3):
        z = np.array([float(panel.z(place)) for (_, panel, _), place in zip(starts, x, strict=True)])
        finite = np.isfinite(z)
        off = np.zeros(len(z))
        off[finite] = evaluate(z[finite]) - goals[finite]
        with np.errstate(all="ignore"):
            step = off / np.array([chebyshev.chebval(place, slope) for place, slope in zip(x, slopes, strict=True)])
        x = np.clip(x - np.where(np.isfinite(step), step, 0.0), -1 - 1e-6, 1 + 1e-6)
    places: list[list[float]] = [[] for _ in values]
    for (k, panel, _), place in zip(starts, x, strict=True):
        z_there = float(panel.z(place))
        if not any(abs(z_there - z) <= 1e-10 * (1 + abs(z)) for z in places[k]):
            places[k].append(z_there)
    return places
