"""Benchmarks of a sweep: batched points against a loop over single solves, and two workers against one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

from derive.errors import DeriveError
from numerics.bench.tools import BenchRow, built, cpu_seconds, time_in_turns
from numerics.simulation.outermost import by_lanczos
from numerics.solution import Prediction
from numerics.solver import Solver, solve, solve_many
from numerics.support.precision import in_float64

VALUES = {"alpha": 2.0, "nu": 1.0, "gamma0": 1.0, "eta": 0.1, "sigma": 0.3, "C": 1, "T": 30}
BATCH = 16
"""Points per batch."""
GRID = ("L=2", "T=30", "nu=0.5,1,2,4", "gamma0=0.25:4:96")


SIDE = 20
"""Values along each of two axes of a sweep."""


def bare_vmap(references: Path | None) -> Iterator[BenchRow]:
    """A sweep of 20 x 20 points with default outputs against a bare vmap of the forward pass."""
    solver = built("deep_linear")
    gammas, rates = np.linspace(0.5, 3.0, SIDE), np.linspace(0.02, 0.1, SIDE)
    points = [{**VALUES, "gamma0": float(gamma), "eta": float(eta)} for gamma in gammas for eta in rates]
    found: list[float] = []

    def sweep() -> None:
        solutions = [one for start in range(0, len(points), BATCH) for one in _batch(solver, points[start:][:BATCH])]
        found[:] = [solution.observables["test_loss"][-1] for solution in solutions]

    def bare() -> np.ndarray:
        return _bare(solver, points)

    ours, theirs = time_in_turns(sweep, bare, repeats=3)
    yield BenchRow(
        "sweep over bare vmap",
        ours.seconds / theirs.seconds,
        "of its time",
        f"deep_linear, L = 2, T = 30, {len(points)} points: {ours.seconds:.2f} s with the bulk and outliers of both "
        f"layers, edges and moments, {theirs.seconds:.2f} s for losses alone, equal to "
        f"{np.max(np.abs(bare() - found)):.0e}",
        ours.compilation,
    )


def _batch(solver: Solver, points: list[dict[str, Any]]) -> list[Prediction]:
    found = list(solve_many(solver, points, batch=BATCH))
    return [one for one in found if isinstance(one, Prediction)]


@in_float64
def _bare(solver: Solver, points: list[dict[str, Any]]) -> np.ndarray:
    """Return the last losses of all points from a vmap of the forward pass alone."""
    each = [solver.point(values) for values in points]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    losses = _vmapped(solver)(stacked)
    return np.asarray(losses)


@cache
def _vmapped(solver: Solver) -> Any:
    return jax.jit(jax.vmap(lambda p: solver.rows.forward_pass(p)[1]["test_loss"][-1]))


def side_by_side(references: Path | None) -> Iterator[BenchRow]:
    """Points of a sweep: 32 of deep_linear side by side against a loop over single solves."""
    solver = built("deep_linear")
    points = [{**VALUES, "gamma0": 0.25 + 0.1 * k} for k in range(32)]

    def together() -> None:
        for start in range(0, len(points), BATCH):
            list(solve_many(solver, points[start : start + BATCH], path=True, overlaps=True, batch=BATCH))

    def one_by_one() -> None:
        for point in points:
            solve(solver, point, path=True, overlaps=True)

    fast, slow = time_in_turns(together, one_by_one, repeats=3)
    yield BenchRow(
        "single solves over points of a sweep",
        slow.seconds / fast.seconds,
        "times",
        f"deep_linear, L = 2, T = 30, paths of both layers, {len(points)} points: {fast.seconds:.2f} s side by side, "
        f"{slow.seconds:.2f} s one by one",
        fast.compilation,
    )


def ends_of_spectra(references: Path | None) -> Iterator[BenchRow]:
    """Ends of the spectrum of a large sample against all of it."""
    size, count = 2000, 20
    entries = np.random.default_rng(0).standard_normal((2 * size, size))
    spike = np.outer(entries[0], entries[0]) / size
    for name, bulk in (
        ("W + W^T", (entries[:size] + entries[:size].T) / np.sqrt(2 * size)),
        ("W^T W", entries.T @ entries / size),
    ):
        matrix, found = bulk + 9 * spike, list[np.ndarray]()
        few = cpu_seconds(lambda matrix=matrix, found=found: found.append(_ends(matrix, count)))  # type: ignore[misc]
        whole = cpu_seconds(lambda matrix=matrix, found=found: found.append(_all(matrix)))  # type: ignore[misc]
        off = np.max(np.abs(found[0] - np.concatenate([found[1][:count], found[1][-count:]])))
        told = (
            f"size {size}, {count} eigenvalues at either end with vectors: {few:.2f} s against {whole:.2f} s, equal to "
            f"{off:.0e}"
        )
        yield BenchRow(f"all eigenvalues of {name} over the ends", whole / few, "times", told)


def _ends(matrix: np.ndarray, count: int) -> np.ndarray:
    found = by_lanczos(matrix, count)
    if found is None:
        raise DeriveError("Lanczos' method missed an eigenvalue of a sample of the bench")
    return found[0]


def _all(matrix: np.ndarray) -> np.ndarray:
    values: np.ndarray = np.linalg.eigh(matrix)[0]
    return values


def workers(references: Path | None) -> Iterator[BenchRow]:
    """Points of a sweep per second: two workers against one, in wall time, because both do the same work."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    seconds = {jobs: _swept(jobs) for jobs in (1, 2)}
    yield BenchRow(
        "points of a sweep: two workers over one",
        seconds[1] / seconds[2],
        "times",
        f"from the first to the last line of the journal, deep_linear, 384 points: {seconds[1]:.1f} s and "
        f"{seconds[2]:.1f} s, starting and compiling left out; {load:.1f} processes of others were running before",
    )


def _swept(jobs: int) -> float:
    """Return the number of parts times the seconds per part, without the first part of every worker."""
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
            raise DeriveError("the timed sweep failed; run derive solve deep_linear to see why")
        return (seen[-1] - seen[jobs - 1]) / (len(seen) - jobs) * len(seen)
