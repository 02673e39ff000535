"""Outliers, paths and overlaps without bias and with standard errors, from what they are at nearby order parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numerics.nearby import Nearby

TOLD_APART = 3.0
"""Outliers closer to each other than so many times the error of their distance are not told from each other."""
Sides = dict[str, float | None]
"""Overlaps of an eigenvector with spikes, by the side they are on; None where there is none to name."""


def estimated_outliers(
    outliers: list[float], others: Sequence[list[float]], nearby: Nearby
) -> list[tuple[float, float]]:
    """Each outlier without bias, and its standard error; infinite where too few of the others have it.

    Outliers and those of the others descend. One with as many is matched by rank; in one with more or fewer the nearest
    is taken, and of two that are equally near the one whose rank is the closer, counted from the same end. Those that
    cannot be told from each other share their mean: noise pushes equal ones apart, the upper ones up and the lower ones
    down, by more than it moves their mean.
    """

    def matched(rank: int, z: float, found: list[float]) -> float | None:
        if len(found) == len(outliers):
            return found[rank]
        expected = rank if rank < len(outliers) / 2 else rank + len(found) - len(outliers)
        nearest = min(range(len(found)), key=lambda k: (abs(found[k] - z), abs(k - expected)), default=None)
        return None if nearest is None else found[nearest]

    table = [[matched(rank, z, found) for found in others] for rank, z in enumerate(outliers)]
    return [one for group in _alike(outliers, table, nearby) for one in _shared(group, outliers, table, nearby)]


def _alike(outliers: list[float], table: Sequence[Sequence[float | None]], nearby: Nearby) -> list[list[int]]:
    """Outliers, by rank, in groups that cannot be told from each other."""
    groups: list[list[int]] = []
    for rank, z in enumerate(outliers):
        if groups:
            apart = [
                None if x is None or y is None else x - y for x, y in zip(table[rank - 1], table[rank], strict=True)
            ]
            error = nearby.estimate(outliers[rank - 1] - z, apart)[1]
            if math.isfinite(error) and outliers[rank - 1] - z <= TOLD_APART * error:
                groups[-1].append(rank)
                continue
        groups.append([rank])
    return groups


def _shared(
    group: list[int], outliers: list[float], table: Sequence[Sequence[float | None]], nearby: Nearby
) -> list[tuple[float, float]]:
    """The estimate of a group for each of its outliers. How far they are apart beyond what noise would do to equal ones
    is an error, and no less than noise would: a smaller distance cannot be seen, and their mean may be known far better
    than that."""
    count = len(group)

    def mean(values: Sequence[float | None]) -> float | None:
        known = [x for x in values if x is not None]
        return sum(known) / count if len(known) == count else None

    centre = sum(outliers[k] for k in group) / count
    centres = [mean(column) for column in zip(*(table[k] for k in group), strict=True)]
    value, error = nearby.estimate(centre, centres)
    if count == 1:
        return [(value, error)]
    seen = sum((outliers[k] - centre) ** 2 for k in group) / count
    moved = [[None if x is None or y is None else x - y for x, y in zip(table[k], centres, strict=True)] for k in group]
    along = (
        sum(nearby.estimate(outliers[k] - centre, ones)[1] ** 2 for k, ones in zip(group, moved, strict=True)) / count
    )
    # a symmetric matrix of noise, less its mean, has (count + 2) / 2 times as many entries as there are on its diagonal
    beyond = max(along, seen - (count + 2) / 2 * along)
    return [(value, math.sqrt(error**2 + beyond))] * count


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
