"""Values of a model's parameters and data, by name."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import jax

Layout = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, int], ...]]
"""All names in their order, those of leaves, and whole numbers with their values."""


class Point:
    """Parameter values and data of a model: `p.gamma0`, `p.T`. A pytree.

    Python integers fix shapes and are static under `jit`. All other values are leaves, on which `vmap` and derivatives
    act. Names are those of the declaration; the class itself has only names with a leading underscore.
    """

    def __init__(self, /, **values: Any) -> None:
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return f"Point({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).items()))


class Table:
    """An array in a point that is compared and hashed by value."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and self.numbers.tobytes() == other.numbers.tobytes()

    def __hash__(self) -> int:
        return hash(self.numbers.tobytes())


jax.tree_util.register_pytree_node(Table, lambda table: ((table.numbers,), None), lambda _, leaves: Table(leaves[0]))


def replaced(p: Point, /, **values: Any) -> Point:
    """Return the point with some values changed."""
    return Point(**{**vars(p), **values})


def exact(p: Point) -> Point:
    """Return the point with its floats as exact fractions."""
    return Point(**{name: value if _is_whole(value) else Fraction(value) for name, value in vars(p).items()})


def _is_whole(value: Any) -> bool:
    """Whether a value is a Python integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def _flatten(p: Point) -> tuple[tuple[Any, ...], Layout]:
    moving = tuple(name for name, value in vars(p).items() if not _is_whole(value))
    order = tuple(vars(p))
    fixed = tuple((name, value) for name, value in vars(p).items() if _is_whole(value))
    return tuple(vars(p)[name] for name in moving), (order, moving, fixed)


def _unflatten(layout: Layout, leaves: Iterable[Any]) -> Point:
    order, moving, fixed = layout
    values = {**dict(zip(moving, leaves, strict=True)), **dict(fixed)}
    return Point(**{name: values[name] for name in order})


jax.tree_util.register_pytree_node(Point, _flatten, _unflatten)
