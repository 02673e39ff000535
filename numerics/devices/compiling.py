"""Compilation of JAX functions for CUDA devices that are not present."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding

from derive.errors import DeriveError
from numerics.devices.device import Device
from numerics.devices.functions import DeviceFunction
from numerics.devices.programs import Program
from numerics.devices.records import CompiledFunction
from numerics.support.precision import in_float64
from numerics.support.sharding import along_points, everywhere, mesh_of, sharded

PLUGIN = "jax_plugins.xla_cuda12"
PACKAGES = ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda12-pjrt", "nvidia-cuda-nvcc-cu12")
OPTIONS = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
"""Without a device no kernel can be timed: libraries choose theirs at run time."""


def compiler_versions() -> dict[str, str]:
    """Return the versions of JAX and of the packages that compile for a GPU, if they are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def absent_devices(device: Device, count: int) -> tuple[Any, ...]:
    """Return devices to compile for, on one host, none of which is present."""
    jax.devices()  # plugins are looked for once, before the first device
    try:
        return _described(device, count)
    except (NotImplementedError, RuntimeError):
        _register_plugin()
    try:
        return _described(device, count)
    except (NotImplementedError, RuntimeError) as error:
        raise DeriveError(
            f"JAX does not compile for {device.name} here ({error}); install the packages of one version of JAX: "
            f"{', '.join(f'{name} {version}' for name, version in compiler_versions().items())} are installed"
        ) from None


def _described(device: Device, count: int) -> tuple[Any, ...]:
    """Return the devices of a topology that XLA creates from their description."""
    from jax.experimental import topologies

    described = topologies.get_topology_desc(platform="cuda", target_config=device.description, topology=f"1x1x{count}")
    return tuple(described.devices)


def _register_plugin() -> None:
    """Register the CUDA compiler if JAX omitted it because CUDA's libraries or a driver are missing."""
    config: Any = jax.config  # JAX gives it no types
    before = config.jax_platforms
    config.update("jax_platforms", "cpu")  # the plugin then skips its search for CUDA
    try:
        import_module(PLUGIN).initialize()
    except Exception as error:  # noqa: BLE001 - whatever the plugin raises
        raise DeriveError(f"the CUDA plugin of JAX does not load: {type(error).__name__}: {error}") from None
    finally:
        config.update("jax_platforms", before)


@contextmanager
def _uncached() -> Iterator[None]:
    """Keep programs out of JAX's persistent cache, which cannot reload programs of absent devices."""
    config: Any = jax.config  # JAX gives it no types
    before = config.jax_persistent_cache_min_compile_time_secs
    config.update("jax_persistent_cache_min_compile_time_secs", math.inf)
    try:
        yield
    finally:
        config.update("jax_persistent_cache_min_compile_time_secs", before)


@in_float64
def compile_for(one: DeviceFunction, devices: Sequence[Any], batch: int) -> CompiledFunction:
    """Compile a function for `batch` points, sharded over devices."""
    mesh = mesh_of(devices)
    mapped = batch > 1 or len(devices) > 1
    function = sharded(one.function, devices, len(one.shared)) if mapped else one.function

    def described(x: Any, of_points: bool) -> jax.ShapeDtypeStruct:
        x = x if hasattr(x, "shape") else jnp.asarray(x)
        several = (batch,) if mapped and of_points else ()
        place = NamedSharding(mesh, along_points() if several else everywhere())
        return jax.ShapeDtypeStruct((*several, *x.shape), x.dtype, sharding=place)  # type: ignore[no-untyped-call]

    own = jax.tree.map(lambda x: described(x, True), one.arguments)
    shared = jax.tree.map(lambda x: described(x, False), one.shared)
    start = time.perf_counter()
    with _uncached():
        compiled = jax.jit(function).trace(*own, *shared).lower().compile(compiler_options=OPTIONS)
    seconds = time.perf_counter() - start
    program, memory = Program.of(compiled.as_text() or ""), compiled.memory_analysis()
    return CompiledFunction(
        name=one.name,
        seconds=seconds,
        program=program.whole,
        custom_calls=program.custom_calls,
        host_calls=program.host_calls,
        collectives=program.collectives,
        floats=program.floats,
        arguments=memory.argument_size_in_bytes,
        results=memory.output_size_in_bytes,
        working=max(0, memory.temp_size_in_bytes - program.workspace),
        workspace=program.workspace,
        points=-(-batch // len(devices)),
    )
