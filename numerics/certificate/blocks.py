"""Matrices of blocks at many points at once, and the logarithms of their determinants.

The first axis of what depends on the point runs over points. Blocks of A(z) are mostly a number times the identity, or
do not depend on z at all: an identity is kept as such, so that rows of blocks with nothing but a number on the diagonal
are eliminated, and of what is left each block is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class IdentityPlus:
    """A number times the identity, plus a matrix. scale: a number, or one for each point, with three axes; rest: a
    matrix, one for each point, or 0."""

    size: int
    scale: Any = 1.0
    rest: Any = 0.0

    __array_ufunc__ = None

    @property
    def shape(self) -> tuple[int, int]:
        return (self.size, self.size)

    @property
    def T(self) -> IdentityPlus:
        turned = np.swapaxes(self.rest, -1, -2) if np.ndim(self.rest) else self.rest
        return IdentityPlus(self.size, self.scale, turned)

    def __add__(self, other: Any) -> IdentityPlus:
        if isinstance(other, IdentityPlus):
            return IdentityPlus(self.size, self.scale + other.scale, self.rest + other.rest)
        if np.shape(other)[-2:] != self.shape:
            raise TypeError("a number is added to each entry")
        return IdentityPlus(self.size, self.scale, self.rest + other)

    __radd__ = __add__

    def __neg__(self) -> IdentityPlus:
        return self.__mul__(-1.0)

    def __sub__(self, other: Any) -> IdentityPlus:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> IdentityPlus:
        return self.__neg__().__add__(other)

    def __mul__(self, other: Any) -> IdentityPlus:
        if isinstance(other, IdentityPlus) or any(length > 1 for length in np.shape(other)[-2:]):
            raise TypeError("matrices are multiplied entry by entry")
        return IdentityPlus(self.size, self.scale * other, self.rest * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> IdentityPlus:
        return self.__mul__(1 / other)


@dataclass(frozen=True)
class Part:
    """A small matrix in a direct sum, and how often the sum has it. place: its rows, or its rows of blocks."""

    place: np.ndarray
    count: int


@dataclass(frozen=True, eq=False)
class BlockMatrix:
    """Rows of blocks, each a matrix, a stack of matrices over points or a multiple of the identity plus one of these.
    count: how many points there are."""

    rows: Sequence[Sequence[Any]]
    count: int

    @cached_property
    def heights(self) -> list[int]:
        return [int(row[0].shape[-2]) for row in self.rows]

    @cached_property
    def widths(self) -> list[int]:
        return [int(block.shape[-1]) for block in self.rows[0]]

    @cached_property
    def occupied(self) -> np.ndarray:
        """Which blocks are not zero."""
        return np.array([[_is_occupied(block) for block in row] for row in self.rows])

    @cached_property
    def diagonal(self) -> bool:
        """Whether every block on the diagonal is square, with a multiple of the identity in it."""
        rows = enumerate(self.rows)
        return self.heights == self.widths and all(
            isinstance(row[i], IdentityPlus) and np.asarray(row[i].scale).all() for i, row in rows
        )

    def stack(self, places: Sequence[int] | None = None) -> np.ndarray:
        """The matrix at every point; places: of some rows and columns of blocks only."""
        chosen = list(range(len(self.rows)) if places is None else places)
        tops, lefts = _starts(self.heights, chosen), _starts(self.widths, chosen)
        fixed = np.zeros((tops[-1], lefts[-1]))
        others = []
        for i, top, below in zip(chosen, tops, tops[1:], strict=False):
            for k, left, right in zip(chosen, lefts, lefts[1:], strict=False):
                block, place = self.rows[i][k], (slice(top, below), slice(left, right))
                rest = block.rest if isinstance(block, IdentityPlus) else block
                if np.ndim(rest) == 2 and not np.iscomplexobj(rest):
                    fixed[place] = rest
                elif np.ndim(rest):
                    others.append((place, rest))
                if isinstance(block, IdentityPlus):
                    others.append((place, IdentityPlus(block.size, block.scale)))
        found = np.empty((self.count, *fixed.shape), complex)
        found[:] = fixed
        for (down, across), block in others:
            if isinstance(block, IdentityPlus):
                along = np.einsum("kii->ki", found[:, down, across])
                along += np.reshape(block.scale, (-1, 1))
            else:
                found[:, down, across] = block
        return found

    def at(self, point: int) -> np.ndarray:
        """The matrix at one of the points."""
        rows = [[_taken(block, point) for block in row] for row in self.rows]
        found: np.ndarray = BlockMatrix(rows, 1).stack()[0]
        return found

    @cached_property
    def eliminated(self) -> list[int]:
        """Rows of blocks that have a multiple of the identity on the diagonal, and nothing in each other's columns."""
        found: list[int] = []
        for i in range(len(self.rows) if self.diagonal else 0):
            joined = self.occupied[i, found].any() or self.occupied[found, i].any()
            if not joined and not np.any(self.rows[i][i].rest):
                found.append(i)
        return found

    def log_determinants(self) -> np.ndarray:
        """Logarithms at every point, with any argument: where rows of blocks are eliminated, of the Schur complement of
        their diagonal."""
        gone = self.eliminated
        left = [i for i in range(len(self.rows)) if i not in gone]
        total = np.zeros(self.count, complex)
        for i in gone:
            total += self.heights[i] * np.log(self.scalars[:, i, i])
        if not left:
            return total
        rest, starts = self.stack(left), _starts(self.heights, left)
        for i in gone:
            inverse = 1 / self.scalars[:, i, i, None, None]
            for j, top, below in zip(left, starts, starts[1:], strict=False):
                for k, before, after in zip(left, starts, starts[1:], strict=False):
                    if self.occupied[j, i] and self.occupied[i, k]:
                        product = _dense(self.rows[j][i]) @ _dense(self.rows[i][k])
                        rest[:, top:below, before:after] -= product * inverse
        total += _logarithms(rest)
        return total

    def parts(self) -> list[Part]:
        """The small matrices that it is the direct sum of; equal ones once."""
        found: dict[bytes, Part] = {}
        matrices = self.stack()
        for rows in _joined(np.any(matrices != 0, axis=0)):
            key = matrices[:, rows[:, None], rows[None, :]].tobytes()
            found[key] = Part(rows, 1 + (found[key].count if key in found else 0))
        return list(found.values())

    def log_parts(self, parts: Sequence[Part]) -> np.ndarray:
        """Logarithms of the determinants of the parts: one row per point."""
        return _each(self.stack(), parts)

    @cached_property
    def scalars(self) -> np.ndarray:
        """At every point the multiple of the identity in each block."""
        found = np.zeros((self.count, len(self.rows), len(self.rows)), complex)
        for i, row in enumerate(self.rows):
            for k, block in enumerate(row):
                if isinstance(block, IdentityPlus):
                    found[:, i, k] = np.ravel(block.scale)
        return found

    def scalar_parts(self) -> list[Part] | None:
        """The direct sum that the multiples of identities in it are, by rows of blocks; None where they are not one of
        small matrices without zeros on their diagonals."""
        if not self.diagonal:
            return None
        groups = _joined(np.any(self.scalars != 0, axis=0))
        if any(len({self.heights[i] for i in group}) > 1 for group in groups):
            return None
        return [Part(group, self.heights[group[0]]) for group in groups]

    def log_scalar_parts(self, parts: Sequence[Part]) -> np.ndarray:
        """The same as `log_parts` for `scalar_parts`."""
        return _each(self.scalars, parts)


def _each(matrices: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """Logarithms of the determinants of parts of matrices."""
    found = [
        np.log(matrices[:, part.place[0], part.place[0]])
        if part.place.size == 1
        else _logarithms(matrices[:, part.place[:, None], part.place[None, :]])
        for part in parts
    ]
    return np.array(found).T


def _logarithms(matrices: np.ndarray) -> np.ndarray:
    """Logarithms of determinants."""
    sign, size = np.linalg.slogdet(matrices)
    found: np.ndarray = size + 1j * np.angle(sign)
    return found


def _starts(sizes: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """Where each of some blocks begins, and the last one ends."""
    return [0, *accumulate(sizes[i] for i in chosen)]


def _is_occupied(block: Any) -> bool:
    if isinstance(block, IdentityPlus):
        return bool(np.asarray(block.scale).any() or np.asarray(block.rest).any())
    return bool(block.any())


def _taken(block: Any, point: int) -> Any:
    """A block at one point."""
    if isinstance(block, IdentityPlus):
        return IdentityPlus(block.size, _taken(block.scale, point), _taken(block.rest, point))
    return block[point : point + 1] if np.ndim(block) == 3 else block


def _dense(block: Any) -> Any:
    if not isinstance(block, IdentityPlus):
        return block
    return block.scale * np.eye(block.size) + block.rest


def _joined(occupied: np.ndarray) -> list[np.ndarray]:
    """Places that are joined by entries, in either direction and by way of others, group by group."""
    joined = occupied | occupied.T | np.eye(len(occupied), dtype=bool)
    label, before = np.arange(len(joined)), np.full(len(joined), -1)
    while not np.array_equal(label, before):  # the smallest label spreads through its group
        label, before = np.where(joined, label, len(joined)).min(axis=1), label
    return [np.flatnonzero(label == one) for one in np.unique(label)]
