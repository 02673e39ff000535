r"""Leading eigenvalues of a matrix, with a proof that no other is as large.

Let the columns of Q span nearly an invariant subspace, and let M have the blocks T = Q^T M Q, G = Q^T M P, F = P M Q
and M22 = P M P, with P = 1 - Q Q^T. If |M22^k| < r^k for some k, z - M22 has an inverse for all |z| >= r, of norm

    g <= (1 + |M22|/r) (1 + |M22^2|/r^2) ... (1 + |M22^(k/2)|/r^(k/2)) / (r - |M22^k|/r^(k-1))

and the eigenvalues of M with |z| >= r are the zeros of det(z - T - G (z - M22)^-1 F): those of the small matrix T,
moved by a perturbation of norm |G| g |F|. Norms are Frobenius norms. Powers of M22 come from those of M:

    P M^2k P = (P M^k P)^2 + (P M^k Q) (Q^T M^k P).

The last term and rounding errors are carried along as an error of |M22^k|. The bound holds for any orthonormal Q.

Rounding is bounded as in Higham, Accuracy and Stability of Numerical Algorithms, 3.5: a computed product of matrices
with n inner terms differs from the exact one by at most gamma_n |A| |B|, where gamma_n = n u / (1 - n u) and u is the
unit roundoff. The columns in memory are orthonormal up to delta = |Q^T Q - 1|, and at most that far from the exactly
orthonormal columns (their polar factor) for which the bound is stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dgeqrf as geqrf, dorgqr as orgqr

from numerics.outliers.powers import EPSILON, Powers, frobenius, gamma

HIGHEST = 4
"""The powers M^2, M^4, ... up to M^(2^HIGHEST) are computed."""
FRESH = 3
"""Random columns added to the start of the subspace iteration."""
MOST_COLUMNS = 6
"""Largest ratio of matrix size to subspace dimension; above it a full eigenvalue decomposition is cheaper."""
ITERATIONS = 8
"""Most applications of each power in the subspace iteration."""
NEGLECTED = 0.1
"""Size of |lambda|^k, in units of the radius, below which the bound tolerates an eigenvalue outside the subspace."""
MARGIN = 1e-3
"""Largest perturbation of eigenvalues, in units of the radius, that the bound accepts."""
ALMOST_REAL = 2e-3
"""Relative distance of two eigenvalues below which rounding may turn a real pair into a complex one."""
RESIDUAL = 100
"""Tolerated residual, in units of the rounding of the matrix; a full eigenvalue decomposition has as much."""


@dataclass(frozen=True)
class IterationStart:
    """A start of the subspace iteration: columns near the dominant invariant subspace, and the number of squarings."""

    columns: np.ndarray
    level: int = 1

    def padded(self, rows: int) -> IterationStart:
        """Return the start for a larger matrix, padded with zero rows."""
        return IterationStart(np.pad(self.columns, ((0, rows - len(self.columns)), (0, 0))), self.level)


NO_START = IterationStart(np.zeros((0, 0)))


@dataclass(frozen=True)
class Complete:
    """All eigenvalues with modulus at least one, with a proof that there are no others.

    Attributes:
        values: the eigenvalues.
        off: radius of discs around them, which together contain the same number of eigenvalues of the matrix.
        start: a start for a similar matrix.
    """

    values: np.ndarray
    off: float
    start: IterationStart

    @property
    def real(self) -> np.ndarray | None:
        """Return the real eigenvalues; None if a close pair may be real or complex."""
        values = self.values
        apart = np.abs(values[:, None] - values[None, :]) + np.where(np.eye(len(values), dtype=bool), np.inf, 0.0)
        if np.any(apart <= max(2 * self.off, ALMOST_REAL * np.max(np.abs(values), initial=0.0))):
            return None
        real: np.ndarray = values[values.imag == 0].real
        return real


def complete_eigenvalues(powers: Powers, start: IterationStart) -> Complete | None:
    """Return all eigenvalues with modulus at least one; None if the bound does not prove completeness.

    Args:
        powers: a real square matrix M with the available powers; useful ones are added.
        start: a start of the subspace iteration, such as the result for a similar matrix.
    """
    columns = start.columns
    for level in range(1, HIGHEST + 1):
        if level == len(powers) and not powers.square():
            return None
        if level < start.level:
            continue
        for part in _invariant(powers, columns):
            columns = part.columns
            moved = perturbation(powers, columns[:, : part.count])
            vectors = np.linalg.eig(part.small[: part.count, : part.count])[1]
            off = moved * np.linalg.cond(vectors) if part.count else moved  # the Bauer-Fike bound
            if off <= MARGIN:
                values = np.linalg.eigvals(part.small[: part.large, : part.large])
                return Complete(values, off, IterationStart(columns[:, : part.followed], level))
            if not np.isfinite(off) and part.count >= part.followed:
                break  # more iterations change nothing
    return None


@dataclass(frozen=True)
class _Part:
    """An approximate invariant subspace: orthonormal columns by descending modulus of their eigenvalues.

    The first `large` columns (modulus at least one) are invariant to rounding, the first `count` approximately;
    `followed` columns would suffice for the bound. small: the matrix restricted to the columns.
    """

    columns: np.ndarray
    small: np.ndarray
    large: int
    count: int
    followed: int


def _invariant(powers: Powers, start: np.ndarray) -> Iterator[_Part]:
    """Yield approximate invariant subspaces of all eigenvalues of modulus at least one, by subspace iteration with
    M^(2^k)."""
    matrix, highest, rows, rng = powers[0], powers[len(powers) - 1], powers.rows, np.random.default_rng(0)
    columns = _joined(start, rng.standard_normal((rows, FRESH)))
    size, least = powers.norms[0], NEGLECTED ** (0.5 ** (len(powers) - 1))
    tried = -1
    for _ in range(ITERATIONS):
        columns = _orthonormal(highest @ columns)
        images = matrix @ columns
        small, turn, sizes = _descending(columns.T @ images)
        columns, images = columns @ turn, images @ turn
        off = np.append(np.linalg.norm(images - columns @ small, axis=0), np.inf)
        large, followed = int(np.sum(sizes >= 1)), int(np.sum(sizes >= least))
        count = int(np.argmax(off > MARGIN / (10 * size)))
        if 0 < count < len(sizes) and sizes[count - 1] == sizes[count]:
            count -= 1  # one of a pair
        if (
            large <= count
            and np.all(off[:large] <= RESIDUAL * EPSILON * size)
            and (count != tried or count >= followed)
        ):
            yield _Part(columns, small, large, count, followed)
            tried = count
        if followed == len(sizes):
            if 2 * followed * MOST_COLUMNS > rows:
                return
            columns = _joined(columns, rng.standard_normal((rows, followed)))


def _joined(columns: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of two sets of columns."""
    return _orthonormal(np.hstack([columns, others]))


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of columns, by Householder reflections without the triangular factor."""
    reflections, scales, *_ = geqrf(columns)
    basis: np.ndarray = orgqr(reflections, scales)[0]
    return basis


def _descending(small: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the matrix in a Schur basis ordered by descending modulus, the basis, and the moduli."""
    values, vectors = np.linalg.eig(small)
    order = np.argsort(-np.abs(values), kind="stable")
    values, vectors = values[order], vectors[:, order]
    turn = _orthonormal(np.where(values.imag < 0, vectors.imag, vectors.real))
    return turn.T @ small @ turn, turn, np.abs(values)


def perturbation(powers: Powers, vectors: np.ndarray) -> float:
    """Return the bound |G| g |F| on the perturbation of eigenvalues of modulus at least one, with the rounding of T;
    infinite if there is none.

    Args:
        powers: M, M^2, M^4, ...
        vectors: columns Q, orthonormal to rounding.
    """
    rows, count = vectors.shape
    inner, norms = gamma(rows), gamma(2 * rows + 4)
    columns = (1 + gamma(vectors.size)) * float(np.linalg.norm(vectors))
    apart = float(np.linalg.norm(vectors.T @ vectors - np.eye(count))) * (1 + gamma(count**2)) + inner * columns**2
    # errors relative to |M^k|: of Q^T M^k and M^k Q, of T, and of P M^k Q and Q^T M^k P with their norms
    once = inner * columns + apart
    twice = once * (1 + apart) + inner * columns * (1 + once) + apart
    beside_off = once + twice * (1 + apart) + apart + gamma(count + 3) * (1 + columns) * (1 + twice) + 2 * norms
    error, inverse, ends, off = 0.0, 1.0, (0.0, 0.0), 0.0
    for level, whole in enumerate(powers.norms):
        across, down = vectors.T @ powers[level], powers[level] @ vectors
        small = across @ vectors
        below, beside = down - vectors @ small, across - small @ vectors.T
        (left, right, first), rounding = (frobenius(x) for x in (below, beside, across)), beside_off * whole
        # |P M P|^2 = |M|^2 - |Q^T M|^2 - |P M Q|^2
        cancelled = 2 * (once * first + beside_off * left) * whole + 3 * norms * whole**2
        rest = max(0.0, whole**2 - first**2 - left**2) + cancelled
        bound = float(np.sqrt(rest)) + error
        if level == 0:
            ends, off = (left + rounding, right + rounding), twice * whole
        if bound < 1:
            return off + ends[0] * ends[1] * inverse / (1 - bound)
        if level + 1 == len(powers):
            break
        inverse *= 1 + bound
        error = (left + rounding) * (right + rounding) + error * (2 * bound + error) + powers.drifts[level + 1]
    return np.inf
