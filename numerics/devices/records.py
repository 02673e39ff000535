"""The result of compiling a solver for a device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from numerics.devices.device import Device
from numerics.devices.functions import HostPart
from numerics.devices.programs import CompiledLoop


@dataclass(frozen=True)
class CompiledFunction:
    """One function, compiled for a device."""

    name: str
    seconds: float
    """Compilation time."""
    program: CompiledLoop
    """Kernels and loops; the program itself runs once."""
    custom_calls: Mapping[str, int]
    """Calls of libraries in the text of the program, by name."""
    host_calls: tuple[str, ...]
    """Calls and transfers that need the host."""
    collectives: int
    """Instructions in which devices wait for each other."""
    floats: tuple[str, ...]
    """Types of all floating-point and complex arrays, such as f64."""
    arguments: int
    """Bytes of the arguments on one device."""
    results: int
    """Bytes of the results on one device."""
    working: int
    """Bytes of temporary arrays on one device, without the workspace of libraries."""
    workspace: int
    """Bytes of workspace of libraries, independent of the number of points."""
    points: int
    """Points that one device computes together."""

    @property
    def double(self) -> bool:
        """Whether all arithmetic is in double precision."""
        return set(self.floats) <= {"f64", "c128"}

    @property
    def steps(self) -> tuple[int, ...]:
        """Kernels in one iteration of each outermost loop."""
        return tuple(loop.per_step for loop in self.program.loops)

    @property
    def kernels(self) -> int | None:
        """Kernels in one call; None if a loop ends at a condition."""
        return self.program.per_step if self.program.bounded else None

    @property
    def memory(self) -> int:
        """Bytes of one point."""
        return math.ceil((self.arguments + self.results + self.working) / self.points)

    def as_dict(self, device: Device) -> dict[str, Any]:
        """Return the function as plain data."""
        return {
            "name": self.name,
            "seconds": self.seconds,
            "kernels": self.kernels,
            "once": self.program.kernels,
            "steps": list(self.steps),
            "loops": [loop.trips for loop in self.program.loops],
            "custom_calls": dict(self.custom_calls),
            "host_calls": list(self.host_calls),
            "collectives": self.collectives,
            "floats": list(self.floats),
            "memory": self.memory,
            "workspace": self.workspace,
            "busy": self.busy(device),
            "most": self.most(device),
        }

    def busy(self, device: Device) -> int:
        """Return the number of points at which the mean kernel has as many entries as the device can hold threads."""
        return math.ceil(device.resident_threads * self.points / max(1.0, self.program.width))

    def most(self, device: Device) -> int:
        """Return the number of points that fit into the memory of the device."""
        return max(0, device.memory - self.workspace) // max(1, self.memory)


@dataclass(frozen=True)
class Compilation:
    """A solver compiled for a device that was not present: nothing was executed on it."""

    setting: str
    device: Device
    devices: int
    """Number of devices over which the points are sharded."""
    batch: int
    """Points computed together."""
    functions: tuple[CompiledFunction, ...]
    host: tuple[HostPart, ...]
    """Parts that run on the host, and quantities that are not functions."""
    versions: Mapping[str, str]
    """Versions of JAX and of the compiler packages."""

    def as_dict(self) -> dict[str, Any]:
        """Return the compilation as plain data."""
        return {
            "setting": self.setting,
            "device": asdict(self.device),
            "devices": self.devices,
            "batch": self.batch,
            "functions": [one.as_dict(self.device) for one in self.functions],
            "host": [asdict(part) for part in self.host],
            "versions": dict(self.versions),
        }

    def __getitem__(self, name: str) -> CompiledFunction:
        return next(one for one in self.functions if one.name == name)
