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
    """A symmetric matrix with `values` written at rows x columns and, transposed, at columns x rows."""
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    values = values.reshape(rows.size, columns.size)
    matrix = matrix.at[rows[:, None], columns[None, :]].set(values)
    return matrix.at[columns[:, None], rows[None, :]].set(values.T)


def forward_pass(nu, chi, gamma):
    """Order parameters before the last update (none: times by times), observables at all times, and the
    number of times before anything overflowed.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.
    """

    order = {}
    observables = {}
    return order, observables, 1
