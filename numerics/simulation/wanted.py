"""The number of eigenvalues that are needed at either end of a spectrum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from numerics.simulation.compare import beyond, bulk_intervals

if TYPE_CHECKING:
    from numerics.solution import Layer, Prediction

FEW = 20
"""Eigenvalues at either end by default: twice as many as are listed."""


def ends_of_all(labels: Iterable[str]) -> dict[str, int]:
    """Return the default number for each layer."""
    return dict.fromkeys(labels, FEW)


def ends_to_compare(solution: Prediction) -> Mapping[str, int]:
    """Return, by layer, the number of eigenvalues at either end that a comparison needs: outliers of all times and the
    edge.

    Missing layers need all eigenvalues: for moments where there are no outliers, for point masses, and for outliers in
    a gap.
    """
    ends = {}
    for layer in solution.layers:
        most = _most_outside(layer)
        if most is not None:
            ends[layer.label] = max(FEW, most + 1)
    return ends


def _most_outside(layer: Layer) -> int | None:
    """Return the most outliers on one side of the bulk at any time; None if all eigenvalues are needed."""
    intervals = bulk_intervals(layer.law.edges)
    if not len(layer.outliers) or not intervals or layer.atoms:
        return None
    low, high = intervals[0][0], intervals[-1][1]
    shifts = [layer.shift] if layer.shift_path is None else layer.shift_path
    path = layer.outlier_path or ()
    moved = [(shifts[time] if len(shifts) > 1 else layer.shift) - layer.shift for time in range(len(path))]
    most = 0
    for outliers, shift in [(layer.outliers, 0.0), *zip(path, moved, strict=True)]:
        above, below = beyond(outliers, low + shift, high + shift)
        if len(above) + len(below) < len(outliers):
            return None
        most = max(most, len(above), len(below))
    return most
