"""What Python's own exceptions mean where they come out of a declaration: one sentence with the cure.

Most slips are refused by the words of the language themselves. What is left are sums and products, which SymPy makes
and which know nothing of this language, calls with arguments missing, and the file's own mistakes.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from types import FrameType, TracebackType
from typing import Any

import sympy

from derive.errors import DeclarationError
from derive.source_lines import declaring_frame, is_user_frame, place_of, position, syntax_of

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
    "gaussian": "gaussian('W0', N, D)",
    "goe": "goe('M0', D)",
    "weights": "weights('W', N, D, t)",
    "data": "data('y', P)",
    "mean": "mean(x(t)**2)",
    "overlap": "overlap(x(t), y(t))",
    "outer": "outer(x(t), y(t))",
    "past_sum": "past_sum(lambda s: x(s), t)",
    "spectrum": "spectrum(M(T))",
    "family": "family(declare, L=whole_choice(2))",
    "Eq": "Eq(x(t + 1), x(t))",
    "Model": "Model(parameters=(eta, T), equations=[...], observe={...}, probe=spectrum(...))",
}
"""Each word as it is written."""
_NUMERICAL = ("numpy", "jax", "jaxlib", "scipy", "math", "cmath", "torch")
_KINDS = {
    "FieldAt": "field", "Field": "field", "Evolving": "weights", "Atom": "matrix", "Sum": "matrix", "Dyad": "matrix",
    "Product": "matrix", "Mean": "mean", "Apply": "vector", "Project": "vector", "Mix": "vector", "Clock": "clock",
    "Sector": "sector", "Parameter": "parameter", "Table": "table", "Given": "data", "DataAt": "data",
    "Mul": "product", "Add": "sum", "Pow": "power",
}  # fmt: skip
"""Classes of the language and of SymPy by what they are in a declaration."""


def as_declaration_error(error: BaseException, fallback: str = "") -> DeclarationError:
    """The exception as an error of the declaration, with the line at which it arose and what to do about it."""
    if isinstance(error, DeclarationError):
        return error
    found = _user_frame(error.__traceback__)
    cure = _cure(error, found) or fallback or "mend the line and run again"
    told = DeclarationError(f"{_told(error)}; {cure}")
    if found is not None:
        frame, line, instruction = found
        told.blame(place_of(frame, line, instruction))
    return told


def cure_of_call(taken: Any = None) -> str:
    """What to write instead of the function that a declaration is just calling; "" if it calls none of another's.

    `taken` is what the function was given, where it is neither a field nor a number.
    """
    frame = declaring_frame()
    node = None if frame is None else _failing(frame, frame.f_lasti)
    if frame is None or not isinstance(node, ast.Call):
        return ""
    name, library = _called(node), _library(node.func, frame)
    if (name, library) == ("Eq", "sympy"):
        return "this is SymPy's Eq: take Eq from derive, from derive import Eq"
    if taken is not None and name not in _FORMULAS:
        return ""
    return _of_foreign(name, library) if library in _NUMERICAL else ""


def _told(error: BaseException) -> str:
    """The exception in its own words, without the names of classes."""
    text = " ".join(str(error).split())
    text = re.sub(r"<class '[\w.]*?(\w+)'>", r"'\1'", text)
    text = re.sub(r"'(\w+)'", lambda m: f"a {_KINDS[m[1]]}" if m[1] in _KINDS else m[0], text)
    text = re.sub(r"\bof type (\w+)", lambda m: f"that is a {_KINDS[m[1]]}" if m[1] in _KINDS else m[0], text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return f"{type(error).__name__}{': ' if text else ''}{text}"


def _user_frame(trace: TracebackType | None) -> tuple[FrameType, int, int] | None:
    """The innermost frame of the declaration itself, with the line and the instruction that it was at."""
    found = None
    while trace is not None:
        if is_user_frame(trace.tb_frame):
            found = trace.tb_frame, trace.tb_lineno, trace.tb_lasti
        trace = trace.tb_next
    return found


def _cure(error: BaseException, found: tuple[FrameType, int, int] | None) -> str:
    if isinstance(error, RecursionError):
        return "the declaration calls itself without end, or an expression is nested too deeply; shorten it"
    if found is None:
        return ""
    node = _failing(found[0], found[2])
    if isinstance(node, ast.Call):
        return _of_call(error, node, found[0])
    if isinstance(node, ast.BinOp):
        return _of_operator(node)
    if isinstance(node, ast.Attribute) and isinstance(error, AttributeError):
        return _of_attribute(node)
    if isinstance(node, ast.Subscript):
        return f"times are given in round brackets: {ast.unparse(node.value)}({ast.unparse(node.slice)})"
    if "truth value of Relational" in str(error):
        return "conditions on fields are written with Max, Min, Heaviside or Piecewise from sympy"
    return ""


def _failing(frame: FrameType, instruction: int) -> ast.expr | None:
    """The expression in the source that was being computed."""
    here, tree = position(frame.f_code, instruction), syntax_of(frame)
    if here is None or tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            at = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if at == here:
                return node
    return None


def _of_call(error: BaseException, node: ast.Call, frame: FrameType) -> str:
    name, library = _called(node), _library(node.func, frame)
    if library in _NUMERICAL:
        return _of_foreign(name, library)
    if library == "builtins" and name in ("max", "min", "round", "sum", "float", "int", "len", "range"):
        if name in ("max", "min"):
            return f"Python's {name} takes numbers, not symbols: use {_instead(name)}"
        if name == "range":
            return "sums over earlier times are written past_sum(lambda s: x(s), t)"
        return f"Python's {name} takes numbers, not symbols: averages over sites are mean(...)"
    if isinstance(error, TypeError) and name in _WORDS:
        return f"write it as in {_WORDS[name]}{_nearest_argument(str(error), _WORDS[name])}"
    return ""


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _of_foreign(name: str, library: str) -> str:
    return f"{library}'s {name} takes numbers, not symbols: use {_instead(name)}"


def _library(function: ast.expr, frame: FrameType) -> str:
    """The library that a called function comes from."""
    names = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    root = function
    while isinstance(root, ast.Attribute):
        root = root.value
    owner = names.get(root.id) if isinstance(root, ast.Name) else None
    home: Any = getattr(owner, "__name__", "") if root is not function else getattr(owner, "__module__", None)
    if root is function and not home:
        home = type(owner).__module__
    return str(home or "").partition(".")[0]


def _instead(name: str) -> str:
    if name in _FORMULAS:
        return _FORMULAS[name]
    other = _INSTEAD.get(name, name)
    if hasattr(sympy, other):
        return f"SymPy's, from sympy import {other}"
    return "functions that SymPy knows, such as tanh in `from sympy import tanh`"


def _nearest_argument(message: str, example: str) -> str:
    unknown = re.search(r"unexpected keyword argument '(\w+)'", message)
    near = difflib.get_close_matches(unknown[1], re.findall(r"(\w+)=", example), n=1) if unknown else []
    return f"; did you mean {near[0]}=...?" if near else ""


def _of_operator(node: ast.BinOp) -> str:
    if isinstance(node.op, ast.MatMult):
        return (
            "@ applies a matrix to the vector after it; of two vectors write outer(a, b) for the matrix a b^T and "
            "overlap(a, b), which is mean(a * b), for the scalar product over the size"
        )
    if isinstance(node.op, ast.BitXor):
        return "powers are written with **"
    return "fields, parameters and numbers are joined by + - * / and **, matrices act with @"


def _of_attribute(node: ast.Attribute) -> str:
    if node.attr == "T":
        return "only matrices have a transpose; write outer(a, b) for the matrix a b^T of two vectors"
    if node.attr == "transpose":
        return f"write {ast.unparse(node.value)}.T"
    if node.attr in _FORMULAS:
        return f"write {_FORMULAS[node.attr]}"
    return ""
