"""Records built from the content of a file: each part must have the type that its class declares."""

from __future__ import annotations

import sys
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from derive.support.shapes import fits

T = TypeVar("T")


def built(kind: type[T], parts: dict[str, Any]) -> T:
    """Return a record of a class; a part that is missing, unknown or of another type raises ValueError."""
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
    """Return the types of the fields of a class; types known only to type checkers count as Any."""
    names = vars(sys.modules[kind.__module__])
    found = {}
    for part in fields(kind):
        try:
            found[part.name] = eval(part.type, names) if isinstance(part.type, str) else part.type  # noqa: S307
        except NameError:
            found[part.name] = Any
    return found
