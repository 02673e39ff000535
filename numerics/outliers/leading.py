"""Leading eigenvalues of a large matrix that is known by what it does to vectors: Arnoldi's method in blocks.

Many columns cost little more than one, since what is read most is the matrix. A cycle joins the columns that are kept,
what the matrix makes of them, and of that again; it keeps the part with the largest eigenvalues and some new random
columns, so that what earlier ones have missed is found. A start near the answer, such as that of a similar matrix,
saves cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

Apply = Callable[[np.ndarray], np.ndarray]
COLUMNS, FRESH, DEPTH, CYCLES = 12, 3, 8, 30
"""Columns of a block, how many of them are drawn anew in each cycle, most blocks of a cycle, and most cycles."""
FEWEST, BEYOND = 4, 2
"""So many eigenvalues are known roughly at least, and so many beyond those that are asked for: what is not there yet
would be among them."""
CONVERGED, ROUGHLY = 1e-12, 1e-3
"""Residuals, relative to the largest eigenvalue, of eigenvalues that are found, and of those beyond."""
SAME = 1e-6
"""Eigenvalues whose moduli are so close, relatively, are not cut apart."""


class NotConverged(Exception):
    """Eigenvalues lie too close together to be told apart by products."""


@dataclass(frozen=True)
class Leading:
    """values: eigenvalues, descending in modulus; the first `count` have converged. vectors: orthonormal, with
    M vectors = vectors small for these, and roughly for `small.shape[0] - count` more, up to a gap."""

    values: np.ndarray
    count: int
    vectors: np.ndarray
    small: np.ndarray

    @property
    def found(self) -> np.ndarray:
        """The eigenvalues that have converged."""
        return self.values[: self.count]

    def cut(self, count: int) -> Leading:
        """With the vectors of fewer eigenvalues."""
        small, vectors = _leading_part(self.small, self.vectors, np.abs(np.linalg.eigvals(self.small)), count)
        return Leading(self.values, min(self.count, count), vectors, small)


def leading(
    apply: Apply, size: int, floor: float, start: np.ndarray | None = None, within: float = CONVERGED
) -> Leading:
    """All eigenvalues whose modulus is at least `floor`, each with a residual of no more than `within` of the largest.
    start: columns to begin with."""
    rng, columns = np.random.default_rng(0), COLUMNS
    block = np.zeros((size, 0)) if start is None else start
    while True:
        if size <= 1.5 * DEPTH * columns:
            return _of_all(apply(np.eye(size)), floor)
        more = False
        for _ in range(CYCLES):
            kept = block[:, : columns - FRESH]
            block = _orthonormal(np.hstack([kept, rng.standard_normal((size, columns - kept.shape[1]))]))
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
    """The same of a small matrix, from all its eigenvalues."""
    values = np.linalg.eigvals(matrix)
    values = values[np.argsort(-np.abs(values), kind="stable")]
    sizes = np.abs(values)
    count = _whole(sizes, int(np.sum(sizes >= floor)))
    upto = _gap(sizes, max(count, min(1, len(sizes))), max(count, COLUMNS - FRESH))
    small, vectors = _leading_part(matrix, np.eye(len(matrix)), sizes, upto)
    return Leading(values, count, vectors, small)


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """An orthonormal basis of what columns span, by products alone, which take less time than reflections. What is left
    of columns that depend on others is rounding, in the second pass as large as the others."""
    found = columns
    for _ in range(2):
        found = found / np.maximum(np.linalg.norm(found, axis=0), 1e-280)
        weights, turn = np.linalg.eigh(found.T @ found)
        found = found @ (turn / np.sqrt(np.maximum(weights, np.finfo(float).eps)))
    return found


def _growing(apply: Apply, block: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Orthonormal columns, and what the matrix makes of them: of more and more blocks, from the second on."""
    basis, images = block, apply(block)
    for _ in range(DEPTH - 1):
        new = images[:, -block.shape[1] :]
        for _ in range(3):  # what is left of columns that are nearly there is rounding, until it is cleared again
            new = _orthonormal(new - basis @ (basis.T @ new))
        basis, images = np.hstack([basis, new]), np.hstack([images, apply(new)])
        yield basis, images


def _whole(sizes: np.ndarray, count: int) -> int:
    """A number of eigenvalues that leaves no pair, or multiple one, in part."""
    while 0 < count < len(sizes) and sizes[count - 1] - sizes[count] <= SAME * sizes[count - 1]:
        count += 1
    return min(count, len(sizes))


def _gap(sizes: np.ndarray, least: int, most: int) -> int:
    """How many eigenvalues there are down to the widest gap between them."""
    here = range(least, max(least, min(most, len(sizes) - 1)) + 1)
    return max(here, key=lambda k: sizes[k - 1] / max(sizes[k], 1e-280) if k < len(sizes) else np.inf)


def _leading_part(small: np.ndarray, basis: np.ndarray, sizes: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix between the leading vectors, and these; sizes: moduli of eigenvalues, descending."""
    sizes = np.sort(sizes)[::-1]
    least = np.sqrt(sizes[count - 1] * sizes[count]) if count < len(sizes) else -1.0
    upper, turn, found = scipy.linalg.schur(small, sort=lambda re, im: np.hypot(re, im) > least)
    return upper[:found, :found], basis @ turn[:, :found]
