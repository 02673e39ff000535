"""Functions of arrays of NumPy and of JAX alike."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np


def module_of(array: Any) -> Any:
    """Return the module of the functions for an array: NumPy for its own, JAX otherwise."""
    return np if isinstance(array, np.ndarray) else jnp
