"""What all forward passes are made with: symbols of time, and numbers at one time or over all earlier ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import outermost
from derive.equations.layout import Layout, lag_of
from derive.errors import DeclarationError
from derive.language.data import DataAt, RootAt
from derive.language.symbols import labels_along
from derive.language.vectors import PAST, Field, FieldAt, Mean, Mix, Selection, Softmax, Total, axes_of, shown
from derive.printing import text
from derive.program.nodes import SCALAR, Call, Chosen, Formula, Ref, Shape, Slot, Symbol, Value
from derive.program.recurrences import Coefficients
from derive.records.system import Term

ONE = Formula(sp.S.One)


class Training(ABC):
    """A forward pass as it is made. length: how many times tables over time have."""

    over_times: tuple[type, ...] = (Mean,)
    """What is kept at all times where it stands in a sum over earlier ones."""
    upright = True
    """Whether numbers with labels stand in a column, and not in a row."""

    def __init__(self, layout: Layout, length: sp.Expr):
        self.layout, self.clock = layout, layout.clock
        self.order_times = layout.order_times
        self.points = sp.S.One if self.clock is None else self.clock.points
        self.time = Symbol("t" if self.clock is None else self.clock.name, SCALAR)
        self.length, self.when = length, Symbol("when", (length,))
        self.now_slot, self.when_slot = Slot(Ref(self.time), self.time.hint), Slot(Ref(self.when), "s")
        self.coefficients = Coefficients(layout)
        self.tables: dict[sp.Expr, Symbol] = {}
        """Means at all times, by what they are of."""
        self.done: dict[Field, Symbol] = {}
        """What is known of a field at the current time."""
        self.lines: list[Any] = []

    @abstractmethod
    def number(self, expression: sp.Expr) -> Formula:
        """A number at the current time, along labels where it has them, or over all earlier times."""

    @abstractmethod
    def leaf(self, node: sp.Basic) -> sp.Expr:
        """What stands for a node that is no arithmetic, at the current time."""

    def formula(
        self,
        expression: sp.Expr,
        shape: Shape,
        last: sp.Expr | None = None,
        known: dict[FieldAt, Slot] | None = None,
    ) -> Formula:
        """Arithmetic of values, means, data and coefficients at the current time, or over all earlier times.

        last: of earlier times the last one that is asked for, whose value later ones get too: a power of a delay is not
        taken where the delay is negative, and the weight is zero there. known: what stands for values.
        """
        inner: dict[sp.Basic, sp.Expr] = dict(known or {})
        for node in outermost(expression, (FieldAt, Mean, AppliedUndef, DataAt, Mix, Total)):
            if isinstance(node, AppliedUndef):
                inner[node] = self.coefficients.at(node, self.number, (self.length,))
            elif node.has(PAST) and isinstance(node, self.over_times):
                inner[node] = Slot(Ref(self.over_time(node)), shown(node))
            elif node not in inner:
                inner[node] = self.leaf(node)
        moved: dict[sp.Basic, sp.Expr] = {PAST: self.when_slot}
        if self.clock is not None:
            moved[self.clock] = self.now_slot
        if last is not None:
            last_time = sp.sympify(last).xreplace(moved)
            moved[PAST] = Slot(Formula(sp.Min(self.when_slot, last_time), (self.length,)), "s")
        over = expression.has(PAST)
        return Formula(expression.xreplace(inner).xreplace(moved), (self.length,) if over else shape)

    def over_time(self, node: sp.Expr) -> Symbol:
        """The table of a mean at all earlier times."""
        if axes_of(node):
            raise DeclarationError(
                f"{shown(node)}: a mean of fields with labels stands in a sum over earlier times; "
                "give the vector times that mean a field of its own"
            )
        moved = node.xreplace({PAST: self.clock})
        if moved not in self.tables:
            self.tables[moved] = self._carry(Symbol("mean_past", (self.length,)))
        return self.tables[moved]

    def _carry(self, symbol: Symbol) -> Symbol:
        """A symbol that goes from one time to the next."""
        return symbol

    def weights(self, term: Term) -> Chosen:
        """The coefficient of each earlier time, zero outside the sum."""
        assert term.past is not None
        inside, shape = self.formula(sp.sympify(term.past), SCALAR).expression, (self.length,)
        weight = Formula(self.formula(term.coefficient, SCALAR, last=term.past - 1).expression, shape)
        return Chosen(sp.Lt(self.when_slot, inside, evaluate=False), weight, Formula(sp.S.Zero, shape))

    def given(self, node: DataAt | Selection) -> Value:
        """Data as a matrix, or along labels."""
        if isinstance(node, Selection):
            return selection(node)
        sizes = tuple(axis.size for axis in node.data.axes)
        shape = sizes if len(sizes) == 2 else (*sizes, sp.S.One) if self.upright else (sp.S.One, *sizes)
        when: tuple[Any, int] = (None, 0)
        if node.time is not None:
            now = node.time.has(self.clock)
            when = (self.time, int(sp.expand(self.clock - node.time))) if now else (node.time, 0)
        found = Call("given", (Formula(node.data, None), *when), shape)
        return Call("root", (found,), shape) if isinstance(node, RootAt) else found

    def lag(self, value: FieldAt) -> int:
        """How many steps before the current time a value is taken."""
        lag = lag_of(value, self.clock)
        if lag < 0:
            raise DeclarationError(f"{shown(value)} lies in the future of the equation that uses it")
        return lag

    def present(self, field: Field) -> FieldAt:
        return field(self.clock) if field.timed else field()

    def known_now(self, value: FieldAt) -> Ref:
        """What is known of a field at the current time."""
        if value.field not in self.done:
            raise DeclarationError(f"{shown(value)} is needed before it is known; use it one step earlier")
        return Ref(self.done[value.field])

    def tell(self, before: int, equations: Iterable[str]) -> None:
        """Put equations above the first line that was made since there were so many."""
        first = self.lines[before]
        told = (*equations, *([first.remark] if first.remark else []))
        self.lines[before] = replace(first, remark="\n".join(told))

    def observed(self, name: str) -> str:
        """What an observable is, as text."""
        value = dict(self.layout.system.model.observe)[name]
        return f"{name} = {text(value)}"


def selection(node: Selection) -> Call:
    """The table of zeros and ones that takes some labels to others."""
    places = [node.rows.index(axis) if axis in node.rows else -1 for axis in node.named]
    sizes = (tuple(axis.size for axis in axes) for axes in (node.rows, node.columns))
    return Call("selection", (*sizes, tuple(places)), (labels_along(node.rows), labels_along(node.columns)))


def apart(value: Value, expression: sp.Expr) -> Value:
    """Numbers whose last axis runs over all labels, with one axis for each that the labels have."""
    axes = axes_of(expression)
    return value if len(axes) < 2 else Call("apart", (value, tuple(axis.size for axis in axes)), None)


def along(node: Softmax) -> tuple[sp.Expr, sp.Expr]:
    """How many labels an axis has, and how many there are along those behind it."""
    axes = axes_of(node.expression)
    return node.axis.size, labels_along(axes[axes.index(node.axis) + 1 :])


def labels_in(expression: sp.Basic) -> sp.Expr:
    """How many labels an expression has."""
    return labels_along(axes_of(sp.sympify(expression)))
