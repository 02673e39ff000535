"""Outliers, paths and overlaps without bias and with standard errors, from what they are at nearby order parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numerics.support.nearby import Nearby

TOLD_APART = 5.0
"""Outliers closer to each other than so many times the error of their distance are not told from each other. Noise
moves those that are farther apart by less than a fifth of their error."""
Sides = dict[str, float | None]
"""Overlaps of an eigenvector with spikes, by the side they are on; None where there is none to name."""


def estimated_outliers(
    outliers: list[float], others: Sequence[list[float]], nearby: Nearby
) -> list[tuple[float, float]]:
    """Each outlier without bias, and its standard error; infinite where too few of the others have it.

    Outliers and those of the others descend. Of those that cannot be told from each other the distances lose what noise
    adds to them: it pushes equal ones apart, the upper ones up and the lower ones down.
    """
    columns = [_matched(outliers, found) for found in others]
    table = [[column[rank] for column in columns] for rank in range(len(outliers))]
    return [one for group in _alike(outliers, table, nearby) for one in _apart(group, outliers, table, nearby)]


def _matched(outliers: Sequence[float], found: Sequence[float]) -> list[float | None]:
    """For each outlier the one of the others that it is; both descend. One with as many is matched by rank; of the
    longer list those are left out without which all are nearest to each other, so that none is matched twice."""
    if len(found) == len(outliers):
        return list(found)
    fewer, more = sorted((outliers, found), key=len)
    ways: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    """For the first so many of the longer list, the least sum of distances and which of them have it."""
    ways += [(math.inf, ())] * len(fewer)
    for place, z in enumerate(more):
        for rank in range(min(place + 1, len(fewer)), 0, -1):
            far, places = ways[rank - 1]
            ways[rank] = min(ways[rank], (far + abs(z - fewer[rank - 1]), (*places, place)))
    taken = ways[-1][1]
    if more is found:
        return [found[place] for place in taken]
    there = dict(zip(taken, found, strict=True))
    return [there.get(rank) for rank in range(len(outliers))]


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


def _apart(
    group: list[int], outliers: list[float], table: Sequence[Sequence[float | None]], nearby: Nearby
) -> list[tuple[float, float]]:
    """Estimates of outliers that cannot be told from each other: their mean, and how far each is from it.

    Noise is added to the mean square of those distances, which is smooth where outliers are equal and distances are
    not. Without it distances are smaller by a common factor, zero where noise explains all that is seen. Errors are
    those of distances as they are seen: a smaller one cannot be told from none. For the same reason bias is not taken
    off distances: they are those of order parameters without it, which have the noise that replicas show. The less
    distances are changed by all this, the more the error of an outlier is its own: one that is known well may stand
    beside one that is not.
    """
    count = len(group)

    def mean(values: Sequence[float | None]) -> float | None:
        known = [x for x in values if x is not None]
        return sum(known) / count if len(known) == count else None

    def square(values: Sequence[float | None]) -> float | None:
        return mean([None if x is None else x**2 for x in values])

    centre = sum(outliers[k] for k in group) / count
    centres = [mean(column) for column in zip(*(table[k] for k in group), strict=True)]
    value, error = nearby.estimate(centre, centres)
    if count == 1:
        return [(value, error)]
    distances = [outliers[k] - centre for k in group]
    moved = [[None if x is None or y is None else x - y for x, y in zip(table[k], centres, strict=True)] for k in group]
    off = [nearby.estimate(distance, ones)[1] for distance, ones in zip(distances, moved, strict=True)]
    seen = sum(distance**2 for distance in distances) / count
    added = nearby.added_by_noise(seen, [square(column) for column in zip(*moved, strict=True)])
    if nearby.unbiased is not None:
        distances = [
            distance if ones[-1] is None else ones[-1] for distance, ones in zip(distances, moved, strict=True)
        ]
    unbiased = sum(distance**2 for distance in distances) / count
    left = math.sqrt(min(1.0, max(0.0, 1 - added / unbiased))) if unbiased else 0.0
    shared = error**2 + sum(one**2 for one in off) / count
    own = [nearby.estimate(outliers[k], table[k])[1] ** 2 for k in group]
    if not all(map(math.isfinite, (shared, *own))):
        return [(value + left * distance, math.inf) for distance in distances]
    kept = left * math.sqrt(unbiased / seen) if seen else 0.0
    sure = min(kept, 1 / kept) if kept else 0.0
    errors = [math.sqrt(sure * one + (1 - sure) * shared) for one in own]
    return [(value + left * distance, one) for distance, one in zip(distances, errors, strict=True)]


def estimated_path(
    path: list[list[float]], others: Sequence[list[list[float]]], nearby: Nearby
) -> tuple[list[list[float]], list[list[float | None]]]:
    """Outliers at each time without bias, and their standard errors.

    others: those of each of the nearby order parameters, time by time. An outlier that too few of them have stays as it
    is and has no error.
    """
    values: list[list[float]] = []
    errors: list[list[float | None]] = []
    for time, now in enumerate(path):
        found = estimated_outliers(now, [one[time] for one in others], nearby)
        values.append([value if math.isfinite(error) else z for z, (value, error) in zip(now, found, strict=True)])
        errors.append([error if math.isfinite(error) else None for _, error in found])
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
