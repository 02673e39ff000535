"""Coefficients of updated weights without a closed form, as tables over training times from linear recursions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

Array = Any


def over_time(rows: Any, count: int) -> Array:
    """Return a matrix at each of `count` times, from entries that are constant or depend on time."""
    return jnp.stack(
        [jnp.stack([jnp.broadcast_to(jnp.asarray(e, float), (count,)) for e in row]) for row in rows]
    ).transpose(2, 0, 1)


@jax.jit
def initial_coefficients(matrix: Array, entry: Array, forcing: Array) -> Array:
    """Solve k(t + 1) = matrix(t) k(t) + forcing(t) from k(0) = entry: times x weights."""

    def following(now: Array, at: Array) -> Array:
        return at[0] @ now + at[1][:, 0], now

    return jax.lax.scan(following, entry[0, :, 0], (matrix, forcing))[1]


@jax.jit
def history_coefficients(matrix: Array, entry: Array, forcing: Array) -> Array:
    """Solve k(t + 1, s) = matrix(t) k(t, s) from k(s + 1, s) = entry(s): times x weights x times."""
    count = matrix.shape[0]

    def following(now: Array, at: Array) -> Array:
        step, start, t = at
        return (step @ now).at[:, t].set(start[:, 0]), now

    return jax.lax.scan(following, jnp.zeros((matrix.shape[1], count)), (matrix, entry, jnp.arange(count)))[1]


def coefficient(table: Array, t: Array, position: int) -> Array:
    """Return the coefficient of one initial matrix at time t."""
    return table[jnp.maximum(t, 0), position]


def coefficients(table: Array, t: Array, position: int, times: int) -> Array:
    """Return the coefficients of all earlier updates at time t."""
    return table[jnp.maximum(t, 0), position, :times]


def by_time(table: Array) -> Array:
    """Return a table with one column as a vector over times."""
    return jnp.ravel(table)


def taken_at(table: Array, time: int) -> Array:
    """Return the entry of a table at one time; zero before the first time."""
    return jnp.ravel(table)[time] if time >= 0 else jnp.zeros(())
