"""Records made of what a file holds: each part must be of the type that its class declares."""

from __future__ import annotations

import collections.abc
import sys
import types
import typing
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def built(kind: type[T], parts: dict[str, Any]) -> T:
    """A record of a class; ValueError that names a part which is missing, unknown or of another type."""
    hints = _hints(kind)  # type: ignore[arg-type]  # a class can be hashed
    for name, part in parts.items():
        if name not in hints or not fits(part, hints[name]):
            raise ValueError(f"{kind.__name__}.{name}")
    try:
        return kind(**parts)
    except (TypeError, KeyError, IndexError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of the parts of a class; of those that are known to type checkers alone, anything."""
    names = vars(sys.modules[kind.__module__])
    found = {}
    for part in fields(kind):
        try:
            found[part.name] = eval(part.type, names) if isinstance(part.type, str) else part.type  # noqa: S307
        except NameError:
            found[part.name] = Any
    return found


def fits(value: Any, hint: Any) -> bool:
    """Whether a value of plain data, arrays and records is of a type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is typing.Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float):
        return isinstance(value, (int, float) if hint is float else int) and not isinstance(value, bool)
    if origin is tuple and isinstance(value, tuple):
        if inner[-1:] == (Ellipsis,):
            return all(fits(part, inner[0]) for part in value)
        return len(value) == len(inner) and all(map(fits, value, inner))
    if origin in (list, collections.abc.Sequence):
        right = isinstance(value, list) or origin is not list and isinstance(value, tuple)
        return right and all(fits(part, inner[0]) for part in value)
    if origin in (dict, collections.abc.Mapping):
        return isinstance(value, dict) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if origin is np.ndarray:
        return isinstance(value, np.ndarray)
    if origin is None and isinstance(hint, type):
        return isinstance(value, hint)
    return origin is not tuple
