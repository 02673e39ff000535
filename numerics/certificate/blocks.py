"""Log-determinants of block matrices at many points z at once.

The first axis runs over points. Most blocks of A(z) are multiples of the identity or independent of z. Multiples of the
identity serve as pivots for whole rows of blocks, and their Schur complement is a sum of a few matrices independent of
z, times functions of z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from numerics.runtime.operators import BlockOperator, Identity, Operator, Zero

ROUNDING = 4e-16
"""Relative rounding up to which one matrix counts as a multiple of another."""


@dataclass(frozen=True, eq=False)
class IdentityPlus:
    """scale * identity + rest, at many points.

    scale: a number, or an array over points with three axes; 0 for blocks that are not square. rest: a matrix, a stack
    over points, or 0.
    """

    size: int
    scale: Any = 1.0
    rest: Any = 0.0

    __array_ufunc__ = None

    @staticmethod
    def of(block: Any) -> IdentityPlus:
        """Return a block in this form, whether or not it contains a multiple of the identity."""
        return block if isinstance(block, IdentityPlus) else IdentityPlus(block.shape[-1], 0.0, block)

    @property
    def shape(self) -> tuple[int, int]:
        return np.shape(self.rest)[-2:] or (self.size, self.size)

    @cached_property
    def scaled(self) -> bool:
        """Whether the multiple of the identity is nonzero at all points."""
        return bool(self.scale.all()) if isinstance(self.scale, np.ndarray) else bool(self.scale)

    @cached_property
    def partly_scaled(self) -> bool:
        """Whether the multiple of the identity is nonzero at some point."""
        return _is_occupied(self.scale)

    @property
    def is_number(self) -> bool:
        """Whether it is a nonzero multiple of the identity."""
        return not isinstance(self.rest, np.ndarray) and self.scaled

    @cached_property
    def occupied(self) -> bool:
        """Whether it is nonzero at some point."""
        return self.partly_scaled or _is_occupied(self.rest)

    def at(self, point: int) -> IdentityPlus:
        """The block at one point."""
        return IdentityPlus(self.size, _taken(self.scale, point), _taken(self.rest, point))

    @property
    def T(self) -> IdentityPlus:
        turned = np.swapaxes(self.rest, -1, -2) if np.ndim(self.rest) else self.rest
        return IdentityPlus(self.size, self.scale, turned)

    def __add__(self, other: Any) -> IdentityPlus:
        if np.shape(other)[-2:] != self.shape:
            raise TypeError("a number is added to each entry")
        other = IdentityPlus.of(other)
        return IdentityPlus(self.size, self.scale + other.scale, self.rest + other.rest)

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
        return IdentityPlus(self.size, self.scale * other, self.rest * other if np.ndim(self.rest) else self.rest)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> IdentityPlus:
        return self.__mul__(1 / other)


def _is_occupied(value: Any) -> bool:
    """Return whether a number or some entry of an array is nonzero."""
    return bool(value.any()) if isinstance(value, np.ndarray) else bool(value)


def blocks_of(operator: Operator, count: int) -> BlockRows:
    """Return A(z) at many points as blocks, from its operator whose coefficients have one entry per point."""
    rows = operator.rows if isinstance(operator, BlockOperator) else ((operator,),)
    return BlockRows([[_collected(entry) for entry in row] for row in rows], count)


def _collected(entry: Operator) -> Any:
    """Return a block as a multiple of the identity plus a matrix."""
    if isinstance(entry, Zero) and entry.shape[0] == entry.shape[1]:
        return IdentityPlus(entry.shape[0], 0.0)
    scale: Any = None
    rest: Any = None
    for coefficient, part in entry.terms:
        value = np.asarray(coefficient)
        value = value[:, None, None] if value.ndim else value
        if isinstance(part, Identity):
            scale = value if scale is None else scale + value
        else:
            term = value * part.array(np)
            rest = term if rest is None else rest + term
    return rest if scale is None else IdentityPlus(entry.shape[0], scale, 0.0 if rest is None else rest)


@dataclass(frozen=True)
class SummandBlock:
    """A small matrix in a direct sum, with its multiplicity; place: its rows, or its rows of blocks."""

    place: np.ndarray
    count: int


@dataclass(frozen=True, eq=False)
class BlockRows:
    """A block matrix at `count` points: blocks are matrices, stacks over points, or IdentityPlus."""

    rows: Sequence[Sequence[Any]]
    count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", [list(map(IdentityPlus.of, row)) for row in self.rows])

    @cached_property
    def heights(self) -> list[int]:
        return [int(row[0].shape[-2]) for row in self.rows]

    @cached_property
    def widths(self) -> list[int]:
        return [int(block.shape[-1]) for block in self.rows[0]]

    @cached_property
    def occupied(self) -> list[list[bool]]:
        """Return the sparsity pattern of blocks."""
        return [[block.occupied for block in row] for row in self.rows]

    @cached_property
    def diagonal(self) -> bool:
        """Whether every diagonal block is square with a multiple of the identity."""
        return self.heights == self.widths and all(row[i].scaled for i, row in enumerate(self.rows))

    def stack(self, places: Sequence[int] | None = None) -> np.ndarray:
        """Return the dense matrix at every point; places: restrict to some rows and columns of blocks."""
        chosen = list(range(len(self.rows)) if places is None else places)
        tops, lefts = _starts(self.heights, chosen), _starts(self.widths, chosen)
        fixed = np.zeros((tops[-1], lefts[-1]))
        others, diagonals = [], []
        for i, top, below in zip(chosen, tops, tops[1:], strict=False):
            for k, left, right in zip(chosen, lefts, lefts[1:], strict=False):
                block, place = self.rows[i][k], (slice(top, below), slice(left, right))
                rest = block.rest
                if np.ndim(rest) == 2 and not np.iscomplexobj(rest):
                    fixed[place] = rest
                elif np.ndim(rest):
                    others.append((place, rest))
                if block.partly_scaled:
                    diagonals.append((place, block.scale))
        dense = np.empty((self.count, *fixed.shape), complex)
        dense[:] = fixed
        for (down, across), rest in others:
            dense[:, down, across] = rest
        for (down, across), scale in diagonals:
            along = np.einsum("kii->ki", dense[:, down, across])
            along += np.reshape(scale, (-1, 1))
        return dense

    def at(self, point: int) -> np.ndarray:
        """Return the dense matrix at one of the points."""
        rows = [[block.at(point) for block in row] for row in self.rows]
        return BlockRows(rows, 1).stack()[0]

    @cached_property
    def sparser(self) -> BlockRows:
        """Return a matrix with the same determinant and more scalar blocks, by column operations.

        If the matrix of a block is a multiple of that on the diagonal of its row, as for R beside C in learned weights,
        subtracting that multiple of the column removes it.
        """
        if not self.diagonal or not any(np.ndim(row[j].rest) for j, row in enumerate(self.rows)):
            return self
        rows = [list(row) for row in self.rows]
        for j in range(len(rows)):
            for i in range(len(rows)):
                share = _multiple(rows[j][i], rows[j][j]) if i != j and self.widths[i] == self.widths[j] else None
                if share is not None:
                    for k, row in enumerate(rows):
                        row[i] = _pure(row[i] - share * row[j]) if k == j else row[i] - share * row[j]
        return BlockRows(rows, self.count)

    @cached_property
    def pivots(self) -> list[tuple[int, int]]:
        """Return (row, column) of scalar blocks that can be eliminated together, diagonal ones first."""
        pivots: list[tuple[int, int]] = []
        places = range(len(self.rows) if self.diagonal else 0)
        occupied = self.occupied
        numbers = [(i, k) for i in places for k in places if self.rows[i][k].is_number]
        for i, k in sorted(numbers, key=lambda place: place[0] != place[1]):
            if not any(occupied[i][column] or occupied[row][k] for row, column in pivots):
                pivots.append((i, k))
        return pivots

    def log_determinants(self) -> np.ndarray:
        """Return log det at every point, up to multiples of 2 pi i, as the sum for the pivots and their Schur
        complement.
        """
        matrix = self.sparser
        pivots, count = matrix.pivots, len(matrix.rows)
        down, across = ([place[side] for place in pivots] for side in (0, 1))
        down += [i for i in range(count) if i not in down]
        across += [k for k in range(count) if k not in across]
        turned = _inversions(down, matrix.heights) + _inversions(across, matrix.widths)
        total = np.full(self.count, 1j * np.pi * (turned % 2))
        for i, k in pivots:
            total += matrix.heights[i] * np.log(matrix.scalars[:, i, k])
        if len(pivots) < count:
            total += matrix.complement(down[len(pivots) :], across[len(pivots) :]).log_determinants()
        return total

    def complement(self, down: Sequence[int], across: Sequence[int]) -> Combination:
        """Return the Schur complement of the pivots on some rows and columns of blocks."""
        size, fixed = sum(self.heights[i] for i in down), not self.depends_on_points
        complement = Combination(self.count, size, fixed)
        tops, lefts = _starts(self.heights, down), _starts(self.widths, across)
        inverses = [-1 / self.scalars[:, i, k] for i, k in self.pivots]
        for j, row in enumerate(down):
            for k, column in enumerate(across):
                place = (slice(tops[j], tops[j + 1]), slice(lefts[k], lefts[k + 1]))
                if self.occupied[row][column]:
                    complement.add(place, None, *self._apart(row, column))
                for (i, pivot), inverse in zip(self.pivots, inverses, strict=True):
                    if self.occupied[row][pivot] and self.occupied[i][column]:
                        complement.add_product(place, inverse, self._apart(row, pivot), self._apart(i, column))
        return complement

    def _apart(self, row: int, column: int) -> Apart:
        block = self.rows[row][column]
        scale = self.scalars[:, row, column] if block.partly_scaled else None
        return scale, block.rest if np.ndim(block.rest) else None

    @cached_property
    def depends_on_points(self) -> bool:
        """Whether some matrix differs from point to point."""
        rests = (block.rest for row in self.rows for block in row if np.ndim(block.rest))
        return any(np.ndim(rest) == 3 or np.iscomplexobj(rest) for rest in rests)

    def parts(self) -> list[SummandBlock]:
        """Return the small matrices of the direct sum, without repetitions."""
        summands: dict[bytes, SummandBlock] = {}
        matrices = self.stack()
        for rows in _joined(np.any(matrices != 0, axis=0)):
            key = matrices[:, rows[:, None], rows[None, :]].tobytes()
            summands[key] = SummandBlock(rows, 1 + (summands[key].count if key in summands else 0))
        return list(summands.values())

    def log_parts(self, parts: Sequence[SummandBlock]) -> np.ndarray:
        """Return log det of the parts, one row per point."""
        return _each(self.stack(), parts)

    @cached_property
    def scalars(self) -> np.ndarray:
        """Return the multiple of the identity in each block, at every point."""
        scalars = np.zeros((self.count, len(self.rows), len(self.rows)), complex)
        for i, row in enumerate(self.rows):
            for k, block in enumerate(row):
                if block.partly_scaled:
                    scalars[:, i, k] = np.ravel(block.scale)
        return scalars

    def scalar_parts(self) -> list[SummandBlock] | None:
        """Return the direct sum formed by the multiples of identities; None unless its matrices are small with non-zero
        diagonals."""
        if not self.diagonal:
            return None
        groups = _joined(np.any(self.scalars != 0, axis=0))
        if any(len({self.heights[i] for i in group}) > 1 for group in groups):
            return None
        return [SummandBlock(group, self.heights[group[0]]) for group in groups]

    def log_scalar_parts(self, parts: Sequence[SummandBlock]) -> np.ndarray:
        """Return log det of `scalar_parts`, one row per point."""
        return _each(self.scalars, parts)


def _each(matrices: np.ndarray, parts: Sequence[SummandBlock]) -> np.ndarray:
    """Return the log-determinants of the blocks of direct sums."""
    logarithms = [
        np.log(matrices[:, part.place[0], part.place[0]])
        if part.place.size == 1
        else _logarithms(matrices[:, part.place[:, None], part.place[None, :]])
        for part in parts
    ]
    return np.array(logarithms).T


Place = tuple[slice, slice]
Apart = tuple[np.ndarray | None, np.ndarray | None]
"""A block as (function of the point times the identity, matrix); None for an absent part."""


@dataclass
class Combination:
    """Square matrices at many points as a sum of matrices times functions of the point.

    fixed: whether the matrices are the same at all points, so that the sum is real if its functions are.
    """

    count: int
    size: int
    fixed: bool
    terms: dict[bytes | None, tuple[np.ndarray | None, np.ndarray]] = field(default_factory=dict)
    """Functions (None for 1) and the matrices that they multiply, keyed by the values of the functions."""
    diagonals: list[tuple[Place, np.ndarray]] = field(default_factory=list)
    """Blocks to which a function times the identity is added."""

    def add(self, place: Place, factor: np.ndarray | None, scale: np.ndarray | None, matrix: Any) -> None:
        """Add a function times a block (scale times the identity plus a matrix)."""
        if scale is not None:
            self.diagonals.append((place, scale if factor is None else factor * scale))
        if matrix is None:
            return
        key = None if factor is None else factor.tobytes()
        if key not in self.terms:
            shape = (self.size, self.size) if self.fixed else (self.count, self.size, self.size)
            self.terms[key] = (factor, np.zeros(shape, float if self.fixed else complex))
        self.terms[key][1][(..., *place)] += matrix

    def add_product(self, place: Place, factor: np.ndarray, left: Apart, right: Apart) -> None:
        """Add a function times the product of two blocks."""
        (a, one), (b, other) = left, right
        both = None if one is None or other is None else one @ other
        self.add(place, factor, None if a is None or b is None else a * b, both)
        for scale, matrix in ((a, other), (b, one)):
            if scale is not None and matrix is not None:
                self.add(place, factor * scale, None, matrix)

    def log_determinants(self) -> np.ndarray:
        """Return log det at every point, in real arithmetic if all functions are real."""
        total = np.zeros(self.count, complex)
        factors = [factor for factor, _ in self.terms.values() if factor is not None]
        common = factors[0] if len(self.terms) == len(factors) == 1 and factors[0].all() else None
        functions = np.array([*factors, *(scale for _, scale in self.diagonals)], complex).reshape(-1, self.count)
        if common is not None:
            total += self.size * np.log(common)
            functions = functions / common
        real = ~functions.imag.any(axis=0) if self.fixed else np.zeros(self.count, bool)
        for chosen, kind in ((real, float), (~real, complex)):
            places = np.flatnonzero(chosen)
            if places.size:
                here = functions[:, places] if kind is complex else functions[:, places].real
                total[places] += _logarithms(self._at(places, here, common is not None))
        return total

    def _at(self, places: np.ndarray, functions: np.ndarray, divided: bool) -> np.ndarray:
        """Return the matrices at some points; divided: whether to divide by the function if there is only one."""
        matrices = np.empty((places.size, self.size, self.size), functions.dtype)
        if not self.terms:
            matrices[:] = 0
        values = iter(functions)
        for number, (factor, matrix) in enumerate(self.terms.values()):
            term = matrix if self.fixed else matrix[places]
            if factor is not None:
                value = next(values)
                term = term if divided else value[:, None, None] * term
            if number:
                matrices += term
            else:
                matrices[:] = term
        for (down, across), value in zip((place for place, _ in self.diagonals), values, strict=True):
            along = np.einsum("kii->ki", matrices[:, down, across])
            along += value[:, None]
        return matrices


def _logarithms(matrices: np.ndarray) -> np.ndarray:
    """Return log det of each matrix."""
    sign, size = np.linalg.slogdet(matrices)
    with np.errstate(divide="ignore"):  # of a singular matrix
        logarithms: np.ndarray = size + np.log(sign + 0j)
    return logarithms


def _inversions(order: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the number of row transpositions that bring blocks of these sizes into this order."""
    return sum(sizes[a] * sizes[b] for k, a in enumerate(order) for b in order[k + 1 :] if b < a)


def _pure(block: IdentityPlus) -> IdentityPlus:
    """Return the block; its matrix is dropped if it consists only of rounding errors."""
    return IdentityPlus(block.size, block.scale)


def _multiple(block: IdentityPlus, other: IdentityPlus) -> float | None:
    """Return c such that matrix(block) = c * matrix(other); None if there is no such c, or if it would not help."""
    one, two = block.rest, other.rest
    if np.ndim(one) != 2 or np.ndim(two) != 2:
        return None
    place = divmod(int(np.abs(two).argmax()), two.shape[1])
    share = float(one[place] / two[place]) if two[place] else 0.0
    if share == 0 or np.max(np.abs(one - share * two)) > ROUNDING * np.max(np.abs(one)):
        return None
    return share


def _starts(sizes: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """Return the offsets of some blocks, followed by the end of the last one."""
    return [0, *accumulate(sizes[i] for i in chosen)]


def _taken(stack: Any, point: int) -> Any:
    """Return a number, or the matrix at one point of a stack."""
    return stack[point : point + 1] if np.ndim(stack) == 3 else stack


def _joined(occupied: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the connected components of the graph with these edges."""
    return _components(len(occupied), occupied.tobytes())


@lru_cache(maxsize=64)
def _components(count: int, pattern: bytes) -> tuple[np.ndarray, ...]:
    """Return the connected components of a graph; cached, because most patterns depend on the declaration alone."""
    occupied = np.frombuffer(pattern, bool).reshape(count, count)
    joined = occupied | occupied.T | np.eye(count, dtype=bool)
    label, before = np.arange(len(joined)), np.full(len(joined), -1)
    while not np.array_equal(label, before):  # the smallest label spreads through its group
        label, before = np.where(joined, label, len(joined)).min(axis=1), label
    return tuple(np.flatnonzero(label == one) for one in sorted(set(label.tolist())))
