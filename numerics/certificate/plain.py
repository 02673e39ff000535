"""Generated functions run with NumPy's arrays: nothing is compiled for a check."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

UNUSUAL = (TypeError, ValueError, AttributeError, IndexError, KeyError, ArithmeticError)
"""What a generated function raises where it is given other arrays than it was written for."""


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


class _Stacked:
    """NumPy, for functions that are asked at many points at once: the first axis of arrays that depend on the point
    runs over these."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def block(rows: list[list[Any]]) -> np.ndarray:
        """np.block of matrices and of stacks of them."""
        count = max(np.shape(block)[0] if np.ndim(block) == 3 else 1 for row in rows for block in row)
        heights, widths = [np.shape(row[0])[-2] for row in rows], [np.shape(block)[-1] for block in rows[0]]
        kind = np.result_type(*(np.asarray(block).dtype for row in rows for block in row))
        found, top = np.empty((count, sum(heights), sum(widths)), kind), 0
        for row, height in zip(rows, heights, strict=True):
            left = 0
            for block, width in zip(row, widths, strict=True):
                found[:, top : top + height, left : left + width] = block
                left += width
            top += height
        return found


@lru_cache(maxsize=256)
def stacked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generated function that makes a matrix of blocks, at many points at once."""
    return with_names(function, {"jnp": _Stacked()})


@lru_cache(maxsize=256)
def in_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generated function with NumPy in place of jax.numpy."""
    return with_names(function, {"jnp": np})
