"""Data as arrays: numbers that the user gives, one for each label or each pair of labels, perhaps at each time.

They are neither random nor averaged over. A table maps vectors with one kind of labels to vectors with another, as
inputs do: `x(t) @ w(t)` with `x = data("x", P, D, clock=t)` has one entry for each of P samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Self, overload

import sympy as sp
from sympy.printing.str import StrPrinter

from derive.display import DisplayedFormula
from derive.errors import DeclarationError
from derive.language.cures import word
from derive.language.foreign import refuse_the_rest
from derive.language.symbols import Clock, Parameter, _Named, exact
from derive.language.vectors import GivenNumbers, Mix, labels_of, named_fields, sector_of, shown


class Unusable(DeclarationError, sp.SympifyError):
    """Data or a matrix stand where they cannot; SymPy first lets the other operand of a product speak."""


class Data(_Named):
    """An array with one axis a kind of labels and, on a clock, one more in front for time."""

    __slots__ = ()

    def __new__(cls, name: str, axes: tuple[Parameter, ...], clock: Clock | None = None, latex: str = "") -> Self:
        return super().__new__(cls, name, (sp.Tuple(*axes), clock), latex, real=True)

    axes = property(lambda self: tuple(self.payload[0]))
    clock = property(lambda self: self.payload[1])


class DataAt(GivenNumbers):
    """The value of data, at a time if it has one."""

    data = property(lambda self: self.args[0])
    time = property(lambda self: self.args[1] if len(self.args) > 1 else None)

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"{self.data}" if self.time is None else f"{self.data}({printer._print(self.time)})"

    def _eval_is_real(self) -> bool:
        return True

    def own_labels(self, where: str) -> Parameter:
        if len(self.data.axes) != 1:
            raise DeclarationError(f"{where}: {self.data} is a table; apply it to a vector with @")
        labels: Parameter = self.data.axes[0]
        return labels

    def __call__(self, *time: Any) -> NoReturn:
        raise DeclarationError(_already(self, time))


class RootAt(DataAt):
    """The symmetric square root of a table, which is symmetric and has no negative eigenvalue."""

    def _sympystr(self, printer: StrPrinter) -> str:
        return f"root({super()._sympystr(printer)})"


def _already(value: DataAt, time: tuple[Any, ...]) -> str:
    if value.time is None:
        return f"data {value.data} has no clock: write {value.data}, not {value.data}({', '.join(map(str, time))})"
    return f"{shown(value)} is already a value; write {value.data}(time) once"


@dataclass(frozen=True, repr=False)
class Table(DisplayedFormula):
    """Data with two axes, used as a matrix over labels: `x(t) @ w(t)`, `x(t).T @ g(t)`."""

    value: DataAt
    transposed: bool = False
    scale: sp.Expr = sp.S.One

    @property
    def T(self) -> Table:
        return Table(self.value, not self.transposed, self.scale)

    def __call__(self, *time: Any) -> NoReturn:
        raise DeclarationError(_already(self.value, time))

    def __mul__(self, scalar: Any) -> Table:
        factor = named_fields(exact(scalar))
        if sector_of(factor) is not None or labels_of(factor) is not None:
            raise DeclarationError(f"{self} is a table: it takes numbers as factors, and acts on a vector with @")
        return Table(self.value, self.transposed, self.scale * factor)

    __rmul__ = __mul__

    def _sympy_(self) -> NoReturn:
        raise Unusable(f"{self} is a table; apply it to a vector with labels: {self} @ v")

    def _alone(self, *_: object) -> NoReturn:
        raise DeclarationError(f"{self} is a table; apply it to a vector with @ before you add anything")

    __neg__ = _alone

    def __truediv__(self, scalar: Any) -> Table:
        found: Table = self * (1 / exact(scalar))
        return found

    def __matmul__(self, other: Any) -> sp.Expr:
        vector = named_fields(exact(other))
        where = f"{self} @ ({shown(vector)})"
        if sector_of(vector, where) is None:
            raise DeclarationError(f"{where}: the right-hand side is not a vector")
        mixed = Mix(self.value, self.transposed, vector)
        labels_of(mixed, where)
        return self.scale * mixed

    def __str__(self) -> str:
        scale = "" if self.scale == 1 else f"{shown(self.scale)}*"
        return f"{scale}{self.value}{'.T' if self.transposed else ''}"


refuse_the_rest(Table, Table._alone)


@dataclass(frozen=True, repr=False)
class Given(DisplayedFormula):
    """Data on a clock before a time is named: `y(t)`."""

    data: Data

    def __call__(self, time: Any) -> DataAt | Table:
        return _used(DataAt(self.data, exact(time)))

    def _untimed(self, *_: object) -> NoReturn:
        raise Unusable(f"data {self.data} lives on clock {self.data.clock}: write {self.data}({self.data.clock})")

    __neg__ = _sympy_ = _untimed
    T = property(_untimed)

    def __str__(self) -> str:
        return str(self.data)


refuse_the_rest(Given, Given._untimed)


@overload
def data(name: str, *axes: Parameter, clock: Clock, latex: str = "") -> Given: ...
@overload
def data(name: str, axis: Parameter, /, *, clock: None = None, latex: str = "") -> DataAt: ...
@overload
def data(name: str, row: Parameter, column: Parameter, /, *, clock: None = None, latex: str = "") -> Table: ...
@word
def data(name: str, *axes: Parameter, clock: Clock | None = None, latex: str = "") -> Given | DataAt | Table:
    """An array that the user gives: one axis for each kind of labels, and time in front if there is a clock.

    With one axis it is a number for each label, with two a table that acts on vectors with labels. With a clock
    write y(t), without one plainly y. `latex` is how formulas write it.

    >>> from derive import data, field, parameter, sectors, training_clock, whole_positive
    >>> T, P, D = (parameter(name, default=4, domain=whole_positive) for name in "TPD")
    >>> N, t = sectors("N"), training_clock("t", steps=T, channels=P)
    >>> x, y = data("x", P, D, clock=t), data("y", P, clock=t)
    >>> V, h = field("V", N, t, labels=D), field("h", N, t)
    >>> x(t) @ V(t)
    x(t) @ V(t)
    >>> h(t) * y(t)
    y(t)*h(t)
    """
    for axis in axes:
        if not (isinstance(axis, Parameter) and axis.domain.whole):
            raise DeclarationError(f"data {name}: the axis {axis!s} is not a whole-number parameter; make it one")
    if len(axes) not in (1, 2):
        raise DeclarationError(f"data {name}: give one axis or two besides the clock")
    if clock is not None and not isinstance(clock, Clock):
        raise DeclarationError(f"data {name}: {clock!s} is not a clock; make one with training_clock('t', steps=T)")
    made = Data(name, axes, clock, latex)
    return Given(made) if clock is not None else _used(DataAt(made))


@word
def root(table: Table) -> Table:
    """The symmetric square root of a table of covariances: root(G) @ z, z with independent normals, has covariance G.

    The table is data with one axis twice. It must be symmetric and without negative eigenvalues; zero ones are fine.

    >>> from derive import data, normal, parameter, root, sectors, whole_positive
    >>> D, C = sectors("D"), parameter("C", default=3, domain=whole_positive)
    >>> overlaps, independent = data("overlaps", C, C), normal("independent", D, labels=C)
    >>> root(overlaps) @ independent
    root(overlaps) @ independent
    """
    if not isinstance(table, Table) or isinstance(table.value, RootAt):
        raise DeclarationError(f"root({table!s}): give a table, such as data('overlaps', C, C)")
    rows, columns = table.value.data.axes
    if rows != columns:
        raise DeclarationError(
            f"root({table}): the axes of {table.value.data} are {rows} and {columns}; give it one twice"
        )
    if table.scale != 1:
        raise DeclarationError(f"root({table}): take the root of {table.value} itself, and multiply it outside")
    return Table(RootAt(*table.value.args))


def _used(value: DataAt) -> DataAt | Table:
    return value if len(value.data.axes) == 1 else Table(value)
