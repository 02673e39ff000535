"""Squared overlaps of outlier eigenvectors with the span of the spikes, from residues of the projected resolvent.

With sources along the spikes H, the solution of A(z) q = b contains H^T (z - M)^-1 H, whose residue at an outlier with
eigenvector v is H^T v v^T H. Its trace with the inverse Gram matrix of the spikes is the squared norm of the projection
of v on the span of H. For M = K^T K a source in the equation of K psi0 gives the same for the left vector K v, times
z0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numerics.outliers.errors import Sides
from numerics.outliers.poles import Pole
from numerics.outliers.problem import SpikedProblem, driver, responses_at
from numerics.runtime.interface import Side
from numerics.support.precision import in_float64

SPAN = 1e-12
"""Tikhonov cutoff of the Gram matrix of unit spikes: a direction of weight w counts with the fraction w / (w + SPAN *
largest weight), here as in the simulation. A sharp cutoff on nearly dependent spikes would make samples differ by a
whole direction."""


@in_float64
def spike_overlaps(poles_of_outliers: Sequence[Pole]) -> list[Sides]:
    """Return the squared overlaps of each outlier's right and left vectors; degenerate outliers share their mean."""
    return [seen for pole in poles_of_outliers for seen in [_overlaps(pole)] * pole.count]


@in_float64
def are_resolved(problem: SpikedProblem, noise: float) -> bool:
    """Return whether every eigenvalue of the Gram matrix of unit spikes exceeds the noise."""
    for side in problem.probe.sides:
        _, weights, shares, _ = _spanned(_gram(problem, side))
        counted = weights[shares > 0.5]
        if len(counted) and counted[0] <= noise * counted[-1]:
            return False
    return True


@in_float64
def span_sizes(problem: SpikedProblem) -> dict[str, str]:
    """Return, for each side, the effective rank and the number of spikes as text."""
    sizes = {}
    for side in problem.probe.sides:
        gram = _gram(problem, side)
        sizes[side.name] = f"{float(np.sum(_spanned(gram)[2])):.3g} of {len(gram)}"
    return sizes


def directions_counted(size: str) -> float:
    """Return the effective rank from such a text."""
    return float(size.split()[0])


def _gram(problem: SpikedProblem, side: Side) -> np.ndarray:
    """Return the Gram matrix of the spikes of a side, which does not depend on z."""
    return _spikes(problem, side, 1.0 + 2 * max((abs(e) for pair in problem.excluded for e in pair), default=0.0))[2]


def _spikes(problem: SpikedProblem, side: Side, z: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return right-hand sides at z for sources along the spikes of a side, the rows that project on them, and their
    Gram matrix."""
    r = responses_at(problem, z) if side.sited else np.zeros(0)
    driven, seen, gram = (np.asarray(x) for x in driver(problem.probe, side)(problem.p, z, r, dict(problem.order)))
    there = np.diagonal(gram) > 0  # spikes of later times have norm zero
    return driven[:, there], seen[there], gram[np.ix_(there, there)]


def _overlaps(pole: Pole) -> Sides:
    """Return the overlaps of the outlier at a pole; None where there is no such vector."""
    squared: Sides = {"right": None, "left": None}
    for side in pole.problem.probe.sides:
        if np.isnan(pole.scale(side.name)):
            continue
        driven, seen, gram = _spikes(pole.problem, side, pole.z)
        weight = float(np.sum(pole.answers(driven).T * _over_gram(gram, seen @ pole.right)))
        squared[side.name] = weight * pole.scale(side.name) / pole.count
    return squared


def _over_gram(gram: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the regularised inverse of the Gram matrix times vectors."""
    lengths, weights, shares, directions = _spanned(gram)
    along = directions.T @ (vectors / lengths)
    solution: np.ndarray = directions @ (along * (shares / weights)[:, None]) / lengths
    return solution


def _spanned(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the norms of the spikes, and eigenvectors, eigenvalues and counted fractions of the unit spikes' Gram
    matrix."""
    lengths = np.sqrt(np.diagonal(gram))[:, None]
    weights, directions = np.linalg.eigh((gram + gram.T) / 2 / (lengths * lengths.T))
    there = weights > 0
    weights = weights[there]
    return lengths, weights, weights / (weights + SPAN * weights[-1:]), directions[:, there]
