"""Translate Python exceptions raised inside a declaration into one sentence with a remedy.

The words of the language refuse most mistakes themselves. The remaining cases are sums and products formed by SymPy,
which does not implement this language, calls with missing arguments, and errors in the file's own code.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from types import FrameType, TracebackType
from typing import Any

import sympy
from sympy.core.function import FunctionClass

from derive.errors import DeclarationError
from derive.language.traversal import ByKind
from derive.support.plain_words import in_plain_words
from derive.support.source_lines import (
    called_name,
    declaring_frame,
    is_user_frame,
    nodes_around,
    place_of,
    position,
    syntax_of,
)

_INSTEAD = {
    "abs": "Abs", "absolute": "Abs", "fabs": "Abs", "maximum": "Max", "fmax": "Max", "max": "Max", "minimum": "Min",
    "fmin": "Min", "min": "Min", "arctan": "atan", "arcsin": "asin", "arccos": "acos", "arctanh": "atanh",
    "arcsinh": "asinh", "arccosh": "acosh", "heaviside": "Heaviside", "where": "Piecewise", "select": "Piecewise",
}  # fmt: skip
_FORMULAS = {
    "relu": "Max(v, 0) with Max from sympy",
    "expit": "1 / (1 + exp(-v)) with exp from sympy",
    "sigmoid": "1 / (1 + exp(-v)) with exp from sympy",
    "softplus": "log(1 + exp(v)) with log and exp from sympy",
    "clip": "Min(Max(v, low), high) with Min and Max from sympy",
    "power": "v ** n",
    "square": "v ** 2",
    "mean": "mean(...) from derive",
    "average": "mean(...) from derive",
    "sum": "mean(...) from derive, the average over the sites",
    "dot": "W @ v, and overlap(a, b) for two vectors",
    "inner": "overlap(a, b) from derive",
    "vdot": "overlap(a, b) from derive",
    "matmul": "W @ v",
    "outer": "outer(a, b) from derive",
}
_WORDS = {
    "parameter": "parameter('eta', default=0.1)",
    "sectors": "D, N = sectors('D', N=nu)",
    "training_clock": "training_clock('t', steps=T)",
    "field": "field('x', D, t)",
    "fields": "fields('x y', D, t)",
    "normal": "normal('v', D)",
    "axis": "axis('c', C)",
    "softmax": "softmax(mean(w(t) * h(t)), c)",
    "relabel": "relabel(h(t), a, b)",
    "gaussian": "gaussian('W0', N, D)",
    "goe": "goe('M0', D)",
    "weights": "weights('W', N, D, t)",
    "data": "data('y', P)",
    "mean": "mean(x(t)**2)",
    "overlap": "overlap(x(t), y(t))",
    "alignment": "alignment(v(t))",
    "outer": "outer(x(t), y(t))",
    "diag": "diag(s)",
    "past_sum": "past_sum(lambda s: x(s), t)",
    "total": "total(x * y(t), c)",
    "each": "each(mean(x(t)**2))",
    "entries": "entries(y)",
    "root": "root(gram)",
    "trait": "trait('s', D, values=[1, 2], weights=[0.5, 0.5])",
    "drawn": "drawn('z', D, uniform(0, 1))",
    "discrete": "discrete([-1, 1], [0.5, 0.5])",
    "uniform": "uniform(0, 1)",
    "exponential": "exponential(2)",
    "half_normal": "half_normal(1)",
    "log_normal": "log_normal(0, 0.5)",
    "normal_law": "normal_law(0, 1)",
    "mixture": "mixture([0.5, 0.5], [normal_law(0, 1), exponential(2)])",
    "spectrum": "spectrum(M(T))",
    "family": "family(declare, L=whole_choice(2))",
    "Eq": "Eq(x(t + 1), x(t))",
    "Model": "Model(parameters=(eta, T), equations=[...], observe={...}, probe=spectrum(...))",
}
"""An example of each word of the language."""
OLD_LABELS = ("channels", "per_class", "labels")
"""Arguments for labels in versions before 0.5.0."""
OF_TWO_VECTORS = "write outer(a, b) for the matrix a b^T and overlap(a, b) for the mean of a * b over the sites"
OF_OPERATORS = "fields, parameters and numbers are joined by + - * / and **, matrices act with @"
_INTERNAL = (AttributeError, KeyError, IndexError, TypeError, ValueError, AssertionError, NotImplementedError)
"""Exceptions that are uninformative to a user when raised inside a word of the language."""
_NUMERICAL = ("numpy", "jax", "jaxlib", "scipy", "math", "cmath", "torch")


def as_declaration_error(error: BaseException, fallback: str = "") -> DeclarationError:
    """Return the exception as a DeclarationError, with the line where it was raised and a remedy."""
    if isinstance(error, DeclarationError):
        return error
    place = _user_frame(error.__traceback__) or _declaring()
    word = _word_that_failed(error, place)
    if word:
        declared = DeclarationError(f"{word}(...) does not accept these arguments; write it as in {_WORDS[word]}")
    else:
        cure = _cure(error, place) or fallback or "change this line, or write it in another way"
        declared = DeclarationError(f"{in_plain_words(error)}; {cure}")
    declared.told_for = error
    if place is not None:
        frame, line, instruction = place
        declared.blame(place_of(frame, line, instruction))
    return declared


def _word_that_failed(error: BaseException, place: tuple[FrameType, int, int] | None) -> str:
    """Return the word of the language inside which an uninformative exception arose; "" if there is none."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace is not None and not is_user_frame(trace.tb_frame)
    if place is None or not inside or not isinstance(error, _INTERNAL):
        return ""
    name, library = called_function(_failing(place[0], place[2]), place[0])
    ours = library == "derive" and name in _WORDS
    return name if ours and trace is not None and trace.tb_frame.f_code.co_name != "called" else ""


def cure_of_call(taken: Any = None) -> str:
    """Return a replacement for the library function that a declaration is calling; "" if it calls none.

    Args:
        taken: the argument of the function, if it is neither a field nor a number.
    """
    call = _calling()
    if call is None:
        return ""
    node, frame = call
    name, library = called_function(node, frame)
    if library == "sympy" and name in ("Eq", "Equality"):
        return "this is SymPy's Eq: take Eq from derive, from derive import Eq"
    if taken is not None and name not in _FORMULAS:
        return ""
    return cure_of_function(name, library)


def is_of_numbers_only() -> bool:
    """Return whether a declaration is calling a function that is defined for floating-point numbers only.

    NumPy functions that accept integers use Python's operators, which expressions support too.
    """
    call = _calling()
    function = None if call is None else _function(call[0].func, call[1])
    kinds = getattr(function, "types", ()) if type(function).__name__ == "ufunc" else ("l->l",)
    return not any(kind.startswith("l") for kind in kinds)


def cure_of_attribute(name: str) -> str:
    """Return a replacement for an array attribute; "" if there is no advice."""
    if name in ("T", "transpose"):
        return f"only matrices have a transpose, written .T; {OF_TWO_VECTORS}"
    return f"write {_FORMULAS[name]}" if name in _FORMULAS else ""


def _calling() -> tuple[ast.Call, FrameType] | None:
    """Return the call that a declaration is executing."""
    frame = declaring_frame()
    node = None if frame is None else _failing(frame, frame.f_lasti)
    return (node, frame) if frame is not None and isinstance(node, ast.Call) else None


def _user_frame(trace: TracebackType | None) -> tuple[FrameType, int, int] | None:
    """Return the innermost frame of the declaration itself, with its line and instruction."""
    innermost = None
    while trace is not None:
        if is_user_frame(trace.tb_frame):
            innermost = trace.tb_frame, trace.tb_lineno, trace.tb_lasti
        trace = trace.tb_next
    return innermost


def _declaring() -> tuple[FrameType, int, int] | None:
    frame = declaring_frame()
    return None if frame is None else (frame, frame.f_lineno, frame.f_lasti)


def _cure(error: BaseException, place: tuple[FrameType, int, int] | None) -> str:
    if isinstance(error, RecursionError):
        return "the declaration calls itself without end, or an expression is nested too deeply; shorten it"
    if place is None:
        return ""
    return _cure_at(_failing(place[0], place[2]), error, place[0])


@ByKind
def _cure_at(node: ast.expr | None, error: BaseException, frame: FrameType) -> str:
    """Return a replacement for an expression of the source."""
    if "truth value of Relational" in str(error):
        return "conditions on fields are written with Max, Min, Heaviside or Piecewise from sympy"
    return ""


@_cure_at.on(ast.Attribute)
def _(node: ast.Attribute, error: BaseException, frame: FrameType) -> str:
    return cure_of_attribute(node.attr) if isinstance(error, AttributeError) else _cure_at.default(node, error, frame)


@_cure_at.on(ast.Subscript)
def _(node: ast.Subscript, error: BaseException, frame: FrameType) -> str:
    return f"times are given in round brackets: {ast.unparse(node.value)}({ast.unparse(node.slice)})"


def _failing(frame: FrameType, instruction: int) -> ast.expr | None:
    """Return the source expression that was being evaluated."""
    here, tree = position(frame.f_code, instruction), syntax_of(frame)
    if here is None or tree is None:
        return None
    for node in nodes_around(tree, here[0]):
        if isinstance(node, ast.expr):
            at = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if at == here:
                return node
    return None


@_cure_at.on(ast.Call)
def _(node: ast.Call, error: BaseException, frame: FrameType) -> str:
    name, library = called_function(node, frame)
    if library == "sympy" and name in _WORDS:
        return f"this is SymPy's {name}: take {name} from derive, from derive import {name} after the line of SymPy"
    if any(f"keyword argument '{old}'" in str(error) for old in OLD_LABELS):
        return "labels are axes since 0.5.0: c = axis('c', C), and then axes=c in field(...), normal(...) and data(...)"
    if isinstance(error, TypeError) and name in _WORDS and library not in _NUMERICAL:
        return f"write it as in {_WORDS[name]}{_nearest_argument(str(error), _WORDS[name])}"
    return cure_of_function(name, library)


def cure_of_function(name: str, library: str) -> str:
    """Return a replacement for a function of another library; "" if it belongs to this language."""
    if library in _NUMERICAL:
        return f"{library}'s {name} takes numbers, not symbols: use {_instead(name)}"
    if library == "builtins" and name in ("max", "min"):
        return f"Python's {name} takes numbers, not symbols: use {_instead(name)}"
    if library == "builtins" and name == "range":
        return "sums over earlier times are written past_sum(lambda s: x(s), t)"
    if library == "builtins" and name in ("sum", "len", "sorted"):
        return f"Python's {name} takes numbers, not symbols: averages over sites are mean(...)"
    if library == "builtins" and name in ("round", "float", "int", "complex"):
        return f"Python's {name} takes numbers, not symbols: leave it out, numbers enter when the model is solved"
    return ""


@ByKind
def called_function(node: ast.expr | None, frame: FrameType) -> tuple[str, str]:
    """Return the name of a called function and its library; empty if the expression is not a call."""
    return "", ""


@called_function.on(ast.Call)
def _(node: ast.Call, frame: FrameType) -> tuple[str, str]:
    function = _function(node.func, frame)
    home: Any = getattr(function, "__module__", None) or type(function).__module__
    return str(getattr(function, "__name__", called_name(node))), str(home).partition(".")[0]


def _function(written: ast.expr, frame: FrameType) -> Any:
    """Return the function that a name or a chain of attributes refers to; None if it is neither."""
    match written:
        case ast.Attribute(value=owner, attr=name):
            return getattr(_function(owner, frame), name, None)
        case ast.Name(id=name):
            return {**vars(builtins), **frame.f_globals, **frame.f_locals}.get(name)
    return None


def _instead(name: str) -> str:
    if name in _FORMULAS:
        return _FORMULAS[name]
    other = _INSTEAD.get(name, name)
    if other in ("sqrt", "cbrt") or isinstance(getattr(sympy, other, None), FunctionClass):
        return f"SymPy's, from sympy import {other}"
    return "functions that SymPy knows, such as tanh in `from sympy import tanh`"


def _nearest_argument(message: str, example: str) -> str:
    unknown = re.search(r"unexpected keyword argument '(\w+)'", message)
    near = difflib.get_close_matches(unknown[1], re.findall(r"(\w+)=", example), n=1) if unknown else []
    return f"; did you mean {near[0]}=...?" if near else ""


_OF_SIGNS: dict[type, str] = {
    ast.MatMult: f"@ applies a matrix to the vector after it; of two vectors {OF_TWO_VECTORS}",
    ast.BitXor: "powers are written with **",
}


@_cure_at.on(ast.BinOp)
def _(node: ast.BinOp, error: BaseException, frame: FrameType) -> str:
    return _OF_SIGNS.get(type(node.op), OF_OPERATORS)
