"""Theory against finite-size simulation of the same declaration, at two sizes, in standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import solver_of, values_of

from numerics.simulation import simulate
from numerics.solver import solve

CASES = {
    "planted direction": ("spiked_wigner", {"gamma0": 1.8}),
    "learned outlier above": ("anti_hebbian", {"gamma0": 4.0, "dt": 0.1, "T": 30}),
    "learned outlier below": ("anti_hebbian", {"gamma0": -3.0, "dt": 0.1, "T": 12}),
    "linear spikes": ("coupled_spikes", {"alpha": 1.6, "theta": 1.3, "kappa": 0.4, "S": 4}),
    "spikes against the bulk": ("coupled_spikes", {"alpha": 3.0, "theta": -0.6, "kappa": -1.0, "sigma": 1.2, "S": 4}),
    "wide matrix": ("coupled_spikes", {"alpha": 0.5, "theta": 2.0, "kappa": 0.3, "sigma": 0.7, "S": 3}),
    "saturating spikes": ("coupled_spikes_tanh", {"alpha": 1.6, "theta": 2.5, "kappa": 0.8, "S": 5}),
    "network with labels": ("linear_network", {}),
    "online network": ("online_network", {}),
    "momentum and decay": ("hebbian_momentum", {}),
    "product of matrices": ("trained_product", {}),
    "two spiked Wisharts": ("two_spiked_wisharts", {}),
    "gated network": ("gated_network", {}),
}
SIZES = ((300, 16), (900, 10))


@pytest.mark.parametrize("case", CASES)
def test_theory_within_three_standard_errors_of_simulation(case):
    name, changes = CASES[case]
    solver, values = solver_of(name), values_of(name, **changes)
    theory = solve(solver, values, samples=60_000)
    above = [z for z in theory.outliers if z > theory.bulk_edges[-1][1]]
    below = sorted(z for z in theory.outliers if z < theory.bulk_edges[0][0])
    assert above or below
    for size, seeds in SIZES:
        sample = simulate(solver, values, size, seeds, seed=7)
        for side, theory_values in ((slice(None, None, -1), above), (slice(None), below)):
            for group in _degenerate(theory_values):
                simulated = np.array([np.mean(e[side][group]) for e in sample.eigenvalues])
                expected = np.mean([theory_values[i] for i in group])
                error = np.hypot(simulated.std(ddof=1) / np.sqrt(seeds), _theory_error(theory, expected))
                assert abs(simulated.mean() - expected) < 3 * error, f"outlier {expected:.4f} at size {size}"
        for observable, series in theory.observables.items():
            wrong = (sample.mean(observable) - series) / np.hypot(sample.stderr(observable), 1e-12)
            assert np.max(np.abs(wrong)) < 3.5, f"{observable} at size {size}"


def _degenerate(outliers: list[float]) -> list[list[int]]:
    """Outliers of equal value, which a finite sample splits, as groups of positions."""
    groups: list[list[int]] = []
    for i, z in enumerate(outliers):
        if groups and abs(z - outliers[groups[-1][0]]) < 0.02 * abs(z):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _theory_error(theory, z: float) -> float:
    if theory.outlier_errors is None:
        return 0.0
    return min(zip(theory.outliers, theory.outlier_errors, strict=True), key=lambda pair: abs(pair[0] - z))[1]


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
