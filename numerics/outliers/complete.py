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
"""Random columns added to the start of the subspace iteration, and columns kept beyond those that the bound needs."""
MOST_COLUMNS = 6
"""Largest ratio of matrix size to subspace dimension; above it a full eigenvalue decomposition is cheaper."""
ITERATIONS, REPEATS = 16, 4
"""Most applications of each power in the subspace iteration, and most between two Rayleigh-Ritz steps."""
NEGLECTED = 0.1
"""Size of |lambda|^k, in units of the radius, below which the bound tolerates an eigenvalue outside the subspace."""
MARGIN = 1e-3
"""Largest perturbation of eigenvalues, in units of the radius, that the bound accepts."""
ALMOST_REAL = 2e-3
"""Relative distance of two eigenvalues below which rounding may turn a real pair into a complex one."""
RESIDUAL = 100
"""Tolerated residual, in units of the rounding of the matrix; a full eigenvalue decomposition has as much."""
BESIDE = MARGIN / 100
"""Tolerated residual of columns with eigenvalues of modulus below one; the bound is up to a hundred times as large."""


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
            columns, off = part.columns, 0.0
            for count in part.counts:
                moved = perturbation(powers, columns[:, :count])
                vectors = np.linalg.eig(part.small[:count, :count])[1]
                off = moved * np.linalg.cond(vectors) if count else moved  # the Bauer-Fike bound
                if off <= MARGIN:
                    values = np.linalg.eigvals(part.small[: part.large, : part.large])
                    return Complete(values, off, IterationStart(columns[:, : part.followed + FRESH], level))
                if np.isfinite(off):
                    break
            if not np.isfinite(off):
                break  # more iterations change nothing
    return None


@dataclass(frozen=True)
class _Part:
    """Orthonormal columns by descending modulus of their eigenvalues, near an invariant subspace.

    small: the matrix restricted to the columns; sizes: the moduli of its eigenvalues. residuals: of the columns, in
    units of their tolerances. The first `large` have modulus at least one, and `followed` should suffice for the bound.
    """

    columns: np.ndarray
    small: np.ndarray
    sizes: np.ndarray
    residuals: np.ndarray
    large: int
    followed: int

    @staticmethod
    def of(powers: Powers, columns: np.ndarray) -> _Part:
        """Return the result of a Rayleigh-Ritz step."""
        images, norm = powers[0] @ columns, powers.norms[0]
        small, turn, sizes = _descending(columns.T @ images)
        columns, images = columns @ turn, images @ turn
        large = int(np.sum(sizes >= 1))
        followed = int(np.sum(sizes >= NEGLECTED ** (0.5 ** (len(powers) - 1))))
        tolerances = np.where(np.arange(len(sizes)) < large, RESIDUAL * EPSILON * norm, BESIDE / max(norm, 1.0))
        residuals = np.linalg.norm(images - columns @ small, axis=0) / tolerances
        return _Part(columns, small, sizes, residuals, large, followed)

    @property
    def error(self) -> float:
        """Return the largest residual of a column that the bound needs."""
        return float(np.max(self.residuals[: self.followed], initial=0.0))

    @property
    def counts(self) -> tuple[int, ...]:
        """Return numbers of first columns to try in the bound: those that should suffice, and all converged ones."""
        if self.error > 1:
            return ()
        count = int(np.argmax(np.append(self.residuals, np.inf) > 1))
        if self.followed < count < len(self.sizes) and self.sizes[count - 1] == self.sizes[count]:
            count -= 1  # one of a pair
        return tuple(dict.fromkeys((self.followed, count)))


def _invariant(powers: Powers, start: np.ndarray) -> Iterator[_Part]:
    """Yield approximate invariant subspaces of all eigenvalues of modulus at least one, by subspace iteration with
    M^(2^k).

    The rounding of a high power hides eigenvalues near one; the highest power with a small norm then replaces it.
    """
    rows, rng, highest = powers.rows, np.random.default_rng(0), len(powers) - 1
    accurate = max((k for k, norm in enumerate(powers.norms) if norm <= RESIDUAL), default=0)
    columns = _joined(start, rng.standard_normal((rows, FRESH)))
    level, repeats, done, before = highest, 1, 0, np.inf
    while done < ITERATIONS:
        for _ in range(repeats):
            columns = _orthonormal(powers[level] @ columns)
        part = _Part.of(powers, columns)
        yield part
        done, last, level, repeats = done + repeats, repeats, highest, 1
        columns, error, missing = part.columns, part.error, min(part.followed, rows // MOST_COLUMNS - len(part.sizes))
        if part.followed == len(part.sizes) and missing > 0:
            columns, before = _joined(columns, rng.standard_normal((rows, missing))), np.inf
            continue
        if np.all(part.residuals[part.large : part.followed] <= 1) and error * RESIDUAL <= powers.norms[highest]:
            level = accurate if error > 1 else highest
        if 1 < error < before < np.inf:
            repeats = int(np.clip(last * np.log(error) / np.log(before / error), 1, REPEATS))
        before = error


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
