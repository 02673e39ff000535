"""Functions of a vector that run outside JAX, with first derivatives, under transformations of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from numerics.runtime.interface import Array


def hosted(compute: Callable[[np.ndarray, bool], np.ndarray], shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """Return a function of a vector x that JAX can compile, map and differentiate once; second derivatives are NaN.

    Args:
        compute: returns at x (values, False) or (values with derivatives along a last axis, True).
        shape: of the values.
    """

    def called(x: Array, slopes: bool) -> Array:
        behind = (1 + len(x),) if slopes else ()
        result: Any = jax.ShapeDtypeStruct((*shape, *behind), x.dtype)  # type: ignore[no-untyped-call]
        run = lambda at: np.asarray(compute(np.asarray(at, float), slopes), result.dtype)  # noqa: E731
        found: Array = jax.pure_callback(run, result, x, vmap_method="sequential")
        return found

    @jax.custom_jvp
    def value(x: Array) -> Array:
        return called(x, False)

    @jax.custom_jvp
    def with_slopes(x: Array) -> Array:
        return called(x, True)

    @value.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        both = with_slopes(primals[0])
        return both[..., 0], both[..., 1:] @ tangents[0]

    @with_slopes.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        found = with_slopes(primals[0])
        return found, jnp.nan * found * jnp.sum(tangents[0])

    return value
