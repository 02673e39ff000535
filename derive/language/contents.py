"""The expressions, symbols and names in a declaration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import sympy as sp

from derive.language.data import Data
from derive.language.equations import DeclaredSpectrum, Eq
from derive.language.matrices import Disorder, MatrixExpression, Weights
from derive.language.symbols import Axis, Clock, Parameter, Sector
from derive.language.vectors import Field

DECLARED = (Sector, Clock, Axis, Field, Disorder, Weights, Data)
"""Classes of declared symbols other than parameters."""


class Declaration(Protocol):
    """The attributes of a model that other modules read."""

    @property
    def parameters(self) -> Sequence[Parameter]: ...

    @property
    def equations(self) -> Sequence[Eq]: ...

    @property
    def observe(self) -> Any: ...

    @property
    def alignments(self) -> Any: ...

    @property
    def probe(self) -> Any: ...

    @property
    def probes(self) -> tuple[tuple[str, DeclaredSpectrum], ...]: ...

    @property
    def responses(self) -> str: ...

    @property
    def arrays(self) -> Any: ...

    @property
    def refuses(self) -> Any: ...

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]: ...


def expressions(node: Any) -> list[sp.Basic]:
    """Return all SymPy expressions inside a matrix expression."""
    return node.expressions if isinstance(node, MatrixExpression) else [node]


def everything(model: Declaration) -> list[sp.Basic]:
    """Return all SymPy expressions of a model, in the order of the declaration."""
    ordered: list[sp.Basic] = []
    for equation in model.equations:
        ordered += [*expressions(equation.target), *expressions(equation.value)]
    ordered += [value for _, value in (*model.observe, *model.alignments)]
    for _, probe in model.probes:
        ordered += [e for matrix in probe.matrices for e in expressions(matrix)]
    return ordered


def symbols(model: Declaration) -> tuple[sp.Symbol, ...]:
    """Return all symbols, including those in sizes, scales and variances, in order of first use."""
    ordered: dict[sp.Symbol, None] = {}

    seen: set[sp.Basic] = set()

    def visit(node: sp.Basic) -> None:
        if node in seen:  # and all that is inside it
            return
        seen.add(node)
        if node.is_Symbol:
            ordered[node] = None
            for part in getattr(node, "payload", ()):
                if isinstance(part, sp.Basic):
                    visit(part)
        for part in node.args:
            visit(part)

    for expression in everything(model):
        visit(expression)
    return tuple(ordered)


def atoms(model: Declaration, kind: type | tuple[type, ...]) -> tuple[Any, ...]:
    """Return the symbols of one class, in order of first use."""
    return tuple(symbol for symbol in model.symbols if isinstance(symbol, kind))


def declared_names(model: Declaration) -> set[str]:
    """Return all names of a declaration; the engine's own names avoid them."""
    return {symbol.name for symbol in (*model.parameters, *atoms(model, DECLARED))}
