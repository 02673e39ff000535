"""Data arrays: numbers per label or pair of labels, possibly at each time, that the user provides.

They are neither random nor averaged over. A table maps vectors with one axis of labels to vectors with another, as
inputs do: `x(t) @ w(t)` with `x = data("x", P, D, clock=t)` has one entry for each of P samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Self, overload

import sympy as sp
from sympy.printing.str import StrPrinter

from derive.errors import DeclarationError
from derive.language.expressions import declared, refuse_the_rest, word
from derive.language.symbols import Axis, Clock, _Named, exact
from derive.language.vectors import GivenNumbers, Mix, axes_of, named_fields, sector_of, shown
from derive.support.display import DisplayedFormula


class Unusable(DeclarationError, sp.SympifyError):
    """Raised if data or a matrix are used where they cannot be. SymPy then gives the other operand of a product
    precedence."""


class Data(_Named):
    """An array with one dimension per axis of labels and, on a clock, time as the first dimension."""

    __slots__ = ()

    def __new__(
        cls, name: str, axes: tuple[Axis, ...], clock: Clock | None = None, optional: bool = False, latex: str = ""
    ) -> Self:
        return super().__new__(cls, name, (sp.Tuple(*axes), clock, optional), latex, real=True)

    axes = property(lambda self: tuple(self.payload[0]))
    clock = property(lambda self: self.payload[1])
    optional = property(lambda self: self.payload[2])


class DataAt(GivenNumbers):
    """The value of data, at a time if they have a clock."""

    data = property(lambda self: self.args[0])
    time = property(lambda self: self.args[1] if len(self.args) > 1 else None)

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"{self.data}" if self.time is None else f"{self.data}({printer._print(self.time)})"

    def _eval_is_real(self) -> bool:
        return True

    def own_axes(self, where: str) -> tuple[Axis, ...]:
        if len(self.data.axes) != 1:
            raise DeclarationError(f"{where}: {self.data} is a table; apply it to a vector with @")
        return tuple(self.data.axes)

    def __call__(self, *time: Any) -> NoReturn:
        raise DeclarationError(_already(self, time))


class RootAt(DataAt):
    """The symmetric square root of a positive semidefinite table."""

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"root({super()._sympystr(printer)})"


class EntriesAt(DataAt):
    """A table as numbers, one per pair of labels."""

    def own_axes(self, where: str) -> tuple[Axis, ...]:
        return tuple(sorted(self.data.axes, key=lambda axis: axis.name))

    @property
    def turned(self) -> bool:
        """Whether its columns come before its rows in the alphabetical order of names."""
        return bool(self.own_axes("") != self.data.axes)

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"entries({super()._sympystr(printer)})"


def _already(value: DataAt, time: tuple[Any, ...]) -> str:
    if value.time is None:
        return f"data {value.data} has no clock: write {value.data}, not {value.data}({', '.join(map(str, time))})"
    return f"{shown(value)} is already a value; write {value.data}(time) once"


@dataclass(frozen=True, repr=False)
class LabelTable(DisplayedFormula):
    """Data with two axes, used as a matrix over labels: `x(t) @ w(t)`, `x(t).T @ g(t)`."""

    value: DataAt
    transposed: bool = False
    scale: sp.Expr = sp.S.One

    @property
    def T(self) -> LabelTable:
        return LabelTable(self.value, not self.transposed, self.scale)

    def __call__(self, *time: Any) -> NoReturn:
        raise DeclarationError(_already(self.value, time))

    def __mul__(self, scalar: Any) -> LabelTable:
        factor = named_fields(exact(scalar))
        if sector_of(factor) is not None or axes_of(factor):
            raise DeclarationError(f"{self} is a table: it takes numbers as factors, and acts on a vector with @")
        return LabelTable(self.value, self.transposed, self.scale * factor)

    __rmul__ = __mul__

    def _sympy_(self) -> NoReturn:
        raise Unusable(f"{self} is a table; apply it to a vector with labels: {self} @ v")

    def _alone(self, *_: object) -> NoReturn:
        raise DeclarationError(f"{self} is a table; apply it to a vector with @ before you add anything")

    __neg__ = _alone

    def __truediv__(self, scalar: Any) -> LabelTable:
        return self * (1 / exact(scalar))

    def __matmul__(self, other: Any) -> sp.Expr:
        vector = named_fields(exact(other))
        where = f"{self} @ ({shown(vector)})"
        if sector_of(vector, where) is None:
            raise DeclarationError(f"{where}: the right-hand side is not a vector")
        mixed = Mix(self.value, self.transposed, vector)
        axes_of(mixed, where)
        return declared(self.scale * mixed)

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f"{shown(self.scale)}*"
        return f"{scale}{self.value}{'.T' if self.transposed else ''}"


refuse_the_rest(LabelTable, LabelTable._alone)


@dataclass(frozen=True, repr=False)
class GivenData(DisplayedFormula):
    """Data on a clock before a time is named: `y(t)`."""

    data: Data

    def __call__(self, time: Any) -> DataAt | LabelTable:
        return declared(_used(DataAt(self.data, exact(time))))

    def _untimed(self, *_: object) -> NoReturn:
        raise Unusable(f"data {self.data} lives on clock {self.data.clock}: write {self.data}({self.data.clock})")

    __neg__ = _sympy_ = _untimed
    T = property(_untimed)

    def __str__(self) -> str:
        return str(self.data)


refuse_the_rest(GivenData, GivenData._untimed)


@overload
def data(name: str, *axes: Axis, clock: Clock, optional: bool = False, latex: str = "") -> GivenData: ...
@overload
def data(name: str, axis: Axis, /, *, clock: None = None, optional: bool = False, latex: str = "") -> DataAt: ...
@overload
def data(
    name: str, row: Axis, column: Axis, /, *, clock: None = None, optional: bool = False, latex: str = ""
) -> LabelTable: ...
@word
def data(
    name: str, *axes: Axis, clock: Clock | None = None, optional: bool = False, latex: str = ""
) -> GivenData | DataAt | LabelTable:
    """Return an array that the user provides: one or two axes of labels, preceded by time if there is a clock.

    With one axis it is a number for each label, with two a table that acts on vectors with labels. Write y(t) with a
    clock, and y without one. Users provide all arrays or none, except those that are `optional`, which then come from
    Model(arrays=...). `latex` sets its symbol in formulas.

    >>> from derive import axis, data, field, parameter, sectors, training_clock, whole_positive
    >>> T, P, D = (parameter(name, default=4, domain=whole_positive) for name in "TPD")
    >>> N, t, p, d = sectors("N"), training_clock("t", steps=T), axis("p", P), axis("d", D)
    >>> x, y = data("x", p, d, clock=t), data("y", p, clock=t)
    >>> V, h = field("V", N, t, axes=d), field("h", N, t, axes=p)
    >>> x(t) @ V(t)
    x(t) @ V(t)
    >>> h(t) * y(t)
    y(t)*h(t)
    """
    Axis.check(f"data {name}", *axes)
    if len(axes) not in (1, 2):
        raise DeclarationError(f"data {name}: give one axis or two besides the clock")
    if clock is not None:
        Clock.check(f"data {name}", clock)
    array = Data(name, axes, clock, bool(optional), latex)
    return GivenData(array) if clock is not None else _used(DataAt(array))


@word
def root(table: LabelTable) -> LabelTable:
    """Return the symmetric square root of a covariance table: for independent normals z, root(G) @ z has covariance G.

    The table is data with one axis twice. It must be symmetric positive semidefinite.

    >>> from derive import axis, data, normal, parameter, root, sectors, whole_positive
    >>> D, c = sectors("D"), axis("c", parameter("C", default=3, domain=whole_positive))
    >>> overlaps, independent = data("overlaps", c, c), normal("independent", D, axes=c)
    >>> root(overlaps) @ independent
    root(overlaps) @ independent
    """
    rows, columns = _axes_of_table("root", table, "data('overlaps', c, c)")
    if rows != columns:
        raise DeclarationError(
            f"root({table}): the axes of {table.value.data} are {rows} and {columns}; give it one twice"
        )
    if table.scale != 1:
        raise DeclarationError(f"root({table}): take the root of {table.value} itself, and multiply it outside")
    return LabelTable(RootAt(*table.value.args))


def _axes_of_table(word: str, table: Any, example: str) -> tuple[Axis, Axis]:
    """Return the axes of a table of data; anything else is refused."""
    if not isinstance(table, LabelTable) or isinstance(table.value, RootAt):
        raise DeclarationError(f"{word}({table!s}): give a table, such as {example}")
    rows, columns = table.value.data.axes
    return rows, columns


@word
def entries(table: LabelTable) -> EntriesAt:
    """Return a table of data as numbers, one per pair of labels, which can be added and multiplied like any others.

    >>> from derive import axis, data, entries, parameter, whole_positive
    >>> C, P = (parameter(name, default=3, domain=whole_positive) for name in "CP")
    >>> c, p = axis("c", C), axis("p", P)
    >>> onehot = data("onehot", p, c)
    >>> 1 - entries(onehot)
    1 - entries(onehot)
    """
    rows, columns = _axes_of_table("entries", table, "data('onehot', p, c)")
    if rows == columns:
        raise DeclarationError(f"entries({table}): it has the axis {rows} twice; give it two, such as axis('a', C)")
    if table.scale != 1 or table.transposed:
        raise DeclarationError(
            f"entries({table}): take the entries of {table.value} itself; axes are identified by name"
        )
    return EntriesAt(*table.value.args)


def _used(value: DataAt) -> DataAt | LabelTable:
    return value if len(value.data.axes) == 1 else LabelTable(value)
