"""How much of an outlier's vectors lies in the span of the spikes, from residues of the projected resolvent.

With a source along the spikes, the solution q(z) of A(z) q = b contains H^T (z - M)^-1 H, which has the pole
H^T v v^T H / (z - z0) at an outlier z0 with eigenvector v. Divided by the Gram matrix of the spikes its trace is the
squared length of what the span of H sees of v. For M = K^T K a source in the equation of K psi0 gives the same for the
left vector K v, with a residue that is larger by z0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from numerics.compiling import compiled
from numerics.outliers.errors import Sides
from numerics.outliers.linear import null_spaces
from numerics.outliers.problem import SpikedProblem, with_slope
from numerics.outliers.replicas import follow_zero
from numerics.precision import in_float64
from numerics.runtime.interface import Order, Side

SAME = 1e-7
"""Outliers closer than this, relatively, are one with multiplicity: only the sum of their residues is defined."""
SPAN = 1e-12
"""Directions whose weight in the Gram matrix of the unit spikes is smaller than this, relatively, are left out of the
span, here as in the simulation: spikes of many steps are nearly dependent, and rounding hides what is smaller."""


@in_float64
def spike_overlaps(problem: SpikedProblem, outliers: list[float]) -> list[Sides]:
    """For each outlier the squared overlap of its right and left vector; equal outliers share their mean."""
    found: list[Sides] = []
    for z, count in _clusters(outliers):
        matrix, slope = with_slope(problem, z)
        right, left = null_spaces(matrix, count)
        found += [_overlaps(problem, z, left.T @ slope @ right, right, left)] * count
    return found


@in_float64
def replica_overlaps(problem: SpikedProblem, outliers: list[float], orders: Sequence[Order]) -> list[list[Sides]]:
    """The same for each of several order parameters near those of the problem, by following its outliers; Lost if
    that fails."""
    found: list[list[Sides]] = [[] for _ in orders]
    for z, count in _clusters(outliers):
        for one, order, there in zip(found, orders, follow_zero(problem, z, count, orders), strict=True):
            seen = _overlaps(problem.with_order(order), there.centre, there.slope, there.right, there.left)
            one += [seen] * count
    return found


def _clusters(outliers: list[float]) -> list[tuple[float, int]]:
    """Outliers that are one with multiplicity: their mean and how many there are."""
    groups: list[list[float]] = []
    for z in outliers:
        if groups and abs(z - groups[-1][0]) <= SAME * (1 + abs(z)):
            groups[-1].append(z)
        else:
            groups.append([z])
    return [(float(np.mean(group)), len(group)) for group in groups]


@in_float64
def are_resolved(problem: SpikedProblem, noise: float) -> bool:
    """Whether every direction that unit spikes span weighs more than the noise in their Gram matrix."""
    for side in problem.probe.sides:
        weights = _spanned(_spikes(problem, side)[2])[1]
        if len(weights) and weights[0] <= noise * weights[-1]:
            return False
    return True


@in_float64
def span_sizes(problem: SpikedProblem) -> dict[str, str]:
    """On each side how many directions of how many spikes are counted."""
    sizes = {}
    for side in problem.probe.sides:
        gram = _spikes(problem, side)[2]
        sizes[side.name] = f"{len(_spanned(gram)[1])} of {len(gram)}"
    return sizes


def _spikes(problem: SpikedProblem, side: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The right-hand side for sources along the spikes of a side, the rows that see them, and their Gram matrix."""
    driven, seen, gram = (np.asarray(x) for x in _compiled(side)(problem.p, dict(problem.order)))
    return driven, seen, gram


@lru_cache(maxsize=64)
def _compiled(side: Side) -> Callable[..., Any]:
    return compiled(side.spikes, quickly=True)


def _overlaps(problem: SpikedProblem, z: float, middle: np.ndarray, right: np.ndarray, left: np.ndarray) -> Sides:
    """Overlaps of the outlier at z, with null vectors of A and its transpose there, and A' between them."""
    squared: Sides = {"right": None, "left": None}
    for side in problem.probe.sides:
        driven, seen, gram = _spikes(problem, side)
        column = seen @ right
        row = np.linalg.solve(middle, left.T @ driven)
        weight = float(np.sum(row.T * _over_gram(gram, column)))
        squared[side.name] = weight / right.shape[1] / (z if side.name == "left" else 1.0)
    return squared


def _over_gram(gram: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The inverse of the Gram matrix, on the directions that are there to rounding, times vectors."""
    lengths, weights, directions = _spanned(gram)
    found: np.ndarray = directions @ ((directions.T @ (vectors / lengths)) / weights[:, None]) / lengths
    return found


def _spanned(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lengths of the spikes, and the directions that unit spikes span with their weights."""
    squares = np.diagonal(gram)
    lengths = np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
    weights, directions = np.linalg.eigh((gram + gram.T) / 2 / (lengths * lengths.T))
    kept = weights > SPAN * weights[-1]
    return lengths, weights[kept], directions[:, kept]
