"""A small typed language of arrays.

A symbol is an object: it is equal to nothing but itself and gets its name last, where it is printed. Arithmetic stays
SymPy's: a formula is a SymPy expression whose leaves are the declaration's own symbols and slots, each of which holds
a value of the program. A shape is a tuple of SymPy expressions; it is checked when a node is made.
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
    """A name that the engine gives. `hint` is what it is called where nothing else has that name."""

    hint: str
    shape: Shape | None = None
    """None for what is no array: a block of a site, say."""


class Value:
    """Base of all values."""

    if (
        TYPE_CHECKING
    ):  # a field of some values and computed by others: a dataclass would take the property for a default

        @property
        def shape(self) -> Shape | None: ...

    @property
    def children(self) -> Iterator[Value]:
        """The values that it is made of."""
        return _values(tuple(getattr(self, f.name) for f in fields(self)))  # type: ignore[arg-type]

    @property
    def mentioned(self) -> tuple[Symbol, ...]:
        """The symbols that it refers to itself, besides its children."""
        return ()

    @property
    def bound(self) -> tuple[Symbol, ...]:
        """The symbols that are known inside it only."""
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
    """The shape of a value that is an array."""
    if value.shape is None:
        raise AssertionError(f"a {type(value).__name__} that is no array stands where an array is needed")
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
    """A leaf of a formula that holds a value of the program. No two are equal."""

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
    """Arithmetic, entry by entry."""

    expression: sp.Expr
    shape: Shape | None = SCALAR

    @property
    def children(self) -> Iterator[Value]:
        yield from (slot.value for slot in sorted(self.expression.atoms(Slot), key=lambda s: s.number))


@dataclass(frozen=True, eq=False)
class Call(Value):
    """A function of the runtime, by its name there. Arguments that are no values are whole numbers or None.

    They may be given as symbols, expressions and tuples of those.
    """

    function: str
    arguments: tuple[Any, ...]
    shape: Shape | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", tuple(map(as_argument, self.arguments)))


@dataclass(frozen=True, eq=False)
class Op(Value):
    """An operation of the closure of a forward pass, by its name there; arguments as of a call."""

    function: str
    arguments: tuple[Any, ...] = ()
    shape: Shape | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", tuple(map(as_argument, self.arguments)))


@dataclass(frozen=True, eq=False)
class SiteProduct(Value):
    """A product of a number and of vectors inside a mean."""

    factor: Formula
    vectors: tuple[Value, ...]
    shape: Shape | None = None


@dataclass(frozen=True, eq=False)
class WeightedSum(Value):
    """A sum of values, each with a factor. A factor is a number, or has one entry per line of the value."""

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
    value: Value

    @property
    def shape(self) -> Shape | None:
        return None if self.value.shape is None else self.value.shape[::-1]


@dataclass(frozen=True, eq=False)
class Chosen(Value):
    """One value where a condition between formulas holds, another where it does not."""

    condition: sp.Basic
    value: Value
    otherwise: Value

    @property
    def shape(self) -> Shape | None:
        return self.otherwise.shape

    @property
    def children(self) -> Iterator[Value]:
        yield from (Formula(self.condition), self.value, self.otherwise)


@dataclass(frozen=True, eq=False)
class Attribute(Value):
    """A number that belongs to something: the size of a site, say."""

    owner: Symbol
    name: str
    shape: Shape | None = SCALAR

    @property
    def mentioned(self) -> tuple[Symbol, ...]:
        return (self.owner,)


@dataclass(frozen=True, eq=False)
class Item(Value):
    """What something holds under a key."""

    owner: Symbol
    keys: tuple[str | int, ...]
    shape: Shape | None = None

    @property
    def mentioned(self) -> tuple[Symbol, ...]:
        return (self.owner,)


@dataclass(frozen=True, eq=False)
class Quoted(Value):
    """A word: the name of a field, say."""

    word: str
    shape: Shape | None = None


@dataclass(frozen=True, eq=False)
class EntryTable(Value):
    """A matrix written entry by entry."""

    rows: tuple[tuple[Formula, ...], ...]
    shape: Shape | None


@dataclass(frozen=True, eq=False)
class Blocks(Value):
    """A matrix of matrices, by the sizes of its rows and columns. remarks: printed above its rows."""

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
    """A function of a few arguments, whose symbols are known inside only."""

    arguments: tuple[Symbol, ...]
    body: Value
    shape: Shape | None = None

    @property
    def bound(self) -> tuple[Symbol, ...]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Tuple(Value):
    """Several values as one argument."""

    values: tuple[Value | int | None, ...]
    shape: Shape | None = None


@ByKind
def as_argument(given: Any) -> Value | int | None:
    """What is given to a function of the runtime, as a value."""
    return given  # type: ignore[no-any-return]


as_argument.on(Symbol)(Ref)
as_argument.on(sp.Basic)(Formula)


@as_argument.on(tuple)
def _(given: tuple[Any, ...]) -> Tuple:
    return Tuple(tuple(map(as_argument, given)))


@dataclass(frozen=True)
class Let:
    """Give a value to a symbol. A remark is printed above."""

    symbol: Symbol
    value: Value
    remark: str = ""

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return (self.symbol,)


@dataclass(frozen=True)
class Unpack:
    """Give the parts of a value to several symbols at once."""

    symbols: tuple[Symbol, ...]
    value: Value
    remark: str = ""


UNUSED = Symbol("_")
"""Takes the parts of a value that nothing needs."""


@dataclass(frozen=True)
class Do:
    """Ask the closure to do something, such as to record a number."""

    value: Op
    remark: str = ""

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return ()


Statement = Let | Unpack
S = TypeVar("S", Let, Statement)


@dataclass(frozen=True)
class Definition:
    """A function of a module. `unpacked`: symbols that a parameter, a tuple or array, falls into."""

    name: str
    parameters: tuple[Symbol, ...]
    doc: str
    body: tuple[Let, ...]
    result: Value
    unpacked: tuple[tuple[Symbol, tuple[Symbol, ...]], ...] = ()


@dataclass(frozen=True)
class RuntimeRecord:
    """An object of numerics/runtime/interface.py, which a module offers: its entries, then those that have names.

    An entry is a function, a record, a tuple of those, or plain data; one that has a name and is None is left out.
    """

    kind: str
    entries: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    @property
    def functions(self) -> Iterator[Definition]:
        """All functions in it, in their order."""
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
    """Refuse a value that does not have the shape that is asked for, up to lines that are repeated."""
    if inner is None or outer is None or len(inner) == 0:
        return
    same = len(inner) == len(outer) and all(sp.expand(a - b) == 0 or a == 1 for a, b in zip(inner, outer, strict=True))
    if not same:
        raise AssertionError(f"a value of shape {inner} stands where {outer} is needed")


def keys_read(values: Iterable[Value], owner: Symbol) -> dict[Any, None]:
    """The keys under which values read what a symbol holds, in order of their first mention."""
    found: dict[Any, None] = {}
    waiting = list(values)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Item) and node.owner is owner:
            found.setdefault(node.keys)
        waiting = [*node.children, *waiting]
    return found


def symbols_in(value: Value) -> dict[Symbol, None]:
    """The symbols that a value refers to, in order of their first mention."""
    found: dict[Symbol, None] = {}
    bound: set[Symbol] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop(0)
        found |= dict.fromkeys(node.mentioned)
        bound |= set(node.bound)
        waiting = [*node.children, *waiting]
    return {symbol: None for symbol in found if symbol not in bound}


def alive(statements: tuple[S, ...], wanted: dict[Symbol, None]) -> tuple[tuple[S, ...], dict[Symbol, None]]:
    """The statements that the symbols wanted afterwards need, and the symbols that must be known before them."""
    needed, kept = dict(wanted), []
    for statement in reversed(statements):
        if any(symbol in needed for symbol in statement.symbols):
            kept.append(statement)
            for symbol in statement.symbols:
                needed.pop(symbol, None)
            needed |= symbols_in(statement.value)
    return tuple(reversed(kept)), needed
