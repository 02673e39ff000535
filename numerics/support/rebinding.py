"""Generated functions with some global names rebound."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

UNUSUAL = (TypeError, ValueError, AttributeError, IndexError, KeyError, ArithmeticError)
"""Errors that a generated function raises when it is called with unexpected types."""


def with_names(function: Callable[..., Any], names: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the same function with some names of its module rebound."""
    assert isinstance(function, types.FunctionType), "generated code consists of plain functions"
    rebound = types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    rebound.__kwdefaults__ = function.__kwdefaults__
    return rebound
