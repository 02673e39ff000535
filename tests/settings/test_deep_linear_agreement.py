"""Deep linear networks against simulation of the same declaration, judged as one family (see `agreement`)."""

from __future__ import annotations

from functools import cache

import pytest
from agreement import Block, sees_stretch, too_far, wrong
from simulated import block_of

from derive.codegen.store import stored_files
from derive.inputs.problems import load_problem
from numerics.solution import Prediction
from numerics.solver import Solver, load_solver, solve

pytestmark = pytest.mark.slow

CASES = {
    "one layer": ("L=1 T=8 C=1 alpha=2 nu=2 gamma0=4 eta=0.1 sigma=0.3 data=full_batch", (4, 5, 6)),
    "two layers, online": ("L=2 T=8 C=1 alpha=2 nu=1 gamma0=6 eta=0.05 sigma=0.3 data=online", (4, 5, 6)),
    "inputs of two variances": (
        "L=1 T=6 C=1 alpha=2 nu=2 gamma0=4 eta=0.08 sigma=0.3 data=online spectrum=two_groups kappa=2.5",
        (4, 5),
    ),
    "three classes, online": ("L=1 T=4 C=3 alpha=2 nu=2 gamma0=4 eta=0.12 sigma=0.3 data=online", (3,)),
    "teachers that differ": (
        "L=1 T=4 alpha=2 nu=2 gamma0=4 eta=0.12 sigma=0.3 data=online teachers=given strengths=[1.6,1] "
        "gram=[[1,0.3],[0.3,1]]",
        (3,),
    ),
}
"""Rates well inside the stable range, since instability multiplies what one sample has by chance; feature learning
strong enough that every layer has an outlier at the times that are looked at; few steps, since r directions at random
hold r / D of any vector."""
FURTHER = (
    "inputs of two variances",
    "teachers that differ",
    "two layers, online",
    "three classes, online",
)
"""Tried with the long tests only."""
SIZES = ((90, 240), (270, 60))
TIMES = {case: times for case, (_, times) in CASES.items()}


@cache
def solver_of(case: str) -> Solver:
    return load_solver(stored_files(load_problem("deep_linear", CASES[case][0].split()).model))


@cache
def theory_of(case: str) -> Prediction:
    problem = load_problem("deep_linear", CASES[case][0].split())
    return solve(solver_of(case), problem.inputs, path=True, overlaps=True)


@cache
def block(case: str, seed: int) -> Block:
    values = load_problem("deep_linear", CASES[case][0].split()).inputs
    looked = {"times": TIMES[case], "overlaps": True}
    return block_of(case, solver_of(case), theory_of(case), seed, SIZES, values, **looked)


@pytest.mark.long_cases(*FURTHER)
@pytest.mark.parametrize("case", CASES)
def test_everything_there_is_to_compare_is_compared(case, simulation_seed):
    names = [c.name for c in block(case, simulation_seed).comparisons]
    for layer in theory_of(case).layers:
        mine = [name for name in names if name.startswith(f"layer {layer.label}: ")]
        for words in ("right overlap", "left overlap", *(f"above the bulk at time {time}" for time in TIMES[case])):
            assert any(words in name for name in mine), (layer.label, words)
        assert any(name.endswith("above the bulk") and "overlap" not in name for name in mine)
    assert sum("_loss at" in name for name in names) == 10


@pytest.mark.long_cases(*FURTHER)
@pytest.mark.parametrize("case", CASES)
def test_every_quantity_is_within_the_bound_of_the_suite(case, simulation_seed):
    assert not too_far([block(case, simulation_seed)])


def test_most_networks_have_no_common_bias(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES if case not in FURTHER])


@pytest.mark.long
def test_networks_have_no_common_bias_and_outliers_that_are_off_are_seen(simulation_seed):
    """Their outliers scatter more than those of the other families, which see two percent."""
    blocks = [block(case, simulation_seed) for case in CASES]
    assert not wrong(blocks)
    assert sees_stretch(blocks, 0.08)
