"""Poles of the resolvent of the probed matrix: one at each outlier, with null vectors of A(z).

The solution of A(z) q = b has the pole x (y^T b) / (z - z0) at a zero z0 of det A, where x and y are null vectors of A
and A^T with y^T A'(z0) x = 1.
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
    """An outlier at z: `right` and `left` span the null spaces of A(z) and A(z)^T, and `middle` is A'(z) between them.

    The number of columns is the multiplicity of the outlier.
    """

    problem: SpikedProblem
    z: float
    middle: np.ndarray
    right: np.ndarray
    left: np.ndarray

    @property
    def count(self) -> int:
        return int(self.right.shape[1])

    def answers(self, driven: np.ndarray) -> np.ndarray:
        """Return the residue coefficients of the null vectors for each column of a right-hand side."""
        coefficients: np.ndarray = np.linalg.solve(self.middle, self.left.T @ driven)
        return coefficients

    def scale(self, side: str) -> float:
        """Return the factor of residues: 1, or 1/z for left vectors, whose source enters the equation of K psi0; NaN at
        z = 0."""
        if side != "left":
            return 1.0
        bulk = max((abs(e) for pair in self.problem.excluded for e in pair), default=0.0)
        return float("nan") if abs(self.z) <= AT_EDGE * bulk else 1 / self.z


@in_float64
def poles(problem: SpikedProblem, outliers: Sequence[float]) -> list[Pole]:
    """Return one pole per distinct outlier."""
    result = []
    for z, count in _clusters(problem, outliers):
        matrix, slope = with_slope(problem, z)
        right, left = null_spaces(matrix, count)
        result.append(Pole(problem, z, left.T @ slope @ right, right, left))
    return result


@in_float64
def replica_poles(problem: SpikedProblem, outliers: Sequence[float], orders: Sequence[Order]) -> list[list[Pole]]:
    """Return the poles at each replicate of the order parameters by continuation; raise Lost if it fails."""
    by_replicate: list[list[Pole]] = [[] for _ in orders]
    for z, count in _clusters(problem, outliers):
        for replicate_poles, order, there in zip(
            by_replicate, orders, follow_zero(problem, z, count, orders), strict=True
        ):
            replicate_poles.append(Pole(problem.with_order(order), there.centre, there.slope, there.right, there.left))
    return by_replicate


def _clusters(problem: SpikedProblem, outliers: Sequence[float]) -> list[tuple[float, int]]:
    """Return (mean, multiplicity) of numerically degenerate outliers, because only the sum of their residues is
    defined."""
    groups: list[list[float]] = []
    for z in outliers:
        if groups and problem.same(z, groups[-1][0]):
            groups[-1].append(z)
        else:
            groups.append([z])
    return [(float(np.mean(group)), len(group)) for group in groups]
