"""Matrices over training times."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

Array = Any


def diagonal(weights: Array, size: int, labels: int) -> Array:
    """The diagonal matrix with the weight of each time, once per label."""
    return jnp.diag(jnp.broadcast_to(jnp.repeat(jnp.ravel(weights), labels), (size,)))
