"""Speed, as ratios: both ways are timed side by side in the same run, so the machine cancels."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from derive.errors import DeriveError
from numerics.bench import (
    bulk as bench_bulk,
    certificates,
    networks,
    passes,
    processes,
    recurrent,
    site_outliers,
    sites,
    sweeps,
    wide as bench_wide,
)
from numerics.bench.tools import Figure, timed
from numerics.outliers.finding import by_eigenvalues, smallest_singular_values
from numerics.precision import in_float64
from numerics.solver import load_built, solve, spiked_problem

Progress = Callable[[float, str], None]


def run(
    progress: Progress | None = None, references: Path | None = None, only: str = "", long: bool = False
) -> list[Figure]:
    """All figures, in order, or those whose title contains `only`; `references` holds equations written by hand.

    long: also those that take minutes each.
    """
    figures: list[Figure] = []
    known = (*MEASUREMENTS, *(LONG if long else ()))
    chosen = [measure for measure in known if only.lower() in _title(measure)]
    if not chosen:
        raise DeriveError(f"no measurement is about {only!r}; they are: {'; '.join(map(_title, known))}")
    for i, measure in enumerate(chosen):
        if progress is not None:
            progress(i / len(chosen), _title(measure))
        figures += measure(references)
    return figures


def _title(measure: Callable[..., Any]) -> str:
    return (measure.__doc__ or "").partition("\n")[0].rstrip(".").lower()


def outliers(references: Path | None) -> list[Figure]:
    """All outliers of 60 coupled spikes: one eigenproblem against a scan of A(z)."""
    spikes, points = 60, 400
    solver = load_built("coupled_spikes")
    if solver is None:
        raise DeriveError("the setting coupled_spikes has not been built; run derive build first")
    values = {"alpha": 2.0, "sigma": 1.0, "theta": 1.5, "kappa": 0.02, "S": spikes}
    solution = solve(solver, values)
    problem = spiked_problem(solver, solution)
    grid = np.linspace(solution.bulk_edges[-1][1] * 1.001, max(solution.outliers) * 1.05, points)
    found: list[Any] = []

    @in_float64
    def reduced() -> None:
        found[:] = by_eigenvalues(problem, problem.probe.rings[0])

    def scan() -> None:
        smallest_singular_values(problem, grid)

    reduced()  # compile once, outside the clock
    fast = statistics.median(timed(reduced) for _ in range(5))
    slow = timed(scan)
    residual = solution.diagnostics["residual"]
    return [
        Figure(
            "outliers: eigenproblem over scan",
            slow / fast,
            "times",
            f"all {len(found)} outliers of {spikes} coupled spikes in {fast:.4f} s, "
            f"smallest singular value of A(z) on {points} points in {slow:.2f} s",
        ),
        Figure(
            "outliers: residual",
            residual,
            "",
            "largest of the smallest singular values of A(z) at the outliers, relative to the largest entry",
        ),
    ]


MEASUREMENTS: tuple[Callable[[Path | None], list[Figure]], ...] = (
    outliers,
    site_outliers.outliers_with_averages,
    networks.forward_pass,
    passes.recurrent_pass,
    passes.deep_pass,
    networks.growing_arrays,
    networks.equal_labels,
    networks.outlier_path,
    networks.theory_and_simulation,
    networks.growth,
    bench_wide.theory_and_network,
    bench_wide.small_networks,
    bench_wide.one_percent,
    bench_wide.damped_iteration,
    bench_wide.growth_with_spikes,
    recurrent.recurrent_network,
    sites.groups_of_sites,
    bench_bulk.bulk,
    sweeps.side_by_side,
    sweeps.ends_of_spectra,
    sweeps.workers,
    certificates.certificates,
    processes.compiling,
    processes.first_solve,
    processes.functions,
    processes.second_solves,
    processes.depth,
    processes.elimination,
    processes.large_elimination,
    processes.build_everything,
    processes.start_up,
)
"""What `derive bench` measures; a new figure is one more function here."""
LONG: tuple[Callable[[Path | None], list[Figure]], ...] = (bench_wide.more_small_networks, bench_wide.fifty_points)
"""What it measures on request."""
