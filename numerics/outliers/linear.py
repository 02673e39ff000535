"""Dense linear algebra of the spectral level beyond NumPy: null spaces, condition numbers, multiple precision."""

from __future__ import annotations

import flint
import numpy as np
import scipy.linalg
import scipy.linalg.lapack
import scipy.sparse.linalg

ALL_EIGENVALUES = 500
"""Largest size for a full eigenvalue decomposition; beyond it Arnoldi's method finds the leading ones."""
DENSE = 128
"""Largest size for all eigenvectors or singular values; beyond it inverse iteration finds single ones."""
RESOLVED = 1e-8
"""Eigenvalue, relative to the norm of the matrix, below which rounding has destroyed half of its digits."""
LONG_DIGITS, LARGEST_LONG = 120, 80
"""Digits of the multiple-precision eigenvalue decomposition, and its largest size (seconds)."""


def largest_entry(matrix: np.ndarray) -> float:
    """Return the largest modulus of an entry, without copying the matrix."""
    return max(float(np.max(matrix, initial=0.0)), -float(np.min(matrix, initial=0.0)))


def moved(matrix: np.ndarray, by: complex, border: int = 0) -> np.ndarray:
    """Return matrix + by * identity with `border` additional zero rows and columns, in Fortran order for
    in-place LU."""
    rows = len(matrix)
    shifted = np.zeros((rows + border, rows + border), complex if np.iscomplexobj(by) else float, order="F")
    shifted[:rows, :rows] = matrix
    shifted[range(rows), range(rows)] += by
    return shifted


def null_spaces(matrix: np.ndarray, count: int, at: complex = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal right and left singular vectors of (matrix - at) with the `count` smallest singular values, by
    inverse iteration."""
    scale = largest_entry(matrix)
    nudge = 1e-14 * (scale if scale > 1e-280 else 1.0)
    factored = scipy.linalg.lu_factor(moved(matrix, nudge - at), overwrite_a=True, check_finite=False)
    spaces = []
    for transposed in (0, 1):
        vectors = np.random.default_rng(0).standard_normal((len(matrix), count))
        for _ in range(4):
            vectors = np.linalg.qr(scipy.linalg.lu_solve(factored, vectors, trans=transposed))[0]
        spaces.append(vectors)
    return spaces[0], spaces[1]


def all_eigenvalues(matrix: np.ndarray) -> np.ndarray:
    """Return all eigenvalues, after deflating rows and columns that vanish."""
    alive = np.any(matrix, axis=0) & np.any(matrix, axis=1)
    eigenvalues = np.zeros(len(matrix), complex)
    eigenvalues[: np.sum(alive)] = np.linalg.eigvals(matrix[np.ix_(alive, alive)])
    return eigenvalues


def resolution(matrix: np.ndarray) -> float:
    """Return the modulus below which rounding hides eigenvalues of the balanced matrix."""
    return RESOLVED * balanced_norm(matrix)


def balanced_norm(matrix: np.ndarray) -> float:
    """Return the Frobenius norm of the balanced matrix."""
    if not matrix.size:
        return 0.0
    return float(np.linalg.norm(scipy.linalg.lapack.dgebal(matrix, scale=1, permute=1)[0]))


def balancing(matrix: np.ndarray) -> np.ndarray:
    """Return powers of two d for which diag(1/d) M diag(d) has rows and columns of nearly equal norm."""
    scales: np.ndarray = scipy.linalg.matrix_balance(matrix, permute=False, separate=True)[1][0]
    return scales


def long_eigenvalues(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues in multiple precision, and the shift of each due to rounding of the entries."""
    with flint.ctx.workdps(LONG_DIGITS):
        rows = range(len(matrix))
        exact = flint.acb_mat([[float(x) for x in row] for row in matrix])
        sizes = flint.arb_mat([[abs(float(x)) for x in row] for row in matrix])
        values, left, right = exact.eig(left=True, right=True, algorithm="approx")
        ends = [([left[k, i] for i in rows], [right[i, k] for i in rows]) for k in rows]
        noise = np.linalg.norm(matrix) * 10.0 ** (20 - LONG_DIGITS)
        moved = [np.finfo(float).eps * _stretched(sizes, *pair) + noise for pair in ends]
        eigenvalues = np.array([complex(x) for x in values])
    order = np.argsort(-np.abs(eigenvalues), kind="stable")
    return eigenvalues[order], np.array(moved)[order]


def _stretched(sizes: flint.arb_mat, left: list[flint.acb], right: list[flint.acb]) -> float:
    """Return |y|^T |M| |x| / |y^T x|, the componentwise condition number of an eigenvalue with eigenvectors x and y."""
    row, column = flint.arb_mat([[abs(y) for y in left]]), flint.arb_mat([[abs(x)] for x in right])
    met = abs(sum((y * x for y, x in zip(left, right, strict=True)), flint.acb(0)))
    condition = float((row * sizes * column)[0, 0].mid() / met.mid()) if met.mid() != 0 else np.inf
    return condition if np.isfinite(condition) else np.inf


def leading_eigenvalues(matrix: np.ndarray, count: int) -> np.ndarray:
    """Return the eigenvalues of largest modulus, descending, by Arnoldi's method; all of a small matrix."""
    if len(matrix) <= ALL_EIGENVALUES or count >= len(matrix) // 3:
        values = all_eigenvalues(matrix)
    else:
        start = np.random.default_rng(0).standard_normal(len(matrix))
        try:
            values = scipy.sparse.linalg.eigs(matrix, k=count, which="LM", v0=start, return_eigenvectors=False)
        except scipy.sparse.linalg.ArpackError:
            values = all_eigenvalues(matrix)
    return values[np.argsort(-np.abs(values), kind="stable")]


def smallest_singular_value(matrix: np.ndarray) -> float:
    """Return the smallest singular value: exactly for small matrices, by inverse iteration for large ones."""
    if len(matrix) <= DENSE:
        return float(np.linalg.svd(matrix, compute_uv=False)[-1])
    vectors, _ = null_spaces(matrix, min(4, len(matrix)))
    return float(np.linalg.svd(matrix @ vectors, compute_uv=False)[-1])


def distance_to_zero(matrix: np.ndarray, slope: np.ndarray, rounding: float) -> float:
    """Return an estimate of the distance in z to the nearest zero of det A(z), given A, A' and the relative rounding of
    entries.

    It is the larger of two estimates that do not depend on the scale of rows and columns: the inverse of the spectral
    radius of A^-1 A', and Newton's step for det A, the inverse of its trace. The spectral radius alone also grows near
    a pole of A(z), where det A does not vanish.
    """
    signs = np.random.default_rng(0).choice([-1.0, 1.0], matrix.shape)
    try:
        inverse_slope = np.linalg.solve(matrix * (1 + rounding * signs), slope)
    except np.linalg.LinAlgError:  # singular to the last bit
        return 0.0
    growth = min(float(np.abs(leading_eigenvalues(inverse_slope, 1)[0])), abs(float(np.trace(inverse_slope))))
    return 1 / growth if growth > 0 else np.inf


def eigenvalue_conditions(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return relative condition numbers of these eigenvalues under a relative perturbation of the matrix."""
    scale = np.linalg.norm(matrix)
    with np.errstate(over="ignore"):
        if len(matrix) <= DENSE:
            eigenvalues, left, right = scipy.linalg.eig(matrix, left=True, right=True)
            overlap = np.abs(np.sum(left.conj() * right, axis=0))
            nearest = np.argmin(np.abs(np.asarray(values)[:, None] - eigenvalues[None, :]), axis=1)
            conditions: np.ndarray = scale / np.maximum(np.abs(eigenvalues[nearest]) * overlap[nearest], 1e-300)
            return conditions
        found = []
        for value in values:
            count = int(np.sum(np.abs(np.asarray(values) - value) <= 1e-6 * abs(value)))
            right, left = null_spaces(matrix, count, value)
            overlap = np.linalg.svd(left.T @ right, compute_uv=False)[-1]
            found.append(scale / max(abs(value) * overlap, 1e-300))
        return np.array(found)


def eigenvalue_residual(matrix: np.ndarray, value: float) -> float:
    """Return the smallest singular value of matrix - value, from its approximate null vector."""
    vectors, _ = null_spaces(matrix, min(4, len(matrix)), value)
    return float(np.linalg.svd(matrix @ vectors - value * vectors, compute_uv=False)[-1])
