"""Theory against finite-size simulation of the same declaration, at two sizes, in standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import solver_of, values_of

from numerics.compare import compare
from numerics.simulation import simulate
from numerics.solver import solve

CASES = {
    "planted direction": ("spiked_wigner", {"gamma0": 1.8}),
    "learned outlier above": ("anti_hebbian", {"gamma0": 4.0, "dt": 0.1, "T": 30}),
    "learned outlier below": ("anti_hebbian", {"gamma0": -1.5, "dt": 0.1, "T": 10}),
    "linear spikes": ("coupled_spikes", {"alpha": 1.6, "theta": 2.0, "kappa": 0.3, "S": 3}),
    "negative laws": ("coupled_spikes", {"alpha": 3.0, "theta": -0.6, "kappa": -1.0, "sigma": 1.2, "S": 4}),
    "directions removed": ("unlearning", {}),
    "wide matrix": ("coupled_spikes", {"alpha": 0.5, "theta": 2.0, "kappa": 0.3, "sigma": 0.7, "S": 3}),
    "saturating spikes": ("coupled_spikes_tanh", {"alpha": 1.6, "theta": 2.5, "kappa": 0.8, "S": 5}),
    "network with labels": ("linear_network", {}),
    "online network": ("online_network", {}),
    "momentum and decay": ("hebbian_momentum", {}),
    "product of matrices": ("trained_product", {}),
    "two spiked Wisharts": ("two_spiked_wisharts", {}),
    "gated network": ("gated_network", {}),
}
SIZES = ((250, 24), (700, 16))


@pytest.mark.parametrize("case", CASES)
def test_theory_within_three_standard_errors_of_simulation(case):
    name, changes = CASES[case]
    solver, values = solver_of(name), values_of(name, **changes)
    theory = solve(solver, values, samples=60_000)
    assert theory.outliers
    for size, seeds in SIZES:
        rows = compare(theory, simulate(solver, values, size, seeds, seed=7))
        apart = [f"{r.quantity}: {r.theory:.5g} against {r.simulation:.5g} ({r.stderr:.2g})" for r in rows if not r.agrees]
        assert not apart, f"size {size}: {apart}"


def test_there_are_outliers_below_the_bulk_among_the_cases():
    sides = {"above": 0, "below": 0}
    for name, changes in CASES.values():
        theory = solve(solver_of(name), values_of(name, **changes), samples=20_000)
        sides["above"] += sum(z > theory.bulk_edges[-1][1] for z in theory.outliers)
        sides["below"] += sum(z < theory.bulk_edges[0][0] for z in theory.outliers)
    assert sides["above"] >= 8 and sides["below"] >= 2


def test_histogram_follows_the_bulk_density():
    solver, values = solver_of("extensive_step"), values_of("extensive_step")
    theory = solve(solver, values)
    sample = simulate(solver, values, 600, 4)
    (low, high), = theory.bulk_edges
    bins = np.linspace(low, high, 25)
    counts = np.mean([np.histogram(e, bins)[0] for e in sample.eigenvalues], axis=0)
    fine = np.linspace(low, high, 24 * 40 + 1)
    density = theory.density(fine)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(fine))])
    expected = 600 * np.diff(cumulative[::40])
    assert abs(cumulative[-1] - 1) < 1e-3
    assert np.max(np.abs(counts - expected)) < 6
