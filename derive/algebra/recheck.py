"""Numerical checks of rewrites: an expression must have the same values before and after.

Stages compare scalar expressions at a few points of the declared domains, with negative values, zeros and end points
among them, in fifty-digit arithmetic. A difference is a defect of the engine and stops the derivation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import Boolean

from derive.errors import InternalError
from derive.language.symbols import Clock, Domain, Parameter, Sector, symbol_order
from derive.language.traversal import ByKind

DIGITS = 50
"""Decimal digits of the arithmetic."""
POINTS = 4
"""Number of points at which two expressions are compared."""
AGREEMENT = sp.Float(10) ** -30
"""Relative tolerance of a comparison: cancellations may cost 20 of the DIGITS."""
BASE = sp.Integer(64)
"""The base size at which means are compared: a power of two, so that scaling floats is exact."""

Point = dict[sp.Symbol, Any]

_COMPOSED = (
    sp.Add, sp.Mul, sp.Pow, sp.Abs, sp.sign, sp.Heaviside, sp.Min, sp.Max, sp.Piecewise, sp.KroneckerDelta, Relational,
    ExprCondPair, Boolean,
)  # fmt: skip
"""Nodes whose value follows from those of their arguments."""


def domain_points(symbols: Iterable[sp.Basic], count: int = POINTS) -> list[Point]:
    """Return rational values of parameters in their domains, of times, and of sizes at their ratios to the base.

    The first point is generic; later points have opposite signs, zeros, endpoints of the domains, and large values.
    """
    named = sorted({s for s in map(sp.sympify, symbols) if s.is_Symbol}, key=symbol_order)
    parameters = {s for s in named if isinstance(s, Parameter)}
    sizes = [s for s in named if isinstance(s, Sector)]
    parameters |= {p for size in sizes for p in size.ratio.free_symbols}
    points: list[Point] = []
    for number in range(count):
        point: Point = {p: _inside(p.domain, p.name, number) for p in sorted(parameters, key=symbol_order)}
        base = sp.Integer(7**2 * (number + 1))
        point.update({size: base * size.ratio.xreplace(point) for size in sizes})
        for symbol in named:
            if symbol not in point:
                point[symbol] = _other(symbol, number)
        points.append(point)
    return points


def _inside(domain: Domain, name: str, number: int) -> sp.Rational:
    """Return a value in a domain: in turn a generic value, one of opposite sign, zero or an endpoint, and a large
    value.
    """
    draw = _fraction(f"{name} {number}")
    low, high = (None if abs(end) == float("inf") else sp.Rational(str(end)) for end in (domain.low, domain.high))
    small = sp.Rational(1, 5) + draw / 2
    wishes: tuple[tuple[Any, ...], ...] = ((small,), (-small, small / 3), (0, low, high), (-3 - draw, 5 + draw))
    if domain.whole:
        wishes = ((4,), (-2, 2), (0, low, high), (7,))
    inside = [low + (high - low) * draw] if low is not None and high is not None else []
    inside += [low + draw] if low is not None else []
    inside += [high - draw] if high is not None else []
    candidates = [sp.sympify(x) for x in (*wishes[number % len(wishes)], *inside, *range(50)) if x is not None]
    return next((x for x in candidates if domain.contains(int(x) if x.is_Integer else float(x))), sp.S.One)


def _other(symbol: sp.Symbol, number: int) -> sp.Rational:
    """Return a value for a time, an index or a symbol of the derivation that satisfies its assumptions."""
    if symbol.is_integer:
        values = (5, 0, 1, 2) if isinstance(symbol, Clock) else (2, 0, 0, 1)  # a time, and one before it
        return sp.Integer(values[number % 4] + (1 if symbol.is_positive else 0))
    value = sp.Rational(1, 4) + _fraction(f"{symbol.name} {number}")
    return value if number % 2 == 0 or symbol.is_nonnegative else -value


def _fraction(text: str) -> sp.Rational:
    """Return a pseudo-random rational number in (0, 1), the same in every run."""
    digest = hashlib.sha256(text.encode()).digest()
    return sp.Rational(1 + int.from_bytes(digest[:2], "big"), 2**16 + 1)


def check_same(before: sp.Expr, after: sp.Expr, stage: str, where: str) -> None:
    """Raise InternalError if two scalar expressions that a stage treats as equal differ at some point.

    Means, data and undefined functions count as numbers. Points where the first expression is undefined are skipped.
    """
    before, after = sp.sympify(before), sp.sympify(after)
    if before == after:
        return
    for point, left, right in _values(before, after):
        if not right.is_finite or abs(left - right) > AGREEMENT * (1 + abs(left)):
            location = ", ".join(f"{symbol} = {value}" for symbol, value in point)
            raise InternalError(
                f"{where}: the stage {stage} turned {sp.N(left, 6)} into {sp.N(right, 6)} at {location}. This is a "
                "fault of the engine, so no result is given; please report the declaration"
            )


Pairs = tuple[tuple[sp.Symbol, sp.Rational], ...]


@lru_cache(maxsize=4000)
def _values(before: sp.Expr, after: sp.Expr) -> tuple[tuple[Pairs, sp.Expr, sp.Expr], ...]:
    """Return both expressions at points where the first is defined."""
    opaque = sorted({n for e in (before, after) for n in _opaque(e)}, key=sp.default_sort_key)
    numbers = {node: _fraction(str(_at_ratios(node))) for node in opaque}
    before, after = before.xreplace(numbers), after.xreplace(numbers)
    values = []
    for point in domain_points((*before.free_symbols, *after.free_symbols)):
        left, right = (_number(e, point) for e in (before, after))
        if left.is_number and left.is_finite:
            values.append((tuple(point.items()), left, right))
    return tuple(values)


def _number(expression: sp.Expr, point: Point) -> sp.Expr:
    """Return the value at a point; NaN where SymPy refuses to evaluate, as in a comparison with NaN."""
    try:
        return sp.N(expression.xreplace(point), DIGITS)
    except TypeError:
        return sp.nan


def _at_ratios(node: sp.Basic) -> sp.Basic:
    """Return a canonical form of a mean, or of another opaque node: expanded, with sizes at their ratios."""
    return sp.expand(node.xreplace({size: BASE * size.ratio for size in node.atoms(Sector)}))


def _is_defined(function: sp.Function) -> bool:
    """Return whether SymPy can evaluate a function."""
    return str(type(function).__module__).startswith("sympy.")


@ByKind
def _opaque(expression: sp.Basic) -> list[sp.Basic]:
    """Return the outermost nodes that are not scalar functions of symbols."""
    return [expression]


@_opaque.on(sp.Number, sp.NumberSymbol, sp.Symbol)
def _(expression: sp.Basic) -> list[sp.Basic]:
    return []


@_opaque.on(*_COMPOSED)
def _composed(expression: sp.Basic) -> list[sp.Basic]:
    return [node for arg in expression.args for node in _opaque(arg)]


@_opaque.on(sp.Function)
def _(expression: sp.Function) -> list[sp.Basic]:
    return _composed(expression) if _is_defined(expression) else [expression]
