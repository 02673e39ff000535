"""Random Lotka-Volterra dynamics of any symmetry, sampled, against the fixed point of the cavity method by hand."""

from __future__ import annotations

import pytest
from conftest import solver_and_values
from lotka_volterra_by_hand import critical_sigma, fixed_point, truncated_moments

from numerics.solver import solve

MU = 4.0
STEPS = {-0.5: (0.5, 100), 0.0: (0.7, 150), 0.5: (1.0, 150)}
"""For each symmetry a time step, and how many of them."""


def off(gamma: float, fraction: float, samples: int, dt: float, steps: int) -> dict[str, float]:
    """How far observables are from the fixed point, in units of three errors and of what the second half of the run
    has changed: species that are about to die out do so slowly."""
    sigma = fraction * critical_sigma(gamma)
    values = {"gamma": gamma, "sigma": sigma, "mu": MU, "dt": dt, "T": steps}
    found = solve(*solver_and_values("lotka_volterra", **values), samples=samples)
    assert found.errors is not None
    distances = {}
    for name, expected in fixed_point(gamma, sigma, MU)._asdict().items():
        series, error = found.observables[name], found.errors[name][-1]
        distances[name] = abs(series[-1] - expected) / (3 * error + abs(series[-1] - series[steps // 2]))
    return distances


def test_the_fixed_point_by_hand_is_the_published_one():
    found = fixed_point(0.5, 0.8, MU)
    assert abs(found.M - 0.22717) < 5e-6  # published
    w0, w1, w2 = truncated_moments(0.0)
    assert w0 == w2 == 0.5 and abs(critical_sigma(0.5) * (w2 + 0.5 * w0) - w2**0.5) < 1e-12


@pytest.mark.slow
def test_a_partly_symmetric_matrix_gives_the_fixed_point_of_the_cavity_method():
    assert max(off(0.5, 0.7, 4000, 1.0, 40).values()) < 1


@pytest.mark.long
@pytest.mark.parametrize("fraction", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("gamma", sorted(STEPS))
def test_every_symmetry_gives_the_fixed_point_of_the_cavity_method(gamma, fraction):
    assert max(off(gamma, fraction, 100_000, *STEPS[gamma]).values()) < 1
