"""The poles of what a source sees of the probed matrix: one at each outlier, with the vectors that belong to it.

The solution of A(z) q = b has the pole x (y^T b) / (z - z0) at a zero z0 of A, where x and y are null vectors of A and
of its transpose, scaled so that y^T A'(z0) x = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numerics.outliers.linear import null_spaces
from numerics.outliers.problem import AT_EDGE, SpikedProblem, with_slope
from numerics.outliers.replicas import follow_zero
from numerics.runtime.interface import Order
from numerics.support.precision import in_float64


@dataclass(frozen=True)
class Pole:
    """An outlier at z: columns of `right` and `left` span the null spaces of A(z) and of its transpose, and `middle` is
    A'(z) between them. There are as many as the outlier is repeated."""

    problem: SpikedProblem
    z: float
    middle: np.ndarray
    right: np.ndarray
    left: np.ndarray

    @property
    def count(self) -> int:
        return int(self.right.shape[1])

    def answers(self, driven: np.ndarray) -> np.ndarray:
        """How much of the null vectors answers to each column of a right-hand side."""
        found: np.ndarray = np.linalg.solve(self.middle, self.left.T @ driven)
        return found

    def scale(self, side: str) -> float:
        """What residues are multiplied by: a source in the equation of K psi0 sees left vectors z times. NaN at zero,
        where K psi0 vanishes and there is no left vector."""
        if side != "left":
            return 1.0
        bulk = max((abs(e) for pair in self.problem.excluded for e in pair), default=0.0)
        return float("nan") if abs(self.z) <= AT_EDGE * bulk else 1 / self.z


@in_float64
def poles(problem: SpikedProblem, outliers: Sequence[float]) -> list[Pole]:
    """One for each outlier, equal ones together."""
    found = []
    for z, count in _clusters(problem, outliers):
        matrix, slope = with_slope(problem, z)
        right, left = null_spaces(matrix, count)
        found.append(Pole(problem, z, left.T @ slope @ right, right, left))
    return found


@in_float64
def replica_poles(problem: SpikedProblem, outliers: Sequence[float], orders: Sequence[Order]) -> list[list[Pole]]:
    """The same for each of several order parameters near those of the problem, by following its outliers; Lost if
    that fails."""
    found: list[list[Pole]] = [[] for _ in orders]
    for z, count in _clusters(problem, outliers):
        for one, order, there in zip(found, orders, follow_zero(problem, z, count, orders), strict=True):
            one.append(Pole(problem.with_order(order), there.centre, there.slope, there.right, there.left))
    return found


def _clusters(problem: SpikedProblem, outliers: Sequence[float]) -> list[tuple[float, int]]:
    """Outliers that are one with multiplicity, since only the sum of their residues is defined: their mean and how many
    there are."""
    groups: list[list[float]] = []
    for z in outliers:
        if groups and problem.same(z, groups[-1][0]):
            groups[-1].append(z)
        else:
            groups.append([z])
    return [(float(np.mean(group)), len(group)) for group in groups]
