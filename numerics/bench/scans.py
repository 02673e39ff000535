"""Benchmark of outliers: one eigenproblem against a scan of A(z) for its singular points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from numerics.bench.tools import BenchRow, built, time_in_turns
from numerics.bulk.branch import Branch
from numerics.outliers.finding import cycle_spectra, smallest_singular_values
from numerics.outliers.problem import SpikedProblem
from numerics.solver import solve, spiked_problem
from numerics.support.precision import in_float64

SPIKES, POINTS, MOST_POINTS = 8, 400, 12800
"""Number of spikes, initial points of the scan, and most points; doubled until it sees all outliers."""
ACCURACY = 1e-12
"""Tolerance of refined minima, relative to the largest outlier."""


def scan(problem: SpikedProblem, grid: np.ndarray, accuracy: float) -> list[float]:
    """Return the minima of the smallest singular value of A(z) on a grid, refined to a relative accuracy."""
    values = smallest_singular_values(problem, grid)
    minima = [k for k in range(1, len(grid) - 1) if values[k] < min(values[k - 1], values[k + 1])]
    return [
        minimize_scalar(
            lambda x: smallest_singular_values(problem, np.array([x]))[0],
            bounds=(grid[k - 1], grid[k + 1]),
            method="bounded",
            options={"xatol": accuracy * grid[-1]},
        ).x
        for k in minima
    ]


def fresh(problem: SpikedProblem) -> SpikedProblem:
    """Return the problem with a branch whose caches are empty."""
    return replace(problem, branch=Branch(problem.branch.law, problem.branch.p))


def farthest(values: list[float], others: list[float]) -> float:
    """Return the largest relative distance of a value to the nearest of the others."""
    return max((min(abs(z - x) for x in others) / abs(z) for z in values), default=0.0) if others else float("inf")


def outliers(references: Path | None) -> Iterator[BenchRow]:
    """All outliers of 8 coupled spikes: one eigenproblem against a scan of A(z)."""
    solver = built("coupled_spikes")
    solution = solve(solver, {"alpha": 2.0, "sigma": 1.0, "theta": 1.5, "kappa": 0.02, "S": SPIKES})
    problem = spiked_problem(solver, solution)
    low, high = solution.bulk_edges[-1][1] * 1.001, max(solution.outliers) * 1.05
    above, points = [z for z in solution.outliers if z > low], POINTS
    while points < MOST_POINTS and len(scan(problem, np.linspace(low, high, points), ACCURACY)) < len(above):
        points *= 2
    grid = np.linspace(low, high, points)

    @in_float64
    def reduced() -> list[float]:
        return [z for z, _ in cycle_spectra(fresh(problem))[0].outliers]

    @in_float64
    def scanned() -> list[float]:
        return scan(fresh(problem), grid, ACCURACY)

    fast, slow = time_in_turns(reduced, scanned, repeats=3)
    found, minima = [z for z in reduced() if z > low], scanned()
    yield BenchRow(
        "outliers: scan over eigenproblem",
        slow.seconds / fast.seconds,
        "times",
        f"{len(found)} outliers of {SPIKES} coupled spikes in {fast.seconds:.4f} s; minima of the smallest singular "
        f"value of A(z) on {points} points, refined, in {slow.seconds:.2f} s: {len(minima)}, off by up to "
        f"{farthest(found, minima):.0e}",
        fast.compilation,
    )
    yield BenchRow(
        "outliers: residual",
        solution.diagnostics.residual,
        "",
        "largest of the smallest singular values of A(z) at the outliers, relative to the largest entry",
    )
