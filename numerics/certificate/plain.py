"""Generated functions run with NumPy's arrays: nothing is compiled for a check."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from numerics.certificate.blocks import IdentityPlus
from numerics.rebinding import with_names

UNUSUAL = (TypeError, ValueError, AttributeError, IndexError, KeyError, ArithmeticError)
"""What a generated function raises where it is given other arrays than it was written for."""


class _Plain:
    """NumPy, with matrices of blocks joined in a tenth of the time."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def block(rows: list[list[Any]]) -> Any:
        return np.concatenate([np.concatenate(row, axis=1) for row in rows])


class _Stacked(_Plain):
    """NumPy, for functions that are asked at many points at once: the first axis of arrays that depend on the point
    runs over these."""

    @staticmethod
    def eye(size: int) -> IdentityPlus:
        return IdentityPlus(size)

    @staticmethod
    def block(rows: list[list[Any]]) -> list[list[Any]]:
        return rows


@lru_cache(maxsize=256)
def stacked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generated function that makes a matrix of blocks, at many points at once: rows of blocks."""
    return with_names(function, {"jnp": _Stacked()})


@lru_cache(maxsize=256)
def in_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A generated function with NumPy in place of jax.numpy."""
    return with_names(function, {"jnp": _Plain()})
