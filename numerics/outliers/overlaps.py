"""Squared overlaps of an outlier's vectors with the span of the spikes, from residues of the projected resolvent.

With a source along the spikes, the solution q(z) of A(z) q = b contains H^T (z - M)^-1 H, which has the pole
H^T v v^T H / (z - z0) at an outlier z0 with eigenvector v. Multiplied by the inverse Gram matrix of the spikes, its
trace is the squared length of the projection of v on the span of H. For M = K^T K a source in the equation of K psi0
gives the same for the left vector K v, with a residue larger by the factor z0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numerics.outliers.errors import Sides
from numerics.outliers.poles import Pole
from numerics.outliers.problem import SpikedProblem, driven_by, responses_at
from numerics.runtime.interface import Side
from numerics.support.precision import in_float64
from numerics.support.reports import SpikeSpan

SPAN = 1e-12
"""A direction of weight w in the Gram matrix of the unit spikes has the weight w / (w + SPAN * largest weight), here
and in the simulation. Spikes of many steps are nearly dependent and rounding hides the smallest of their directions;
with a sharp cutoff samples would differ by a whole direction."""


@in_float64
def spike_overlaps(found: Sequence[Pole]) -> list[Sides]:
    """Return for each outlier the squared overlap of its right and left vector; equal outliers get the mean of their
    overlaps.
    """
    return [seen for pole in found for seen in [_overlaps(pole)] * pole.count]


@in_float64
def are_resolved(problem: SpikedProblem, noise: float) -> bool:
    """Return whether the weight of every direction spanned by unit spikes exceeds the noise in their Gram matrix."""
    for side in problem.probe.sides:
        _, weights, shares, _ = _spanned(_gram(problem, side))
        counted = weights[shares > 0.5]
        if len(counted) and counted[0] <= noise * counted[-1]:
            return False
    return True


@in_float64
def spike_spans(problem: SpikedProblem) -> dict[str, SpikeSpan]:
    """Return the span of the spikes on each side."""
    sizes = {}
    for side in problem.probe.sides:
        gram = _gram(problem, side)
        sizes[side.name] = SpikeSpan(float(np.sum(_spanned(gram)[2])), len(gram))
    return sizes


def _gram(problem: SpikedProblem, side: Side) -> np.ndarray:
    """Return the Gram matrix of the spikes of a side, which does not depend on z, evaluated away from the bulk."""
    return _spikes(problem, side, 1.0 + 2 * max((abs(e) for pair in problem.excluded for e in pair), default=0.0))[2]


def _spikes(problem: SpikedProblem, side: Side, z: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the right-hand side at z for sources along the spikes of a side, the rows that project on them, and their
    Gram matrix."""
    r = responses_at(problem, z) if side.sited else np.zeros(0)
    driven, seen, gram = driven_by(problem, side, z, r)
    there = np.diagonal(gram) > 0  # spikes that are not there yet have no length
    return driven[:, there], seen[there], gram[np.ix_(there, there)]


def _overlaps(pole: Pole) -> Sides:
    """Return overlaps of the outlier at a pole; None if there is no such vector."""
    squared: Sides = {"right": None, "left": None}
    for side in pole.problem.probe.sides:
        if np.isnan(pole.scale(side.name)):
            continue
        driven, seen, gram = _spikes(pole.problem, side, pole.z)
        weight = float(np.sum(pole.answers(driven).T * _over_gram(gram, seen @ pole.right)))
        squared[side.name] = weight * pole.scale(side.name) / pole.count
    return squared


def _over_gram(gram: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the weighted inverse of the Gram matrix times vectors."""
    lengths, weights, shares, directions = _spanned(gram)
    along = directions.T @ (vectors / lengths)
    found: np.ndarray = directions @ (along * (shares / weights)[:, None]) / lengths
    return found


def _spanned(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the lengths of the spikes, and the principal directions of the unit spikes with their eigenvalues and
    weights, in ascending order.
    """
    lengths = np.sqrt(np.diagonal(gram))[:, None]
    weights, directions = np.linalg.eigh((gram + gram.T) / 2 / (lengths * lengths.T))
    there = weights > 0
    weights = weights[there]
    return lengths, weights, weights / (weights + SPAN * weights[-1:]), directions[:, there]
