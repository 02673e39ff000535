"""Deep linear networks against simulation of the same declaration at two sizes, in standard errors."""

from __future__ import annotations

import math
from functools import cache

import pytest

from derive.codegen import generate_files
from derive.loading import load_problem
from numerics.simulation.compare import Row, compare
from numerics.simulation.samples import simulate
from numerics.solver import load_solver, solve

CASES = {
    "one layer": ("L=1 T=8 C=1 alpha=2 nu=2 gamma0=4 eta=0.1 sigma=0.3 data=full_batch", (4, 5, 6)),
    "two layers, online": ("L=2 T=8 C=1 alpha=2 nu=1 gamma0=6 eta=0.05 sigma=0.3 data=online", (4, 5, 6)),
    "three classes, online": ("L=1 T=4 C=3 alpha=2 nu=2 gamma0=4 eta=0.12 sigma=0.3 data=online", (2, 3)),
}
"""Rates well inside the stable range, since instability multiplies what one sample has by chance; feature learning
strong enough that every layer has an outlier at the times that are looked at; few steps, since r directions at random
hold r / D of any vector."""
SIZES = ((250, 24), (700, 12))


@cache
def results(case: str):
    text, times = CASES[case]
    problem = load_problem("deep_linear", text.split())
    solver = load_solver(generate_files(problem.model))
    theory = solve(solver, problem.values, path=True, overlaps=True)
    tables = []
    for size, seeds in SIZES:
        simulated = simulate(solver, problem.values, size, seeds, seed=7, times=times, overlaps=True)
        tables.append({row.quantity: row for row in compare(theory, simulated) if row.compared})
    return theory, tables


def told(row: Row) -> str:
    return f"{row.quantity}: {row.theory:.5g} against {row.simulation:.5g} ({row.stderr:.2g})"


@pytest.mark.parametrize("case", CASES)
def test_everything_there_is_to_compare_is_compared(case):
    theory, tables = results(case)
    _, times = CASES[case]
    names = list(tables[-1])
    for layer in theory.layers:
        mine = [name for name in names if name.startswith(f"layer {layer.label}: ")]
        for words in ("right overlap", "left overlap", *(f"above the bulk at time {time}" for time in times)):
            assert any(words in name for name in mine), (layer.label, words)
        assert any(name.endswith("above the bulk") and "overlap" not in name for name in mine)
    assert sum("_loss at" in name for name in names) == 10


@pytest.mark.parametrize("case", CASES)
def test_larger_size_within_three_standard_errors(case):
    _, tables = results(case)
    apart = [told(row) for row in tables[-1].values() if not row.agrees]
    assert not apart


@pytest.mark.parametrize("case", CASES)
def test_sizes_extrapolate_to_the_theory(case):
    """Corrections fall as 1/D; without them both sizes together are within three standard errors."""
    _, (small, large) = results(case)
    assert set(small) == set(large)
    apart = []
    (low, _), (high, _) = SIZES
    for name, row in large.items():
        limit = (high * row.simulation - low * small[name].simulation) / (high - low)
        error = math.hypot(high * row.stderr, low * small[name].stderr) / (high - low)
        if abs(limit - row.theory) > 3 * error:
            apart.append(f"{name}: {row.theory:.5g} against {limit:.5g} ({error:.2g})")
    assert not apart
