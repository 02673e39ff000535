"""Generated functions run with NumPy's arrays: nothing is compiled for a check."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np


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


@lru_cache(maxsize=256)
def in_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generated function with NumPy in place of jax.numpy."""
    return with_names(function, {"jnp": np})
