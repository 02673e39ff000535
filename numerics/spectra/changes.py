"""Changes of a matrix between two checkpoints: its distance, bulk and outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from numerics.spectra.fitting import FittedSpectrum, gram_of, squared_singular_values, unfold


@dataclass(frozen=True)
class Change:
    """One matrix before and after.

    Attributes:
        moved: Frobenius norm of the difference over the norm of the matrix before.
        stable_rank: stable rank of the difference, its squared Frobenius norm over its squared largest singular value;
            near one for a rank-one update.
        distance: Kolmogorov-Smirnov distance between the singular values of the two.

    moved and stable_rank are None if shapes differ; stable_rank is also None if nothing changed.
    """

    before: FittedSpectrum
    after: FittedSpectrum
    moved: float | None
    stable_rank: float | None
    distance: float

    @property
    def name(self) -> str:
        return self.after.name


def change_of(before: FittedSpectrum, after: FittedSpectrum, old: np.ndarray, new: np.ndarray) -> Change:
    """Return the change between two arrays with known spectra."""
    moved = rank = None
    if old.shape == new.shape:
        difference = unfold(new.astype(np.float64) - old, after.layout)
        length = float(np.linalg.norm(difference))
        moved = length / float(np.linalg.norm(old.astype(np.float64)))
        if length > 0.0:
            unit = length / math.sqrt(difference.size)
            scaled = difference / unit
            squares = squared_singular_values(scaled, gram_of(scaled))
            rank = float(squares.sum() / squares[0])
    return Change(before, after, moved, rank, _two_samples(before.singular_values, after.singular_values))


def _two_samples(one: np.ndarray, other: np.ndarray) -> float:
    """Return the two-sample Kolmogorov-Smirnov distance."""
    both = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(values), both, side="right") / len(values) for values in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())
