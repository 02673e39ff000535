"""The neural tangent kernel of deep linear networks: its core at any depth, and the kernel of the samples."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import BOUND, extrapolated, seed_of
from conftest import solver_and_values
from tangent_kernel_by_hand import Network, class_kernels

import derive
from derive.errors import ParameterError
from numerics.solver import solve

CASES = {
    1: {"alpha": 2.0, "nu": 1.0, "gamma0": 10.0, "eta": 0.05, "sigma": 0.3, "T": 5},
    2: {"alpha": 2.0, "nu": 1.0, "gamma0": 8.0, "eta": 0.04, "sigma": 0.3, "T": 4},
}
"""By depth: outliers of core and kernel well above the bulk."""
SIZES = ((60, 240), (120, 80))


def trained(L: int, size: int, rng: np.random.Generator, values: dict) -> Network:
    network = Network(size, L, **{name: values[name] for name in values if name != "T"}, rng=rng)
    for _ in range(values["T"]):
        network.step()
    return network


@pytest.mark.parametrize("L", [1, 2, 3])
def test_the_kernel_by_hand_is_what_a_small_step_does_to_the_errors(L):
    """It is an identity at any size: delta changes by -eta / alpha K delta."""
    network = trained(L, 30, np.random.default_rng(3), CASES.get(L, CASES[2]))
    before, small = network.errors(), 1e-6
    expected = -network.kernel() @ before / 2.0
    network.step(small)
    assert (network.errors() - before) / small == pytest.approx(expected, rel=1e-3, abs=1e-4 * np.max(np.abs(expected)))


@pytest.mark.long_cases("2")
@pytest.mark.slow
@pytest.mark.parametrize("L", CASES)
def test_outliers_of_core_and_kernel_are_those_of_networks_by_hand(L, simulation_seed):
    solution = solve(*solver_and_values("deep_linear", L=L, kernel="sample", C=1, **CASES[L]))
    layers = {label: solution.layer(label) for label in ("ntk", "sample")}
    assert all(len(layer.outliers) == 1 for layer in layers.values())
    draws = []
    for size, count in SIZES:
        rng = np.random.default_rng(seed_of(simulation_seed, "tangent kernel", L, size))
        networks = [trained(L, size, rng, CASES[L]) for _ in range(count)]
        draws.append({"ntk": [n.core() for n in networks], "sample": [n.kernel() for n in networks]})
    for label, layer in layers.items():
        tops = [np.array([np.linalg.eigvalsh(m)[-1] for m in at_size[label]]) for at_size in draws]
        (z,) = layer.outliers
        found = extrapolated(label, z, [size for size, _ in SIZES], [top - z for top in tops])
        assert abs(found.score) < BOUND, str(found)
        assert found.error < 0.3 * (z - layer.bulk_edges[-1][1])


@pytest.mark.slow
def test_bulk_of_the_samples_kernel_is_that_of_a_product_of_matrices():
    """At the start W0 is independent of the samples: X (W0^T W0 / N + 1) X^T / D has the moments of a free product."""
    values = {**CASES[1], "T": 1, "eta": 1e-9}
    layer = solve(*solver_and_values("deep_linear", L=1, kernel="sample", C=1, **values)).layer("sample")
    assert not len(layer.outliers)
    first, second = layer.moments[1:3]
    # with normalised traces tr K = tr B and tr K^2 = alpha tr B^2 + (tr B)^2; tr B = 2, tr B^2 = 1 + 2 + (1 + 1/nu)
    assert first == pytest.approx(2.0, rel=1e-6)
    assert second == pytest.approx(2.0 * 5.0 + 4.0, rel=1e-6)


@pytest.mark.long
@pytest.mark.slow
def test_at_every_time_the_kernel_is_that_of_so_many_steps():
    solver, values = solver_and_values("deep_linear", L=1, kernel="sample", C=1, **CASES[1])
    path = solve(solver, values, layers=("sample",), path=True).layer("sample")
    assert path.largest_path is not None and path.outlier_path is not None
    for time in (2, 4):
        then = solve(solver, {**values, "T": time}, layers=("sample",)).layer("sample")
        assert path.outlier_path[time] == pytest.approx(then.outliers, rel=1e-9)
        assert path.largest_path[time] == pytest.approx(max([then.bulk_edges[-1][1], *then.outliers]), rel=1e-9)


@pytest.mark.long
@pytest.mark.slow
def test_the_kernel_of_two_groups_of_inputs_is_that_of_networks_by_hand(simulation_seed):
    values = {**CASES[1], "nu": 2.0, "kappa": 2.0, "share": 0.6, "eta": 0.03}
    solver, point = solver_and_values("deep_linear", L=1, kernel="sample", spectrum="two_groups", C=1, **values)
    layer = solve(solver, point, layers=("sample",)).layer("sample")
    (z,) = layer.outliers
    draws = []
    for size, count in SIZES:
        rng = np.random.default_rng(seed_of(simulation_seed, "two groups", size))
        kernels = [trained(1, size, rng, values).kernel() for _ in range(count)]
        draws.append(np.array([np.linalg.eigvalsh(m)[-1] for m in kernels]) - z)
    found = extrapolated("sample", z, [size for size, _ in SIZES], draws)
    assert abs(found.score) < BOUND, str(found)


@pytest.mark.long
@pytest.mark.slow
def test_the_kernel_of_groups_that_are_alike_is_that_of_one():
    """Groups in which fields are normal against sites that are all alike, at every time."""
    case = {**CASES[1], "T": 3}
    one, values = solver_and_values("deep_linear", L=1, kernel="sample", C=1, **case)
    groups, more = solver_and_values("deep_linear", L=1, kernel="sample", spectrum="two_groups", C=1, **case)
    here, there = (
        solve(solver, point, layers=("sample",), path=True).layer("sample")
        for solver, point in ((one, values), (groups, {**more, "kappa": 1.0, "share": 0.3}))
    )
    assert len(here.outliers) == 1
    np.testing.assert_allclose(there.outliers, here.outliers, rtol=1e-9)
    np.testing.assert_allclose(there.bulk_edges, here.bulk_edges, rtol=1e-9, atol=1e-9)
    for a, b in zip(here.outlier_path, there.outlier_path, strict=True):
        assert b == pytest.approx(a, rel=1e-9)


@pytest.mark.long
@pytest.mark.slow
def test_classes_of_unlike_teachers_have_kernels_of_their_own(simulation_seed):
    values = {"alpha": 2.0, "nu": 1.0, "gamma0": 4.0, "eta": 0.03, "sigma": 0.3, "T": 3}
    unlike = {"strengths": np.array([3.0, 0.3]), "gram": np.array([[1.0, -0.5], [-0.5, 1.0]])}
    theory = derive.load("deep_linear", L=1, kernel="sample", teachers="given")
    expected = [
        theory.solve(C=2, layer="sample", classes=share, **unlike, **values).outliers for share in ([1, 0], [0, 1])
    ]
    sizes = ((50, 200), (100, 70))
    draws = []
    for size, count in sizes:
        rng = np.random.default_rng(seed_of(simulation_seed, "classes", size))
        made = [class_kernels(size, 1, **values, **unlike, rng=rng) for _ in range(count)]
        draws.append(np.array([[np.linalg.eigvalsh(kernel)[-1] for kernel in kernels] for kernels in made]))
    for c, (z, *_) in enumerate(expected):
        found = extrapolated(f"class {c}", z, [size for size, _ in sizes], [tops[:, c] - z for tops in draws])
        assert abs(found.score) < BOUND, str(found)
    assert expected[0][0] > 1.3 * expected[1][0], "the classes differ by more than the test can overlook"


@pytest.mark.slow
def test_shares_of_classes_and_spectra_that_do_not_go_together_are_refused():
    theory = derive.load("deep_linear", L=1, kernel="sample", teachers="given")
    with pytest.raises(ParameterError, match="classes must be shares"):
        theory.solve(C=2, T=1, classes=[1.0, 1.0])
    with pytest.raises(ParameterError, match="spectrum=power_law"):
        derive.load("deep_linear", kernel="sample", spectrum="power_law").solve(T=1)
