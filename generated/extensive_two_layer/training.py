# Written by `derive build extensive_two_layer` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level, exactly: all laws are linear, so all fields are Gaussian and one forward pass is enough."""

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp  # noqa: F401


def earlier(rows, time, lag):
    """The row `lag` steps before `time`; before the start everything is zero."""
    return jnp.where(time >= lag, rows[time - lag], 0.0)


def delayed(rows, lag):
    """All rows, moved `lag` steps later."""
    return jnp.concatenate([jnp.zeros_like(rows[:lag]), rows[: rows.shape[0] - lag]])


def unit(position, size):
    """Unit vectors of the noise basis at the given positions."""
    return (position[..., None] == jnp.arange(size)).astype(float)


def put(matrix, rows, columns, values):
    """A symmetric matrix with the block columns x rows of values and its transpose."""
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    values = values.reshape(columns.size, rows.size)
    matrix = jax.lax.dynamic_update_slice(matrix, values, (columns[0], rows[0]))
    return jax.lax.dynamic_update_slice(matrix, values.T, (rows[0], columns[0]))


def forward_pass(nu, chi, gamma):
    """Order parameters before the last update (none: times by times), observables at all times, and the
    number of times before anything overflowed.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.
    """

    order = {}
    observables = {}
    return order, observables, 1


def strides(nu, chi, gamma):
    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""
    return {}
