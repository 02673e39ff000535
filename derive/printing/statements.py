"""The common form of printed records, and lines shared by several of them."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.language.contents import atoms
from derive.language.matrices import Disorder, Weights
from derive.language.model import Model
from derive.language.vectors import PAST, PastSum
from derive.records.action import clock_of
from derive.records.saddle import MemoryKernel
from derive.records.system import Recurrence


@dataclass(frozen=True)
class Statement:
    """A line of mathematics: left = right, with a remark.

    Without `right` it is an expression, without both sides it is prose.

    `tag` is the equation number that generated code cites. `row` is the unknown of A(z) that the equation determines;
    `rows` and `columns` are those of a block matrix.
    """

    left: sp.Basic | None = None
    right: sp.Basic | None = None
    remark: str = ""
    relation: str = "="
    tag: str = ""
    row: str = ""
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Statements under a title. `why` explains the step, with mathematics between dollar signs."""

    title: str
    statements: tuple[Statement, ...]
    why: str = ""


def remembered(memory: MemoryKernel) -> sp.Expr:
    """Return the memory term in printed form: summed over training times, or over spectral time."""
    value = memory.expression()
    if memory.on.role == "spectral":
        return sp.Function("sum_s")(value)
    if not memory.on.timed:
        return value
    t = clock_of(memory.target)
    if memory.fresh:
        return value.subs(PAST, t)
    if memory.target.role == "spectral" or not memory.target.timed or memory.lag is None:
        return sp.Function("sum_s")(value)
    return PastSum(value, (PAST, 0, t - memory.lag))


def matrix_law(matrix: Disorder) -> str:
    """Return the shape and law of a random matrix in words."""
    kind = "symmetric, the diagonal with twice the variance" if matrix.symmetric else "independent Gaussian entries"
    fresh = f", drawn afresh at each {matrix.fresh}" if matrix.fresh is not None else ""
    return f"{matrix.rows} x {matrix.columns}, {kind}{fresh}"


def recurrence_lines(recurrence: Recurrence, model: Model) -> list[Statement]:
    """Return k(t+1) = matrix k(t) + forcing and the starting value, for each weight matrix."""
    t = next(w.clock for w in atoms(model, Weights) if w.name == recurrence.weights[0])
    rest = () if recurrence.initial else (PAST,)
    functions = [sp.Function(name) for name in recurrence.names]
    lines = []
    rows = zip(functions, recurrence.matrix, recurrence.entry, recurrence.forcing, strict=True)
    for function, row, start, drive in rows:
        right = sp.Add(drive, *(scale * other(t, *rest) for scale, other in zip(row, functions, strict=True)))
        lines.append(Statement(function(t + 1, *rest), right, remark="coefficient of updated weights"))
        lines.append(Statement(function(*((sp.S.Zero,) if recurrence.initial else (PAST + 1, PAST))), start))
    return lines
