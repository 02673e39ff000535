r"""Leading eigenvalues of a matrix, with a bound that proves that no other is as large.

Let the columns of Q span nearly an invariant subspace, and let M have the blocks T = Q^T M Q, G = Q^T M P, F = P M Q
and M22 = P M P, with P = 1 - Q Q^T. Where |M22^k| < r^k for some k, z - M22 has an inverse for all |z| >= r, of norm

    g <= (1 + |M22|/r) (1 + |M22^2|/r^2) ... (1 + |M22^(k/2)|/r^(k/2)) / (r - |M22^k|/r^(k-1))

and the eigenvalues of M with |z| >= r are the zeros of det(z - T - G (z - M22)^-1 F): those of the small matrix T,
moved by a perturbation of norm |G| g |F|. Norms are Frobenius norms. Powers of M22 come from those of M:

    P M^2k P = (P M^k P)^2 + (P M^k Q) (Q^T M^k P).

The last term and rounding are carried along as an error of |M22^k|. The bound holds however Q was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

HIGHEST = 4
"""Powers M^2, M^4, ... up to M^(2^HIGHEST) are taken."""
FRESH = 3
"""Random columns that join those that are there."""
MOST_COLUMNS = 6
"""One in so many eigenvalues is followed at most: beyond, all of them take less time."""
ITERATIONS = 8
"""Applications of each power to the columns, at most."""
NEGLECTED = 0.1
"""Eigenvalues whose power is smaller, in units of the radius, need not be followed for the bound."""
MARGIN = 1e-3
"""Eigenvalues may be off by this, in units of the radius, for the bound; those of modulus r or more are not."""
ALMOST_REAL = 2e-3
"""Two eigenvalues that are closer, relatively, may have become real or complex by rounding."""
RESIDUAL = 100
"""Residuals of these, in units of the rounding of the matrix: what an eigenproblem of all eigenvalues has."""
EPSILON = float(np.finfo(float).eps)


@dataclass(frozen=True)
class IterationStart:
    """Columns that span nearly what belongs to large eigenvalues, and the squarings that the bound needed."""

    columns: np.ndarray
    level: int = 1

    def padded(self, rows: int) -> IterationStart:
        """The same for a larger matrix."""
        return IterationStart(np.pad(self.columns, ((0, rows - len(self.columns)), (0, 0))), self.level)


@dataclass(frozen=True)
class Complete:
    """values: all eigenvalues of modulus r or more, and no others. off: so far from each there is one of the matrix, as
    many as lie there together. start: for a similar matrix."""

    values: np.ndarray
    off: float
    start: IterationStart

    @property
    def real(self) -> np.ndarray | None:
        """The real eigenvalues; None where two that are close may be a pair of complex ones, or such a pair real."""
        values = self.values
        apart = np.abs(values[:, None] - values[None, :]) + np.where(np.eye(len(values), dtype=bool), np.inf, 0.0)
        if np.any(apart <= max(2 * self.off, ALMOST_REAL * np.max(np.abs(values), initial=0.0))):
            return None
        found: np.ndarray = values[values.imag == 0].real
        return found


def complete_eigenvalues(matrix: np.ndarray, radius: float, start: IterationStart) -> Complete | None:
    """All eigenvalues whose modulus is at least a radius; None where the bound does not say so.

    Args:
        matrix: real and square.
        start: what to begin with, such as the result for a similar matrix.
    """
    powers, columns = [matrix / radius], start.columns
    while len(powers) <= HIGHEST:
        powers.append(powers[-1] @ powers[-1])
        if not np.all(np.isfinite(powers[-1])):
            return None
        if len(powers) <= start.level:
            continue
        for part in _invariant(powers, columns):
            columns = part.columns
            moved = perturbation(powers, columns[:, : part.count])
            vectors = np.linalg.eig(part.small[: part.count, : part.count])[1]
            off = moved * np.linalg.cond(vectors) if part.count else moved  # Bauer and Fike
            if off <= MARGIN:
                values = np.linalg.eigvals(part.small[: part.large, : part.large])
                return Complete(
                    radius * values, radius * off, IterationStart(columns[:, : part.followed], len(powers) - 1)
                )
            if not np.isfinite(off) and part.count >= part.followed:
                break  # more iterations change nothing
    return None


@dataclass(frozen=True)
class _Part:
    """columns: orthonormal, by descending moduli of their eigenvalues; the first `large`, with moduli of one or more,
    span an invariant subspace to rounding, the first `count` nearly, and `followed` would be enough. small: the matrix
    between them."""

    columns: np.ndarray
    small: np.ndarray
    large: int
    count: int
    followed: int


def _invariant(powers: list[np.ndarray], start: np.ndarray) -> Iterator[_Part]:
    """Nearly invariant subspaces of all eigenvalues in the columns that are at least one, by orthogonal iteration with
    the highest power."""
    matrix, rows, rng = powers[0], len(powers[0]), np.random.default_rng(0)
    columns = _joined(start, rng.standard_normal((rows, FRESH)))
    size, least = float(np.linalg.norm(matrix)), NEGLECTED ** (0.5 ** (len(powers) - 1))
    tried = -1
    for _ in range(ITERATIONS):
        columns = np.linalg.qr(powers[-1] @ columns)[0]
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
    """An orthonormal basis of both."""
    found: np.ndarray = np.linalg.qr(np.hstack([columns, others]))[0]
    return found


def _descending(small: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A matrix in an orthonormal basis whose first columns belong to its largest eigenvalues, the basis, and moduli."""
    values, vectors = np.linalg.eig(small)
    order = np.argsort(-np.abs(values), kind="stable")
    values, vectors = values[order], vectors[:, order]
    turn = np.linalg.qr(np.where(values.imag < 0, vectors.imag, vectors.real))[0]
    return turn.T @ small @ turn, turn, np.abs(values)


def perturbation(powers: list[np.ndarray], vectors: np.ndarray) -> float:
    """The norm |G| g |F| by which eigenvalues of modulus one or more are moved; infinite where there is no bound.

    Args:
        powers: M, M^2, M^4, ...
        vectors: orthonormal columns.
    """
    error, inverse, ends = 0.0, 1.0, (0.0, 0.0)
    for number, power in enumerate(powers):
        across, down = vectors.T @ power, power @ vectors
        small = across @ vectors
        below, beside = down - vectors @ small, across - small @ vectors.T
        rest = float(np.linalg.norm(power - vectors @ across - below @ vectors.T))
        whole, left, right = (float(np.linalg.norm(x)) for x in (power, below, beside))
        rounding = len(power) * EPSILON * whole
        bound = rest + error + rounding
        if number == 0:
            ends = left + rounding, right + rounding
        if bound < 1:
            return ends[0] * ends[1] * inverse / (1 - bound)
        inverse *= 1 + bound
        error = (left + rounding) * (right + rounding) + error * (2 * bound + error) + rounding * whole
    return np.inf
