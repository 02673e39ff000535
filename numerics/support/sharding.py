"""Functions of one point, mapped over many points that several devices share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

POINTS = "points"
"""The axis of devices along which points are shared out."""


def mesh_of(devices: Sequence[Any]) -> Mesh:
    """Return devices in a row."""
    return Mesh(np.array(devices), (POINTS,))


def along_points() -> PartitionSpec:
    """Return how arrays lie whose leading axis devices share."""
    return PartitionSpec(POINTS)  # type: ignore[no-untyped-call]  # JAX gives it no types


def everywhere() -> PartitionSpec:
    """Return how arrays lie that every device has."""
    return PartitionSpec()  # type: ignore[no-untyped-call]  # JAX gives it no types


def sharded(function: Callable[..., Any], devices: Sequence[Any], shared: int = 0) -> Callable[..., Any]:
    """Return the function mapped over the leading axis of its arguments, an equal part of it on each device.

    Every device runs the program of one device on its part and waits for no other. shared: how many of the last
    arguments all points have in common.
    """

    def together(*arguments: Any) -> Any:
        own = len(arguments) - shared
        mapped = jax.vmap(function, in_axes=(0,) * own + (None,) * shared)
        if len(devices) == 1:
            return mapped(*arguments)
        specs = (along_points(),) * own + (everywhere(),) * shared
        part = jax.shard_map(mapped, mesh=mesh_of(devices), in_specs=specs, out_specs=along_points(), check_vma=False)
        return part(*arguments)

    return together
