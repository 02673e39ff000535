"""Numbers over training times: coefficients of updated weights without a closed form, and tables of means."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Array = Any


def over_time(rows: Any, count: int) -> Array:
    """A matrix at each of `count` times, from entries that are numbers or have one entry per time."""
    return jnp.stack(
        [jnp.stack([jnp.broadcast_to(jnp.asarray(e, float), (count,)) for e in row]) for row in rows]
    ).transpose(2, 0, 1)


@jax.jit
def initial_coefficients(matrix: Array, entry: Array, forcing: Array) -> Array:
    """k(t + 1) = matrix(t) k(t) + forcing(t) from k(0) = entry: times x weights."""

    def following(now: Array, at: Array) -> Array:
        return at[0] @ now + at[1][:, 0], now

    return jax.lax.scan(following, entry[0, :, 0], (matrix, forcing))[1]


@jax.jit
def history_coefficients(matrix: Array, entry: Array, forcing: Array) -> Array:
    """k(t + 1, s) = matrix(t) k(t, s) with k(s + 1, s) = entry(s): times x weights x times."""
    count = matrix.shape[0]

    def following(now: Array, at: Array) -> Array:
        step, start, t = at
        return (step @ now).at[:, t].set(start[:, 0]), now

    return jax.lax.scan(following, jnp.zeros((matrix.shape[1], count)), (matrix, entry, jnp.arange(count)))[1]


def coefficient(table: Array, t: Array, position: int) -> Array:
    """The coefficient of one initial matrix at time t."""
    return table[jnp.maximum(t, 0), position]


def coefficients(table: Array, t: Array, position: int, times: int) -> Array:
    """The coefficients at time t of what was added at each earlier time."""
    return table[jnp.maximum(t, 0), position, :times]


def by_time(table: Array) -> Array:
    """A table with one row per time and one column as the list of its numbers."""
    return jnp.ravel(table)


def taken_at(table: Array, time: int) -> Array:
    """The number at one time of a table over times; before the first time it is zero."""
    return jnp.ravel(table)[time] if time >= 0 else jnp.zeros(())
