"""The order of terms and factors, common to text and LaTeX."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.str import StrPrinter

from derive.algebra.nodes import TAU, Correlation, Dot, Hat, Noise, ProbeSource, Response, TauDerivative
from derive.language.data import DataAt
from derive.language.traversal import ByKind
from derive.language.vectors import PAST, Apply, Field, FieldAt, Mean, Mix, PastSum, Project, Total
from derive.printing.names import PrintedNames

VALUES = (
    *(FieldAt, DataAt, Apply, Project, Mix, Total, Mean),
    *(Hat, Dot, Noise, Correlation, Response, TauDerivative, ProbeSource),
)
"""Nodes that follow the scalars in a product."""


def function_name(node: sp.Basic) -> str:
    """Return the name of a function that occurs in records, such as "mean"; "" for any other node."""
    return node.func.__name__ if isinstance(node, AppliedUndef) else ""


def is_memory(expression: sp.Basic) -> bool:
    return function_name(expression) == "sum_s"


@ByKind
def tidy(expression: sp.Basic) -> sp.Basic:
    """Return the expression with constant factors in front of sums over times."""
    return expression


@tidy.on(sp.MatrixExpr)
def _(expression: sp.MatrixExpr) -> sp.Basic:
    return expression


@tidy.on(sp.Add, sp.Mul)
def _(expression: sp.Expr) -> sp.Basic:
    return expression.func(*map(tidy, expression.args))


@tidy.on(sp.Sum)
def _(expression: sp.Sum) -> sp.Basic:
    scale, body = tidy(expression.function).as_independent(expression.limits[0][0], as_Add=False)
    return scale * PastSum(body, *expression.limits)


@tidy.on(AppliedUndef)
def _(expression: AppliedUndef) -> sp.Basic:
    if not is_memory(expression):
        return expression
    scale, body = tidy(expression.args[0]).as_independent(*VALUES, sp.KroneckerDelta, as_Add=False)
    return scale * expression.func(body)


def is_negative(term: sp.Expr) -> bool:
    """Return whether a term is printed with a minus sign."""
    return bool(term.as_coeff_Mul()[0].is_negative)


def juxtaposed(factors: list[str], space: str, sign: str) -> str:
    """Join factors by spaces, without one after a number; a multiplication sign separates two adjacent numbers."""
    text, last = "", ""
    for factor in factors:
        between = sign if factor[0].isdigit() else " " if last.isdigit() else space
        text += between + factor if text else factor
        last = factor
    return text


def with_positive_first(terms: list[Any]) -> list[Any]:
    """Return the terms of a sum with a positive one first, if there is one."""
    for position, term in enumerate(terms):
        if not is_negative(term):
            return [term, *terms[:position], *terms[position + 1 :]]
    return terms


def ordered_terms(expression: sp.Expr) -> list[sp.Expr]:
    """Return the terms of a sum in reading order: fields and scalars first, sums over times last.

    A positive term comes first, if there is one.
    """
    terms = expression.as_ordered_terms()
    plain = [t for t in terms if not has_sum(t)]
    return with_positive_first([*plain, *(t for t in terms if has_sum(t))])


def has_sum(term: sp.Expr) -> bool:
    return any(map(_is_sum, sp.Mul.make_args(term)))


def _is_sum(factor: sp.Expr) -> bool:
    return isinstance(factor, sp.Sum) or is_memory(factor)


def split_product(expression: sp.Expr) -> tuple[bool, list[sp.Expr], list[sp.Expr], list[sp.Expr], list[sp.Expr]]:
    """Split a product into (negative, numerator scalars, denominator scalars, field values, sums over times)."""
    negative = is_negative(expression)
    if negative:
        expression = -expression
    above, below, values, sums = [], [], [], []
    for factor in sp.Mul.make_args(expression) if not expression.is_Mul else expression.as_ordered_factors():
        if _is_sum(factor):
            sums.append(factor)
        elif factor.is_Rational:
            above += [sp.Integer(factor.p)] if factor.p != 1 else []
            below += [sp.Integer(factor.q)] if factor.q != 1 else []
        elif factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative:
            below.append(factor.base ** (-factor.exp))
        elif factor.has(*VALUES) and isinstance(factor if not factor.is_Pow else factor.base, VALUES):
            values.append(factor)
        elif function_name(factor) in ("outer", "mean", "cov", "d"):
            values.append(factor)
        else:
            above.append(factor)
    values.sort(key=lambda f: not isinstance(f, (Mean, Correlation, Response)))
    return negative, above, below, values, sums


def in_reading_order(scalars: list[sp.Expr], names: PrintedNames) -> list[sp.Expr]:
    """Sort scalars: plain symbols, then sums in brackets, then order parameters such as R[a, b](z)."""

    def rank(factor: sp.Expr) -> int:
        base = factor.base if factor.is_Pow else factor
        if base.is_Symbol:
            return 2 if base.name in names.symbols else 0
        return 1 if base.is_Add else 0

    return sorted(scalars, key=rank)


def matrix_terms(expression: sp.MatrixExpr) -> list[tuple[sp.Expr, tuple[sp.MatrixExpr, ...]]]:
    """Return a sum of matrix products as (scalar, factors), multiples of the identity first, in a fixed order."""
    parts = expression.args if expression.is_MatAdd else (expression,)
    terms = []
    for part in parts:
        if part.is_MatMul:
            scalar = sp.Mul(*(f for f in part.args if not f.is_Matrix))
            terms.append((scalar, tuple(f for f in part.args if f.is_Matrix)))
        else:
            terms.append((sp.S.One, (part,)))
    return sorted(terms, key=lambda item: (not item[1][0].is_Identity, str(item[1])))


class Times:
    """The time arguments of spectral fields: the second of two spectral times is tau'."""

    def __init__(self) -> None:
        self.later = False

    def later_copy(self, printer: StrPrinter, node: sp.Basic) -> str:
        """Print a node with tau' for its spectral time."""
        before, self.later = self.later, True
        try:
            return str(printer._print(node))
        finally:
            self.later = before

    def pair(self, printer: StrPrinter, left: sp.Basic, right: sp.Basic) -> tuple[str, str]:
        """Print two values at two times: tau and tau' if both are spectral."""
        if is_spectral(left) and is_spectral(right):
            return printer._print(left), self.later_copy(printer, right)
        return printer._print(left), printer._print(right)


def is_spectral(node: sp.Basic) -> bool:
    return any(field.role == "spectral" for field in node.atoms(Field))


def memory_is_spectral(body: sp.Expr) -> bool:
    """Return whether a memory term runs over spectral time rather than over training times."""
    return not body.has(PAST) and body.has(TAU)


def signed(printed: str) -> tuple[bool, str]:
    """Split a printed term into (negative, the rest)."""
    return (True, printed[1:]) if printed.startswith("-") else (False, printed)


def signed_sum(parts: list[tuple[bool, str]]) -> str:
    """Join terms by their signs."""
    text = ""
    for negative, printed in parts:
        sign = " - " if negative else " + "
        text += sign + printed if text else ("-" if negative else "") + printed
    return text
