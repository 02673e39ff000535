"""Eigenvalues and zeros of det A(z) continued to nearby matrices by their null vectors.

With right and left null vectors R and L of A at a zero, the zeros of a nearby matrix are those of the small matrix L^T
A(z) R to second order in the error of the vectors. R and L are corrected by the residual, solved with the factorisation
of the first matrix. Passes are repeated until the zeros converge. A cluster of zeros is treated as one block, so that
they may split or cross.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
import scipy.linalg

from numerics.outliers.linear import largest_entry, moved, null_spaces

PASSES = 8
"""Most passes before continuation fails."""
STILL = 1e-6
"""Relative change at which zeros have converged; convergence is quadratic."""
SAME = 1e-6
"""Relative distance below which zeros form one block with common null vectors."""


class Lost(Exception):
    """Raised when continuation of zeros fails; the message gives the reason for a diagnostic."""


class Sloped(Protocol):
    """A matrix A and its derivative A' with respect to z, as linear operators."""

    def right(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A v and A' v."""

    def left(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return A^T v and A'^T v."""


Matrices = Callable[[Sequence[int], Sequence[float]], Iterable[Sloped]]


@dataclass(frozen=True)
class ShiftedProduct:
    """M - z at z = 0, with M a product of factors that is not multiplied out."""

    factors: tuple[np.ndarray, ...]

    def right(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return reduce(lambda v, factor: factor @ v, reversed(self.factors), vectors), -vectors

    def left(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return reduce(lambda v, factor: factor.T @ v, self.factors, vectors), -vectors


@dataclass(frozen=True)
class Dense:
    """A and A' at one point as dense matrices."""

    matrix: np.ndarray
    slope: np.ndarray

    def right(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix @ vectors, self.slope @ vectors

    def left(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix.T @ vectors, self.slope.T @ vectors


@dataclass(frozen=True)
class FollowedBlock:
    """Right and left null vectors of a cluster of zeros, with factored bordered matrices that correct them."""

    right: np.ndarray
    left: np.ndarray
    solves: tuple[tuple[slice, Any], ...]

    def improvement(self, residual: np.ndarray, transposed: bool) -> np.ndarray:
        """Return the correction of vectors with this residual, orthogonal to the block."""
        padded = np.concatenate([residual, np.zeros((self.right.shape[1], residual.shape[1]))])
        parts = [
            scipy.linalg.lu_solve(factored, padded[:, columns], trans=int(transposed), check_finite=False)
            for columns, factored in self.solves
        ]
        correction: np.ndarray = np.concatenate(parts, axis=1)[: len(residual)]
        return correction


@dataclass(frozen=True)
class FollowedZeros:
    """Zeros of a nearby matrix with their null vectors.

    The zeros are centre plus the eigenvalues of `step`; slope: the matrix elements of A' between the vectors.
    """

    zeros: np.ndarray
    right: np.ndarray
    left: np.ndarray
    centre: float
    step: np.ndarray
    slope: np.ndarray


def eigenvalue_block(matrix: np.ndarray, values: Sequence[float]) -> FollowedBlock:
    """Return the block of a cluster of real eigenvalues of a matrix."""
    singular = repeated(values)
    pairs = [null_spaces(matrix, count, s) for s, count in singular]
    right, left = (np.concatenate(vectors, axis=1) for vectors in zip(*pairs, strict=True))
    stops = np.cumsum([0, *(count for _, count in singular)])
    # with these borders a residual orthogonal to the right vectors has an orthogonal correction
    borders = np.linalg.qr(right)[0], np.linalg.qr(left)[0]
    solves = [(slice(stops[k], stops[k + 1]), _bordered(matrix, *borders, s)) for k, (s, _) in enumerate(singular)]
    return FollowedBlock(right, left, tuple(solves))


def zero_block(matrix: np.ndarray, count: int) -> FollowedBlock:
    """Return the block of a zero of A(z) of multiplicity `count`; `matrix` is A at the zero."""
    right, left = null_spaces(matrix, count)
    return FollowedBlock(right, left, ((slice(0, count), _bordered(matrix, left, right)),))


def _bordered(matrix: np.ndarray, columns: np.ndarray, rows: np.ndarray, at: float = 0.0) -> Any:
    """Return the LU factors of the bordered matrix of (matrix - at), invertible with orthonormal border columns and
    rows."""
    size, scale = len(matrix), max(largest_entry(matrix), abs(at), 1e-280)
    whole = moved(matrix, -at, columns.shape[1])
    whole[:size, size:], whole[size:, :size] = scale * columns, scale * rows.T
    return scipy.linalg.lu_factor(whole, overwrite_a=True, check_finite=False)


def repeated(values: Sequence[float]) -> list[tuple[float, int]]:
    """Return distinct values, descending, with their multiplicities."""
    counted: list[tuple[float, int]] = []
    for value in sorted(values, reverse=True):
        if counted and abs(counted[-1][0] - value) <= SAME * abs(value):
            counted[-1] = (counted[-1][0], counted[-1][1] + 1)
        else:
            counted.append((value, 1))
    return counted


def follow_eigenvalues(block: FollowedBlock, matrix: ShiftedProduct) -> FollowedZeros:
    """Return the eigenvalues of a nearby matrix that continue those of a block."""
    passes = _passes(block, None)
    try:
        next(passes)
        while True:
            passes.send(matrix)
    except StopIteration as done:
        zeros: FollowedZeros = done.value
        return zeros


def follow_zeros(block: FollowedBlock, centre: float, matrices: Matrices, count: int) -> list[FollowedZeros]:
    """Return the zeros of several nearby A(z) that continue a zero at `centre`.

    matrices(numbers, points): A and A' of these problems, each at its point. All problems advance together, because one
    solve of the bulk serves many points.
    """
    passes = [_passes(block, centre) for _ in range(count)]
    points = {k: next(one) for k, one in enumerate(passes)}
    zeros: dict[int, FollowedZeros] = {}
    while points:
        for k, matrix in zip(list(points), matrices(list(points), list(points.values())), strict=True):
            try:
                points[k] = passes[k].send(matrix)
            except StopIteration as done:
                zeros[k] = done.value
                del points[k]
    return [zeros[k] for k in range(count)]


def _passes(block: FollowedBlock, centre: float | None) -> Generator[float, Sloped, FollowedZeros]:
    """Yield points at which the matrix is needed until the zeros converge; without a centre the matrix is M - z at z =
    0.
    """
    right, left = block.right, block.left
    here, before = centre or 0.0, None
    for _ in range(PASSES):
        matrix = yield here
        applied, sloped = matrix.right(right)
        left_applied, left_sloped = matrix.left(left)
        del matrix  # free its memory before the next one is assembled
        small, slope = left.T @ applied, left.T @ sloped
        try:
            step, left_step = -np.linalg.solve(slope, small), -np.linalg.solve(slope.T, small.T)
        except np.linalg.LinAlgError:
            break
        if not np.all(np.isfinite(step)):
            break
        zeros = np.sort_complex(here + np.linalg.eigvals(step))
        if before is not None and np.all(np.abs(zeros - before) <= STILL * np.abs(zeros)):
            return FollowedZeros(zeros, right, left, here, step, slope)
        before = zeros
        right = right - block.improvement(applied + sloped @ step, transposed=False)
        left = left - block.improvement(left_applied + left_sloped @ left_step, transposed=True)
        if centre is not None:
            here = float(np.mean(zeros.real))
    raise Lost("replicates differ too much for that")
