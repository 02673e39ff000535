"""The training level in exact arithmetic at fixed whole numbers, from which outliers are expanded.

All laws must be linear. The programs are those from which generated solvers are printed, evaluated over rational
functions of the open parameters.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.polynomials import TooLarge
from derive.algebra.quotients import Quotient
from derive.equations.needs import needs_of
from derive.pipeline import DerivedProbe
from derive.program.exact_run import ExactRun
from derive.program.lowering import forward_pass
from derive.program.nodes import Formula
from derive.program.probe import cycle_pencils
from derive.program.quotients import Array, check_terms
from derive.program.recurrences import Coefficients
from derive.records.probe import MAP, BlockCycle

MOST_ROWS = 12
"""Largest size of a matrix whose characteristic polynomial is computed."""


class ExactLevel:
    """Order parameters before the last update. `substitution` fixes whole numbers and possibly other parameters."""

    def __init__(self, probed: DerivedProbe, substitution: dict[Any, Any]):
        self.pencil = probed.pencil
        self.layout = probed.training.layout
        needs = needs_of([probed.blocks])
        self.pencils = cycle_pencils(probed.pencil, self.layout, needs.means)
        beside = chain(*([*(let.value for let in f.body), f.result] for f in self.pencils))
        self.machine = ExactRun(forward_pass(self.layout, needs), substitution, beside)
        self.scalars = self.machine.scalars

    def characteristic(self, cycle: BlockCycle) -> tuple[sp.Expr, ...]:
        """Return the factors, in MAP, of the characteristic polynomial of a cycle's constant matrix."""
        unknowns = self.pencil.blocks.projected.unknowns
        size = min(sum(self.machine.whole(unknowns[r].size) for r in group) for group in cycle.groups)
        if size > MOST_ROWS:
            raise TooLarge(f"its matrix has {size} rows, more than {MOST_ROWS}")
        pencil = self.pencils[self.pencil.cycles.index(cycle)]
        matrix = self.machine.call(pencil, {pencil.parameters[1]: self.machine.order})
        return tuple(
            sp.fraction(sp.together(sp.Add(*(self.scalars.expression(c) * MAP**k for k, c in enumerate(part)))))[0]
            for part in self._characteristic(matrix)
        )

    def resolved(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression of the probe with the coefficients of updated weights substituted."""
        coefficients = Coefficients(self.layout)
        self.machine.run(coefficients.statements(dict.fromkeys(coefficients.tables.values())))
        values = {}
        for node in sorted(expression.atoms(AppliedUndef), key=sp.default_sort_key):
            slot = coefficients.at(node, lambda e: Formula(sp.sympify(e)))
            values[node] = self.scalars.expression(self.machine.evaluate(slot.value))
        return expression.xreplace(values).subs(self.scalars.substitution)

    def _characteristic(self, matrix: Array) -> list[list[Quotient]]:
        """Return the coefficients of det(s - M), lowest first, for each strongly connected set of rows."""
        feeds = [{j for j, x in enumerate(row) if not x.is_zero} for row in matrix]
        reach = [_reached(i, feeds) for i in range(len(matrix))]
        polynomials, seen = [], set()
        for i in range(len(matrix)):
            if i in seen or i not in reach[i]:
                continue
            component = [j for j in sorted(reach[i]) if i in reach[j]]
            seen |= set(component)
            polynomials.append(self._faddeev(matrix[component][:, component]))
        return polynomials

    def _faddeev(self, matrix: Array) -> list[Quotient]:
        """Return the characteristic polynomial by the Faddeev-LeVerrier recursion N = M N + c I, c = -tr(M N) / k."""
        size = len(matrix)
        coefficients = [self.scalars.one]
        current = self.machine.identity(size)
        for k in range(1, size + 1):
            product = self.machine.product_of(matrix, current)
            trace = check_terms(np.trace(product))
            c = -(trace / self.scalars.of(sp.Integer(k)))
            coefficients.append(c)
            for i in range(size):
                product[i, i] = product[i, i] + c
            current = product
        return coefficients[::-1]


def _reached(start: int, feeds: list[set[int]]) -> set[int]:
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        for following in feeds[waiting.pop()] - seen:
            seen.add(following)
            waiting.append(following)
    return seen
