"""Shipped settings and declarations against finite-size simulation, judged as one family (see `agreement`)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from agreement import Block, sees_stretch, too_far, wrong
from conftest import solver_and_values
from simulated import SIZES, block_of, stretched

from numerics.simulation.samples import simulate
from numerics.solution import Prediction
from numerics.solver import Solver, solve

CASES = {
    "planted direction": ("spiked_wigner", {"gamma0": 1.8}, "above"),
    "learned outlier above": ("anti_hebbian", {"gamma0": 4.0, "dt": 0.1, "T": 30}, "above"),
    "learned outlier below": ("anti_hebbian", {"gamma0": -1.5, "dt": 0.1, "T": 10}, "below"),
    "learned in few steps": ("anti_hebbian", {"gamma0": 2.5, "dt": 0.25, "T": 6}, "above"),
    "linear spikes": ("coupled_spikes", {"alpha": 1.6, "theta": 2.0, "kappa": 0.3, "S": 2}, "above"),
    "negative laws": ("coupled_spikes", {"alpha": 3.0, "theta": -0.6, "kappa": -1.0, "sigma": 1.2, "S": 4}, "above"),
    "wide matrix": ("coupled_spikes", {"alpha": 0.5, "theta": 2.0, "kappa": 0.8, "sigma": 0.7, "S": 2}, "above"),
    "saturating spikes": ("coupled_spikes_tanh", {"alpha": 1.6, "theta": 2.5, "kappa": 0.8, "S": 3}, "above"),
    "directions removed": ("unlearning", {}, "below"),
    "network with labels": ("linear_network", {"T": 5, "eta": 0.15}, "above"),
    "many steps": ("linear_network", {"T": 20, "C": 1, "nu": 2.0, "eta": 0.05}, "above"),
    "online network": ("online_network", {}, "above"),
    "momentum and decay": ("hebbian_momentum", {}, "above"),
    "product of matrices": ("trained_product", {}, "above"),
    "two spiked Wisharts": ("two_spiked_wisharts", {}, "above"),
    "gated network": ("gated_network", {}, "above"),
    "memory with inputs": ("driven_memory", {}, "above"),
    "sites that differ": ("uneven_sites", {}, "above"),
    "frozen features": ("frozen_features", {}, None),
    "cross-entropy": ("softmax_network", {}, None),
    "classifier": ("classifier", {}, "above"),
}
"""Outliers well apart from each other and mostly from the bulk, where corrections fall as 1/size; few steps, since r
directions at random hold r / D of any vector. Those of twenty steps are nearly dependent: theory and simulation must
leave the same ones out of the span."""
FURTHER = (
    "negative laws",
    "directions removed",
    "many steps",
    "product of matrices",
    "two spiked Wisharts",
    "gated network",
    "memory with inputs",
    "classifier",
)
"""Tried with the long tests only."""
QUICK = ("planted direction", "learned outlier below", "linear spikes", "momentum and decay")
OTHER_SIZES = {
    "online network": ((90, 90), (180, 60)),
    "many steps": ((90, 120), (270, 60)),
    "wide matrix": ((150, 160), (450, 60)),  # which has half as many rows
}


@cache
def solver_of_case(case: str) -> Solver:
    return solver_and_values(CASES[case][0], **CASES[case][1])[0]


@cache
def theory_of(case: str) -> Prediction:
    name, changes, _ = CASES[case]
    solver, values = solver_and_values(name, **changes)
    return solve(solver, values, samples=40_000, overlaps=True)


@cache
def block(case: str, seed: int) -> Block:
    return block_of(case, solver_of_case(case), theory_of(case), seed, OTHER_SIZES.get(case, SIZES), overlaps=True)


def each(cases):
    return [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in cases]


@pytest.mark.slow
@pytest.mark.long_cases(*FURTHER)
@pytest.mark.parametrize("case", each(CASES))
def test_every_quantity_is_within_the_bound_of_the_suite(case, simulation_seed):
    side = CASES[case][2]
    theory = theory_of(case)
    if side is not None:
        low, high = theory.bulk_edges[0][0], theory.bulk_edges[-1][1]
        assert any(z > high if side == "above" else z < low for z in theory.outliers)
    found = block(case, simulation_seed)
    assert not too_far([found])
    names = [c.name for c in found.comparisons]
    sides = {key for layer in theory.layers for key, v in (layer.overlaps or {}).items() if np.isfinite(v).any()}
    for word in sides:
        assert any(n.startswith(f"{word} overlap") and n.endswith(f"{side} the bulk") for n in names), word


@pytest.mark.slow
def test_a_few_settings_have_no_common_bias_and_the_spread_of_their_errors(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in QUICK])


@pytest.mark.slow
def test_most_settings_have_no_common_bias_and_the_spread_of_their_errors(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES if case not in FURTHER])


@pytest.mark.long
@pytest.mark.slow
def test_all_settings_have_no_common_bias_and_the_spread_of_their_errors(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES])


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, -0.02])
def test_outliers_off_by_two_percent_of_their_distance_from_the_edge_are_seen(share, simulation_seed):
    blocks = [block(case, simulation_seed) for case in QUICK]
    assert sees_stretch(blocks, abs(share))
    assert any("percent off" in line for line in wrong([stretched(b, share) for b in blocks]))


@pytest.mark.long_cases("hebbian_momentum-rate-changes1", "two_spiked_wisharts-p-changes2")
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, parameter, changes",
    [
        ("spiked_wigner", "gamma0", {"gamma0": 4.0}),
        ("hebbian_momentum", "rate", {}),
        pytest.param("two_spiked_wisharts", "p", {}, marks=pytest.mark.slow),
    ],
)
def test_a_theory_solved_at_a_slightly_other_parameter_is_red_alone(name, parameter, changes, simulation_seed):
    """One that moves the first outlier by two percent of its distance from the edge, and the simulation as it was."""
    solver, values = solver_and_values(name, **changes)

    def at(value: float) -> Prediction:
        return solve(solver, {**values, parameter: value})

    start, right = values[parameter], at(values[parameter])
    distance = right.outliers[0] - right.bulk_edges[-1][1]
    slope = (at(1.001 * start).outliers[0] - right.outliers[0]) / (0.001 * start)
    other = at(start + 0.02 * distance / slope)
    assert other.outliers[0] - right.outliers[0] == pytest.approx(0.02 * distance, rel=0.1)
    assert np.array_equal(other.bulk_edges, right.bulk_edges)
    sizes = ((90, 400), (270, 200))
    assert not wrong([block_of(name, solver, right, simulation_seed, sizes)])
    assert wrong([block_of(name, solver, other, simulation_seed, sizes, values=values)])


@pytest.mark.slow
def test_histogram_follows_the_bulk_density(simulation_seed):
    """Eigenvalues repel, so that counts hardly fluctuate: a bin is off by less than six of 600."""
    solver, values = solver_and_values("extensive_step")
    theory = solve(solver, values)
    sample = simulate(solver, values, 600, 4, seed=simulation_seed)
    ((low, high),) = theory.bulk_edges
    bins = np.linspace(low, high, 25)
    counts = np.mean([np.histogram(e, bins)[0] for e in sample.eigenvalues], axis=0)
    fine = np.linspace(low, high, 24 * 40 + 1)
    density = theory.density(fine)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
    expected = 600 * np.diff(cumulative[::40])
    assert abs(cumulative[-1] - 1) < 1e-3
    assert np.max(np.abs(counts - expected)) < 6
