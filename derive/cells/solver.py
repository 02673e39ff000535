"""Questions to an SMT solver for nonlinear real arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp
import z3

EFFORT = 2_000_000
"""The most steps for one question, by the solver's own count: the same on every machine."""


def has_no_zero(
    polynomial: sp.Expr,
    box: Mapping[sp.Symbol, Any],
    positive: Iterable[sp.Expr] = (),
    closed: bool = False,
    roots: Iterable[tuple[sp.Symbol, sp.Expr]] = (),
) -> bool:
    """Whether a polynomial is proved to vanish nowhere in an open box where others are positive.

    `closed`: nor on the boundary, where they vanish. `roots`: symbols of square roots, none of them negative, and the
    polynomial that vanishes where the square of each is what stands under it.
    """
    names: dict[sp.Symbol, Any] = {}

    def real(symbol: sp.Symbol) -> Any:
        return names.setdefault(symbol, z3.Real(f"x{len(names)}"))

    def rational(value: sp.Rational) -> Any:
        return z3.Q(int(value.p), int(value.q))

    def encode(expression: sp.Expr) -> Any:
        terms = []
        symbols = sorted(expression.free_symbols, key=lambda s: s.name)
        for powers, coefficient in sp.Poly(expression, *symbols, domain="QQ").terms():
            term = rational(sp.Rational(coefficient))
            for symbol, power in zip(symbols, powers, strict=True):
                for _ in range(power):
                    term = term * real(symbol)
            terms.append(term)
        return z3.Sum(terms)

    solver = z3.SolverFor("QF_NRA")
    solver.set("rlimit", EFFORT)
    solver.add(encode(polynomial) == 0)
    for condition in positive:
        solver.add(encode(condition) >= 0 if closed else encode(condition) > 0)
    for symbol, square in roots:
        solver.add(encode(square) == 0, real(symbol) >= 0)
    for symbol in list(names):
        low, high = box.get(symbol, (None, None))
        if low is not None:
            solver.add(names[symbol] >= rational(low) if closed else names[symbol] > rational(low))
        if high is not None:
            solver.add(names[symbol] <= rational(high) if closed else names[symbol] < rational(high))
    return bool(solver.check() == z3.unsat)
