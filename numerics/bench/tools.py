"""Tools of all benchmarks: result rows, CPU timing, and processes in a common environment."""

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
"""One thread for linear algebra, since waiting threads would count as CPU time."""


@dataclass(frozen=True)
class BenchRow:
    """One measured number and its method; compilation: CPU seconds of compilation, which the value excludes."""

    name: str
    value: float
    unit: str
    detail: str
    compilation: float | None = None


Measurement = Callable[[Path | None], Iterator[BenchRow]]
"""Yields rows as they are measured; the argument is the directory of hand-written equations."""


@dataclass(frozen=True)
class Timing:
    """Median CPU seconds of a call, and the excess of the first call, which is compilation."""

    seconds: float
    compilation: float


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, including threads and finished child processes."""
    start = _cpu_time()
    work()
    return _cpu_time() - start


def _cpu_time() -> float:
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def time_in_turns(*ways: Callable[[], object], repeats: int) -> list[Timing]:
    """Return the CPU time of each function, called in turn, so that a temporary slowdown of the machine affects all of
    them.
    """
    first = [cpu_seconds(way) for way in ways]
    turns = [[cpu_seconds(way) for way in ways] for _ in range(repeats)]
    medians = [statistics.median(column) for column in zip(*turns, strict=True)]
    return [Timing(one, max(0.0, begun - one)) for one, begun in zip(medians, first, strict=True)]


def built(setting: str) -> Solver:
    """Return the solver of a shipped setting."""
    solver = load_built(setting)
    if solver is None:
        raise DeriveError(f"the setting {setting} has not been built; run derive build first")
    return solver


def one_state(cache: str) -> dict[str, str]:
    """Return the common environment: one thread for linear algebra, an empty compilation cache."""
    flags = " ".join(filter(None, (os.environ.get("XLA_FLAGS"), XLA_ONE_THREAD)))
    return {**os.environ, **ONE_THREAD, "XLA_FLAGS": flags, "TWO_LEVEL_DMFT_CACHE": cache}


def python(*arguments: str, **environment: str) -> str:
    """Return the output of a separate Python process."""
    around = {**os.environ, **environment}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=around)
    if done.returncode != 0:
        raise failed(arguments, done.stderr, done.returncode)
    return done.stdout


def failed(arguments: Sequence[str], told: str, code: int) -> DeriveError:
    """Return the error of a measured process."""
    reason = (told.strip().splitlines() or [f"exit code {code}"])[-1]
    return DeriveError(f"python {' '.join(arguments)[:120]} failed while it was timed: {reason[:150]}")
