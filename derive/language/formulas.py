"""Functions that a user types, such as an activation or a loss, as SymPy expressions. Nothing typed is executed."""

from __future__ import annotations

import ast
import difflib

import sympy as sp

from derive.errors import ParameterError

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
LONGEST, LARGEST_POWER, LARGEST_NUMBER, MOST_BITS = 500, 32, 1e100, 4096


def read_formula(text: str, variables: tuple[str, ...], where: str, named: tuple[str, ...] = ()) -> sp.Expr:
    """An expression in real symbols of the given names; anything but arithmetic and known functions is refused.

    named: words that stand for a formula of their own, to be told where a word is not known.
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
    symbols = {name: sp.Symbol(name, real=True) for name in variables}

    def value(node: ast.expr) -> sp.Expr:
        return _moderate(part(node), where)

    def part(node: ast.expr) -> sp.Expr:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            if not abs(node.value) <= LARGEST_NUMBER:
                raise ParameterError(f"{where} has a number beyond {LARGEST_NUMBER:g}; keep numbers moderate")
            return sp.Rational(str(node.value))
        if isinstance(node, ast.Name):
            found = symbols.get(node.id, NUMBERS.get(node.id))
            if found is None:
                words = f", and by name there are {', '.join(named)}" if named else ""
                raise ParameterError(
                    f"{where}: {node.id} is not known; its variables are {', '.join(variables)}{words}"
                )
            return found
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            inner = value(node.operand)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return _operated(node.op, value(node.left), value(node.right), where)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return _called(node.func.id, [value(a) for a in node.args], where)
        raise ParameterError(f"{where} has a part that is not arithmetic; use + - * / ** and elementwise functions")

    try:
        found = sp.sympify(value(tree.body))
    except RecursionError:
        raise ParameterError(f"{where} is nested too deeply; simplify it") from None
    if found.has(sp.I, sp.nan, sp.zoo, sp.oo, -sp.oo):
        raise ParameterError(f"{where} is not a real number for real {' and '.join(variables)}; correct the formula")
    return found


def _moderate(found: sp.Expr, where: str) -> sp.Expr:
    """The same expression; if it is a number it must be real, finite, and no larger than anyone can mean."""
    if not found.is_number:
        return found
    fine = found.is_real and found.is_finite is not False
    if fine and isinstance(found, sp.Rational):
        fine = max(abs(found.p).bit_length(), found.q.bit_length()) <= MOST_BITS
    if fine and found != 0:
        fine = 1 / LARGEST_NUMBER <= abs(found.evalf(15)) <= LARGEST_NUMBER
    if not fine:
        raise ParameterError(
            f"{where} has a part that is not a real number between {1 / LARGEST_NUMBER:g} and {LARGEST_NUMBER:g}; "
            "change the formula"
        )
    return found


def _operated(operator: ast.operator, left: sp.Expr, right: sp.Expr, where: str) -> sp.Expr:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.Div):
        if right.is_zero:
            raise ParameterError(f"{where} divides by zero")
        return left / right
    if isinstance(operator, ast.Pow):
        if not right.is_number or abs(right) > LARGEST_POWER:
            raise ParameterError(f"{where}: powers must be numbers up to {LARGEST_POWER}; write exp(...) otherwise")
        if left.is_zero and right.is_negative:
            raise ParameterError(f"{where} divides by zero")
        return left**right
    raise ParameterError(f"{where} has an operator that is not arithmetic; use + - * / **")


def _called(name: str, arguments: list[sp.Expr], where: str) -> sp.Expr:
    if name not in FUNCTIONS:
        near = difflib.get_close_matches(name, FUNCTIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(set(FUNCTIONS) - {'Abs'}))}"
        raise ParameterError(f"{where}: {name} is not an elementwise function known here; {hint}")
    try:
        return FUNCTIONS[name](*arguments)
    except TypeError:
        raise ParameterError(f"{where}: {name} takes another number of arguments") from None
    except ValueError:
        raise ParameterError(f"{where}: {name} compares numbers that are not real; correct the formula") from None
