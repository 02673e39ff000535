"""Records made of what a file holds: each part must be of the type that its class declares."""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from derive.support.shapes import fits

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
