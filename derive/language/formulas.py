"""Parse functions that a user types, such as an activation or a loss, into SymPy expressions. Nothing is executed."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable
from typing import Any

import sympy as sp

from derive.errors import ParameterError
from derive.language.traversal import ByKind

FUNCTIONS = {
    "tanh": sp.tanh,
    "sinh": sp.sinh,
    "cosh": sp.cosh,
    "exp": sp.exp,
    "log": lambda x: sp.log(x),
    "sqrt": lambda x: sp.sqrt(x),
    "sin": sp.sin,
    "cos": sp.cos,
    "atan": sp.atan,
    "erf": sp.erf,
    "abs": sp.Abs,
    "Abs": sp.Abs,
    "sign": sp.sign,
    "Heaviside": lambda x: sp.Heaviside(x),
    "Max": sp.Max,
    "Min": sp.Min,
    "max": sp.Max,
    "min": sp.Min,
}
NUMBERS = {"pi": sp.pi, "e": sp.E}
OPERATORS: dict[type, Callable[..., sp.Expr]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
SIGNS: dict[type, Callable[[sp.Expr], sp.Expr]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
# Bounds on typed formulas, so that no input takes long to parse.
LONGEST = 500
"""Characters of a formula."""
LARGEST_POWER = 32
"""Absolute value of an exponent."""
LARGEST_NUMBER = 1e100
"""Absolute value of a number; its inverse bounds numbers from below."""
MOST_BITS = 4096
"""Bits of a numerator or denominator."""


def read_formula(text: str, variables: tuple[str, ...], where: str, named: tuple[str, ...] = ()) -> sp.Expr:
    """Return an expression in real symbols of the given names; anything but arithmetic and known functions is refused.

    Args:
        named: words that stand for a formula, listed in the error about an unknown word.
    """
    if len(text) > LONGEST:
        raise ParameterError(
            f"{where[:50]}... is longer than {LONGEST} characters; put it into a declaration of your own"
        )
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParameterError(
            f"{where} is not a formula; write it as in Python, such as tanh(x) or x + x**2/2"
        ) from None
    reader = _SyntaxReader({name: sp.Symbol(name, real=True) for name in variables}, where, named)
    try:
        expression = sp.sympify(reader.value(tree.body))
    except RecursionError:
        raise ParameterError(f"{where} is nested too deeply; simplify it") from None
    if expression.has(sp.I, sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise ParameterError(f"{where} is not a real number for real {' and '.join(variables)}; correct the formula")
    return expression


class _SyntaxReader:
    """Converts the syntax tree of a formula into an expression."""

    def __init__(self, symbols: dict[str, sp.Symbol], where: str, named: tuple[str, ...]) -> None:
        self.symbols, self.where, self.named = symbols, where, named

    def value(self, node: ast.expr) -> sp.Expr:
        return _moderate(self._part(node), self.where)

    @ByKind
    def _part(self, node: ast.expr) -> sp.Expr:
        raise ParameterError(
            f"{self.where} has a part that is not arithmetic; use + - * / ** and elementwise functions"
        )

    @_part.on(ast.Constant)
    def _(self, node: ast.Constant) -> sp.Expr:
        number: Any = node.value
        if type(number) not in (int, float):
            return _SyntaxReader._part.default(self, node)
        if not abs(number) <= LARGEST_NUMBER:
            raise ParameterError(f"{self.where} has a number beyond {LARGEST_NUMBER:g}; keep numbers moderate")
        return sp.Rational(str(number))

    @_part.on(ast.Name)
    def _(self, node: ast.Name) -> sp.Expr:
        symbol = self.symbols.get(node.id, NUMBERS.get(node.id))
        if symbol is None:
            words = f", and by name there are {', '.join(self.named)}" if self.named else ""
            raise ParameterError(
                f"{self.where}: {node.id} is not known; its variables are {', '.join(self.symbols)}{words}"
            )
        return symbol

    @_part.on(ast.UnaryOp)
    def _(self, node: ast.UnaryOp) -> sp.Expr:
        if type(node.op) not in SIGNS:
            return _SyntaxReader._part.default(self, node)
        return SIGNS[type(node.op)](self.value(node.operand))

    @_part.on(ast.BinOp)
    def _(self, node: ast.BinOp) -> sp.Expr:
        return _operated(node.op, self.value(node.left), self.value(node.right), self.where)

    @_part.on(ast.Call)
    def _(self, node: ast.Call) -> sp.Expr:
        if not isinstance(node.func, ast.Name) or node.keywords:
            return _SyntaxReader._part.default(self, node)
        return _called(node.func.id, [self.value(argument) for argument in node.args], self.where)


def _moderate(expression: sp.Expr, where: str) -> sp.Expr:
    """Return the expression unchanged; raise for a number that is not real, finite and of moderate size."""
    if not expression.is_number:
        return expression
    fine = expression.is_real and expression.is_finite is not False
    if fine and expression.is_Rational:
        fine = max(abs(expression.p).bit_length(), expression.q.bit_length()) <= MOST_BITS
    if fine and expression != 0:
        fine = 1 / LARGEST_NUMBER <= abs(expression.evalf(15)) <= LARGEST_NUMBER
    if not fine:
        raise ParameterError(
            f"{where} has a part that is not a real number between {1 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}; "
            "change the formula"
        )
    return expression


def _operated(sign: ast.operator, left: sp.Expr, right: sp.Expr, where: str) -> sp.Expr:
    kind = type(sign)
    if kind not in OPERATORS:
        raise ParameterError(f"{where} has an operator that is not arithmetic; use + - * / **")
    if kind is ast.Pow and (not right.is_number or abs(right) > LARGEST_POWER):
        raise ParameterError(f"{where}: powers must be numbers up to {LARGEST_POWER}; write exp(...) otherwise")
    if (kind is ast.Div and right.is_zero) or (kind is ast.Pow and left.is_zero and right.is_negative):
        raise ParameterError(f"{where} divides by zero")
    return OPERATORS[kind](left, right)


def _called(name: str, arguments: list[sp.Expr], where: str) -> sp.Expr:
    if name not in FUNCTIONS:
        near = difflib.get_close_matches(name, FUNCTIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(set(FUNCTIONS) - {'Abs'}))}"
        raise ParameterError(f"{where}: {name} is not an elementwise function known here; {hint}")
    try:
        return FUNCTIONS[name](*arguments)
    except TypeError:
        raise ParameterError(f"{where}: {name} takes a different number of arguments") from None
    except ValueError:
        raise ParameterError(f"{where}: {name} compares numbers that are not real; correct the formula") from None
