"""Nodes of a small typed array language.

A symbol is an object: it is equal only to itself and is named when it is printed. Arithmetic is done by SymPy: a
formula is a SymPy expression whose leaves are symbols of the declaration and slots, each of which contains a value of
the program. A shape is a tuple of SymPy expressions, checked when a node is constructed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import count
from typing import TYPE_CHECKING, Any, Self, TypeVar

import sympy as sp

from derive.language.traversal import ByKind

Shape = tuple[sp.Expr, ...]
SCALAR: Shape = ()


@dataclass(frozen=True, eq=False)
class Symbol:
    """A variable of the program. `hint` is its preferred name."""

    hint: str
    shape: Shape | None = None
    """None for objects that are not arrays, such as vectors of a closure."""


class Value:
    """Base class of all values."""

    if (
        TYPE_CHECKING
    ):  # a field of some values and computed by others: a dataclass would take the property for a default

        @property
        def shape(self) -> Shape | None: ...

    @property
    def children(self) -> Iterator[Value]:
        """The values that it is built from."""
        return _values(tuple(getattr(self, f.name) for f in fields(self)))  # type: ignore[arg-type]

    @property
    def mentioned(self) -> tuple[Symbol, ...]:
        """The symbols that the node itself refers to, besides those of its children."""
        return ()

    @property
    def bound(self) -> tuple[Symbol, ...]:
        """The symbols that are bound inside the value."""
        return ()


@ByKind
def _values(part: object) -> Iterator[Value]:
    return iter(())


@_values.on(Value)
def _(part: Value) -> Iterator[Value]:
    yield part


@_values.on(tuple)
def _(parts: tuple[object, ...]) -> Iterator[Value]:
    for part in parts:
        yield from _values(part)


def shape_of(value: Value) -> Shape:
    """Return the shape of an array value."""
    if value.shape is None:
        raise AssertionError(f"a {type(value).__name__} that is not an array is used where an array is needed")
    return value.shape


@dataclass(frozen=True, eq=False)
class Ref(Value):
    """The value of a symbol."""

    symbol: Symbol

    @property
    def shape(self) -> Shape | None:
        return self.symbol.shape

    @property
    def mentioned(self) -> tuple[Symbol, ...]:
        return (self.symbol,)


_slots = count()


class Slot(sp.Symbol):
    """A leaf of a formula that contains a value of the program. No two slots are equal."""

    __slots__ = ("number", "value")
    number: int
    value: Value

    def __new__(cls, value: Value, hint: str = "value") -> Self:
        obj: Self = sp.Symbol.__xnew__(cls, hint, real=True)
        obj.value, obj.number = value, next(_slots)
        return obj

    def _hashable_content(self) -> tuple[Any, ...]:
        return (*super()._hashable_content(), self.number)


@dataclass(frozen=True, eq=False)
class Formula(Value):
    """Elementwise arithmetic."""

    expression: sp.Expr
    shape: Shape | None = SCALAR

    @property
    def children(self) -> Iterator[Value]:
        yield from (slot.value for slot in sorted(self.expression.atoms(Slot), key=lambda s: s.number))


@dataclass(frozen=True, eq=False)
class Call(Value):
    """A call of a runtime function by name. Arguments are values, whole numbers or None.

    Symbols, expressions and tuples of them are converted to values.
    """

    function: str
    arguments: tuple[Any, ...]
    shape: Shape | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", tuple(map(as_argument, self.arguments)))


@dataclass(frozen=True, eq=False)
class Op(Value):
    """An operation of the closure of a forward pass, by name, with arguments as in a call."""

    function: str
    arguments: tuple[Any, ...] = ()
    shape: Shape | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", tuple(map(as_argument, self.arguments)))


@dataclass(frozen=True, eq=False)
class SiteProduct(Value):
    """A product of a coefficient and vectors inside a mean."""

    factor: Formula
    vectors: tuple[Value, ...]
    shape: Shape | None = None


@dataclass(frozen=True, eq=False)
class WeightedSum(Value):
    """A linear combination of values. A coefficient is a scalar, or has one entry per row of the value."""

    terms: tuple[tuple[Formula, Value], ...]
    shape: Shape | None

    def __post_init__(self) -> None:
        for _, value in self.terms:
            check_fits(value.shape, self.shape)

    @property
    def children(self) -> Iterator[Value]:
        return super().children if self.terms else map(Formula, self.shape or ())


@dataclass(frozen=True, eq=False)
class MatMul(Value):
    """A matrix product."""

    left: Value
    right: Value

    def __post_init__(self) -> None:
        a, b = self.left.shape, self.right.shape
        if a is not None and b is not None and sp.expand(a[-1] - b[0]) != 0:
            raise AssertionError(f"a matrix with {a[-1]} columns meets one with {b[0]} rows")

    @property
    def shape(self) -> Shape | None:
        a, b = self.left.shape, self.right.shape
        return None if a is None or b is None else (*a[:-1], *b[1:])


@dataclass(frozen=True, eq=False)
class Transposed(Value):
    """A transpose."""

    value: Value

    @property
    def shape(self) -> Shape | None:
        return None if self.value.shape is None else self.value.shape[::-1]


@dataclass(frozen=True, eq=False)
class Attribute(Value):
    """An attribute of an object, such as the size of a site."""

    owner: Symbol
    name: str
    shape: Shape | None = SCALAR

    @property
    def mentioned(self) -> tuple[Symbol, ...]:
        return (self.owner,)


@dataclass(frozen=True, eq=False)
class Item(Value):
    """An entry of a mapping, by its key."""

    owner: Symbol
    keys: tuple[str | int, ...]
    shape: Shape | None = None

    @property
    def mentioned(self) -> tuple[Symbol, ...]:
        return (self.owner,)


@dataclass(frozen=True, eq=False)
class Quoted(Value):
    """A string, such as the name of a field."""

    word: str
    shape: Shape | None = None


@dataclass(frozen=True, eq=False)
class EntryTable(Value):
    """A matrix given entry by entry."""

    rows: tuple[tuple[Formula, ...], ...]
    shape: Shape | None


@dataclass(frozen=True, eq=False)
class Blocks(Value):
    """A block matrix, with the sizes of its rows and columns. `remarks` are printed above its rows."""

    rows: tuple[tuple[Value, ...], ...]
    heights: Shape
    widths: Shape
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for height, row in zip(self.heights, self.rows, strict=True):
            for width, value in zip(self.widths, row, strict=True):
                check_fits(value.shape, (height, width))

    @property
    def shape(self) -> Shape | None:
        return sp.Add(*self.heights), sp.Add(*self.widths)


@dataclass(frozen=True, eq=False)
class Function(Value):
    """An anonymous function. Its parameters are bound inside."""

    arguments: tuple[Symbol, ...]
    body: Value
    shape: Shape | None = None

    @property
    def bound(self) -> tuple[Symbol, ...]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Tuple(Value):
    """A tuple of values."""

    values: tuple[Value | int | None, ...]
    shape: Shape | None = None


@ByKind
def as_argument(argument: Any) -> Value | int | None:
    """Return an argument of a runtime function as a value; integers and None are unchanged."""
    return argument


as_argument.on(Symbol)(Ref)
as_argument.on(sp.Basic)(Formula)


@as_argument.on(tuple)
def _(given: tuple[Any, ...]) -> Tuple:
    return Tuple(tuple(map(as_argument, given)))


@dataclass(frozen=True)
class Let:
    """Assign a value to a symbol. The remark is printed above."""

    symbol: Symbol
    value: Value
    remark: str = ""

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return (self.symbol,)


@dataclass(frozen=True)
class Unpack:
    """Assign the parts of a value to several symbols."""

    symbols: tuple[Symbol, ...]
    value: Value
    remark: str = ""


UNUSED = Symbol("_")
"""Receives the parts of an unpacked value that are not used."""


@dataclass(frozen=True)
class Do:
    """Execute an operation of the closure for its effect, such as recording a number."""

    value: Op
    remark: str = ""

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return ()


Statement = Let | Unpack
S = TypeVar("S", Let, Statement)


@dataclass(frozen=True)
class Definition:
    """A function of a module. `unpacked` lists parameters that are tuples, with the symbols of their parts."""

    name: str
    parameters: tuple[Symbol, ...]
    doc: str
    body: tuple[Let, ...]
    result: Value
    unpacked: tuple[tuple[Symbol, tuple[Symbol, ...]], ...] = ()


@dataclass(frozen=True)
class RuntimeRecord:
    """A record of numerics/runtime/interface.py that a module defines: positional entries, then named ones.

    An entry is a function, a record, a tuple of these, or plain data. A named entry that is None is omitted.
    """

    kind: str
    entries: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    @property
    def functions(self) -> Iterator[Definition]:
        """All functions in the record, in order."""
        return _functions((*self.entries, *self.named.values()))


@ByKind
def _functions(entry: Any) -> Iterator[Definition]:
    return iter(())


@_functions.on(Definition)
def _(entry: Definition) -> Iterator[Definition]:
    yield entry


@_functions.on(RuntimeRecord)
def _(entry: RuntimeRecord) -> Iterator[Definition]:
    return entry.functions


@_functions.on(tuple)
def _(entries: tuple[Any, ...]) -> Iterator[Definition]:
    for entry in entries:
        yield from _functions(entry)


def check_fits(inner: Shape | None, outer: Shape | None) -> None:
    """Raise if a value does not have the required shape, up to broadcast rows."""
    if inner is None or outer is None or len(inner) == 0:
        return
    same = len(inner) == len(outer) and all(sp.expand(a - b) == 0 or a == 1 for a, b in zip(inner, outer, strict=True))
    if not same:
        raise AssertionError(f"a value of shape {inner} is used where {outer} is needed")


def keys_read(values: Iterable[Value], owner: Symbol) -> dict[Any, None]:
    """Return the keys under which values read a mapping, in order of first occurrence."""
    keys: dict[Any, None] = {}
    waiting = list(values)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Item) and node.owner is owner:
            keys.setdefault(node.keys)
        waiting = [*node.children, *waiting]
    return keys


def symbols_in(value: Value) -> dict[Symbol, None]:
    """Return the symbols that a value refers to, in order of first occurrence."""
    symbols: dict[Symbol, None] = {}
    bound: set[Symbol] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop(0)
        symbols |= dict.fromkeys(node.mentioned)
        bound |= set(node.bound)
        waiting = [*node.children, *waiting]
    return {symbol: None for symbol in symbols if symbol not in bound}


def alive(statements: tuple[S, ...], wanted: dict[Symbol, None]) -> tuple[tuple[S, ...], dict[Symbol, None]]:
    """Return the statements on which the wanted symbols depend, and the symbols that these statements read."""
    needed, kept = dict(wanted), []
    for statement in reversed(statements):
        if any(symbol in needed for symbol in statement.symbols):
            kept.append(statement)
            for symbol in statement.symbols:
                needed.pop(symbol, None)
            needed |= symbols_in(statement.value)
    return tuple(reversed(kept)), needed
