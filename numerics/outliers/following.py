"""Zeros of one matrix followed to those of nearby ones, by the vectors that belong to them.

With right and left null vectors R and L of A at a zero, a nearby matrix has its zeros where the small matrix L^T A(z) R
has them, to second order in how far the vectors are off; R and L themselves are improved by the residual, solved with
the factors of the first matrix. One pass of this is first-order perturbation theory for the vectors and third-order for
the zeros; passes are repeated until the zeros stand still. Zeros that lie together are one block, so that they may
split or cross.
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
"""Zeros that still move after so many passes are not followed."""
STILL = 1e-6
"""Zeros that move by less than this, relatively, stand still; the next pass would move them by about its square."""
SAME = 1e-6
"""Zeros closer than this, relatively, share their null vectors."""


class Lost(Exception):
    """Zeros could not be followed; the text says why, for a diagnostic."""


class Sloped(Protocol):
    """A matrix A and its derivative A' in z, known by what they do to vectors."""

    def right(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A v and A' v."""

    def left(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same for the transposes."""


Matrices = Callable[[Sequence[int], Sequence[float]], Iterable[Sloped]]


@dataclass(frozen=True)
class ShiftedProduct:
    """M - z at z = 0, with M a product of factors that is not carried out."""

    factors: tuple[np.ndarray, ...]

    def right(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return reduce(lambda v, factor: factor @ v, reversed(self.factors), vectors), -vectors

    def left(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return reduce(lambda v, factor: factor.T @ v, self.factors, vectors), -vectors


@dataclass(frozen=True)
class Dense:
    """A and A' at one point."""

    matrix: np.ndarray
    slope: np.ndarray

    def right(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix @ vectors, self.slope @ vectors

    def left(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix.T @ vectors, self.slope.T @ vectors


@dataclass(frozen=True)
class FollowedBlock:
    """Right and left vectors of some zeros, and for each set of columns a factored matrix that improves them."""

    right: np.ndarray
    left: np.ndarray
    solves: tuple[tuple[slice, Any], ...]

    def improvement(self, residual: np.ndarray, transposed: bool) -> np.ndarray:
        """What is to be taken off vectors that leave this residual; nothing along the vectors of the block."""
        padded = np.concatenate([residual, np.zeros((self.right.shape[1], residual.shape[1]))])
        parts = [
            scipy.linalg.lu_solve(factored, padded[:, columns], trans=int(transposed), check_finite=False)
            for columns, factored in self.solves
        ]
        found: np.ndarray = np.concatenate(parts, axis=1)[: len(residual)]
        return found


@dataclass(frozen=True)
class FollowedZeros:
    """Zeros of a nearby matrix, and the vectors that span what belongs to them. centre + the eigenvalues of `step` are
    the zeros; slope: the derivative of the matrix between the vectors."""

    zeros: np.ndarray
    right: np.ndarray
    left: np.ndarray
    centre: float
    step: np.ndarray
    slope: np.ndarray


def eigenvalue_block(matrix: np.ndarray, values: Sequence[float]) -> FollowedBlock:
    """The block of some real eigenvalues of a matrix."""
    singular = repeated(values)
    pairs = [null_spaces(matrix, count, s) for s, count in singular]
    right, left = (np.concatenate(vectors, axis=1) for vectors in zip(*pairs, strict=True))
    stops = np.cumsum([0, *(count for _, count in singular)])
    # with these borders a residual without a part along any right vector is answered without one
    borders = np.linalg.qr(right)[0], np.linalg.qr(left)[0]
    solves = [(slice(stops[k], stops[k + 1]), _bordered(matrix, *borders, s)) for k, (s, _) in enumerate(singular)]
    return FollowedBlock(right, left, tuple(solves))


def zero_block(matrix: np.ndarray, count: int) -> FollowedBlock:
    """The block of a zero of A(z) that is there so many times; `matrix` is A at the zero."""
    right, left = null_spaces(matrix, count)
    return FollowedBlock(right, left, ((slice(0, count), _bordered(matrix, left, right)),))


def _bordered(matrix: np.ndarray, columns: np.ndarray, rows: np.ndarray, at: float = 0.0) -> Any:
    """The factors of a singular matrix, less a number, that orthonormal columns and rows at its border make
    invertible."""
    size, scale = len(matrix), max(largest_entry(matrix), abs(at), 1e-280)
    whole = moved(matrix, -at, columns.shape[1])
    whole[:size, size:], whole[size:, :size] = scale * columns, scale * rows.T
    return scipy.linalg.lu_factor(whole, overwrite_a=True, check_finite=False)


def repeated(values: Sequence[float]) -> list[tuple[float, int]]:
    """Values, descending, with how often each is there."""
    found: list[tuple[float, int]] = []
    for value in sorted(values, reverse=True):
        if found and abs(found[-1][0] - value) <= SAME * abs(value):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((value, 1))
    return found


def follow_eigenvalues(block: FollowedBlock, matrix: ShiftedProduct) -> FollowedZeros:
    """The eigenvalues of a nearby matrix that belong to a block of eigenvalues."""
    passes = _passes(block, None)
    try:
        next(passes)
        while True:
            passes.send(matrix)
    except StopIteration as done:
        found: FollowedZeros = done.value
        return found


def follow_zeros(block: FollowedBlock, centre: float, matrices: Matrices, count: int) -> list[FollowedZeros]:
    """The zeros of each of several nearby A(z) that belong to the block of a zero at `centre`.

    matrices(numbers, points): those with these numbers, each at its point. They go side by side because the bulk is
    known at many points for the price of one.
    """
    passes = [_passes(block, centre) for _ in range(count)]
    points = {k: next(one) for k, one in enumerate(passes)}
    found: dict[int, FollowedZeros] = {}
    while points:
        for k, matrix in zip(list(points), matrices(list(points), list(points.values())), strict=True):
            try:
                points[k] = passes[k].send(matrix)
            except StopIteration as done:
                found[k] = done.value
                del points[k]
    return [found[k] for k in range(count)]


def _passes(block: FollowedBlock, centre: float | None) -> Generator[float, Sloped, FollowedZeros]:
    """Asks for the matrix at points until the zeros stand still; one without a centre is M - z, asked for at zero."""
    right, left = block.right, block.left
    here, before = centre or 0.0, None
    for _ in range(PASSES):
        matrix = yield here
        applied, sloped = matrix.right(right)
        left_applied, left_sloped = matrix.left(left)
        del matrix  # it may be large, and others wait for their turn
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
    raise Lost("replicas differ too much for that")
