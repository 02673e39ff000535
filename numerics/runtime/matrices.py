"""Matrices over training times."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

Array = Any


def diagonal(weights: Array, size: int, labels: int) -> Array:
    """The diagonal matrix with the weight of each time, once per label; a single weight stands for all times."""
    by_time = jnp.broadcast_to(jnp.ravel(weights), (size // labels,))
    return jnp.diag(jnp.broadcast_to(by_time[:, None], (size // labels, labels)).reshape(size))


def by_time(table: Array) -> Array:
    """A table with one row per time and one column as the list of its numbers."""
    return jnp.ravel(table)


def taken_at(table: Array, time: int) -> Array:
    """The number at one time of a table over times; before the first time it is zero."""
    return jnp.ravel(table)[time] if time >= 0 else jnp.zeros(())
