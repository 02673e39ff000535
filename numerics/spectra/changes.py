"""The same matrix in two checkpoints: how far it moved, and what bulk and outliers did."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from numerics.spectra.fitting import FittedSpectrum, squared_singular_values, unfold


@dataclass(frozen=True)
class Change:
    """One matrix before and after.

    `moved` is the Frobenius norm of the difference over that of the matrix before, and `stable_rank` of the difference
    is its squared Frobenius norm over its squared largest singular value: near one where a single direction was
    learned. Both are None where shapes differ; stable_rank also where nothing changed. `distance` is Kolmogorov's and
    Smirnov's between all singular values of the two.
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
    """What happened between two arrays whose spectra are known."""
    moved = rank = None
    if old.shape == new.shape:
        difference = unfold(new.astype(np.float64) - old, after.layout)
        length = float(np.linalg.norm(difference))
        moved = length / float(np.linalg.norm(old.astype(np.float64)))
        if length > 0.0:
            unit = length / math.sqrt(difference.size)
            squares = squared_singular_values(difference / unit)
            rank = float(squares.sum() / squares[0])
    return Change(before, after, moved, rank, _two_samples(before.singular_values, after.singular_values))


def _two_samples(one: np.ndarray, other: np.ndarray) -> float:
    """The largest distance between two empirical distributions."""
    both = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(values), both, side="right") / len(values) for values in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())
