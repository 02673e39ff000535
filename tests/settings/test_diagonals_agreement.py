"""Probed matrices with a diagonal against finite-size simulation, judged as one family (see `agreement`)."""

from __future__ import annotations

from functools import cache

import pytest
from agreement import Block, sees_stretch, too_far, wrong
from conftest import solver_and_values
from simulated import block_of, stretched

from numerics.solution import Prediction
from numerics.solver import Solver, solve

CASES = {
    "planted in weighted rows": ("uneven_samples", {}),
    "few rows": ("uneven_samples", {"nu": 0.7, "kappa": 3.0, "theta": 2.0}),
    "learned beside local fields": ("local_fields", {}),
    "learned in few steps": ("local_fields", {"rate": 1.5, "width": 0.8, "T": 2}),
    "Jacobian of a layer that learned": ("tanh_jacobian", {}),
    "planted in a profile of variances": ("uneven_wigner", {}),
}
SIZES = ((90, 200), (270, 100))


@cache
def theory_of(case: str) -> tuple[Solver, Prediction]:
    name, changes = CASES[case]
    solver, values = solver_and_values(name, **changes)
    return solver, solve(solver, values)


@cache
def block(case: str, seed: int) -> Block:
    return block_of(case, *theory_of(case), seed, SIZES)


@pytest.mark.long_cases("planted in weighted rows")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_outliers_and_moments_are_within_the_bound_of_the_suite(case, simulation_seed):
    theory = theory_of(case)[1]
    assert theory.outliers[0] > theory.bulk_edges[-1][1]
    found = block(case, simulation_seed)
    assert any("outlier" in c.name for c in found.comparisons)
    assert not too_far([found])


@pytest.mark.slow
def test_all_have_no_common_bias_and_the_spread_of_their_errors(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES])


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.06, -0.06])
def test_outliers_off_by_a_share_of_their_distance_from_the_edge_are_seen(share, simulation_seed):
    blocks = [block(case, simulation_seed) for case in CASES]
    assert sees_stretch(blocks, abs(share))
    assert any("percent off" in line for line in wrong([stretched(b, share) for b in blocks]))
