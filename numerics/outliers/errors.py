"""Bias-corrected outliers, paths and overlaps with standard errors, from Monte Carlo replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numerics.support.nearby import Nearby

TOLD_APART = 5.0
"""Outliers closer than this many standard errors of their distance are treated as one cluster. At larger distances
level repulsion by noise moves them by less than a fifth of their error."""
Sides = dict[str, float | None]
"""Overlaps of an eigenvector with spikes, by side; None if there is none."""


def estimated_outliers(
    outliers: list[float], others: Sequence[list[float]], nearby: Nearby
) -> list[tuple[float, float]]:
    """Return each bias-corrected outlier with its standard error, which is infinite if too few replicates have the
    outlier.

    All outliers are in descending order. Within a cluster that noise does not resolve, distances are corrected for
    level repulsion, which pushes equal outliers apart.
    """
    columns = [_matched(outliers, replicate) for replicate in others]
    table = [[column[rank] for column in columns] for rank in range(len(outliers))]
    return [one for group in _alike(outliers, table, nearby) for one in _apart(group, outliers, table, nearby)]


def _matched(outliers: Sequence[float], replicate: Sequence[float]) -> list[float | None]:
    """Match each outlier to one of a replicate (None if missing); both are in descending order.

    Equal numbers are matched by rank. Otherwise entries of the longer list are dropped such that the total distance is
    smallest, and none is matched twice.
    """
    if len(replicate) == len(outliers):
        return list(replicate)
    fewer, more = sorted((outliers, replicate), key=len)
    ways: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    """For each prefix of the longer list, the smallest sum of distances and the entries that attain it."""
    ways += [(math.inf, ())] * len(fewer)
    for place, z in enumerate(more):
        for rank in range(min(place + 1, len(fewer)), 0, -1):
            far, places = ways[rank - 1]
            ways[rank] = min(ways[rank], (far + abs(z - fewer[rank - 1]), (*places, place)))
    taken = ways[-1][1]
    if more is replicate:
        return [replicate[place] for place in taken]
    there = dict(zip(taken, replicate, strict=True))
    return [there.get(rank) for rank in range(len(outliers))]


def _alike(outliers: list[float], table: Sequence[Sequence[float | None]], nearby: Nearby) -> list[list[int]]:
    """Return the ranks of outliers in clusters, within which noise does not resolve them."""
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
    """Return estimates for a cluster of unresolved outliers: their mean and their distances from it.

    Noise adds to the mean square distance, which is smooth at degeneracy while distances are not. Subtracting it
    shrinks all distances by one factor, to zero where noise explains them. Errors are those of the observed distances,
    because a corrected distance smaller than these is compatible with zero; for the same reason distances are not
    bias-corrected. The less the distances shrink, the closer the error of each outlier is to its own.
    """
    count = len(group)

    def mean(values: Sequence[float | None]) -> float | None:
        present = [x for x in values if x is not None]
        return sum(present) / count if len(present) == count else None

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
        return [(outliers[k], math.inf) for k in group]
    shrunk = left * math.sqrt(unbiased / seen) if seen else 0.0
    sure = min(shrunk, 1 / shrunk) if shrunk else 0.0
    errors = [math.sqrt(sure * one + (1 - sure) * shared) for one in own]
    return [(value + left * distance, one) for distance, one in zip(distances, errors, strict=True)]


def estimated_path(
    path: list[list[float]], others: Sequence[list[list[float]]], nearby: Nearby
) -> tuple[list[list[float]], list[list[float | None]]]:
    """Return bias-corrected outliers at each time, and their standard errors.

    others: the path of each replicate. An outlier that too few replicates have is not corrected and has no error.
    """
    values: list[list[float]] = []
    errors: list[list[float | None]] = []
    for time, now in enumerate(path):
        found = estimated_outliers(now, [one[time] for one in others], nearby)
        values.append([value if math.isfinite(error) else z for z, (value, error) in zip(now, found, strict=True)])
        errors.append([error if math.isfinite(error) else None for _, error in found])
    return values, errors


def estimated_overlaps(
    overlaps: list[Sides], others: Sequence[list[Sides]], nearby: Nearby
) -> tuple[list[Sides], list[Sides]]:
    """Return bias-corrected overlaps by side, and their standard errors; None if too few replicates have them."""
    values: list[Sides] = []
    errors: list[Sides] = []
    for k, one in enumerate(overlaps):
        estimates = {
            side: (None, None) if value is None else nearby.estimate(value, [other[k][side] for other in others])
            for side, value in one.items()
        }
        values.append({side: value for side, (value, _) in estimates.items()})
        errors.append({side: e if e is not None and math.isfinite(e) else None for side, (_, e) in estimates.items()})
    return values, errors
