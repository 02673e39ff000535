"""Whether an outlier has just left the bulk where the edge itself is known to a standard error only.

Next to an edge A(z) is smooth in the square root t of the distance to it. Where det A vanishes at a small t, of either
sign, an outlier has just left the bulk (t > 0) or is about to (t < 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from derive.errors import NumericalError
from numerics.outliers.problem import SpikedProblem, a_matrices
from numerics.support.precision import in_float64

MOST_ROWS = 2000
"""Rows of A(z) above which nothing is said."""


@in_float64
def undecided_edges(problem: SpikedProblem, errors: Mapping[float, float], outliers: Sequence[float]) -> list[float]:
    """Edges at which there may be an outlier within their standard errors, and none of the outliers is.

    errors: by edge. The edges are ends of the intervals of the problem.
    """
    if not problem.probe.unknowns:
        return []
    found = []
    for edge, error in errors.items():
        side = _outward(problem, edge)
        if side and error > 0 and not any(0 < side * (z - edge) <= error for z in outliers):
            root = _root_beside(problem, edge, side * error)
            if root is not None and abs(root) <= 1:
                found.append(edge)
    return found


def _outward(problem: SpikedProblem, edge: float) -> int:
    """On which side of an edge there is no bulk; 0 for none."""
    for low, high in problem.searched:
        if edge == high and high > low:
            return 1
        if edge == low and high > low:
            return -1
    return 0


def _root_beside(problem: SpikedProblem, edge: float, unit: float) -> float | None:
    """The root of the distance, in units of that to `unit` away, at which det A vanishes if it is linear in it."""
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
