"""The processes, executor or cluster that compute a sweep."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from derive.sweeps.watching import Progress
from derive.sweeps.workers import Crew, GivenExecutor, Here, Processes, cluster
from numerics.options import CORES, SweepOptions


@dataclass(frozen=True)
class Workers:
    """The workers that the options of a sweep request: this process by default.

    most: number of processes that memory allows, if one per core was requested.
    """

    options: SweepOptions
    most: int | None = None

    @property
    def number(self) -> int:
        """The number of units computed concurrently, if known."""
        jobs = self.options.jobs
        if jobs == CORES:
            return min(cores(), self.most or cores())
        return 1 if jobs is None else int(jobs)

    @contextmanager
    def crew(self, tell: Progress | None) -> Iterator[Crew]:
        """Start the workers and yield them."""
        options = self.options
        if options.on is not None:
            with cluster(options.on) as far:
                yield far
        elif options.executor is not None:
            yield GivenExecutor(options.executor)
        else:
            yield Here(tell) if options.jobs is None else Processes(self.number)


def cores() -> int:
    """Return the number of available cores."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1
