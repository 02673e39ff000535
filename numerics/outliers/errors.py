"""Outliers, paths and overlaps without bias and with standard errors, from what they are at nearby order parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numerics.nearby import Nearby

Sides = dict[str, float | None]
"""Overlaps of an eigenvector with spikes, by the side they are on; None where there is none to name."""


def estimated_outliers(
    outliers: list[float], others: Sequence[list[float]], nearby: Nearby
) -> list[tuple[float, float]]:
    """Each outlier without bias, and its standard error; infinite where too few of the others have it.

    Outliers and those of the others descend. One with as many is matched by rank; in one with more or fewer the nearest
    is taken, and of two that are equally near the one whose rank is the closer, counted from the same end.
    """

    def matched(rank: int, z: float, found: list[float]) -> float | None:
        if len(found) == len(outliers):
            return found[rank]
        expected = rank if rank < len(outliers) / 2 else rank + len(found) - len(outliers)
        nearest = min(range(len(found)), key=lambda k: (abs(found[k] - z), abs(k - expected)), default=None)
        return None if nearest is None else found[nearest]

    return [nearby.estimate(z, [matched(rank, z, found) for found in others]) for rank, z in enumerate(outliers)]


def estimated_path(
    path: list[list[float]], others: Sequence[list[list[float]]], nearby: Nearby
) -> tuple[list[list[float]], list[list[float | None]]]:
    """Outliers at each time without bias, and their standard errors.

    others: those of each of the nearby order parameters, time by time. At a time when one of them has more or fewer,
    outliers stay as they are and have no error.
    """
    values: list[list[float]] = []
    errors: list[list[float | None]] = []
    for time, now in enumerate(path):
        there = [one[time] for one in others]
        if any(len(one) != len(now) for one in there):
            values.append(now)
            errors.append([None] * len(now))
            continue
        found = estimated_outliers(now, there, nearby)
        values.append([value for value, _ in found])
        errors.append([error for _, error in found])
    return values, errors


def estimated_overlaps(
    found: list[Sides], others: Sequence[list[Sides]], nearby: Nearby
) -> tuple[list[Sides], list[Sides]]:
    """Overlaps by side without bias, and their standard errors; None where too few of the others have them."""
    values: list[Sides] = []
    errors: list[Sides] = []
    for k, one in enumerate(found):
        estimates = {
            side: (None, None) if value is None else nearby.estimate(value, [other[k][side] for other in others])
            for side, value in one.items()
        }
        values.append({side: value for side, (value, _) in estimates.items()})
        errors.append({side: e if e is not None and math.isfinite(e) else None for side, (_, e) in estimates.items()})
    return values, errors
