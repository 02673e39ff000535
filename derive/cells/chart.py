"""Coordinates in which formulas are polynomial, and the walls between regions of analyticity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from derive.algebra.polynomials import TooLarge, factors, is_root, rational_norm
from derive.language.symbols import Parameter


@dataclass(frozen=True)
class Chart:
    """Positive parameters as powers of coordinates: with nu = m**2, sqrt(nu) is a polynomial."""

    powers: tuple[tuple[Parameter, sp.Symbol, int], ...]

    @staticmethod
    def of(expressions: Iterable[sp.Expr]) -> Chart:
        """Return coordinates that rationalise all roots of single parameters in the expressions."""
        degrees: dict[Parameter, int] = {}
        for node in (n for e in expressions for n in sp.preorder_traversal(e) if is_root(n)):
            if isinstance(node.base, Parameter) and node.base.is_positive:
                degrees[node.base] = math.lcm(degrees.get(node.base, 1), int(node.exp.q))
        ordered = sorted(degrees.items(), key=lambda item: item[0].name)
        return Chart(tuple((p, sp.Symbol(f"root_{p.name}", positive=True), degree) for p, degree in ordered))

    def apply(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression of the parameters in the coordinates."""
        return sp.sympify(expression).subs({p: m**degree for p, m, degree in self.powers})

    def symbol(self, parameter: sp.Symbol) -> sp.Symbol:
        """Return the coordinate of a parameter."""
        return next((m for p, m, _ in self.powers if p == parameter), parameter)

    def point(self, coordinates: Mapping[sp.Symbol, Any]) -> dict[sp.Symbol, Any]:
        """Return the parameters at a point given by its coordinates."""
        back = {m: (p, degree) for p, m, degree in self.powers}
        return {
            back[s][0] if s in back else s: value ** back[s][1] if s in back else value
            for s, value in coordinates.items()
        }

    def coordinates(self, point: Mapping[sp.Symbol, Any]) -> dict[sp.Symbol, Any]:
        """Return the coordinates of a point of the parameters."""
        coordinates = dict(point)
        for parameter, symbol, degree in self.powers:
            if parameter in coordinates:
                coordinates[symbol] = sp.root(coordinates.pop(parameter), degree)
        return coordinates


def without_extremes(expression: sp.Expr) -> sp.Expr:
    """Return the expression with Max and Min written with absolute values."""
    return expression.replace(sp.Max, lambda *args: _extreme(args, 1)).replace(sp.Min, lambda *args: _extreme(args, -1))


def in_sizes(expression: sp.Expr) -> sp.Expr:
    """Return the expression with sign, Heaviside, Max and Min written with absolute values."""
    plain = without_extremes(expression).replace(sp.Heaviside, lambda x, *at_zero: (1 + sp.sign(x)) / 2)
    return plain.replace(sp.sign, lambda x: sp.Abs(x) / x)


def _extreme(values: tuple[sp.Expr, ...], sign: int) -> sp.Expr:
    """Return the maximum or minimum of numbers, written with absolute values."""
    first, *others = values
    if not others:
        return first
    rest = _extreme(tuple(others), sign)
    return (first + rest + sign * sp.Abs(first - rest)) / 2


def zero_factors(expression: sp.Expr) -> list[sp.Expr]:
    """Return irreducible polynomials whose zeros contain those of an expression with roots and absolute values.

    Raises:
        TooLarge: a conjugate of the expression vanishes identically, so that no polynomial contains its zeros.
    """
    plain = without_extremes(sp.sympify(expression)).replace(sp.sign, lambda x: sp.Abs(x) / x)
    norm = rational_norm(plain, absolute=True)
    if norm.is_zero:
        raise TooLarge(f"{expression} or one of its conjugates vanishes identically")
    return factors(norm)


def walls(expressions: Iterable[sp.Expr]) -> list[sp.Expr]:
    """Return polynomials whose zeros contain every point where an expression may fail to be analytic.

    They are the radicands, the denominators and the arguments of absolute values.
    """
    expressions_inside: list[sp.Expr] = []
    for node in (n for e in expressions for n in sp.preorder_traversal(e)):
        if node.is_Pow and (is_root(node) or node.exp.is_negative):
            inside = [node.base]
        elif isinstance(node, (sp.Abs, sp.sign, sp.Heaviside)):
            inside = [node.args[0]]
        elif isinstance(node, (sp.Max, sp.Min)):
            inside = [a - b for i, a in enumerate(node.args) for b in node.args[:i]]
        else:
            continue
        expressions_inside += [f for e in inside if e.free_symbols for f in zero_factors(e)]
    return list(dict.fromkeys(expressions_inside))
