r"""Powers M, M^2, M^4, ... of a matrix that grows by changes of low rank, with a bound on their rounding errors.

If A becomes A + L R, its square becomes A^2 + (A L) R + L (R A + (R L) R), a change of twice the rank. Following it
takes less time than squaring, and the rounding errors of all changes add up: `drifts` bounds |X_2k - X_k^2|.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

EPSILON = float(np.finfo(float).eps)


def gamma(terms: int) -> float:
    """Return n u / (1 - n u), the relative rounding of a scalar product of n terms."""
    share = terms * EPSILON / 2
    return share / (1 - share)


def frobenius(matrix: np.ndarray) -> float:
    """Return the Frobenius norm to the relative accuracy gamma(rows + columns), from the sums of rows."""
    return float(np.sqrt(np.sum(np.einsum("ij,ij->i", matrix, matrix))))


class LowRankChange(NamedTuple):
    """A matrix of low rank, left @ right."""

    left: np.ndarray
    right: np.ndarray

    def without_zeros(self) -> LowRankChange:
        """Return the same matrix from the columns and rows whose product does not vanish."""
        kept = np.any(self.left, axis=0) & np.any(self.right, axis=1)
        return LowRankChange(self.left[:, kept], self.right[kept])


@dataclass
class Powers:
    """Powers M, M^2, M^4, ... in the corners of arrays for the largest M, their Frobenius norms, and their drifts."""

    largest: int
    rows: int = 0
    norms: list[float] = field(default_factory=list)
    drifts: list[float] = field(default_factory=list)
    _arrays: list[np.ndarray] = field(default_factory=list)

    @staticmethod
    def of(matrix: np.ndarray) -> Powers:
        """Return the powers of a matrix that does not grow, only M at first."""
        powers = Powers(len(matrix))
        powers.restart(matrix)
        return powers

    def __getitem__(self, level: int) -> np.ndarray:
        """Return M^(2^level)."""
        return self._arrays[level][: self.rows, : self.rows]

    def __len__(self) -> int:
        return len(self.norms)

    def restart(self, matrix: np.ndarray) -> None:
        """Start again with another matrix, without higher powers."""
        self.rows = len(matrix)
        self.cut(0)
        self._append(matrix, 0.0)

    def cut(self, count: int) -> None:
        """Drop powers beyond the first few."""
        del self.norms[count:], self.drifts[count:]

    def square(self) -> bool:
        """Append the square of the highest power; return whether it is finite."""
        highest = self[len(self) - 1]
        self._append(highest @ highest, self.rows * EPSILON * self.norms[-1] ** 2)
        return bool(np.isfinite(self.norms[-1]))

    def grow(self, matrix: np.ndarray, change: LowRankChange) -> None:
        """Replace M by a larger matrix: M, padded with zeros, plus a change, to rounding."""
        self.rows = rows = len(matrix)
        slip = 0.0
        for level in range(len(self)):
            here, size = self[level], self.norms[level]
            left, right = change
            is_last = level + 1 == len(self)
            if not is_last:
                across, down = right @ here, here @ left
            if level:
                here += left @ right
            else:
                here[:] = matrix
            norm = self.norms[level] = frobenius(here)
            within = float(np.linalg.norm(left) * np.linalg.norm(right))
            rounding = EPSILON * (4 * left.shape[1] * within + 2 * norm)
            if level:
                self.drifts[level] += slip * (2 * self.norms[level - 1] + slip) + rounding
            slip = rounding
            if is_last:
                break
            self.drifts[level + 1] += 4 * rows * EPSILON * within * (2 * size + within)
            change = LowRankChange(np.hstack([down, left]), np.vstack([right, across + (right @ left) @ right]))

    def _append(self, power: np.ndarray, drift: float) -> None:
        if len(self._arrays) == len(self):
            self._arrays.append(np.zeros((self.largest, self.largest)))
        whole = self._arrays[len(self)]
        whole[:] = 0.0
        whole[: self.rows, : self.rows] = power
        self.norms.append(frobenius(power))
        self.drifts.append(drift)
