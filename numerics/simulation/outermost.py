"""The outermost eigenvalues of a large symmetric matrix by Lanczos' method, with a check for completeness.

There is an eigenvalue within the residual |M v - z v| of each Ritz value. A second run on the deflated matrix from
another start must find nothing further out, because Lanczos' method may miss degenerate eigenvalues. If either test
fails, all eigenvalues are computed.
"""

from __future__ import annotations

import numpy as np

RESIDUAL = 1e-8
"""Largest residual, relative to the largest eigenvalue."""
NEAR_ZERO = 1e-6
"""Relative size below which an eigenvalue may belong to a null space, which is identified only to rounding."""
PAYS_WITH_VECTORS, PAYS = 1000, 3000
"""Matrix sizes from which Lanczos' method is faster than a full decomposition, with and without eigenvectors."""
SMALL_SHARE = 100
"""Least ratio of matrix size to the number of eigenvalues at either end for which it is faster."""
_CONVERGED = 1e-9
_LOOKED_AT = 1e-3
_RESTARTS = 100


def outermost(matrix: np.ndarray, count: int, vectors: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the `count` smallest and `count` largest eigenvalues of a symmetric matrix, ascending, and their vectors.

    >>> import numpy as np
    >>> outermost(np.diag(np.arange(10.0)), 2, vectors=False)[0]
    array([0., 1., 8., 9.])
    """
    if pays(len(matrix), count, vectors):
        pairs = by_lanczos(matrix, count)
        if pairs is not None:
            return pairs if vectors else (pairs[0], None)
    if not vectors:
        return at_ends(np.linalg.eigvalsh(matrix), count), None
    values, all_vectors = np.linalg.eigh(matrix)
    return at_ends(values, count), at_ends(all_vectors, count)


def pays(size: int, count: int, vectors: bool) -> bool:
    """Return whether Lanczos' method is faster than a full decomposition."""
    return size >= max(PAYS_WITH_VECTORS if vectors else PAYS, SMALL_SHARE * count)


def at_ends(values: np.ndarray, count: int) -> np.ndarray:
    """Return the first and last `count` entries along the last axis; all of them if they overlap."""
    if values.shape[-1] <= 2 * count:
        return values
    return np.concatenate([values[..., :count], values[..., -count:]], axis=-1)


def by_lanczos(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return eigenvalues at either end with their vectors, ascending; None if completeness is not certain."""
    from scipy.linalg.blas import dsymv
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    size, held = len(matrix), np.asarray(matrix).T  # symmetric: the order that BLAS reads without a copy

    def times(vector: np.ndarray) -> np.ndarray:
        return dsymv(1.0, held, vector)

    def ends(product: object, number: int, steps: int, accuracy: float, start: int) -> tuple[np.ndarray, np.ndarray]:
        first = np.random.default_rng(start).standard_normal(size)  # the same in every process
        values, vectors = eigsh(
            LinearOperator((size, size), matvec=product, dtype=float),
            k=2 * number,
            which="BE",
            v0=first,
            ncv=steps,
            tol=accuracy,
            maxiter=_RESTARTS,
            rng=np.random.default_rng(start),
        )
        order = np.argsort(values)
        return values[order], vectors[:, order]

    try:
        values, vectors = ends(times, count, 6 * count, _CONVERGED, 0)
        largest = np.abs(values).max()
        residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
        if not np.all(residuals <= RESIDUAL * largest) or np.abs(values).min() <= NEAR_ZERO * largest:
            return None
        low, high = values[count - 1], values[count]
        middle = (low + high) / 2

        def rest(vector: np.ndarray) -> np.ndarray:
            vector = vector - vectors @ (vectors.T @ vector)
            image = times(vector) - middle * vector
            return image - vectors @ (vectors.T @ image)

        others = middle + ends(rest, 1, 40, _LOOKED_AT, 1)[0]
    except ArpackError:
        return None
    if others[0] < low - RESIDUAL * largest or others[-1] > high + RESIDUAL * largest:
        return None
    return values, vectors
