"""Squared overlaps of outlying vectors with the span of the spikes in closed form; simulation is in test_agreement."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import solver_of, values_of

import derive
from numerics.outliers.overlaps import _over_gram
from numerics.outliers.poles import Pole, _clusters
from numerics.outliers.problem import SpikedProblem
from numerics.simulation.samples import SimulatedLayer, _in_span
from numerics.solver import solve


def overlaps_of(name: str, **changes) -> tuple[list[float], list[dict]]:
    layer = solve(solver_of(name), values_of(name, **changes), overlaps=True).layers[0].as_dict()
    return layer["outliers"], layer["overlaps"]


@pytest.mark.parametrize("gamma0", [1.02, 1.5, 2.0, 7.0, 300.0])
def test_spiked_wigner(gamma0):
    (z,), (found,) = overlaps_of("spiked_wigner", gamma0=gamma0)
    assert np.isclose(z, gamma0 + 1 / gamma0, rtol=1e-10)
    assert np.isclose(found["right"], 1 - 1 / gamma0**2, rtol=1e-7)
    assert found["left"] is None  # a symmetric matrix has one kind of vector


@pytest.mark.slow
@pytest.mark.parametrize("spikes", [1, 3])
@pytest.mark.parametrize(
    ("alpha", "sigma", "theta"), [(2.0, 1.0, 1.5), (0.4, 1.0, 1.6), (5.0, 0.7, -0.6), (1.0, 2.0, 2.1)]
)
def test_spiked_rectangular_matrix(alpha, sigma, theta, spikes):
    """Independent spikes of equal strength theta / sigma in a matrix with c columns to a row (Benaych-Georges and
    Nadakuditi 2012): each direction of the span is seen by the sum over the outliers."""
    found, overlaps = overlaps_of("coupled_spikes", alpha=alpha, sigma=sigma, theta=theta, kappa=0.0, S=spikes)
    c, x = 1 / alpha, (theta / sigma) ** 2
    assert len(found) == spikes
    for z, squared in zip(found, overlaps, strict=True):
        assert np.isclose(z, sigma**2 * (1 + x) * (c + x) / x, rtol=1e-8)
        assert np.isclose(squared["right"], 1 - c * (1 + x) / (x * (x + c)), rtol=1e-6)
        assert np.isclose(squared["left"], 1 - (c + x) / (x * (x + 1)), rtol=1e-6)


def test_overlaps_vanish_where_the_outlier_leaves_the_bulk():
    gaps, squares = [], []
    for theta in (0.8425, 0.85, 0.9, 1.0):  # the threshold is alpha^(-1/4) = 0.8409
        (z,), (found,) = overlaps_of("coupled_spikes", alpha=2.0, theta=theta, kappa=0.0, S=1)
        gaps.append(z - (1 + 2**-0.5) ** 2)
        squares.append((found["right"], found["left"]))
    assert np.all(np.diff(gaps) > 0) and np.all(np.diff(squares, axis=0) > 0)
    assert max(squares[0]) < 0.02


@pytest.mark.slow
def test_which_vectors_have_overlaps():
    """A symmetric matrix has one kind of vector; W^T W has two."""
    for name, sides in (
        ("anti_hebbian", {"right"}),
        ("coupled_spikes", {"right", "left"}),
        ("unlearning", {"right", "left"}),
    ):
        _, overlaps = overlaps_of(name)
        assert {key for found in overlaps for key, value in found.items() if value is not None} == sides


def nearly_parallel(smallest: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Four unit spikes, of which one direction is hardly there, a vector, and its square along that direction."""
    rng = np.random.default_rng(7)
    basis, turn = np.linalg.qr(rng.standard_normal((40, 4)))[0], np.linalg.qr(rng.standard_normal((4, 4)))[0]
    spikes = basis * np.array([1.0, 1e-2, 1e-4, smallest]) @ turn
    vector = np.linalg.qr(rng.standard_normal((40, 1)))[0]
    return spikes / np.linalg.norm(spikes, axis=0), vector, float((basis[:, 3] @ vector).item() ** 2)


@pytest.mark.parametrize("smallest", [1e-4, 3e-6, 1e-6, 3e-7, 1e-9])
def test_theory_and_samples_count_nearly_parallel_spikes_alike(smallest):
    spikes, vector, last = nearly_parallel(smallest)
    sampled, counted = _in_span(spikes, vector)
    theory = (vector.T @ spikes @ _over_gram(spikes.T @ spikes, spikes.T @ vector)).item()
    assert np.isclose(theory, sampled[0], atol=1e-3 * last) and 3 - 1e-3 < counted < 4


def test_a_direction_that_is_hardly_there_fades_out():
    """A cut at a millionth would count the last direction whole or not at all; shares hardly notice one percent."""
    overlaps = []
    for smallest in np.geomspace(1e-8, 1e-4, 400):
        spikes, vector, last = nearly_parallel(smallest)
        overlaps.append(_in_span(spikes, vector)[0][0] / last)
    steps = np.diff(overlaps)
    assert np.all(steps > -1e-6) and np.max(steps) < 0.02 and 0.9 < np.sum(steps) < 1


def test_what_a_span_holds_by_chance_is_taken_off():
    """A random direction of n sites has k/n of its square in a span of k others: nothing is left of that."""
    rng, draws = np.random.default_rng(3), []
    for _ in range(200):
        squared, counted = _in_span(rng.standard_normal((50, 5)), np.linalg.qr(rng.standard_normal((50, 1)))[0])
        layer = SimulatedLayer("", [], {}, (), [], [], 50, lengths={"right": 50})
        draws.append(layer.without_excess("right", squared, counted)[0])
    assert abs(np.mean(draws)) < 4 * np.std(draws) / np.sqrt(200) and np.std(draws) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("product", "judged"), [(0.0, True), (1.0, False)])
def test_overlaps_with_spans_that_only_samples_have_are_not_judged(product, judged):
    """Spikes of parallel teachers span thirteen of sixteen directions, and in samples of any size two or three more,
    which hold 0.02 of the vector: 0.985(2), 0.985(2), 0.986(2), 0.986(1) at sizes 100, 200, 400, 800 where the limit
    has 0.965."""
    network = derive.load("deep_linear", L=2, teachers="given")
    values = {"strengths": [1.5, 1], "gram": [[1, product], [product, 1]], "nu": 1.5, "gamma0": 6, "eta": 0.02, "T": 8}
    rows = network.compare(values, size=60, seeds=3, layer="1").rows
    seen = [row.compared for row in rows if "right overlap" in row.quantity]
    assert seen and all(one is judged for one in seen)


def test_overlaps_do_not_depend_on_the_length_of_spikes():
    """Directions count by their angles: one spike that is 1e-8 long spans as much as any other, here and in samples."""
    rng = np.random.default_rng(2)
    spikes, vector = np.linalg.qr(rng.standard_normal((50, 3)))[0] * [1, 1e-8, 1e8], rng.standard_normal((50, 1))
    inside = np.linalg.norm(np.linalg.qr(spikes)[0].T @ vector) ** 2
    assert (vector.T @ spikes @ _over_gram(spikes.T @ spikes, spikes.T @ vector)).item() == pytest.approx(inside)
    assert _in_span(spikes, vector)[0][0] == pytest.approx(inside)


@pytest.mark.parametrize("low", [-3.0, -1.0, 10.0])
def test_equal_outliers_are_one_wherever_the_bulk_is(low):
    """To rounding, which is that of the width of the bulk where an outlier is at zero."""
    excluded = ((low, low + 2), (low, low))
    problem = SpikedProblem(probe=None, p=None, order={}, branch=None, excluded=excluded)
    assert _clusters(problem, [7.0, 6.0, 6.0, 1e-15, -1e-15]) == [(7.0, 1), (6.0, 2), (0.0, 2)]


def test_an_outlier_at_zero_has_no_left_vector():
    """Elsewhere a source in the equation of K psi0 sees left vectors z times."""
    problem = SimpleNamespace(excluded=((0.0, 0.0), (1.0, 4.0)))
    one = np.ones((1, 1))
    scales = [Pole(problem, z, one, one, one).scale(side) for z in (5.0, 1e-16) for side in ("right", "left")]
    assert scales == pytest.approx([1.0, 0.2, 1.0, np.nan], nan_ok=True)
