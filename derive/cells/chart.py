"""Coordinates in which formulas are polynomials, and the walls between which they are analytic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.algebra.polynomials import rational_factors
from derive.language.symbols import Parameter


def is_root(node: sp.Basic) -> bool:
    """Whether a node is a power with a broken exponent."""
    return isinstance(node, sp.Pow) and bool(node.exp.is_Rational) and not node.exp.is_Integer


@dataclass(frozen=True)
class Chart:
    """Positive parameters as powers of coordinates: with nu = m**2 the root of nu is a polynomial."""

    powers: tuple[tuple[Parameter, sp.Symbol, int], ...]

    @staticmethod
    def of(expressions: Iterable[sp.Expr]) -> Chart:
        """Coordinates for all roots of single parameters in the expressions."""
        degrees: dict[Parameter, int] = {}
        for node in (n for e in expressions for n in sp.preorder_traversal(e) if is_root(n)):
            if isinstance(node.base, Parameter) and node.base.is_positive:
                degrees[node.base] = math.lcm(degrees.get(node.base, 1), int(node.exp.q))
        ordered = sorted(degrees.items(), key=lambda item: item[0].name)
        return Chart(tuple((p, sp.Symbol(f"root_{p.name}", positive=True), degree) for p, degree in ordered))

    def apply(self, expression: sp.Expr) -> sp.Expr:
        """An expression of the parameters in the coordinates."""
        return sp.sympify(expression).subs({p: m**degree for p, m, degree in self.powers})

    def symbol(self, parameter: sp.Symbol) -> sp.Symbol:
        """The coordinate of a parameter."""
        return next((m for p, m, _ in self.powers if p == parameter), parameter)

    def point(self, coordinates: Mapping[sp.Symbol, Any]) -> dict[sp.Symbol, Any]:
        """Values of the parameters at a point of the coordinates."""
        back = {m: (p, degree) for p, m, degree in self.powers}
        return {
            back[s][0] if s in back else s: value ** back[s][1] if s in back else value
            for s, value in coordinates.items()
        }

    def coordinates(self, point: Mapping[sp.Symbol, Any]) -> dict[sp.Symbol, Any]:
        """The coordinates of a point of the parameters."""
        found = dict(point)
        for parameter, symbol, degree in self.powers:
            if parameter in found:
                found[symbol] = sp.root(found.pop(parameter), degree)
        return found


def without_signs(expression: sp.Expr) -> sp.Expr:
    """Absolute values, signs, steps, maxima and minima written with square roots of squares, which stay as they are."""

    def size(inside: sp.Expr) -> sp.Expr:
        return sp.Pow(sp.Pow(inside, 2, evaluate=False), sp.Rational(1, 2), evaluate=False)

    def extreme(node: sp.Expr, sign: int) -> sp.Expr:
        first, *others = node.args
        rest = node.func(*others) if len(others) > 1 else others[0]
        rest = without_signs(rest)
        return (first + rest + sign * size(first - rest)) / 2

    if not expression.args:
        return expression
    if isinstance(expression, (sp.Max, sp.Min)):
        return extreme(
            expression.func(*map(without_signs, expression.args)), 1 if isinstance(expression, sp.Max) else -1
        )
    args = [without_signs(arg) for arg in expression.args]
    if isinstance(expression, sp.Abs):
        return size(args[0])
    if isinstance(expression, sp.sign):
        return size(args[0]) / args[0]
    if isinstance(expression, sp.Heaviside):
        return (1 + size(args[0]) / args[0]) / 2
    return expression.func(*args, evaluate=False) if is_root(expression) else expression.func(*args)


def walls(expressions: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Polynomials whose zeros hold every place where an expression may fail to be analytic.

    These are what stands under roots, in denominators and in absolute values.
    """
    found: list[sp.Expr] = []
    for node in (n for e in expressions for n in sp.preorder_traversal(e)):
        if isinstance(node, sp.Pow) and (is_root(node) or node.exp.is_negative):
            inside = [node.base]
        elif isinstance(node, (sp.Abs, sp.sign, sp.Heaviside)):
            inside = [node.args[0]]
        elif isinstance(node, (sp.Max, sp.Min)):
            inside = [a - b for i, a in enumerate(node.args) for b in node.args[:i]]
        else:
            continue
        found += [f for e in inside if e.free_symbols for f in rational_factors(e)]
    return list(dict.fromkeys(found))
