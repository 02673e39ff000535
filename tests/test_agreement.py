"""Theory against finite-size simulation of the same declaration, at two sizes, in standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import solver_of, values_of

from numerics.simulation.compare import compare
from numerics.simulation.samples import simulate
from numerics.solver import solve

CASES = {
    "planted direction": ("spiked_wigner", {"gamma0": 1.8}, "above"),
    "learned outlier above": ("anti_hebbian", {"gamma0": 4.0, "dt": 0.1, "T": 30}, "above"),
    "learned outlier below": ("anti_hebbian", {"gamma0": -1.5, "dt": 0.1, "T": 10}, "below"),
    "linear spikes": ("coupled_spikes", {"alpha": 1.6, "theta": 2.0, "kappa": 0.3, "S": 3}, "above"),
    "negative laws": ("coupled_spikes", {"alpha": 3.0, "theta": -0.6, "kappa": -1.0, "sigma": 1.2, "S": 4}, "above"),
    "wide matrix": ("coupled_spikes", {"alpha": 0.5, "theta": 2.0, "kappa": 0.3, "sigma": 0.7, "S": 3}, "above"),
    "saturating spikes": ("coupled_spikes_tanh", {"alpha": 1.6, "theta": 2.5, "kappa": 0.8, "S": 5}, "above"),
    "directions removed": ("unlearning", {}, "below"),
    "network with labels": ("linear_network", {}, "above"),
    "online network": ("online_network", {}, "above"),
    "momentum and decay": ("hebbian_momentum", {}, "above"),
    "product of matrices": ("trained_product", {}, "above"),
    "two spiked Wisharts": ("two_spiked_wisharts", {}, "above"),
    "gated network": ("gated_network", {}, "above"),
}
SIZES = ((250, 24), (700, 16))


@pytest.mark.parametrize("case", CASES)
def test_theory_within_three_standard_errors_of_simulation(case):
    name, changes, side = CASES[case]
    solver, values = solver_of(name), values_of(name, **changes)
    theory = solve(solver, values, samples=60_000)
    low, high = theory.bulk_edges[0][0], theory.bulk_edges[-1][1]
    assert any(z > high if side == "above" else z < low for z in theory.outliers)
    for size, seeds in SIZES:
        rows = compare(theory, simulate(solver, values, size, seeds, seed=7))
        apart = [
            f"{r.quantity}: {r.theory:.5g} against {r.simulation:.5g} ({r.stderr:.2g})" for r in rows if not r.agrees
        ]
        assert not apart, f"size {size}: {apart}"


def test_histogram_follows_the_bulk_density():
    solver, values = solver_of("extensive_step"), values_of("extensive_step")
    theory = solve(solver, values)
    sample = simulate(solver, values, 600, 4)
    ((low, high),) = theory.bulk_edges
    bins = np.linspace(low, high, 25)
    counts = np.mean([np.histogram(e, bins)[0] for e in sample.eigenvalues], axis=0)
    fine = np.linspace(low, high, 24 * 40 + 1)
    density = theory.density(fine)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
    expected = 600 * np.diff(cumulative[::40])
    assert abs(cumulative[-1] - 1) < 1e-3
    assert np.max(np.abs(counts - expected)) < 6
