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
    """The workers that the options of a sweep ask for: this process if none are given.

    most: processes that have memory, where as many as there are cores were asked for.
    """

    options: SweepOptions
    most: int | None = None

    @property
    def number(self) -> int:
        """How many units are computed at once, as far as it is known."""
        jobs = self.options.jobs
        if jobs == CORES:
            return min(cores(), self.most or cores())
        return 1 if jobs is None else int(jobs)

    @contextmanager
    def crew(self, tell: Progress | None) -> Iterator[Crew]:
        """The workers, started."""
        options = self.options
        if options.on is not None:
            with cluster(options.on) as far:
                yield far
        elif options.executor is not None:
            yield GivenExecutor(options.executor)
        else:
            yield Here(tell) if options.jobs is None else Processes(self.number)


def cores() -> int:
    """How many processes can work at once."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1
