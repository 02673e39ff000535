"""Leading eigenvalues of a linear operator by the thick-restart block Arnoldi method.

A block of columns costs little more than a single one, because reading the matrix dominates. A cycle builds a block
Krylov space, keeps the Ritz vectors of largest modulus, and adds random columns so that eigenvalues missed before are
found. A start near the solution, such as that of a similar matrix, saves cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

Apply = Callable[[np.ndarray], np.ndarray]
COLUMNS, FRESH, DEPTH, CYCLES = 12, 3, 8, 30
"""Columns per block, random columns added per cycle, most blocks per cycle, most cycles."""
FEWEST, BEYOND = 4, 2
"""Least number of Ritz values known roughly, and required number below the floor, to detect missing eigenvalues."""
CONVERGED, ROUGHLY = 1e-12, 1e-3
"""Residuals, relative to the largest eigenvalue, of converged eigenvalues and of those below the floor."""
SAME = 1e-6
"""Relative distance of moduli below which eigenvalues belong to one cluster."""


class NotConverged(Exception):
    """Raised when eigenvalues are too clustered for Arnoldi's method."""


@dataclass(frozen=True)
class Leading:
    """Eigenvalues, descending in modulus, the first `count` converged, with an orthonormal basis of their invariant
    subspace.

    The relation M vectors = vectors small holds for the converged eigenvalues, and approximately for the others up to a
    gap.
    """

    values: np.ndarray
    count: int
    vectors: np.ndarray
    small: np.ndarray

    @property
    def found(self) -> np.ndarray:
        """The converged eigenvalues."""
        return self.values[: self.count]

    def cut(self, count: int) -> Leading:
        """Return the part with fewer eigenvalues."""
        small, vectors = _leading_part(self.small, self.vectors, np.abs(np.linalg.eigvals(self.small)), count)
        return Leading(self.values, min(self.count, count), vectors, small)


def leading(
    apply: Apply, size: int, floor: float, start: np.ndarray | None = None, within: float = CONVERGED
) -> Leading:
    """Return all eigenvalues with modulus at least `floor`.

    Args:
        apply: the linear operator, on columns.
        size: its number of rows.
        floor: smallest modulus.
        start: columns to begin with.
        within: tolerance of the residual relative to the largest eigenvalue.
    """
    rng, columns = np.random.default_rng(0), COLUMNS
    block = np.zeros((size, 0)) if start is None else start
    while True:
        if size <= 1.5 * DEPTH * columns:
            return _of_all(apply(np.eye(size)), floor)
        more = False
        for _ in range(CYCLES):
            ritz = block[:, : columns - FRESH]
            block = _orthonormal(np.hstack([ritz, rng.standard_normal((size, columns - ritz.shape[1]))]))
            for basis, images in _growing(apply, block):
                small = basis.T @ images
                values, turns = np.linalg.eig(small)
                order = np.argsort(-np.abs(values), kind="stable")
                values, turns = values[order], turns[:, order]
                sizes = np.abs(values)
                count = _whole(sizes, int(np.sum(sizes >= floor)))
                more = count > columns // 2
                first = turns[:, : max(FEWEST, count + BEYOND)]
                off = np.linalg.norm(images @ first - basis @ (first * values[: first.shape[1]]), axis=0)
                off /= max(sizes[0], 1e-280)
                done = np.all(off[:count] <= within) and np.all(off <= ROUGHLY)
                if done and not more:
                    upto = _gap(sizes, max(count, 1), columns - FRESH)
                    part, vectors = _leading_part(small, basis, sizes, upto)
                    return Leading(values, count, vectors, part)
            block = _leading_part(small, basis, sizes, _whole(sizes, columns - FRESH))[1]
            if more:
                break
        if not more:
            raise NotConverged
        columns *= 2


def _of_all(matrix: np.ndarray, floor: float) -> Leading:
    """Return the result of `leading` for a small matrix, from its full eigenvalue decomposition."""
    values = np.linalg.eigvals(matrix)
    values = values[np.argsort(-np.abs(values), kind="stable")]
    sizes = np.abs(values)
    count = _whole(sizes, int(np.sum(sizes >= floor)))
    upto = _gap(sizes, max(count, min(1, len(sizes))), max(count, COLUMNS - FRESH))
    small, vectors = _leading_part(matrix, np.eye(len(matrix)), sizes, upto)
    return Leading(values, count, vectors, small)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of columns from the eigenvectors of their Gram matrix, in two passes.

    Matrix products take less time than Householder reflections. Linearly dependent columns leave rounding errors, which
    the second pass normalises.
    """
    basis = columns
    for _ in range(2):
        basis = basis / np.maximum(np.linalg.norm(basis, axis=0), 1e-280)
        weights, turn = np.linalg.eigh(basis.T @ basis)
        basis = basis @ (turn / np.sqrt(np.maximum(weights, np.finfo(float).eps)))
    return basis


def _growing(apply: Apply, block: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield orthonormal bases of growing block Krylov spaces, from the second block on, with their images."""
    basis, images = block, apply(block)
    for _ in range(DEPTH - 1):
        new = images[:, -block.shape[1] :]
        for _ in range(3):  # repeat: nearly dependent columns leave rounding that must be orthogonalised again
            new = _orthonormal(new - basis @ (basis.T @ new))
        basis, images = np.hstack([basis, new]), np.hstack([images, apply(new)])
        yield basis, images


def _whole(sizes: np.ndarray, count: int) -> int:
    """Return the largest number of eigenvalues up to `count` that splits no complex pair or cluster."""
    while 0 < count < len(sizes) and sizes[count - 1] - sizes[count] <= SAME * sizes[count - 1]:
        count += 1
    return min(count, len(sizes))


def _gap(sizes: np.ndarray, least: int, most: int) -> int:
    """Return the number of eigenvalues above the widest gap between `least` and `most`."""
    here = range(least, max(least, min(most, len(sizes) - 1)) + 1)
    return max(here, key=lambda k: sizes[k - 1] / max(sizes[k], 1e-280) if k < len(sizes) else np.inf)


def _leading_part(small: np.ndarray, basis: np.ndarray, sizes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the projected matrix and basis of the leading invariant subspace; sizes: moduli of eigenvalues,
    descending."""
    sizes = np.sort(sizes)[::-1]
    least = np.sqrt(sizes[count - 1] * sizes[count]) if count < len(sizes) else -1.0
    upper, turn, selected = scipy.linalg.schur(small, sort=lambda re, im: np.hypot(re, im) > least)
    return upper[:selected, :selected], basis @ turn[:, :selected]
