"""Double precision where this package computes, and nowhere else.

JAX computes in single precision unless told otherwise, and the switch is usually global. Here it is a scope, so a
caller's own JAX code keeps the precision it had.
"""

from __future__ import annotations

import functools

import jax


def in_float64(function):
    """Run a function with 64-bit JAX arrays."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped
