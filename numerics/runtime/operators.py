"""Linear operators: A(z), the matrices of its cycles, and moments of passes, as sums, products and blocks.

An operator is applied to the columns of an array, or converted to an array of NumPy or JAX. A coefficient is a number,
or has one entry per point if A(z) is evaluated at many points at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate, pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any
Arrays = Any
"""A module of arrays: numpy or jax.numpy."""
Coefficient = Any
Shape = tuple[int, int]
Term = tuple[Coefficient, "Operator"]


class Operator:  # not an ABC, whose instances take several times as long to recognise
    """A linear operator of a known shape; sums and products of operators are operators."""

    __array_ufunc__ = None  # NumPy arrays defer arithmetic to operators
    shape: Shape

    @abstractmethod
    def array(self, xp: Arrays) -> Array:
        """Return the dense matrix, as an array of the module xp."""

    @abstractmethod
    def apply(self, vectors: Array) -> Array:
        """Return the operator times the columns of an array."""

    @abstractmethod
    def apply_transposed(self, vectors: Array) -> Array:
        """Return the transpose times the columns of an array."""

    def add_to(self, total: np.ndarray, coefficient: float) -> None:
        """Add a multiple of the dense matrix to a NumPy array in place."""
        total += coefficient * self.array(np)

    @property
    def T(self) -> Operator:
        """The transpose."""
        return Transpose(self)

    @property
    def factors(self) -> tuple[Operator, ...]:
        """Factors of the operator, from left to right."""
        return (self,)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Terms of the operator, each with its coefficient."""
        return ((1, self),)

    def __add__(self, other: Any) -> Operator:
        return Added((*self.terms, *operator(other).terms))

    def __radd__(self, other: Any) -> Operator:
        return operator(other) + self

    def __neg__(self) -> Operator:
        return -1 * self

    def __sub__(self, other: Any) -> Operator:
        return self + -operator(other)

    def __rsub__(self, other: Any) -> Operator:
        return operator(other) + -self

    def __mul__(self, coefficient: Coefficient) -> Operator:
        if isinstance(coefficient, Operator):
            raise TypeError("operators are multiplied with @")
        return Added(tuple((coefficient if _is_one(own) else coefficient * own, part) for own, part in self.terms))

    __rmul__ = __mul__

    def __truediv__(self, coefficient: Coefficient) -> Operator:
        return self.__mul__(1 / coefficient)

    def __matmul__(self, other: Any) -> Operator:
        return Composed((*self.factors, *operator(other).factors))

    def __rmatmul__(self, other: Any) -> Operator:
        return operator(other) @ self


def operator(entries: Any) -> Operator:
    """Return a matrix as an operator; an operator is returned unchanged."""
    return entries if isinstance(entries, Operator) else MatrixOperator(entries)


def identity(size: int) -> Operator:
    """Return the identity operator."""
    return Identity(size)


def diagonal(weights: Array, size: int, labels: int) -> Operator:
    """Return the diagonal operator with one weight per time, repeated for each label; a single weight applies to all
    times."""
    xp = jnp if isinstance(weights, jax.Array) else np
    by_time = xp.broadcast_to(xp.ravel(weights), (size // labels,))
    return DiagonalOperator(xp.broadcast_to(by_time[:, None], (size // labels, labels)).reshape(size))


def block(rows: Sequence[Sequence[Any]], heights: Sequence[int], widths: Sequence[int] | None = None) -> BlockOperator:
    """Return a block operator, with 0 for zero blocks, from the sizes of its rows and columns; one list of sizes
    suffices if both agree."""
    across = tuple(heights if widths is None else widths)
    blocks = tuple(
        tuple(
            Zero((height, width)) if _is_zero(entry) else operator(entry)
            for width, entry in zip(across, row, strict=True)
        )
        for height, row in zip(heights, rows, strict=True)
    )
    return BlockOperator(blocks, tuple(heights), across)


@dataclass(frozen=True, eq=False)
class MatrixOperator(Operator):
    """A dense matrix."""

    entries: Array

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.entries.shape

    def array(self, xp: Arrays) -> Array:
        return xp.asarray(self.entries)

    def apply(self, vectors: Array) -> Array:
        return self.entries @ vectors

    def apply_transposed(self, vectors: Array) -> Array:
        return self.entries.T @ vectors

    def __getitem__(self, rows: slice) -> MatrixOperator:
        return MatrixOperator(self.entries[rows])


@dataclass(frozen=True, eq=False)
class Zero(Operator):
    """The zero operator."""

    shape: Shape

    def array(self, xp: Arrays) -> Array:
        return xp.zeros(self.shape)

    def apply(self, vectors: Array) -> Array:
        return np.zeros_like(vectors, shape=(self.shape[0], *vectors.shape[1:]))

    def apply_transposed(self, vectors: Array) -> Array:
        return np.zeros_like(vectors, shape=(self.shape[1], *vectors.shape[1:]))

    def add_to(self, total: np.ndarray, coefficient: float) -> None:
        pass

    def __getitem__(self, rows: slice) -> Zero:
        return Zero((len(range(*rows.indices(self.shape[0]))), self.shape[1]))


@dataclass(frozen=True, eq=False)
class Identity(Operator):
    """The identity."""

    size: int

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.size, self.size

    def array(self, xp: Arrays) -> Array:
        return xp.eye(self.size)

    def apply(self, vectors: Array) -> Array:
        return vectors

    apply_transposed = apply


@dataclass(frozen=True, eq=False)
class DiagonalOperator(Operator):
    """A diagonal matrix."""

    weights: Array

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return len(self.weights), len(self.weights)

    def array(self, xp: Arrays) -> Array:
        return xp.diag(xp.asarray(self.weights))

    def apply(self, vectors: Array) -> Array:
        return np.asarray(self.weights).reshape(-1, *(1,) * (vectors.ndim - 1)) * vectors

    apply_transposed = apply


@dataclass(frozen=True, eq=False)
class BlockDiagonal(Operator):
    """A block-diagonal matrix with blocks left[k] @ right[k]^T."""

    left: Array
    right: Array

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.left.shape[0] * self.left.shape[1], self.right.shape[0] * self.right.shape[1]

    def blocks(self, xp: Arrays) -> Array:
        """Return the dense blocks."""
        return xp.einsum("tck,tdk->tcd", self.left, self.right)

    def array(self, xp: Arrays) -> Array:
        return xp.einsum("tcd,ts->tcsd", self.blocks(xp), xp.eye(len(self.left))).reshape(self.shape)

    def apply(self, vectors: Array) -> Array:
        return _of_each(self.blocks(np), vectors)

    def apply_transposed(self, vectors: Array) -> Array:
        return _of_each(self.blocks(np).swapaxes(1, 2), vectors)

    def add_to(self, total: np.ndarray, coefficient: float) -> None:
        count, rows, columns = (blocks := self.blocks(np)).shape
        when = np.arange(count)
        total.reshape(count, rows, count, columns)[when, :, when, :] += coefficient * blocks


def _of_each(blocks: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Apply diagonal blocks to vectors."""
    count, rows, columns = blocks.shape
    product: np.ndarray = (blocks @ vectors.reshape(count, columns, -1)).reshape(count * rows, *vectors.shape[1:])
    return product


@dataclass(frozen=True, eq=False)
class SomeColumns(Operator):
    """A matrix whose columns are zero except at given positions."""

    entries: np.ndarray
    places: np.ndarray
    count: int

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return len(self.entries), self.count

    def array(self, xp: Arrays) -> Array:
        dense = np.zeros(self.shape)
        dense[:, self.places] = self.entries
        return xp.asarray(dense)

    def apply(self, vectors: Array) -> Array:
        return self.entries @ vectors[self.places]

    def apply_transposed(self, vectors: Array) -> Array:
        product = np.zeros_like(vectors, shape=(self.count, *vectors.shape[1:]))
        product[self.places] = self.entries.T @ vectors
        return product


@dataclass(frozen=True, eq=False)
class Transpose(Operator):
    """The transpose of an operator."""

    inner: Operator

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.inner.shape[1], self.inner.shape[0]

    @property
    def T(self) -> Operator:
        return self.inner

    def array(self, xp: Arrays) -> Array:
        return self.inner.array(xp).T

    def apply(self, vectors: Array) -> Array:
        return self.inner.apply_transposed(vectors)

    def apply_transposed(self, vectors: Array) -> Array:
        return self.inner.apply(vectors)


@dataclass(frozen=True, eq=False)
class Composed(Operator):
    """A product of operators."""

    parts: tuple[Operator, ...]

    def __post_init__(self) -> None:
        for one, other in pairwise(self.parts):
            if one.shape[1] != other.shape[0]:
                raise ValueError(
                    f"an operator with {one.shape[1]} columns cannot multiply one with {other.shape[0]} rows"
                )

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.parts[0].shape[0], self.parts[-1].shape[1]

    @property
    def factors(self) -> tuple[Operator, ...]:
        return self.parts

    def array(self, xp: Arrays) -> Array:
        return reduce(xp.matmul, [part.array(xp) for part in self.parts])

    def apply(self, vectors: Array) -> Array:
        return reduce(lambda v, part: part.apply(v), reversed(self.parts), vectors)

    def apply_transposed(self, vectors: Array) -> Array:
        return reduce(lambda v, part: part.apply_transposed(v), self.parts, vectors)

    def add_to(self, total: np.ndarray, coefficient: float) -> None:
        *others, last = [part.array(np) for part in self.parts]
        total += reduce(np.matmul, others) @ (coefficient * last)


@dataclass(frozen=True, eq=False)
class Added(Operator):
    """A linear combination of operators."""

    parts: tuple[Term, ...]

    def __post_init__(self) -> None:
        if len(self.parts) > 1 and any(part.shape != self.shape for _, part in self.parts[1:]):
            raise ValueError(f"operators of the shapes {[part.shape for _, part in self.parts]} cannot be added")

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.parts[0][1].shape

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.parts

    def array(self, xp: Arrays) -> Array:
        return reduce(lambda a, b: a + b, [_scaled(c, part.array(xp)) for c, part in self.parts])

    def apply(self, vectors: Array) -> Array:
        return reduce(np.add, [part.apply(_scaled(c, vectors)) for c, part in self.parts])

    def apply_transposed(self, vectors: Array) -> Array:
        return reduce(np.add, [part.apply_transposed(_scaled(c, vectors)) for c, part in self.parts])

    def add_to(self, total: np.ndarray, coefficient: float) -> None:
        for own, part in self.parts:
            part.add_to(total, coefficient * own)


@dataclass(frozen=True, eq=False)
class BlockOperator(Operator):
    """A matrix of blocks, by the sizes of its rows and columns."""

    rows: tuple[tuple[Operator, ...], ...]
    heights: tuple[int, ...]
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        for height, row in zip(self.heights, self.rows, strict=True):
            for width, entry in zip(self.widths, row, strict=True):
                if entry.shape != (height, width):
                    raise ValueError(f"a block has shape {entry.shape}; it must have {(height, width)}")

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return sum(self.heights), sum(self.widths)

    @cached_property
    def blocks(self) -> tuple[tuple[int, int, Operator], ...]:
        """Yield the nonzero blocks with their first row and column."""
        tops, lefts = accumulate(self.heights, initial=0), list(accumulate(self.widths, initial=0))
        return tuple(
            (top, left, entry)
            for top, row in zip(tops, self.rows, strict=False)
            for left, entry in zip(lefts, row, strict=False)
            if not isinstance(entry, Zero)
        )

    def array(self, xp: Arrays) -> Array:
        if not self.rows or not self.widths:
            return xp.zeros(self.shape)
        if xp is not np:
            return xp.concatenate([xp.concatenate([entry.array(xp) for entry in row], axis=1) for row in self.rows])
        parts = [(top, left, entry.array(np)) for top, left, entry in self.blocks]
        dense = np.zeros(self.shape, np.result_type(float, *(part.dtype for *_, part in parts)))
        for top, left, part in parts:
            dense[top : top + part.shape[0], left : left + part.shape[1]] = part
        return dense

    def apply(self, vectors: Array) -> Array:
        product = np.zeros_like(vectors, shape=(self.shape[0], *vectors.shape[1:]))
        for top, left, entry in self.blocks:
            height, width = entry.shape
            product[top : top + height] += entry.apply(vectors[left : left + width])
        return product

    def apply_transposed(self, vectors: Array) -> Array:
        product = np.zeros_like(vectors, shape=(self.shape[1], *vectors.shape[1:]))
        for top, left, entry in self.blocks:
            height, width = entry.shape
            product[left : left + width] += entry.apply_transposed(vectors[top : top + height])
        return product


def _is_zero(entry: Any) -> bool:
    """Whether a block is the number zero."""
    return isinstance(entry, int) and entry == 0


def _is_one(coefficient: Coefficient) -> bool:
    """Whether a coefficient is the number one."""
    return isinstance(coefficient, int) and coefficient == 1


def _scaled(coefficient: Coefficient, values: Array) -> Array:
    """Return a coefficient times an array; a coefficient of one costs nothing."""
    return values if _is_one(coefficient) else coefficient * values
