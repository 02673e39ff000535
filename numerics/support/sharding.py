"""Functions of one point, mapped over many points that are distributed over several devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

POINTS = "points"
"""The mesh axis along which points are distributed."""


def mesh_of(devices: Sequence[Any]) -> Mesh:
    """Return a one-dimensional mesh of devices."""
    return Mesh(np.array(devices), (POINTS,))


def along_points() -> PartitionSpec:
    """Return the sharding of arrays whose leading axis is distributed."""
    return PartitionSpec(POINTS)  # type: ignore[no-untyped-call]  # JAX gives it no types


def everywhere() -> PartitionSpec:
    """Return the sharding of arrays that are replicated on every device."""
    return PartitionSpec()  # type: ignore[no-untyped-call]  # JAX gives it no types


def sharded(function: Callable[..., Any], devices: Sequence[Any], shared: int = 0) -> Callable[..., Any]:
    """Return the function mapped over the leading axis of its arguments, with equal parts on all devices.

    Every device runs the program of one device on its part without synchronisation. shared: the number of last
    arguments common to all points.
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
