"""Options of the verbs, told apart from parameters that have the same name."""

from __future__ import annotations

from typing import Any

Asked = dict[str, Any]


class Number(int):
    """A default of an option. It is a number like any other, but one that nobody has typed."""


def asked(**options: Any) -> Asked:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None and not isinstance(value, Number)}
