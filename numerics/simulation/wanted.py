"""The number of eigenvalues that are needed at either end of a spectrum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from numerics.simulation.compare import beyond, bulk_ends, bulk_intervals

if TYPE_CHECKING:
    from numerics.solution import Layer, Prediction

FEW = 20
"""Eigenvalues at either end by default: twice as many as are listed."""


def ends_of_all(labels: Iterable[str]) -> dict[str, int]:
    """Return the default number of eigenvalues for each layer."""
    return dict.fromkeys(labels, FEW)


def ends_to_compare(solution: Prediction) -> Mapping[str, int]:
    """Return, by layer, the number of eigenvalues at either end that a comparison needs: the outliers at all times, and
    the eigenvalue at the edge.

    Layers that are absent from the result need all eigenvalues: for moments if there are no outliers, for point masses,
        or for outliers in a gap.
    """
    ends = {}
    for layer in solution.layers:
        most = _most_outside(layer)
        if most is not None:
            ends[layer.label] = max(FEW, most + 1)
    return ends


def _most_outside(layer: Layer) -> int | None:
    """Return the largest number of outliers on one side of the bulk at any time; None if all eigenvalues are needed."""
    if not len(layer.outliers) or not bulk_intervals(layer.law.edges) or layer.atoms:
        return None
    most = 0
    for time, outliers in [(None, layer.outliers), *enumerate(layer.outlier_path or [])]:
        ends = bulk_ends(layer, time)
        if ends is None:
            return None
        above, below = beyond(outliers, *ends)
        if len(above) + len(below) < len(outliers):
            return None
        most = max(most, len(above), len(below))
    return most
