"""Functions whose derivatives are given instead of traced."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from numerics.runtime.interface import Array


def differentiable_once(value: Callable[..., tuple[Array, Any]], moved: Callable[..., Array]) -> Callable[..., Array]:
    """Return a function with given first derivatives, whose higher ones are NaN.

    If no derivative is requested, only the value is compiled. value(*arguments): the value, and intermediate results;
    it is not differentiated. moved(known, *arguments): a function whose derivatives, at fixed intermediate results
    `known`, are those of the value.
    """

    @jax.custom_jvp
    def function(*arguments: Any) -> Array:
        return value(*arguments)[0]

    @partial(function.defjvp, symbolic_zeros=True)
    def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
        here, known = value(*jax.lax.stop_gradient(primals))
        leaves, tree = jax.tree.flatten(primals)
        rates = {k: rate for k, rate in enumerate(jax.tree.leaves(tangents)) if not isinstance(rate, SymbolicZero)}

        def along(*moving: Array) -> Array:
            changed = dict(zip(rates, moving, strict=True))
            return moved(known, *jax.tree.unflatten(tree, [changed.get(k, leaf) for k, leaf in enumerate(leaves)]))

        _, slope = jax.jvp(along, tuple(leaves[k] for k in rates), tuple(rates.values()))
        return here, slope * _one(primals)

    return function


@jax.custom_jvp
def _one(arguments: Any) -> Array:
    """Return one, with derivatives NaN."""
    return jnp.ones(())


@_one.defjvp
def _(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Array, Array]:
    rates = (jnp.sum(x) for x in jax.tree.leaves(tangents) if x.dtype != jax.dtypes.float0)
    return jnp.ones(()), jnp.nan * sum(rates, jnp.zeros(()))
