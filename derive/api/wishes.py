"""What is wanted of a sweep, and who is to compute it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from derive.api.points import Drawn
from derive.errors import DeriveError, ParameterError
from derive.sweeps.watching import Progress
from derive.sweeps.workers import Crew, Given, Here, Processes, cluster
from numerics.runtime.two_time import Wanted

KINDS = ("solve", "simulate", "compare")
CORES = "cores"
"""As many processes as there are cores, once it pays to start them."""


@dataclass(frozen=True)
class Wish:
    """What is wanted at each point; options are those of `Theory.solve`, `Theory.simulate` and `Theory.compare`."""

    of: str
    size: int
    seeds: int
    seed: int
    samples: int | None = None
    rank: int | None = None
    backend: str = "numpy"
    path: Any = None
    overlaps: bool | None = None
    eigenvalues: str | None = None
    kernels: Wanted = ()
    certify: bool = False

    def __post_init__(self) -> None:
        if self.of not in KINDS:
            raise ParameterError(f"of={self.of!r} is not known; it must be solve, simulate or compare")
        if self.of == "compare" and self.seeds < 2:
            raise ParameterError("seeds must be at least 2 to compare: one seed gives no standard error")

    @property
    def told(self) -> dict[str, Any]:
        """All that numbers depend on, but for how many samples there are: more samples extend fewer."""
        path = list(self.path) if isinstance(self.path, Sequence) else self.path
        common = {
            "seed": self.seed,
            "path": path,
            "overlaps": self.overlaps,
            "kernels": [list(k) for k in self.kernels],
        }
        solving = {"samples": self.samples, "rank": self.rank} if self.of != "simulate" else {}
        solving |= {"certify": True} if self.certify else {}
        sampling: dict[str, Any] = {}
        if self.of != "solve":
            sampling = {"size": self.size, "backend": self.backend, "eigenvalues": "ends" if self.ends_only else "all"}
        return {**common, **solving, **sampling}

    @property
    def ends_only(self) -> bool:
        return self.eigenvalues == "ends"

    def options(self, verb: str) -> dict[str, Any]:
        """What results of a verb say of how they were made."""
        common = {"seed": self.seed, "path": self.path, "kernels": self.kernels}
        solving = {"samples": self.samples, "rank": self.rank} if verb != "simulate" else {}
        if verb == "solve":
            return {**common, **solving}
        drawn = Drawn(self.size, self.seeds, self.seed, self.backend, self.ends_only)
        return {**drawn.told, **common, **solving}


@dataclass(frozen=True)
class Workers:
    """Who computes. jobs: so many processes on this machine, or CORES; executor: any; on: a cluster,
    "dask:tcp://HOST:PORT". This process if none is given. journal: a file that keeps what is finished. shard: (k, n),
    only each n-th unit. most: processes that have memory, where it is CORES that was asked for."""

    jobs: int | str | None = None
    executor: Executor | None = None
    on: str | None = None
    journal: Path | None = None
    shard: tuple[int, int] | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.jobs, self.executor, self.on)) > 1:
            raise ParameterError("jobs, executor and on exclude each other: give one of them")
        if self.jobs is not None and self.jobs != CORES and (not isinstance(self.jobs, int) or self.jobs < 1):
            raise ParameterError(f"jobs={self.jobs}: give how many processes, at least one, or {CORES!r}")
        if self.shard is not None:
            part, parts = self.shard
            if not 1 <= part <= parts:
                raise ParameterError(f"shard {part}/{parts}: write K/N with K from 1 to N")
            if self.journal is None:
                raise ParameterError("a shard needs a journal of its own, which is what is joined afterwards")

    @property
    def number(self) -> int:
        """How many units are computed at once, as far as it is known."""
        if isinstance(self.jobs, int):
            return self.jobs
        return min(cores(), self.most or cores()) if self.jobs == CORES else 1

    @contextmanager
    def crew(self, tell: Progress | None) -> Iterator[Crew]:
        if self.on is not None:
            with cluster(self.on) as far:
                yield far
        elif self.executor is not None:
            yield Given(self.executor)
        else:
            yield Here(tell) if self.jobs is None else Processes(self.number)


def cores() -> int:
    """How many processes can work at once."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1


def shard_of(text: str) -> tuple[int, int]:
    """K/N as two numbers."""
    part, slash, parts = text.partition("/")
    if not (slash and part.strip().isdigit() and parts.strip().isdigit()):
        raise DeriveError(f"shard {text}: write K/N, such as 2/8 for the second of eight")
    return int(part), int(parts)
