"""Speed of wide nonlinear networks: theory against a trained network, pathwise against Stein, growth with spikes."""

from __future__ import annotations

import math
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

from derive.errors import DeriveError
from numerics.bench.tools import Figure, timed
from numerics.solver import Solver, load_built, solve

SETTING = "wide_network"
WIDTH, SPREAD_WIDTH, SPREAD_SEEDS = 4000, 500, 8
SAMPLES = 10_000


def _problem(steps: int, points: int = 6) -> tuple[Solver, dict[str, Any]]:
    """The setting as built, with points of its teacher."""
    solver = load_built(SETTING)
    if solver is None:
        raise DeriveError(f"the setting {SETTING} has not been built; run derive build first")
    values: dict[str, Any] = {q.name: q.default for q in solver.setting.parameters}
    values |= {"P": points, "B": points, "T": steps, "eta": 3.0 / steps, "gamma": 4.0}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, values["D"]))
    signal = x[:, 0]
    times = steps + 1
    values["x"] = np.broadcast_to(x, (times, *x.shape))
    values["y"] = np.broadcast_to(signal + signal**2 / 2, (times, points))
    return solver, values


def _largest(solver: Solver, values: dict[str, Any], width: int, seed: int) -> float:
    """The largest eigenvalue of the last hidden layer of one trained network."""
    matrices, _, _ = solver.simulation.simulate(solver.point(values), size=width, rng=np.random.default_rng(seed))
    return float(eigsh(matrices[solver.matrices[-1].label], k=1, return_eigenvectors=False)[0])


def theory_and_network(references: Path | None) -> list[Figure]:
    """One theory solve against as many networks of width 4000 as have the same error."""
    solver, values = _problem(10)
    last = [solver.matrices[-1].label]
    solve(solver, values, samples=SAMPLES, layers=last)  # compile once, outside the clock
    found = []
    theory = statistics.median(
        timed(lambda: found.append(solve(solver, values, samples=SAMPLES, layers=last))) for _ in range(3)
    )
    solution = found[-1]
    error = solution.outlier_errors[0] if solution.outlier_errors else math.nan
    network = timed(lambda: _largest(solver, values, WIDTH, 0))
    tops = [_largest(solver, values, SPREAD_WIDTH, seed) for seed in range(SPREAD_SEEDS)]
    spread = statistics.stdev(tops) * math.sqrt(SPREAD_WIDTH / WIDTH)
    needed = max(1.0, (spread / error) ** 2)
    return [
        Figure(
            "networks of width 4000 over one theory solve, same error",
            needed * network / theory,
            "times",
            f"L = 3, P = 6, T = 10, last layer: outlier {solution.outliers[0]:.4f} +- {error:.4f} in {theory:.2f} s; "
            f"one network {network:.1f} s (largest eigenvalue by Lanczos) with spread {spread:.3f}, from width "
            f"{SPREAD_WIDTH}, so {needed:.0f} of them; compiling is not counted",
        )
    ]


def growth_with_spikes(references: Path | None) -> list[Figure]:
    """Growth of the cost of a theory solve with the number of spikes S = P T."""
    seconds: dict[int, float] = {}
    for steps in (5, 10, 20, 40):
        solver, values = _problem(steps)
        solve(solver, values, samples=SAMPLES)
        seconds[6 * steps] = timed(partial(solve, solver, values, samples=SAMPLES))
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    listed = ", ".join(f"{time:.2f} s at {count}" for count, time in seconds.items())
    return [Figure("growth of a sampled solve with S = P T", float(slope), "exponent", f"L = 3, two layers: {listed}")]
