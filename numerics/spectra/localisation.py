"""Localisation of singular vectors: how many rows and columns of a matrix carry a direction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from numerics.support.threads import threads_for

MOST_VECTORS = 8
"""Most outliers whose singular vectors are computed."""
LOCALISED = 6.0
"""Number of standard deviations above a random direction from which a vector counts as localised: the probability by
chance is 1/1000 at 20 entries, 1/8000 at 300."""


@dataclass(frozen=True)
class Participation:
    """The effective number of entries of a unit vector, 1 / sum u_i^4: one for a single entry, n for equal entries.

    Averaged over the unit sphere u_i^4 is 3 / (n (n + 2)), so a random direction has about n / 3 entries.

    Attributes:
        size: number of entries n.
        ratio: the participation ratio 1 / sum u_i^4.
        error: its standard error by the infinitesimal jackknife, for entries that are independent draws; sqrt(k) for a
            vector on k of many entries.
        deviations: sum u_i^4 minus its mean over random directions, in standard deviations over these.
    """

    size: int
    ratio: float
    error: float
    deviations: float

    @property
    def localised(self) -> bool:
        """Whether a random direction is never this concentrated."""
        return self.deviations > LOCALISED


@dataclass(frozen=True)
class TopVectors:
    """Localisation of the left and right singular vector of one of the largest singular values.

    Attributes:
        rank: 0 for the largest singular value.
        left: the localisation over the rows of the matrix.
        right: that over its columns.
        doubts: reasons not to trust that these are the rows and columns of a learned direction.
    """

    rank: int
    left: Participation
    right: Participation
    doubts: tuple[str, ...]


def participation(vector: np.ndarray) -> Participation:
    """Return the participation ratio of a vector, with its error."""
    size = len(vector)
    squares = vector**2 / (vector @ vector)
    fourth = float(squares @ squares)
    influence = 2.0 * squares - squares**2 / fourth - 1.0 / size
    mean = 3.0 / (size + 2)
    deviation = math.sqrt(24.0 * (size - 1) / ((size + 2) ** 2 * (size + 4) * (size + 6)))
    return Participation(
        size=size,
        ratio=1.0 / fourth,
        error=float(np.sqrt(influence @ influence)) / fourth,
        deviations=(fourth - mean) / deviation,
    )


def leading_vectors(pieces: Iterable[np.ndarray], gram: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular vectors of the largest singular values, by Lanczos iterations: those of the longer and of
    the shorter side, as columns in descending order.

    Args:
        pieces: the matrix by consecutive parts of its longer side.
        gram: the Gram matrix of its shorter side.
        count: number of singular values.
    """
    from scipy.sparse.linalg import eigsh

    start = np.random.default_rng(0).standard_normal(len(gram))
    with threads_for(1):  # products with vectors, which more threads do not speed up
        _, vectors = eigsh(gram / np.trace(gram), k=count, which="LA", v0=start)
    short = vectors[:, ::-1]
    return np.concatenate([piece @ short for piece in pieces]), short


def overlap_of_spike(strength: float, ratio: float) -> float:
    """Return the smaller squared cosine between the singular vectors of noise plus a spike and those of the spike.

    For noise of variance 1/longer side, ratio = shorter/longer and a spike above the transition, strength^4 > ratio
    (Benaych-Georges and Nadakuditi, 2012).
    """
    square = strength**2
    short = 1.0 - ratio * (1.0 + square) / (square * (square + ratio))
    long = 1.0 - (ratio + square) / (square * (square + 1.0))
    return min(short, long)
