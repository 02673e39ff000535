"""What expressions of a declaration answer to Python, NumPy and JAX, which take them for numbers or arrays.

Sums and products of fields are made by SymPy and know nothing of this language, so that the answers belong to SymPy's
own class. They are given where a declaration itself asks, or a numerical library that it calls, about an expression
with symbols of a declaration. All other expressions, and SymPy among itself, find what was there before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import sympy as sp
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean
from sympy.printing.precedence import PRECEDENCE, precedence

from derive.errors import DeclarationError, NotAMatrix, NotANumber
from derive.language.cures import OF_OPERATORS, OF_TWO_VECTORS, cure_of_attribute, cure_of_call, is_of_numbers_only
from derive.language.symbols import Clock, Parameter, Sector, _Named
from derive.source_lines import asking_frame

_NUMBERS = ("__float__", "__int__", "__complex__", "__round__", "__trunc__", "__index__")
_ARITHMETIC = ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "divmod")
_OTHERS = {"matmul": "@", "xor": "^", "and": "&", "or": "|", "lshift": "<<", "rshift": ">>"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "floordiv": "//", "mod": "%", **_OTHERS}


def _is_asked(expression: sp.Basic) -> bool:
    """Whether a declaration asks this of an expression of its own."""
    return asking_frame() is not None and bool(expression.has(_Named))


def _has_fields(expression: sp.Basic) -> bool:
    return any(not isinstance(symbol, (Parameter, Sector, Clock)) for symbol in expression.atoms(_Named))


def _inherited(expression: sp.Basic, name: str) -> Any:
    """What an expression would have without this module: SymPy's symbols are truth values too."""
    return getattr(super(sp.Expr, expression), name, None)


# -- numbers and conditions


def _no_number(expression: sp.Basic) -> NotANumber:
    cure = cure_of_call() or "use functions of SymPy, as in `from sympy import sqrt, tanh`"
    return NotANumber(f"{expression} is a symbol, not a number: {cure}")


def _number(name: str) -> Callable[..., Any]:
    before = vars(sp.Expr).get(name)

    def answer(self: sp.Expr, *more: Any) -> Any:
        if _is_asked(self):
            raise _no_number(self)
        if before is None:
            raise TypeError(f"{type(self).__name__!r} object cannot be interpreted as an integer")
        return before(self, *more)

    return answer


def _truth(condition: Relational) -> bool:
    if _is_asked(condition):
        cure = cure_of_call() or "conditions are written with Max, Min, Heaviside or Piecewise from sympy"
        raise NotANumber(f"{condition} is neither true nor false, it depends on symbols: {cure}")
    return bool(_truth_before(condition))


# -- arrays


def _no_array(expression: sp.Basic) -> NoReturn:
    """What NumPy is told when it asks for the array of an expression.

    Without an answer NumPy takes an expression for an array of one object, whose numpy.mean is the expression itself:
    a model with a mean would silently become another one without it. Arrays of expressions in parameters are harmless.
    """
    if _has_fields(expression) or (_is_asked(expression) and is_of_numbers_only()):
        raise _not_of_arrays(expression)
    raise AttributeError("SymPy's expressions have no arrays")


def _no_jax_array(expression: sp.Basic) -> NoReturn:
    if _has_fields(expression) or _is_asked(expression):
        raise _not_of_arrays(expression)
    raise AttributeError("SymPy's expressions have no arrays")


def _not_of_arrays(expression: sp.Basic) -> DeclarationError:
    cure = cure_of_call() or (
        "use functions of SymPy, as in `from sympy import tanh`, and mean(...), outer(...) and @ of this language; "
        "arrays of numbers come in as data(...)"
    )
    return DeclarationError(f"NumPy and JAX cannot take {expression}: {cure}")


def _text(expression: sp.Expr) -> str:
    """JAX swallows the answers of some arguments, and prints them only to say that it cannot take them."""
    if str(sys._getframe(1).f_globals.get("__name__", "")).startswith("jax.") and _is_asked(expression):
        raise _not_of_arrays(expression)
    return str(_text_before(expression))


def _before_numpy(expression: sp.Expr) -> float:
    """In a product with a number of NumPy it is SymPy that multiplies."""
    if not _has_fields(expression):
        raise AttributeError("SymPy's expressions have no priority over arrays")
    return -1.0  # between a number and an array, which would multiply an array of expressions


# -- operators and attributes


def operand(value: Any) -> str:
    """An operand as it was typed."""
    if getattr(value, "shape", ()) != ():
        return "an array"
    compound = isinstance(value, sp.Basic) and precedence(value) < PRECEDENCE["Func"]
    return f"({value})" if compound else str(value)


def _not_joined(sign: str, left: Any, right: Any) -> DeclarationError:
    typed = f"{operand(left)} {sign} {operand(right)}"
    if sign == "@" and isinstance(left, sp.Expr) and not isinstance(right, sp.Basic):
        return DeclarationError(f"{typed}: a matrix stands before the vector; write W.T @ v for v^T W")
    if sign == "@":
        return DeclarationError(f"{typed}: only matrices act with @; {OF_TWO_VECTORS}")
    if isinstance(left, str) or isinstance(right, str):
        return DeclarationError(f"{left!r} {sign} {right!r}: a text is no expression; write it without the quotes")
    return DeclarationError(f"{typed}: {'powers are written with **' if sign == '^' else OF_OPERATORS}")


def _operation(name: str) -> Callable[..., Any]:
    """An operator that refuses what would end in an error of Python's about classes."""
    before, sign = vars(sp.Expr).get(f"__{name}__"), _SIGNS.get(name, name)
    other_side = f"__r{name}__"

    def answer(self: sp.Expr, other: Any, *more: Any) -> Any:
        found = NotImplemented if before is None else before(self, other, *more)
        if found is not NotImplemented:
            return found
        asked, kind = _is_asked(self), type(other)
        if asked and (isinstance(other, sp.Basic) or kind.__module__ == "builtins" or not hasattr(kind, other_side)):
            raise _not_joined(sign, self, other)
        after = None if before is not None or asked else _inherited(self, f"__{name}__")
        return NotImplemented if after is None else after(other)

    return answer


def _reflected(name: str) -> Callable[..., Any]:
    before, sign = vars(sp.Expr).get(f"__r{name}__"), _SIGNS.get(name, name)

    def answer(self: sp.Expr, other: Any, *more: Any) -> Any:
        found = NotImplemented if before is None else before(self, other, *more)
        if found is not NotImplemented:
            return found
        if _is_asked(self):
            raise _not_joined(sign, other, self)
        after = None if before is not None else _inherited(self, f"__r{name}__")
        return NotImplemented if after is None else after(other)

    return answer


def _inverted(expression: sp.Expr) -> Any:
    if _is_asked(expression):
        raise DeclarationError(f"~{operand(expression)}: {OF_OPERATORS}")
    after = _inherited(expression, "__invert__")
    if after is None:
        raise TypeError(f"bad operand type for unary ~: {type(expression).__name__!r}")
    return after()


class _OfArrays:
    """An attribute that arrays have, and expressions only where SymPy gives it to them."""

    def __init__(self, name: str) -> None:
        self.name, self.cure, self.before = name, cure_of_attribute(name), getattr(sp.Expr, name, None)

    def __get__(self, expression: sp.Expr | None, kind: type) -> Any:
        if expression is not None and _is_asked(expression):
            raise NotAMatrix(f"{operand(expression)}.{self.name}: {self.cure}")
        if self.before is not None:
            return self.before if expression is None else self.before.__get__(expression, kind)
        if expression is None:
            raise AttributeError(f"type object {kind.__name__!r} has no attribute {self.name!r}")
        message = f"{kind.__name__!r} object has no attribute {self.name!r}"
        raise AttributeError(message, name=self.name, obj=expression)


def refuse_the_rest(kind: Any, answer: Callable[..., NoReturn]) -> None:
    """Let a class that is not SymPy's answer in this way whatever of Python, NumPy and JAX it has no answer of its own
    to."""
    operators = [f"__{side}{name}__" for name in (*_ARITHMETIC, *_OTHERS) for side in ("", "r")]
    for name in (*_NUMBERS, *operators, "__getitem__", "__invert__", "__abs__", "__lt__", "__le__", "__gt__", "__ge__"):
        if getattr(kind, name, None) in (None, getattr(object, name, None)):
            setattr(kind, name, answer)
    for name in ("__array__", "__jax_array__"):
        setattr(kind, name, property(answer))
    if not hasattr(kind, "__array_ufunc__"):
        kind.__array_ufunc__ = answer

    def missing(self: Any, name: str) -> NoReturn:
        cure = f"write {self}.T" if name == "transpose" else cure_of_attribute(name)
        if cure:
            raise NotAMatrix(f"{self}.{name}: {cure}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    kind.__getattr__ = missing


_truth_before, _text_before = Relational.__bool__, sp.Expr.__str__


def _answer() -> None:
    """Give the answers, once."""
    for name in _NUMBERS:
        setattr(sp.Expr, name, _number(name))
    for name in (*_ARITHMETIC, *_OTHERS):
        setattr(sp.Expr, f"__{name}__", _operation(name))
        setattr(sp.Expr, f"__r{name}__", _reflected(name))
    for kind in (sp.Expr, Boolean):
        kind.__array__, kind.__jax_array__ = property(_no_array), property(_no_jax_array)
    sp.Expr.__array_priority__ = property(_before_numpy)
    sp.Expr.__invert__, sp.Expr.__str__ = _inverted, _text
    for name in ("T", "transpose", "mean", "sum", "dot"):  # no __getattr__, for which SymPy would wait
        setattr(sp.Expr, name, _OfArrays(name))
    Relational.__bool__ = _truth


_answer()
