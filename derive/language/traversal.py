"""Functions that dispatch on the class of an expression's node, and searches for nodes of given classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from typing import Any, Generic, TypeVar, overload

import sympy as sp

Result = TypeVar("Result")
Rule = TypeVar("Rule", bound=Callable[..., Any])
Kinds = tuple[type, ...]


class ByKind(Generic[Result]):
    """A function, or a method, dispatched on the class of its argument; the rule of the nearest base class applies.

    The decorated function is the default, and `on` adds rules for given classes:

    >>> import sympy as sp
    >>> @ByKind
    ... def depth(node):
    ...     return 1 + max(map(depth, node.args))
    >>> @depth.on(sp.Symbol, sp.Number)
    ... def _(node):
    ...     return 0
    >>> depth(sp.Symbol("x") ** 2 + 1)
    2
    """

    def __init__(self, otherwise: Callable[..., Result]) -> None:
        update_wrapper(self, otherwise)
        self.default = otherwise
        self._rules: dict[type, Callable[..., Result]] = {object: otherwise}
        self._nearest: dict[type, Callable[..., Result]] = {}

    def on(self, *kinds: type) -> Callable[[Rule], Rule]:
        """Add the rule for nodes of given classes."""

        def added(rule: Rule) -> Rule:
            self._rules.update(dict.fromkeys(kinds, rule))
            self._nearest.clear()
            return rule

        return added

    def extended(self) -> ByKind[Result]:
        """Return a copy to which a derived class adds rules."""
        copy = ByKind(self.default)
        copy._rules = dict(self._rules)
        return copy

    @property
    def kinds(self) -> Kinds:
        """The classes that have a rule."""
        return tuple(self._rules)[1:]

    def _rule(self, kind: type) -> Callable[..., Result]:
        if kind not in self._nearest:
            self._nearest[kind] = next(self._rules[base] for base in kind.__mro__ if base in self._rules)
        return self._nearest[kind]

    def __call__(self, node: Any, *more: Any) -> Result:
        return self._rule(type(node))(node, *more)

    def _method(self, owner: Any, node: Any, *more: Any) -> Result:
        return self._rule(type(node))(owner, node, *more)

    @overload
    def __get__(self, owner: None, _: type | None = None) -> ByKind[Result]: ...
    @overload
    def __get__(self, owner: object, _: type | None = None) -> Callable[..., Result]: ...
    def __get__(self, owner: object | None, _: type | None = None) -> ByKind[Result] | Callable[..., Result]:
        return self if owner is None else partial(self._method, owner)


def parts(expression: sp.Basic, kinds: Kinds, outside: Kinds = ()) -> Iterator[Any]:
    """Yield the outermost nodes of these classes that are not inside a node of the classes `outside`."""
    if isinstance(expression, kinds):
        yield expression
    elif not isinstance(expression, outside):
        for arg in expression.args:
            yield from parts(arg, kinds, outside)


def outermost(expression: sp.Basic, kinds: Kinds, outside: Kinds = ()) -> list[Any]:
    """Return the outermost nodes of these classes, each once and in a fixed order."""
    return sorted({node: None for node in parts(sp.sympify(expression), kinds, outside)}, key=sp.default_sort_key)


def changed(expression: sp.Basic, kinds: Kinds, change: Callable[[Any], sp.Basic]) -> Any:
    """Return the expression with a function applied to these outermost nodes."""
    if isinstance(expression, kinds):
        return change(expression)
    if not expression.args:
        return expression
    return expression.func(*(changed(arg, kinds, change) for arg in expression.args))
