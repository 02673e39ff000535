"""Refuse NumPy calls on functions of fields in the source of a declaration.

NumPy takes SymPy's `tanh(x(t))` for an array of one object, whose numpy.mean is that object: a mean would silently drop
out of the model. A data-flow analysis of the executed source finds such calls, through assignments, arguments and
returned values of its functions.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from math import inf
from types import FrameType, ModuleType
from typing import Any

import sympy as sp
from sympy.core.function import Application

from derive.errors import DeclarationError
from derive.language.cures import called_function, cure_of_function
from derive.language.expressions import plain, varies
from derive.language.traversal import ByKind
from derive.support.source_lines import declaring_frame, place_in, syntax_of

_VECTORS = ("field", "fields", "normal", "drawn", "trait", "data", "entries", "root")
"""Words of the language that make vectors."""
_OF_VECTORS = ("mean", "overlap", "total", "softmax", "relabel", "past_sum")
"""Words that make expressions of vectors."""
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def refuse_array_calls(expressions: list[sp.Basic]) -> None:
    """Raise DeclarationError if the running declaration passes a function of fields to NumPy.

    Args:
        expressions: the expressions of the declaration so far; only SymPy functions of fields can have passed through
            NumPy unnoticed.
    """
    frame = declaring_frame()
    if frame is None or not any(map(_has_functions, expressions)):
        return
    tree = syntax_of(frame)
    if tree is None:
        return
    source = _scopes(tree)
    calls = [(call, line) for root, call, line in source.calls if _is_numpys(frame, root)]
    flows, ran = _Flows(source, frame), _ran(source, frame) if calls else {}
    for call, line in calls:
        function, has_run = called_function(call, frame), line <= ran.get(source.scopes[call], 0)
        argument = next((candidate for candidate in _arguments(call) if has_run and flows.vectors(candidate)), None)
        if argument is not None and function[1] == "numpy":
            error = DeclarationError(
                f"NumPy and JAX cannot take {ast.unparse(argument)}: {cure_of_function(*function)}"
            )
            error.blame(place_in(tree, frame.f_code.co_filename, call))
            raise error


def _ran(source: _ScopeReader, frame: FrameType | None) -> dict[_Scope, float]:
    """Return the functions of the source that have run or may have run, with their current lines."""
    whole = inf
    lines = {source.scope: whole}
    file = "" if frame is None else frame.f_code.co_filename
    while frame is not None:
        code = frame.f_code
        if code.co_filename == file:
            scope = source.running.get((code.co_name, code.co_firstlineno))
            lines[scope or source.scope] = frame.f_lineno if scope or code.co_name == "<module>" else whole
        frame = frame.f_back
    waiting = list(lines)
    for scope in waiting:
        named = [function for name in scope.loads if (home := scope.holding(name)) for function in home.functions(name)]
        for inner in (*scope.inner, *(source.bodies[function] for function in named)):
            if inner not in lines:
                lines[inner] = whole if inner.is_named else lines[scope]
                waiting.append(inner)
    return lines


def _is_numpys(frame: FrameType, name: str) -> bool:
    """Return whether a name of a declaration refers to NumPy or to an attribute of it."""
    value = frame.f_locals.get(name, frame.f_globals.get(name))
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(home or type(value).__module__).partition(".")[0] == "numpy"


def _has_functions(expression: sp.Basic) -> bool:
    """Return whether an expression contains a SymPy function or root of fields, which is not an `Expression`."""
    functions = expression.atoms(Application, sp.Pow)
    return any(varies(node) for node in functions if not (node.is_Pow and node.exp.is_Integer))


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


class _Scope:
    """A function of the source, a comprehension, or the module: the expressions bound to each of its names.

    `loads` are the names that it uses. `inner` are lambdas and comprehensions, which run in place.
    """

    def __init__(self, function: Any = None, outer: _Scope | None = None) -> None:
        self.function, self.outer = function, outer
        self.is_named = isinstance(function, ast.FunctionDef)
        self.names: dict[str, list[Any]] = {}
        self.loads: dict[str, None] = {}
        self.returned: list[ast.expr] = []
        self.inner: list[_Scope] = []
        if outer is not None and not self.is_named:
            outer.inner.append(self)

    def holding(self, name: str) -> _Scope | None:
        """Return the innermost scope that binds a name; None if there is none."""
        scope: _Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        return scope

    def functions(self, name: str) -> list[Any]:
        """Return the functions of the source that a name may refer to."""
        return [value for value in self.names[name] if isinstance(value, _FUNCTIONS)]

    def values(self, name: str) -> list[ast.expr]:
        """Return the expressions that a name may refer to."""
        return [value for value in self.names[name] if not isinstance(value, _FUNCTIONS)]


class _ScopeReader(ast.NodeVisitor):
    """Finds the scope of every node, and the expressions bound to names."""

    def __init__(self) -> None:
        self.scope = _Scope()
        self.scopes: dict[ast.AST, _Scope] = {}
        self.bodies: dict[ast.AST, _Scope] = {}
        self.calls: list[tuple[str, ast.Call, int]] = []
        self.running: dict[tuple[str, int], _Scope] = {}
        self.line = 0

    def home(self, function: ast.expr) -> _Scope | None:
        """Return the scope that binds a function called by its name; None if there is none."""
        return self.scopes[function].holding(function.id) if isinstance(function, ast.Name) else None

    def visit_Call(self, node: ast.Call) -> None:
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if name := getattr(root, "id", ""):
            self.calls.append((name, node, self.line))
        self.generic_visit(node)

    def visit(self, node: ast.AST) -> None:
        self.scopes[node] = self.scope
        self.line = node.lineno if isinstance(node, ast.stmt) else self.line
        super().visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.scope.loads[node.id] = None

    def bind(self, target: ast.AST, value: Any) -> None:
        match target, value:
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                for part, its in zip(names, values, strict=True):
                    self.bind(part, its)
            case _:
                for name in (node.id for node in ast.walk(target) if hasattr(node, "id")):
                    self.scope.names.setdefault(name, []).append(value)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.bind(target, node.value)
        self.generic_visit(node)

    def _visit_bound(self, node: Any) -> None:
        self.bind(node.target, getattr(node, "iter", None) or node.value)
        self.generic_visit(node)

    visit_AnnAssign = visit_AugAssign = visit_NamedExpr = visit_For = visit_comprehension = _visit_bound

    def _visit_comprehension(self, node: Any) -> None:
        outer, self.scope = self.scope, _Scope(node, self.scope)
        self.generic_visit(node)
        self.scope = outer

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def _visit_function(self, node: Any) -> None:
        outer, self.scope = self.scope, _Scope(node, self.scope)
        if isinstance(node, ast.FunctionDef):
            outer.names.setdefault(node.name, []).append(node)
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            self.running[node.name, first] = self.scope
        self.bodies[node] = self.scope
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.scope.names.setdefault(argument.arg, [])
        if isinstance(node, ast.Lambda):
            self.scope.returned.append(node.body)
        self.generic_visit(node)
        self.scope = outer

    visit_FunctionDef = visit_Lambda = _visit_function

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.scope.returned.append(node.value)
        self.generic_visit(node)


@lru_cache(maxsize=8)
def _scopes(tree: ast.Module) -> _ScopeReader:
    reader = _ScopeReader()
    reader.visit(tree)
    for name, call, _ in reader.calls:  # arguments of calls are what the names of arguments stand for
        home = reader.home(call.func)
        for function in home.functions(name) if home is not None else ():
            _pass(call, function, reader.bodies[function])
    return reader


def _pass(call: ast.Call, function: Any, body: _Scope) -> None:
    names = [entry.arg for entry in (*function.args.posonlyargs, *function.args.args)]
    bindings = [*zip(names, call.args, strict=False), *((entry.arg, entry.value) for entry in call.keywords)]
    for name, value in bindings:
        if name in body.names:
            body.names[name].append(value)


class _Flows:
    """Decides which expressions in the source of a running declaration are vectors."""

    def __init__(self, reader: _ScopeReader, frame: FrameType) -> None:
        self.reader, self.scopes, self.bodies, self.frame = reader, reader.scopes, reader.bodies, frame
        self.known: dict[ast.AST, bool] = {}

    def vectors(self, node: ast.AST) -> bool:
        """Return whether an expression of the source is a function of vectors."""
        if node not in self.known:
            self.known[node] = False  # what depends on itself is what it depends on besides
            self.known[node] = self._are(node)
        return self.known[node]

    @ByKind
    def _are(self, node: ast.AST) -> bool:
        return False

    @_are.on(ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.List, ast.Tuple, ast.Dict, ast.Starred)
    def _(self, node: ast.AST) -> bool:
        return any(map(self.vectors, ast.iter_child_nodes(node)))

    @_are.on(ast.Subscript, ast.DictComp)
    def _(self, node: ast.Subscript | ast.DictComp) -> bool:
        return self.vectors(node.value)

    @_are.on(ast.ListComp, ast.GeneratorExp, ast.SetComp)
    def _(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> bool:
        return self.vectors(node.elt)

    @_are.on(ast.Name)
    def _(self, node: ast.Name) -> bool:
        scope, bindings = self.scopes[node].holding(node.id), self.frame.f_globals
        if scope is None or (scope.function is None and node.id in bindings):
            return _is_vector(bindings.get(node.id))
        return any(map(self.vectors, scope.values(node.id)))

    @_are.on(ast.Call)
    def _(self, node: ast.Call) -> bool:
        function = node.func
        if isinstance(function, ast.Attribute) and self.vectors(function.value):  # a method, as in x(t).subs(...)
            return True
        home = self.reader.home(function)
        own = [] if home is None else home.functions(ast.unparse(function))
        if own:
            return any(self.vectors(value) for called in own for value in self.bodies[called].returned)
        if self.vectors(function):
            return True
        name, library = called_function(node, self.frame)
        if library == "derive" and name in _VECTORS:
            return True
        of_vectors = library == "sympy" or (library == "derive" and name in _OF_VECTORS)
        return of_vectors and any(map(self.vectors, _arguments(node)))


def _is_vector(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_vector, value))
    value = plain(value)
    return isinstance(value, sp.Basic) and varies(value)
