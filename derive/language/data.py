"""Data as arrays: numbers that the user gives, one for each label or each pair of labels, perhaps at each time.

They are neither random nor averaged over. A table maps vectors with one kind of labels to vectors with another, as
inputs do: `x(t) @ w(t)` with `x = data("x", P, D, clock=t)` has one entry for each of P samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.errors import DeclarationError
from derive.language.symbols import Clock, Parameter, _Named
from derive.language.vectors import Mix, labels_of, named_fields, sector_of, shown


class Data(_Named):
    """An array with one axis a kind of labels and, on a clock, one more in front for time."""

    __slots__ = ()

    def __new__(cls, name: str, axes: tuple[Parameter, ...], clock: Clock | None = None):
        return super().__new__(cls, name, (sp.Tuple(*axes), clock), real=True)

    axes = property(lambda self: tuple(self.payload[0]))
    clock = property(lambda self: self.payload[1])


class DataAt(sp.Expr):
    """The value of data, at a time if it has one."""

    is_commutative = True

    data = property(lambda self: self.args[0])
    time = property(lambda self: self.args[1] if len(self.args) > 1 else None)

    def _eval_is_real(self):
        return True


@dataclass(frozen=True)
class Table:
    """Data with two axes, used as a matrix over labels: `x(t) @ w(t)`, `x(t).T @ g(t)`."""

    value: DataAt
    transposed: bool = False
    scale: sp.Expr = sp.S.One

    @property
    def T(self) -> Table:
        return Table(self.value, not self.transposed, self.scale)

    def __mul__(self, scalar) -> Table:
        return Table(self.value, self.transposed, self.scale * sp.sympify(scalar))

    __rmul__ = __mul__

    def __truediv__(self, scalar) -> Table:
        return self * (1 / sp.sympify(scalar))

    def __matmul__(self, other) -> sp.Expr:
        vector = named_fields(sp.sympify(other))
        where = f"{self} @ ({shown(vector)})"
        if sector_of(vector, where) is None:
            raise DeclarationError(f"{where}: the right-hand side is not a vector")
        mixed = Mix(self.value, self.transposed, vector)
        labels_of(mixed, where)
        return self.scale * mixed

    def __str__(self) -> str:
        time = "" if self.value.time is None else f"({self.value.time})"
        return f"{self.value.data}{time}{'.T' if self.transposed else ''}"


@dataclass(frozen=True)
class Given:
    """Data on a clock before a time is named: `y(t)`."""

    data: Data

    def __call__(self, time) -> DataAt | Table:
        return _used(DataAt(self.data, sp.sympify(time)))


def data(name: str, *axes: Parameter, clock: Clock | None = None) -> Given | DataAt | Table:
    """An array that the user gives: one axis for each kind of labels, and time in front if there is a clock.

    With one axis it is a number for each label, with two a table that acts on vectors with labels. With a clock
    write y(t), without one plainly y.
    """
    for axis in axes:
        if not (isinstance(axis, Parameter) and axis.domain.whole):
            raise DeclarationError(f"data {name}: the axis {axis} is not a whole-number parameter; make it one")
    if len(axes) not in (1, 2):
        raise DeclarationError(f"data {name}: give one axis or two besides the clock")
    made = Data(name, axes, clock)
    return Given(made) if clock is not None else _used(DataAt(made))


def _used(value: DataAt) -> DataAt | Table:
    return value if len(value.data.axes) == 1 else Table(value)
