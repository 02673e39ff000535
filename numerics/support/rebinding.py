"""Generated functions with another library under a name of their module."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

UNUSUAL = (TypeError, ValueError, AttributeError, IndexError, KeyError, ArithmeticError)
"""Errors that a generated function raises where it is given other objects than it was written for."""


def with_names(function: Callable[..., Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """The same function, with other things under some of the names that its module gives it."""
    assert isinstance(function, types.FunctionType), "generated code consists of plain functions"
    made = types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
