"""Whether a value from outside (a file, an argument) has the required type."""

from __future__ import annotations

import collections.abc
import types
import typing
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar, overload

T = TypeVar("T")


@overload
def fits(value: Any, hint: type[T]) -> TypeGuard[T]: ...
@overload
def fits(value: Any, hint: Any) -> bool: ...
def fits(value: Any, hint: Any) -> bool:
    """Return whether a value of plain data, arrays and records is of a type, entry by entry.

    True and False are not numbers; an integer is also a float. Numbers of NumPy are Real or Integral.

    >>> fits([1, 2], list[int]), fits({"a": True}, dict[str, int]), fits(None, str | None)
    (True, False, True)
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is typing.Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if hint is None or hint is type(None):
        return value is None
    if hint in (int, float, Integral, Real):
        return isinstance(value, (int, float) if hint is float else hint) and not isinstance(value, bool)
    if origin is tuple and isinstance(value, tuple):
        if inner[-1:] == (Ellipsis,):
            return all(fits(part, inner[0]) for part in value)
        return len(value) == len(inner) and all(map(fits, value, inner))
    if origin in (list, collections.abc.Sequence):
        right = isinstance(value, list) or origin is not list and isinstance(value, tuple)
        return right and all(fits(part, inner[0]) for part in value)
    if origin in (dict, collections.abc.Mapping):
        return isinstance(value, dict) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if isinstance(origin, type) and origin is not tuple:  # such as np.ndarray[...], whose entries are not looked at
        return isinstance(value, origin)
    if origin is None and isinstance(hint, type):
        return isinstance(value, hint)
    return origin is not tuple


def texts(names: Any) -> tuple[Any, ...]:
    """Return one text or several as a tuple; None gives an empty tuple."""
    return (names,) if isinstance(names, str) else tuple(names or ())
