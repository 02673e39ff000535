"""GPUs by published figures, and their description for XLA."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from numerics.options import DEVICES

WARP, BLOCK = 32, 1024
"""Threads of a warp, and maximum threads of a block, on every CUDA device."""
GRID = (2**31 - 1, 65535, 65535)
"""Maximum number of blocks along each axis, on every CUDA device."""
STATIC_SHARED = 48 * 1024
"""Bytes of shared memory that a block has by default, on every CUDA device."""


@dataclass(frozen=True)
class Device:
    """A GPU by published figures."""

    key: str
    name: str
    source: str
    """Reference of the published figures."""
    capability: str
    """CUDA compute capability."""
    multiprocessors: int
    clock: float
    """Boost clock in Hz."""
    memory: int
    """Bytes."""
    bandwidth: float
    """Bytes per second."""
    cache: int
    """Bytes of the second-level cache."""
    threads: int
    """Threads that a multiprocessor can hold."""
    registers: int
    """32-bit registers of a multiprocessor."""
    shared: int
    """Bytes of shared memory of a multiprocessor."""
    shared_of_block: int
    """Bytes of shared memory that a block may request."""
    float32: int
    """Single-precision operations that a multiprocessor starts per clock."""
    float64: int
    """Double-precision operations that a multiprocessor starts per clock."""

    @property
    def resident_threads(self) -> int:
        """Threads that the device can hold."""
        return self.multiprocessors * self.threads

    @property
    def peak(self) -> float:
        """Double-precision operations per second, a multiplication with an addition counted as two."""
        return 2.0 * self.multiprocessors * self.float64 * self.clock

    @property
    def description(self) -> str:
        """The device in the text form of XLA's target configuration."""
        major, minor = self.capability.split(".")
        facts = {
            "threads_per_block_limit": BLOCK,
            "threads_per_warp": WARP,
            "shared_memory_per_block": STATIC_SHARED,
            "shared_memory_per_core": self.shared,
            "shared_memory_per_block_optin": self.shared_of_block,
            "threads_per_core_limit": self.threads,
            "core_count": self.multiprocessors,
            "fpus_per_core": self.float32,
            **{f"block_dim_limit_{axis}": most for axis, most in zip("xyz", GRID, strict=True)},
            "memory_bandwidth": int(self.bandwidth),
            "l2_cache_size": self.cache,
            "clock_rate_ghz": self.clock / 1e9,
            "device_memory_size": self.memory,
            "registers_per_core_limit": self.registers,
            "registers_per_block_limit": self.registers,
        }
        lines = [f"  {name}: {value}" for name, value in facts.items()]
        lines.append(f"  cuda_compute_capability {{ major: {major} minor: {minor} }}")
        named = ['platform_name: "CUDA"', f'device_description_str: "{self.name}"']
        return "\n".join(["gpu_device_info {", *lines, "}", *named])


@cache
def devices() -> dict[str, Device]:
    """Return the known devices by key."""
    facts = tomllib.loads((Path(__file__).parent / "facts.toml").read_text(encoding="utf-8"))
    known = {}
    for key in DEVICES:
        one = facts["device"][key]
        of_all = facts["capability"][one["capability"]]
        known[key] = Device(
            key=key,
            name=one["name"],
            source=one["source"],
            capability=one["capability"],
            multiprocessors=one["multiprocessors"],
            clock=one["clock_GHz"] * 1e9,
            memory=one["memory"],
            bandwidth=one["bandwidth"],
            cache=one["cache_MiB"] * 2**20,
            threads=of_all["threads"],
            registers=of_all["registers"],
            shared=of_all["shared_KiB"] * 2**10,
            shared_of_block=of_all["shared_of_block_KiB"] * 2**10,
            float32=of_all["float32"],
            float64=of_all["float64"],
        )
    return known
