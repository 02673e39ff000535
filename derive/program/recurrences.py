"""Coefficients of updated weights without a closed form in time, as tables over times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.equations.layout import Layout
from derive.language.vectors import PAST
from derive.program.nodes import SCALAR, Call, EntryTable, Formula, Let, Ref, Shape, Slot, Symbol
from derive.records.system import Recurrence


class Coefficients:
    """One table per coefficient: over times, or over times and the times at which dyads were added.

    Args:
        of_clock: the substitution for the number of steps where it counts the times of order parameters.
    """

    def __init__(self, layout: Layout, of_clock: Mapping[sp.Symbol, sp.Expr] = {}):
        self.layout, self.of_clock = layout, of_clock
        clock = layout.clock
        count = sp.S.One if clock is None else clock.steps + 1
        self.count, self.every = count, Symbol("every_time", (count,))
        self.tables = {
            r: Symbol(f"table_{'_'.join(r.weights)}", (count, len(r.names), *(() if r.initial else (count,))))
            for r in layout.system.recurrences
        }
        self.owners = {name: (r, i) for r in self.tables for i, name in enumerate(r.names)}

    def at(self, node: AppliedUndef, number: Callable[[sp.Expr], Formula], times: Shape = ()) -> Slot:
        """Return a coefficient at a time, over all earlier times if it depends on when a dyad was added."""
        recurrence, position = self.owners[node.func.__name__]
        taken = (self.tables[recurrence], number(node.args[0]), position)
        if recurrence.initial:
            return Slot(Call("coefficient", taken, SCALAR), str(node.func))
        return Slot(Call("coefficients", (*taken, times[0]), times), str(node.func))

    def statements(self, wanted: dict[Symbol, None]) -> tuple[Let, ...]:
        """Return the statements for the wanted tables and those that they depend on."""
        used = [(r, symbol) for r, symbol in self.tables.items() if symbol in wanted]
        if not used:
            return ()
        every = Let(self.every, Call("arange", (self.count,), self.every.shape))
        return (every, *(Let(symbol, self._table(r), self._remark(r)) for r, symbol in used))

    def _remark(self, r: Recurrence) -> str:
        return f"coefficients of {', '.join(r.weights)}, by their update rules"

    def _table(self, r: Recurrence) -> Call:
        slot = Slot(Ref(self.every), str(self.layout.clock))

        def entry(expression: sp.Expr) -> Formula:
            return Formula(
                sp.sympify(expression).xreplace({self.layout.clock: slot, PAST: slot, **self.of_clock}), None
            )

        def matrix(rows: Iterable[Iterable[sp.Expr]]) -> Call:
            table = EntryTable(tuple(tuple(map(entry, row)) for row in rows), None)
            return Call("over_time", (table, self.count), None)

        arguments = (matrix(r.matrix), matrix([[e] for e in r.entry]), matrix([[e] for e in r.forcing]))
        function = "initial_coefficients" if r.initial else "history_coefficients"
        return Call(function, arguments, self.tables[r].shape)
