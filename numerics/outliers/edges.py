"""Decide whether an outlier has separated from an edge that is known only within a standard error.

Next to an edge A(z) is smooth in t, the square root of the distance. A zero of det A at small t > 0 is an outlier that
has just separated; at small t < 0 it is an outlier that is about to separate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from derive.errors import NumericalError
from numerics.outliers.problem import SpikedProblem, a_matrices
from numerics.support.precision import in_float64

MOST_ROWS = 2000
"""Rows of A(z) above which the test is skipped."""


@in_float64
def undecided_edges(problem: SpikedProblem, errors: Mapping[float, float], outliers: Sequence[float]) -> list[float]:
    """Return edges at which an outlier may exist within their standard errors although none of `outliers` lies there.
    errors: standard errors by edge. Edges are ends of the intervals of the problem.
    """
    if not problem.probe.unknowns:
        return []
    undecided = []
    for edge, error in errors.items():
        side = _outward(problem, edge)
        if side and error > 0 and not any(0 < side * (z - edge) <= error for z in outliers):
            root = _root_beside(problem, edge, side * error)
            if root is not None and abs(root) <= 1:
                undecided.append(edge)
    return undecided


def _outward(problem: SpikedProblem, edge: float) -> int:
    """Return the side of an edge (1 or -1) that is outside the bulk; 0 for none."""
    for low, high in problem.searched:
        if edge == high and high > low:
            return 1
        if edge == low and high > low:
            return -1
    return 0


def _root_beside(problem: SpikedProblem, edge: float, unit: float) -> float | None:
    """Return t = sqrt(distance / unit) at which the linear extrapolation of det A(t) vanishes."""
    try:
        near, far = a_matrices(problem, np.array([edge + unit / 4, edge + unit]))
    except NumericalError:
        return None
    if len(near) > MOST_ROWS:
        return None
    (sign, size), (other, larger) = np.linalg.slogdet(near), np.linalg.slogdet(far)
    if not (math.isfinite(size) and math.isfinite(larger)):
        return None
    ratio = float((other * sign).real * math.exp(min(larger - size, 700.0)))
    return None if ratio == 1 else 0.5 - 0.5 / (ratio - 1)
