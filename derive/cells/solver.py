"""Queries to an SMT solver for nonlinear real arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp
import z3

from derive.cells.chart import in_sizes
from derive.cells.conjugates import NoNorm, RootConjugates

EFFORT = 2_000_000
"""Resource limit of one query, in the solver's deterministic units."""


def has_no_zero(
    expression: sp.Expr, box: Mapping[sp.Symbol, Any], positive: Iterable[sp.Expr] = (), closed: bool = False
) -> bool:
    """Return whether an expression is proved to have no zero in an open box in which those in `positive` are positive.

    With `closed` the boundary, where they vanish, is included. Expressions may contain roots and absolute values.
    Nothing is proved if a radicand is negative.
    """
    question = _SmtQuestion(box, closed)
    try:
        question.vanishes(expression)
    except (NoNorm, sp.polys.polyerrors.CoercionFailed):
        return False
    for condition in positive:
        try:
            question.is_positive(condition)
        except (NoNorm, sp.polys.polyerrors.CoercionFailed):
            continue  # without it more is asked
    return question.has_no_answer()


class _SmtQuestion:
    """A system of equations and inequalities over the reals in a box."""

    def __init__(self, box: Mapping[sp.Symbol, Any], closed: bool):
        self.box, self.closed = box, closed
        self.names: dict[sp.Symbol, Any] = {}
        self.solver = z3.SolverFor("QF_NRA")
        self.solver.set("rlimit", EFFORT)

    def vanishes(self, expression: sp.Expr) -> None:
        plain, beyond = self._plain(expression)
        self.solver.add(z3.Or(*beyond, self._encode(sp.fraction(sp.together(plain))[0]) == 0))

    def is_positive(self, expression: sp.Expr) -> None:
        plain, beyond = self._plain(expression)
        value = self._encode(sp.Mul(*sp.fraction(sp.together(plain))))
        self.solver.add(z3.Or(*beyond, value >= 0 if self.closed else value > 0))

    def has_no_answer(self) -> bool:
        for symbol, name in self.names.items():
            low, high = self.box.get(symbol, (None, None))
            if low is not None:
                self.solver.add(name >= _rational(low) if self.closed else name > _rational(low))
            if high is not None:
                self.solver.add(name <= _rational(high) if self.closed else name < _rational(high))
        return bool(self.solver.check() == z3.unsat)

    def _plain(self, expression: sp.Expr) -> tuple[sp.Expr, list[Any]]:
        """Return an expression with its radicals replaced by symbols, and the conditions under which a radicand is
        negative.
        """
        conjugates, beyond = RootConjugates.of(in_sizes(expression)), []
        for symbol, base, degree in conjugates.roots:
            top, bottom = sp.fraction(sp.together(base))
            negative = self._encode(top * bottom) < 0
            defined = self._encode(bottom * symbol**degree - top) == 0
            self.solver.add(z3.Or(negative, z3.And(self._real(symbol) >= 0, defined)))
            beyond.append(negative)
        return conjugates.formula, beyond

    def _real(self, symbol: sp.Symbol) -> Any:
        return self.names.setdefault(symbol, z3.Real(f"x{len(self.names)}"))

    def _encode(self, expression: sp.Expr) -> Any:
        terms = []
        symbols = sorted(expression.free_symbols, key=lambda s: s.name)
        poly = (
            sp.Poly(expression, *symbols, domain="QQ") if symbols else sp.Poly(expression, sp.Symbol("x"), domain="QQ")
        )
        for powers, coefficient in poly.terms():
            term = _rational(sp.Rational(coefficient))
            for symbol, power in zip(symbols, powers, strict=False):
                for _ in range(power):
                    term = term * self._real(symbol)
            terms.append(term)
        return z3.Sum(terms)


def _rational(value: sp.Rational) -> Any:
    return z3.Q(int(value.p), int(value.q))
