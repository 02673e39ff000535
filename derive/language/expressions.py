"""Expressions of a declaration: a wrapper around SymPy expressions that refuses unsuitable calls from Python, NumPy and
JAX with a remedy.

SymPy leaves arithmetic to a class with its own `_op_priority`, and unwraps it through `_sympy_`. Sums and products of
declared symbols therefore remain in this class, SymPy's functions accept them, and no SymPy class is changed. `word` is
the boundary between declarations and the engine: functions of the language receive plain SymPy expressions, and their
results are wrapped again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import wraps
from types import MethodType
from typing import Any, NoReturn, TypeVar

import sympy as sp
from sympy.core.relational import Relational
from sympy.printing.precedence import PRECEDENCE, precedence

from derive.errors import DeclarationError, NotAMatrix, NotANumber
from derive.language.cures import (
    OF_OPERATORS,
    OF_TWO_VECTORS,
    as_declaration_error,
    cure_of_attribute,
    cure_of_call,
    is_of_numbers_only,
)

Word = TypeVar("Word", bound=Callable[..., Any])
_NUMBERS = ("float", "int", "complex", "round", "trunc", "index")
_ARITHMETIC = ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "divmod")
_OTHERS = {"matmul": "@", "xor": "^", "and": "&", "or": "|", "lshift": "<<", "rshift": ">>"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "floordiv": "//", "mod": "%", **_OTHERS}
_COMPARISONS = ("lt", "le", "gt", "ge")
_OF_ARRAYS = ("T", "transpose", "mean", "sum", "dot")


class Expression:
    """A number or a vector of a declaration. `plain` is the SymPy expression that the engine reads."""

    __slots__ = ("plain",)
    _op_priority = 100.0  # above all of SymPy's classes
    _iterable = False  # SymPy takes what has entries for something to go through
    __array_priority__ = -1.0  # NumPy's numbers leave products to this class, its arrays ask for an array first

    def __init__(self, plain: sp.Expr) -> None:
        self.plain = plain

    def _sympy_(self) -> sp.Expr:
        return self.plain

    def __eq__(self, other: object) -> bool:
        return bool(self.plain == plain(other))

    def __hash__(self) -> int:
        return hash(self.plain)

    def __repr__(self) -> str:
        return repr(self.plain)

    def __str__(self) -> str:
        """Return the text. JAX swallows some exceptions and prints the argument only in its own error message."""
        if str(sys._getframe(1).f_globals.get("__name__", "")).startswith("jax."):
            raise _not_of_arrays(self)
        return str(self.plain)

    def __dir__(self) -> list[str]:
        return dir(self.plain)

    def _repr_latex_(self) -> Any:
        return self.plain._repr_latex_()

    def _printed(self, printer: Any, *_: Any, **how: Any) -> Any:
        return printer._print(self.plain, **how)

    _latex = _pretty = _sympystr = _sympyrepr = _printed

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ARRAYS:
            raise NotAMatrix(f"{operand(self)}.{name}: {cure_of_attribute(name)}")
        if name in ("plain", "args", "func") or name.startswith("__"):  # trees are taken apart as SymPy's
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        attribute = getattr(self.plain, name)
        return _calling(attribute) if isinstance(attribute, MethodType) else declared(attribute)

    def __call__(self, *arguments: Any) -> Any:
        return declared(self.plain(*plain(arguments)))

    def __getitem__(self, index: Any) -> NoReturn:
        """Refuse indexing; Python also calls this in sum(x(t))."""
        cure = (
            cure_of_call()
            or f"times are given in round brackets, {self}({index}), and single entries cannot be addressed"
        )
        raise DeclarationError(f"{self} has no entries: {cure}")

    def __pos__(self) -> Expression:
        return self

    def __neg__(self) -> Any:
        return declared(-self.plain)

    def __abs__(self) -> Any:
        return declared(abs(self.plain))

    def __invert__(self) -> NoReturn:
        raise DeclarationError(f"~{operand(self)}: {OF_OPERATORS}")

    @property
    def __array__(self) -> NoReturn:
        """Refuse the conversion to an array.

        Otherwise NumPy takes an expression for an array of one object, whose numpy.mean is the expression itself: a
        mean would silently drop out of the model. Arrays of expressions in parameters are harmless.
        """
        if varies(self.plain) or is_of_numbers_only():
            raise _not_of_arrays(self)
        raise AttributeError("expressions in parameters have no arrays")

    @property
    def __jax_array__(self) -> NoReturn:
        raise _not_of_arrays(self)


class Condition(Relational):
    """A comparison of expressions of a declaration, for Piecewise. The engine reads the corresponding SymPy comparison,
    of the class `func`."""

    __slots__ = ()

    @property
    def func(self) -> type:
        return next(kind for kind in type(self).__mro__ if kind in _CONDITIONS)

    def __bool__(self) -> NoReturn:
        cure = cure_of_call() or "conditions are written with Max, Min, Heaviside or Piecewise from sympy"
        raise NotANumber(f"{self} is neither true nor false, because it depends on symbols: {cure}")

    @property
    def __array__(self) -> NoReturn:
        raise _not_of_arrays(self)

    __jax_array__ = __array__


class _Less(Condition, sp.StrictLessThan):
    __slots__ = ()


class _AtMost(Condition, sp.LessThan):
    __slots__ = ()


class _Greater(Condition, sp.StrictGreaterThan):
    __slots__ = ()


class _AtLeast(Condition, sp.GreaterThan):
    __slots__ = ()


_CONDITIONS = {
    sp.StrictLessThan: _Less,
    sp.LessThan: _AtMost,
    sp.StrictGreaterThan: _Greater,
    sp.GreaterThan: _AtLeast,
}


def plain(value: Any) -> Any:
    """Unwrap a value: SymPy expressions in place of `Expression`."""
    if isinstance(value, Expression):
        return value.plain
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {plain(key): plain(entry) for key, entry in value.items()}
    return value


def declared(value: Any) -> Any:
    """Wrap a value: `Expression` in place of SymPy expressions; numbers stay numbers."""
    if isinstance(value, sp.Expr):
        return value if value.is_Number else Expression(value)
    if isinstance(value, Relational) and value.func in _CONDITIONS:
        return sp.Basic.__new__(_CONDITIONS[value.func], *value.args)
    return tuple(map(declared, value)) if type(value) is tuple else value


def is_list(argument: Any) -> bool:
    """Return whether an argument holds several things: it is not a text or an expression."""
    return isinstance(argument, Iterable) and not isinstance(argument, (str, sp.Basic))


def word(made: Word) -> Word:
    """Decorate a function or class of the language, so that wrong arguments raise an error that shows its use."""
    kind: Any = made if isinstance(made, type) else None
    function: Any = made if kind is None else kind.__init__

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return declared(function(*plain(arguments), **plain(named)))
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:  # raised inside: the arguments were right
                raise
            raise as_declaration_error(error) from None

    if kind is None:
        return called  # type: ignore[return-value]
    kind.__init__ = called
    return made


def _calling(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def called(*arguments: Any, **named: Any) -> Any:
        return declared(method(*plain(arguments), **plain(named)))

    return called


def varies(expression: sp.Basic) -> bool:
    """Return whether an expression depends on anything other than numbers, parameters, sizes and times."""
    return any(getattr(symbol, "varies", False) for symbol in expression.atoms(sp.Symbol))


def _not_of_arrays(expression: Any) -> DeclarationError:
    cure = cure_of_call() or (
        "use functions of SymPy, as in `from sympy import tanh`, and mean(...), outer(...) and @ of this language; "
        "arrays of numbers are declared as data(...)"
    )
    return DeclarationError(f"NumPy and JAX cannot take {plain(expression)}: {cure}")


# -- operators


def operand(value: Any) -> str:
    """Return an operand as it was typed."""
    if getattr(value, "shape", ()) != ():
        return "an array"
    value = plain(value)
    compound = isinstance(value, sp.Basic) and precedence(value) < PRECEDENCE["Func"]
    return f"({value})" if compound else str(value)


def _not_joined(sign: str, left: Any, right: Any) -> DeclarationError:
    typed = f"{operand(left)} {sign} {operand(right)}"
    if sign == "@" and isinstance(left, Expression) and not isinstance(plain(right), sp.Basic):
        return DeclarationError(f"{typed}: a matrix goes before the vector; write W.T @ v for v^T W")
    if sign == "@":
        return DeclarationError(f"{typed}: only matrices act with @; {OF_TWO_VECTORS}")
    if isinstance(left, str) or isinstance(right, str):
        return DeclarationError(
            f"{left!r} {sign} {right!r}: a string is not an expression; write it without the quotes"
        )
    return DeclarationError(f"{typed}: {'powers are written with **' if sign == '^' else OF_OPERATORS}")


def _operation(name: str, side: str) -> Callable[..., Any]:
    """Return a SymPy operator that refuses operands for which Python would report a TypeError about classes."""
    sign, reflected = _SIGNS.get(name, name), f"__r{name}__"
    arithmetic = name in _ARITHMETIC

    def answer(self: Expression, other: Any, *more: Any) -> Any:
        result = getattr(self.plain, f"__{side}{name}__")(plain(other), *more) if arithmetic else NotImplemented
        if result is not NotImplemented:
            return declared(result)
        kind = type(plain(other))
        speaks = hasattr(kind, reflected) and kind.__module__ != "builtins" and not issubclass(kind, sp.Basic)
        if not side and speaks:
            return NotImplemented
        raise _not_joined(sign, *((other, self) if side else (self, other)))

    return answer


def _comparison(name: str) -> Callable[..., Any]:
    def answer(self: Expression, other: Any) -> Any:
        return declared(getattr(self.plain, f"__{name}__")(plain(other)))

    return answer


def _number(name: str) -> Callable[..., Any]:
    def answer(self: Expression, *more: Any) -> Any:
        if not self.plain.free_symbols:
            return getattr(self.plain, f"__{name}__")(*more)
        cure = cure_of_call() or "use functions of SymPy, as in `from sympy import sqrt, tanh`"
        raise NotANumber(f"{self} is a symbol, not a number: {cure}")

    return answer


for _name in (*_ARITHMETIC, *_OTHERS):
    for _side in ("", "r"):
        setattr(Expression, f"__{_side}{_name}__", _operation(_name, _side))
for _name in _COMPARISONS:
    setattr(Expression, f"__{_name}__", _comparison(_name))
for _name in _NUMBERS:
    setattr(Expression, f"__{_name}__", _number(_name))


def refuse_the_rest(kind: Any, answer: Callable[..., NoReturn]) -> None:
    """Let a class refuse all protocols of Python, NumPy and JAX that it does not implement."""
    operators = [f"__{side}{name}__" for name in (*_ARITHMETIC, *_OTHERS) for side in ("", "r")]
    more = [f"__{name}__" for name in (*_NUMBERS, *_COMPARISONS, "getitem", "invert", "abs")]
    for name in (*operators, *more):
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
