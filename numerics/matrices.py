"""Matrices that are known by what they do to vectors, read off traced functions.

A matrix that a function makes of others by products, sums, blocks, transposition and numbers need not be written down
to be applied. What else is done to one is done to the whole of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce, singledispatch
from typing import Any

import jax
import numpy as np
import scipy.sparse
from jax.extend.core import Literal


class Matrix(ABC):
    """A matrix of a known shape, as what it and its transpose do to the columns of an array."""

    shape: tuple[int, int]

    @abstractmethod
    def right(self, vectors: np.ndarray) -> np.ndarray:
        """M v."""

    @abstractmethod
    def left(self, vectors: np.ndarray) -> np.ndarray:
        """M^T v."""

    @property
    def factors(self) -> Sequence[Matrix]:
        """The matrices whose product, from left to right, it is."""
        return (self,)

    @abstractmethod
    def written(self) -> np.ndarray:
        """All entries."""

    def add_to(self, total: np.ndarray, factor: float) -> None:
        """Add it, with a number in front, to an array; no more of it is made than has to be."""
        total += factor * self.written()


@dataclass(frozen=True, eq=False)
class Dense(Matrix):
    entries: Any

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.entries.shape  # type: ignore[no-any-return]

    def right(self, vectors: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.entries @ vectors
        return found

    def left(self, vectors: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.entries.T @ vectors
        return found

    def written(self) -> np.ndarray:
        found: np.ndarray = self.entries
        return found


@dataclass(frozen=True, eq=False)
class Sparse(Dense):
    """A matrix with few entries that are not zero, as a sparse array of SciPy."""

    def written(self) -> np.ndarray:
        found: np.ndarray = self.entries.toarray()
        return found

    def add_to(self, total: np.ndarray, factor: float) -> None:
        few = self.entries.tocoo()
        total[few.row, few.col] += factor * few.data


@dataclass(frozen=True, eq=False)
class Turned(Matrix):
    """The transpose."""

    inner: Matrix

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.inner.shape[1], self.inner.shape[0]

    def right(self, vectors: np.ndarray) -> np.ndarray:
        return self.inner.left(vectors)

    def left(self, vectors: np.ndarray) -> np.ndarray:
        return self.inner.right(vectors)

    def written(self) -> np.ndarray:
        return self.inner.written().T


@dataclass(frozen=True, eq=False)
class Product(Matrix):
    parts: tuple[Matrix, ...]

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.parts[0].shape[0], self.parts[-1].shape[1]

    @property
    def factors(self) -> Sequence[Matrix]:
        return [factor for part in self.parts for factor in part.factors]

    def right(self, vectors: np.ndarray) -> np.ndarray:
        return reduce(lambda v, part: part.right(v), reversed(self.parts), vectors)

    def left(self, vectors: np.ndarray) -> np.ndarray:
        return reduce(lambda v, part: part.left(v), self.parts, vectors)

    def written(self) -> np.ndarray:
        return reduce(np.matmul, [part.written() for part in self.parts])

    def add_to(self, total: np.ndarray, factor: float) -> None:
        *others, last = [part.written() for part in self.parts]
        total += reduce(np.matmul, others) @ (factor * last)


@dataclass(frozen=True, eq=False)
class Sum(Matrix):
    """Each part with a number in front."""

    parts: tuple[tuple[float, Matrix], ...]

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.parts[0][1].shape

    def right(self, vectors: np.ndarray) -> np.ndarray:
        return reduce(np.add, (part.right(factor * vectors) for factor, part in self.parts))

    def left(self, vectors: np.ndarray) -> np.ndarray:
        return reduce(np.add, (part.left(factor * vectors) for factor, part in self.parts))

    def written(self) -> np.ndarray:
        found = np.zeros(self.shape)
        self.add_to(found, 1.0)
        return found

    def add_to(self, total: np.ndarray, factor: float) -> None:
        for number, part in self.parts:
            part.add_to(total, factor * number)


@dataclass(frozen=True, eq=False)
class Joined(Matrix):
    """Matrices above each other."""

    parts: tuple[Matrix, ...]

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]

    def right(self, vectors: np.ndarray) -> np.ndarray:
        return np.concatenate([part.right(vectors) for part in self.parts])

    def left(self, vectors: np.ndarray) -> np.ndarray:
        ends = np.cumsum([part.shape[0] for part in self.parts])[:-1]
        pieces = np.split(vectors, ends)
        return reduce(np.add, (part.left(piece) for part, piece in zip(self.parts, pieces, strict=True)))

    def written(self) -> np.ndarray:
        return np.concatenate([part.written() for part in self.parts])


@dataclass(frozen=True, eq=False)
class Constant(Matrix):
    """The same number everywhere."""

    shape: tuple[int, int]
    value: float

    def _applied(self, rows: int, vectors: np.ndarray) -> np.ndarray:
        if not self.value:
            return np.zeros((rows, *vectors.shape[1:]))
        return np.broadcast_to(self.value * vectors.sum(axis=0), (rows, *vectors.shape[1:]))

    def right(self, vectors: np.ndarray) -> np.ndarray:
        return self._applied(self.shape[0], vectors)

    def left(self, vectors: np.ndarray) -> np.ndarray:
        return self._applied(self.shape[1], vectors)

    def written(self) -> np.ndarray:
        return np.full(self.shape, self.value)


@dataclass(frozen=True, eq=False)
class Columns(Matrix):
    """Some columns of a matrix whose other columns are zero."""

    entries: np.ndarray
    places: np.ndarray
    count: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return len(self.entries), self.count

    def right(self, vectors: np.ndarray) -> np.ndarray:
        found: np.ndarray = self.entries @ vectors[self.places]
        return found

    def left(self, vectors: np.ndarray) -> np.ndarray:
        found = np.zeros((self.count, *vectors.shape[1:]))
        found[self.places] = self.entries.T @ vectors
        return found

    def written(self) -> np.ndarray:
        found = np.zeros(self.shape)
        found[:, self.places] = self.entries
        return found


@dataclass(frozen=True)
class _Reshaped:
    """A matrix as an array of another shape, which only the way back and sums with a few entries know."""

    inner: Matrix
    shape: tuple[int, ...]


class Traced:
    """A function of arrays and numbers that returns a matrix, or several, to be applied to vectors at any arguments of
    the same shapes. Arguments: as for the function, with shapes or arrays."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.closed = jax.make_jaxpr(function)(*arguments)

    def at(self, *arguments: Any) -> list[Matrix]:
        """The matrices at arguments of which those with two axes may be matrices, too."""
        leaves = jax.tree.leaves(arguments, is_leaf=lambda x: isinstance(x, Matrix))
        return [_as_matrix(x) for x in _evaluated(self.closed.jaxpr, self.closed.consts, leaves)]


@singledispatch
def _as_matrix(value: Any) -> Matrix:
    return Dense(np.asarray(value))


@_as_matrix.register
def _(value: Matrix) -> Matrix:
    return value


def variables(atoms: Iterable[Any]) -> list[Any]:
    """The variables among what an equation of a traced function reads or returns, constants apart."""
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def _evaluated(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """What a traced function returns; only what that is made of is computed."""
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    known |= dict(zip(jaxpr.invars, arguments, strict=True))
    wanted = set(variables(jaxpr.outvars))
    needed = []
    for equation in reversed(jaxpr.eqns):
        if any(variable in wanted for variable in equation.outvars):
            wanted |= set(variables(equation.invars))
            needed.append(equation)
    for equation in reversed(needed):
        known.update(zip(equation.outvars, _carried_out(equation, _values(known, equation.invars)), strict=True))
    return _values(known, jaxpr.outvars)


def _values(known: Mapping[Any, Any], atoms: Sequence[Any]) -> list[Any]:
    return [known[atom] if variables([atom]) else atom.val for atom in atoms]


def _carried_out(equation: Any, values: list[Any]) -> Sequence[Any]:
    primitive, params = equation.primitive, equation.params
    shapes = [getattr(x, "shape", ()) for x in values]
    out = equation.outvars[0].aval
    inner = params.get("jaxpr" if primitive.name in ("jit", "pjit") else "call_jaxpr")
    if inner is not None:  # a function inside of the function
        return _evaluated(inner.jaxpr, inner.consts, values)
    if primitive.name == "broadcast_in_dim" and np.ndim(values[0]) == 0 and out.ndim == 2:
        return [Constant(tuple(out.shape), float(values[0]))]
    if primitive.name == "dot_general" and _is_product(params, shapes):
        return [Product(tuple(_as_matrix(x) for x in values))]
    if any(isinstance(x, (Matrix, _Reshaped)) for x in values):
        known = _lazily(primitive.name, params, values, tuple(out.shape))
        if known is not None:
            return [known]
    made = primitive.bind(*map(_written, values), **params)
    found: Sequence[Any] = made if primitive.multiple_results else [made]
    return found


def _is_product(params: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> bool:
    return params["dimension_numbers"] == (((1,), (0,)), ((), ())) and all(len(shape) == 2 for shape in shapes)


def _lazily(name: str, params: Mapping[str, Any], values: list[Any], shape: tuple[int, ...]) -> Any:
    """A matrix made of others that are not written down; None where that is not known."""
    first = values[0]
    if name == "scatter-add" and isinstance(first, _Reshaped):
        added = _few(first, values[1], values[2], params)
        return None if added is None else _Reshaped(Sum(((1.0, first.inner), (1.0, added))), first.shape)
    if name == "reshape":
        inner = first.inner if isinstance(first, _Reshaped) else first
        return inner if inner.shape == shape else _Reshaped(inner, shape)
    if any(isinstance(x, _Reshaped) for x in values):
        return None
    if name == "slice" and isinstance(first, Dense) and params["strides"] is None:
        (top, start), (bottom, end) = params["start_indices"], params["limit_indices"]
        return replace(first, entries=first.entries[top:bottom, start:end])
    if name in ("convert_element_type", "copy"):
        return first
    if name == "neg":
        return Sum(((-1.0, first),))
    if name == "transpose":
        return Turned(first)
    if name == "concatenate":
        parts = tuple(_as_matrix(x) for x in values)
        return Joined(parts) if params["dimension"] == 0 else Turned(Joined(tuple(map(Turned, parts))))
    if name in ("add", "sub") and all(np.ndim(x) == 2 or isinstance(x, Matrix) for x in values):
        return Sum(((1.0, _as_matrix(first)), (1.0 if name == "add" else -1.0, _as_matrix(values[1]))))
    if name in ("mul", "div"):
        numbers = [_number(x) for x in values]
        if numbers[1] is not None:
            return Sum(((numbers[1] if name == "mul" else 1 / numbers[1], _as_matrix(first)),))
        if numbers[0] is not None and name == "mul":
            return Sum(((numbers[0], _as_matrix(values[1])),))
    return None


@singledispatch
def _number(value: Any) -> float | None:
    """The number that a matrix, or a number, is everywhere."""
    return float(value) if np.ndim(value) == 0 else None


@_number.register
def _(value: Matrix) -> None:
    return None


@_number.register
def _(value: Constant) -> float:
    return value.value


@singledispatch
def _written(value: Any) -> Any:
    return value


@_written.register
def _(value: Matrix) -> np.ndarray:
    return value.written()


@_written.register
def _(value: _Reshaped) -> np.ndarray:
    return value.inner.written().reshape(value.shape)


def _few(target: _Reshaped, indices: Any, updates: Any, params: Mapping[str, Any]) -> Matrix | None:
    """What is added to a few entries of a matrix."""
    if isinstance(updates, Matrix) or isinstance(indices, Matrix):
        return None
    told = np.asarray(indices)
    key = tuple(sorted((k, v) for k, v in params.items() if k in _PLACING))
    places = _places(target.shape, told.tobytes(), told.shape, str(told.dtype), np.shape(updates), key)
    rows, columns = np.divmod(places, target.inner.shape[1])
    made = scipy.sparse.coo_array((np.asarray(updates).ravel(), (rows, columns)), shape=target.inner.shape)
    return Sparse(made.tocsr())


_PLACING = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")


@lru_cache(maxsize=8)
def _places(
    shape: tuple[int, ...], told: bytes, of: tuple[int, ...], kind: str, updates: tuple[int, ...], params: Any
) -> np.ndarray:
    """The number of the entry that each of several updates is added to: what an update moves is the entry there."""
    indices = np.frombuffer(told, kind).reshape(of)
    options = dict(params)
    numbers = options.pop("dimension_numbers")

    def added(x: Any) -> Any:
        return jax.lax.scatter_add(np.zeros(shape), indices, x, numbers, **options)

    _, back = jax.vjp(added, np.zeros(updates))
    (found,) = back(np.arange(np.prod(shape), dtype=float).reshape(shape))
    return np.asarray(found).astype(int).ravel()
