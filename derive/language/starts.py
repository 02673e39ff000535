"""Substitute starting values: W(0) in a rule or a probed matrix is replaced by the right-hand side of its equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import sympy as sp

from derive.errors import DeclarationError, blaming
from derive.language.diagonals import DiagonalMatrix
from derive.language.equations import DeclaredSpectrum, Eq
from derive.language.matrices import Dyad, MatrixAtom, MatrixExpression, ProductOfMatrices, SumOfMatrices, product_of
from derive.language.traversal import ByKind
from derive.language.vectors import Apply

Starts = dict[sp.Basic, sp.Expr | MatrixExpression]
"""Right-hand sides of starting equations, by field or weights at a starting time."""


def starts_written_out(equations: Sequence[Eq]) -> tuple[Eq, ...]:
    """Return the rules with fields and weights at starting times replaced by their starting equations."""
    starts = _starting_values(equations)
    return (
        tuple(e if e.start is not None else _written_out(e, starts) for e in equations) if starts else tuple(equations)
    )


def probe_written_out(probe: DeclaredSpectrum, equations: Sequence[Eq]) -> DeclaredSpectrum:
    """Return the probed matrix with starting weights replaced likewise; fields may stay at their starts."""
    starts = {at: value for at, value in _starting_values(equations).items() if at.weights is not None}
    if not starts:
        return probe
    with blaming(probe):
        written = [_settled(matrix, starts) for matrix in probe.matrices]
        if not all(matrix.as_sum for matrix in written):
            raise DeclarationError(f"{probe}: the terms of the matrix cancel, so there is nothing to probe")
    between = tuple((name, matrix) for (name, _), matrix in zip(probe.between, written[1:], strict=True))
    return replace(probe, matrix=written[0], between=between)


def _starting_values(equations: Sequence[Eq]) -> Starts:
    return {e.target.symbol: e.value for e in equations if e.start is not None}


def _settled(matrix: MatrixExpression, starts: Starts) -> MatrixExpression:
    for _ in range(len(starts)):  # a start may be said in terms of an earlier one
        matrix = _in_matrix(matrix, starts)
    return matrix


def _written_out(e: Eq, starts: Starts) -> Eq:
    for _ in range(len(starts)):  # a start may be said in terms of an earlier one
        value = _in_matrix(e.value, starts)
        if value == e.value:
            break
        e = e.with_value(value)
    return e


def _in_vector(expression: sp.Expr, starts: Starts) -> sp.Expr:
    if not expression.has(*starts):
        return expression

    def applied(node: sp.Basic) -> sp.Expr:
        start = starts[node.matrix]
        return (start.T if node.transposed else start).applied_to(node.vector)

    products = expression.atoms(Apply)
    replaced = expression.replace(lambda node: node in products and node.matrix in starts, applied)
    fields = {at: value for at, value in starts.items() if at.weights is None}
    return replaced.xreplace(fields)


@ByKind
def _in_matrix(value: sp.Expr | MatrixExpression, starts: Starts) -> Any:
    """Return a vector or a matrix with starting values substituted."""
    return _in_vector(value, starts)


@_in_matrix.on(SumOfMatrices)
def _(matrix: SumOfMatrices, starts: Starts) -> MatrixExpression:
    terms = tuple((_in_vector(scale, starts), _in_matrix(part, starts)) for scale, part in matrix.terms)
    return matrix if terms == matrix.terms else SumOfMatrices.of(*terms)


@_in_matrix.on(ProductOfMatrices)
def _(matrix: ProductOfMatrices, starts: Starts) -> Any:
    return reduce(product_of, (_in_matrix(factor, starts) for factor in matrix.factors))


@_in_matrix.on(Dyad, DiagonalMatrix)
def _(matrix: MatrixExpression, starts: Starts) -> MatrixExpression:
    return matrix.mapped(lambda expression: _in_vector(expression, starts))


@_in_matrix.on(MatrixAtom)
def _(matrix: MatrixAtom, starts: Starts) -> MatrixExpression:
    start = starts.get(matrix.symbol)
    if start is None:
        return matrix
    return start.T if matrix.transposed else start
