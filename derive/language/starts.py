"""What stands at a starting time on the right side of a rule, or in a probed matrix, written out: W(0) is what the
equation of W(0) says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp

from derive.errors import DeclarationError, blaming
from derive.language.diagonals import Diagonal
from derive.language.equations import Eq, Spectrum
from derive.language.matrices import Atom, Dyad, Matrix, Product, Sum, WeightsAt, product_of
from derive.language.vectors import Apply, FieldAt


def starts_written_out(equations: Sequence[Eq]) -> tuple[Eq, ...]:
    """Rules with fields and weights at starting times replaced by the right sides of their starting equations."""
    starts = _starting_values(equations)
    return tuple(e if _starts(e) else _written_out(e, starts) for e in equations) if starts else tuple(equations)


def probe_written_out(probe: Spectrum, equations: Sequence[Eq]) -> Spectrum:
    """The same for weights in a probed matrix; fields there may be taken at their starts as they are."""
    starts = {at: value for at, value in _starting_values(equations).items() if isinstance(at, WeightsAt)}
    if not isinstance(probe, Spectrum) or not starts:
        return probe
    with blaming(probe):
        written = [_settled(matrix, starts) for matrix in probe.matrices]
        if any(isinstance(matrix, Sum) and not matrix.terms for matrix in written):
            raise DeclarationError(f"{probe}: the terms of the matrix cancel, so there is nothing to probe")
    between = tuple((name, matrix) for (name, _), matrix in zip(probe.between, written[1:], strict=True))
    return replace(probe, matrix=written[0], between=between)


def _starting_values(equations: Sequence[Eq]) -> dict[sp.Basic, sp.Expr | Matrix]:
    return {e.target if isinstance(e.target, FieldAt) else e.target.symbol: e.value for e in equations if _starts(e)}


def _settled(matrix: Matrix, starts: dict[sp.Basic, sp.Expr | Matrix]) -> Matrix:
    for _ in range(len(starts)):  # a start may be said in terms of an earlier one
        matrix = _in_matrix(matrix, starts)
    return matrix


def _starts(e: Eq) -> bool:
    return isinstance(e, Eq) and e.time is not None and bool(e.time.is_Integer)


def _written_out(e: Eq, starts: dict[sp.Basic, sp.Expr | Matrix]) -> Eq:
    if not isinstance(e, Eq):
        return e
    for _ in range(len(starts)):  # a start may be said in terms of an earlier one
        value = _in_matrix(e.value, starts) if isinstance(e.value, Matrix) else _in_vector(e.value, starts)
        if value == e.value:
            break
        e = e.with_value(value)
    return e


def _in_vector(expression: sp.Expr, starts: dict[sp.Basic, sp.Expr | Matrix]) -> sp.Expr:
    if not expression.has(*starts):
        return expression

    def applied(node: sp.Basic) -> sp.Expr:
        start = starts[node.matrix]
        if not isinstance(start, Matrix):
            return sp.S.Zero
        found: sp.Expr = (start.T if node.transposed else start).applied_to(node.vector)
        return found

    found = expression.replace(lambda node: isinstance(node, Apply) and node.matrix in starts, applied)
    fields = {at: value for at, value in starts.items() if isinstance(at, FieldAt)}
    result: sp.Expr = found.xreplace(fields)
    return result


def _in_matrix(matrix: Matrix, starts: dict[sp.Basic, sp.Expr | Matrix]) -> Matrix:
    if isinstance(matrix, Sum):
        terms = [(_in_vector(scale, starts), part, _in_matrix(part, starts)) for scale, part in matrix.terms]
        if all(new is old or new == old for _, old, new in terms) and all(
            scale == old for (scale, *_), (old, _) in zip(terms, matrix.terms, strict=True)
        ):
            return matrix
        return Sum.of(*((scale, part) for scale, _, part in terms))
    if isinstance(matrix, Product):
        first, *rest = (_in_matrix(factor, starts) for factor in matrix.factors)
        for factor in rest:
            first = product_of(first, factor)
        return first
    if isinstance(matrix, Dyad):
        return Dyad(matrix.rows, matrix.columns, _in_vector(matrix.left, starts), _in_vector(matrix.right, starts))
    if isinstance(matrix, Diagonal):
        return Diagonal(matrix.rows, matrix.columns, _in_vector(matrix.entries, starts))
    if isinstance(matrix, Atom) and isinstance(matrix.symbol, WeightsAt) and matrix.symbol in starts:
        start = starts[matrix.symbol]
        if isinstance(start, Matrix):
            return start.T if matrix.transposed else start
    return matrix
