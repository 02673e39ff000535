"""Standard errors from what a result is without each replica."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Sides = dict[str, float | None]
"""Overlaps of an eigenvector with spikes, by the side they are on; None where there is none to name."""


def jackknife(values: Sequence[float]) -> float:
    """The standard error of a function of a mean over replicas, from its values without each of them.

    Leaving one out moves a mean by 1/(n - 1) of how far that replica is off, so that the variance of the mean is
    (n - 1)/n times the sum of squares about the mean of these values.
    """
    count = len(values)
    return float(np.std(values) * math.sqrt(count - 1))


def match_replicas(outliers: list[float], without_one: list[list[float]]) -> list[float]:
    """Standard error of each outlier, from those without each replica; inf where fewer than nine in ten have it.

    Outliers and those of each replica descend. A replica with as many is matched by rank; in one with more or fewer the
    nearest is taken, and of two that are equally near the one whose rank is the closer, counted from the same end.
    """
    errors = []
    for rank, z in enumerate(outliers):
        values = []
        for found in without_one:
            if len(found) == len(outliers):
                values.append(found[rank])
            elif found:
                from_top = rank < len(outliers) / 2
                expected = rank if from_top else rank + len(found) - len(outliers)
                nearest = min(range(len(found)), key=lambda k: (abs(found[k] - z), abs(k - expected)))
                values.append(found[nearest])
        errors.append(jackknife(values) if len(values) >= 0.9 * len(without_one) else float("inf"))
    return errors


def path_errors(path: list[list[float]], without_one: list[list[list[float]]]) -> list[list[float | None]]:
    """Standard errors of the outliers at each time, from those without each replica at that time; None for outliers at
    a time when not every replica has as many."""
    return [
        [
            jackknife([other[k] for other in others]) if all(len(other) == len(now) for other in others) else None
            for k in range(len(now))
        ]
        for now, others in zip(path, without_one, strict=True)
    ]


def overlap_errors(found: list[Sides], without_one: list[list[Sides]]) -> list[Sides]:
    """Standard errors of overlaps by side, from what they are without each replica; None where one of them has none."""

    def error(k: int, side: str) -> float | None:
        others = [one[k][side] for one in without_one]
        known = [value for value in others if value is not None]
        return jackknife(known) if found[k][side] is not None and known and len(known) == len(others) else None

    return [{side: error(k, side) for side in one} for k, one in enumerate(found)]
