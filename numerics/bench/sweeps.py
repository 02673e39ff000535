"""Speed of a sweep: points side by side against a loop over single solves, and two workers against one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from derive.errors import DeriveError
from numerics.bench.tools import Figure, timed
from numerics.simulation.outermost import by_lanczos
from numerics.solver import load_built, solve, solve_many

VALUES = {"alpha": 2.0, "nu": 1.0, "gamma0": 1.0, "eta": 0.1, "sigma": 0.3, "C": 1, "T": 30}
GRID = ("L=2", "T=30", "nu=0.5,1,2,4", "gamma0=0.25:4:96")


def side_by_side(references: Path | None) -> list[Figure]:
    """Points of a sweep a second: 32 of deep_linear side by side against a loop over single solves."""
    solver = load_built("deep_linear")
    if solver is None:
        raise DeriveError("the setting deep_linear has not been built; run derive build first")
    points = [{**VALUES, "gamma0": 0.25 + 0.1 * k} for k in range(32)]

    def together() -> None:
        for start in (0, 16):
            list(solve_many(solver, points[start : start + 16], path=True, overlaps=True, batch=16))

    def one_by_one() -> None:
        for point in points:
            solve(solver, point, path=True, overlaps=True)

    together()  # compile once, outside the clock
    solve(solver, points[0], path=True, overlaps=True)
    fast, slow = timed(together), timed(one_by_one)
    return [
        Figure(
            "points of a sweep over single solves",
            slow / fast,
            "times",
            f"deep_linear, L = 2, T = 30, paths of both layers: {len(points) / fast:.3g} points a second side by side, "
            f"{len(points) / slow:.3g} one by one",
        )
    ]


def ends_of_spectra(references: Path | None) -> list[Figure]:
    """Ends of the spectrum of a large sample against all of it."""
    size, figures = 2000, []
    entries = np.random.default_rng(0).standard_normal((2 * size, size))
    spike = np.outer(entries[0], entries[0]) / size
    for name, bulk in (
        ("W + W^T", (entries[:size] + entries[:size].T) / np.sqrt(2 * size)),
        ("W^T W", entries.T @ entries / size),
    ):
        matrix = bulk + 9 * spike
        few = timed(partial(by_lanczos, matrix, 20))
        whole = timed(partial(np.linalg.eigh, matrix))
        told = f"size {size}, twenty eigenvalues at either end with vectors: {few:.2f} s against {whole:.2f} s"
        figures.append(Figure(f"all eigenvalues of {name} over the ends", whole / few, "times", told))
    return figures


def workers(references: Path | None) -> list[Figure]:
    """Points of a sweep a second: two workers against one. With few parts, the end, when one waits, counts too much."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    seconds = {jobs: _swept(jobs) for jobs in (1, 2)}
    return [
        Figure(
            "points of a sweep: two workers over one",
            seconds[1] / seconds[2],
            "times",
            f"from the first to the last line of the journal, deep_linear, 384 points: {seconds[1]:.1f} s and "
            f"{seconds[2]:.1f} s, starting and compiling left out; {load:.1f} processes of others were running before",
        )
    ]


def _swept(jobs: int) -> float:
    """Seconds for each finished part after the first of every worker, times all parts."""
    with tempfile.TemporaryDirectory() as place:
        journal = Path(place) / "journal"
        command = [sys.executable, "-m", "derive", "solve", "deep_linear", *GRID, "--jobs", str(jobs)]
        process = subprocess.Popen([*command, "--journal", str(journal)], stdout=subprocess.DEVNULL)
        seen: list[float] = []
        while process.poll() is None:
            lines = journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0
            seen += [time.perf_counter()] * (lines - len(seen))
            time.sleep(0.01)
        if process.returncode or len(seen) < 2 * jobs:
            raise DeriveError("the sweep that was to be timed failed; run derive solve deep_linear to see why")
        return (seen[-1] - seen[jobs - 1]) / (len(seen) - jobs) * len(seen)
