"""Source locations in a declaration: file, line, and the equation of that line.

Each part of a declaration stores its source line, so that errors of any stage can refer to it. Locations serve
messages only: comparison, hashing and printing ignore them.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from types import CodeType, FrameType

_OURS = ("derive.language", "derive.errors", "derive.support.source_lines")
_LIBRARIES = ("sympy", "numpy", "jax", "jaxlib", "scipy", "mpmath", "contextlib", "functools", "dataclasses")


@dataclass(frozen=True)
class Place:
    """A line of a file or notebook cell, and the name of its equation, if any."""

    file: str
    line: int
    equation: str = ""

    def __str__(self) -> str:
        name = "this cell" if _is_cell(self.file) else self.file
        return f"{name}, line {self.line}"

    def before(self, sentence: str) -> str:
        """Return the prefix of a sentence: the line, and the equation unless the sentence names it."""
        named = not self.equation or (sentence.startswith("Eq(") and not sentence.startswith("Eq(...)"))
        named = named or any(f"{kind} of {self.equation}" in sentence for kind in ("equation", "update"))
        return str(self) if named else f"{self}, the equation of {self.equation}"

    def of_equation(self, name: str) -> Place:
        return replace(self, equation=name)


def _is_cell(file: str) -> bool:
    return file.startswith("<") or "ipykernel_" in file


def line_of_caller() -> Place | None:
    """Return the line of a declaration that called the language, cheaply; None if the engine called it."""
    frame = declaring_frame()
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def declaring_place() -> Place | None:
    """Return the declaration's line that called the language, with the name of its equation read from the source."""
    frame = declaring_frame()
    return None if frame is None else place_of(frame, frame.f_lineno, frame.f_lasti)


def place_of_entry(name: str) -> Place | None:
    """Return the line of a dictionary's entry `name` in the statement of a declaration that called the language."""
    frame = declaring_frame()
    tree = None if frame is None else syntax_of(frame)
    if frame is None or tree is None:
        return None
    for node in nodes_around(tree, frame.f_lineno):
        for key in node.keys if isinstance(node, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value == name:
                return Place(frame.f_code.co_filename, key.lineno)
    return None


def place_of(frame: FrameType, line: int, instruction: int) -> Place:
    """Return the location of a bytecode instruction of a declaration."""
    file = frame.f_code.co_filename
    here = position(frame.f_code, instruction)
    tree = None if here is None else syntax_of(frame)
    if tree is None or here is None:
        return Place(file, line)
    return Place(file, line, _equation(tree, here))


def place_in(tree: ast.Module, file: str, node: ast.expr) -> Place:
    """Return the location of an expression in a declaration's source."""
    end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Place(file, node.lineno, _equation(tree, (node.lineno, end[0], node.col_offset, end[1])))


def _equation(tree: ast.Module, here: tuple[int, int, int, int]) -> str:
    """Return the name of the equation that contains a source range; "" if none."""
    around = [
        node
        for node in nodes_around(tree, here[0])
        if isinstance(node, ast.Call) and called_name(node) == "Eq" and node.args and _contains(node, here)
    ]
    if not around:
        return ""
    innermost = max(around, key=lambda node: (node.lineno, node.col_offset))
    target = innermost.args[0]
    named = getattr(target, "func", target)
    simple = isinstance(named, (ast.Name, ast.Subscript, ast.Attribute))
    return ast.unparse(named) if simple else ""


def syntax_of(frame: FrameType) -> ast.Module | None:
    """Return the syntax tree of the file or cell that a frame runs; None without source."""
    return _parsed("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))


@lru_cache(maxsize=8)
def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source) if source else None
    except SyntaxError:  # a cell with commands of the notebook in it, or a file that has changed since
        return None


def nodes_around(tree: ast.Module, line: int) -> Iterator[ast.AST]:
    """Yield all nodes of the outermost statements that contain a line."""
    for statement in tree.body:
        decorators = getattr(statement, "decorator_list", ())
        first = min([statement.lineno, *(one.lineno for one in decorators)])
        if first <= line <= (statement.end_lineno or line):
            yield from ast.walk(statement)


def position(code: CodeType, instruction: int) -> tuple[int, int, int, int] | None:
    """Return first line, last line, first column and end of the source of an instruction."""
    if instruction < 0:
        return None
    line, last, column, end = list(code.co_positions())[instruction // 2]
    return None if line is None or last is None or column is None or end is None else (line, last, column, end)


def is_user_frame(frame: FrameType) -> bool | None:
    """Return whether a frame runs a declaration; None if it runs the language or a library, which declarations call."""
    name = str(frame.f_globals.get("__name__", ""))
    if name.startswith("derive.models."):
        return True
    if name == "derive" or name.startswith(_OURS) or name.partition(".")[0] in _LIBRARIES:
        return None
    return not name.startswith(("derive.", "numerics."))


def declaring_frame() -> FrameType | None:
    """Return the frame of the declaration that called the language; None if the engine called it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        user = is_user_frame(frame)
        if user is not None:
            return frame if user else None
        frame = frame.f_back
    return None


def called_name(node: ast.AST) -> str:
    """Return the name of the function that an expression calls; "" if it is not a call of a name or an attribute."""
    function = getattr(node, "func", None)
    return str(getattr(function, "id", getattr(function, "attr", "")))


def _contains(node: ast.expr, here: tuple[int, int, int, int]) -> bool:
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset) <= (here[0], here[2]) and (here[1], here[3]) <= end
