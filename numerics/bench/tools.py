"""What all measurements share: a figure, the clock, and processes in one state."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from derive.errors import DeriveError
from numerics.solver import Solver, load_built

XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
"""Each side of a ratio gets one thread for linear algebra: threads that wait for each other would count as work."""


@dataclass(frozen=True)
class BenchRow:
    """One measured number and how it was measured. compilation: CPU seconds of compilation, where anything is compiled;
    they are not part of the value."""

    name: str
    value: float
    unit: str
    detail: str
    compilation: float | None = None


Measurement = Callable[[Path | None], Iterator[BenchRow]]
"""Figures, each given as soon as it is measured; the argument is the directory of equations written by hand."""


@dataclass(frozen=True)
class Timing:
    """CPU seconds of a call, the median of several, and what the first call took beyond that: compilation."""

    seconds: float
    compilation: float


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU time of one call, of all threads and of child processes that ended in it."""
    start = _cpu_time()
    work()
    return _cpu_time() - start


def _cpu_time() -> float:
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def time_in_turns(*ways: Callable[[], object], repeats: int) -> list[Timing]:
    """CPU time of each way, called in turns, so that a slow moment of the machine meets all of them."""
    first = [cpu_seconds(way) for way in ways]
    turns = [[cpu_seconds(way) for way in ways] for _ in range(repeats)]
    medians = [statistics.median(column) for column in zip(*turns, strict=True)]
    return [Timing(one, max(0.0, begun - one)) for one, begun in zip(medians, first, strict=True)]


def built(setting: str) -> Solver:
    """The solver of a shipped setting."""
    solver = load_built(setting)
    if solver is None:
        raise DeriveError(f"the setting {setting} has not been built; run derive build first")
    return solver


def one_state(cache: str) -> dict[str, str]:
    """The environment in which everything is measured: one thread for linear algebra, nothing compiled before."""
    flags = " ".join(filter(None, (os.environ.get("XLA_FLAGS"), XLA_ONE_THREAD)))
    return {**os.environ, **ONE_THREAD, "XLA_FLAGS": flags, "TWO_LEVEL_DMFT_CACHE": cache}


def python(*arguments: str, **environment: str) -> str:
    """What a Python process of its own prints."""
    around = {**os.environ, **environment}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=around)
    if done.returncode != 0:
        raise failed(arguments, done.stderr, done.returncode)
    return done.stdout


def failed(arguments: Sequence[str], told: str, code: int) -> DeriveError:
    """The error of a process that was measured."""
    reason = (told.strip().splitlines() or [f"exit code {code}"])[-1]
    return DeriveError(f"python {' '.join(arguments)[:120]} failed while it was timed: {reason[:150]}")
