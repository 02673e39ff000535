"""What all measurements share: a figure, and the clock."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from derive.errors import DeriveError


@dataclass(frozen=True)
class Figure:
    """One measured number and how it was measured. compilation: seconds of CPU that it took before, where it was."""

    name: str
    value: float
    unit: str
    detail: str
    compilation: float | None = None


def timed(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def worked(work: Callable[[], object]) -> float:
    """Seconds of the processor, of all threads, of one call: what other work on the machine adds is left out."""
    start = time.process_time()
    work()
    return time.process_time() - start


def side_by_side(first: Callable[[], object], second: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of both, called in turns so that a slow moment of the machine meets both."""
    pairs = [(timed(first), timed(second)) for _ in range(repeats)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def python(*arguments: str, **environment: str) -> str:
    """What a Python process of its own prints."""
    around = {**os.environ, **environment}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, env=around)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DeriveError(f"python {' '.join(arguments)} failed while it was timed: {reason}")
    return done.stdout
