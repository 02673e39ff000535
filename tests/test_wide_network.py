"""Wide nonlinear networks: limits in closed form, networks trained by automatic differentiation, simulation."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from derive.codegen.store import stored_files
from derive.loading import load_problem
from derive.pipeline import derive_model
from derive.printing import text_of_record
from numerics.outliers.finding import outlier_positions
from numerics.simulation.samples import simulate
from numerics.solver import Trained, load_solver, solve
from numerics.training.sampling import Sampling

_path = Path(__file__).parent / "reference_formulas" / "wide_network_by_hand.py"
_spec = importlib.util.spec_from_file_location("wide_network_by_hand", _path)
assert _spec is not None and _spec.loader is not None
by_hand = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(by_hand)


def quiet(fraction: float, text: str) -> None:
    """No progress bar."""


@cache
def problem(*pairs: str):
    found = load_problem("wide_network", pairs)
    return load_solver(stored_files(found.model)), found.inputs


@cache
def theory(*pairs: str, samples: int = 40_000):
    solver, values = problem(*pairs)
    return solve(solver, values, samples=samples, path=True)


def points(values) -> tuple[np.ndarray, np.ndarray]:
    return values["x"][0], values["y"][0]


# -- limits

LAZY = ("L=2", "activation=erf", "P=4", "T=6", "D=3", "gamma=0.001", "eta=0.5")


def test_a_linear_network_is_exact_although_it_is_sampled():
    """Second moments of the normals are exact, and a linear network needs no others."""
    solver, values = problem("L=2", "activation=linear", "P=4", "T=6", "D=3")
    with jax.enable_x64(True):
        found = Trained.sampled(solver, values, Sampling(20 * 400, tolerance=1e-13, debias=False), quiet)
    expected = by_hand.linear_network(*points(values), values["sigma"], values["gamma"], values["eta"], values["T"])
    for name, series in expected.items():
        assert found.observables[name] == pytest.approx(series, abs=1e-9), name


def test_small_gamma_is_the_frozen_kernel():
    found = theory(*LAZY, samples=80_000)
    _, values = problem(*LAZY)
    expected = by_hand.lazy_predictions(*points(values), 2, 1.0, 0.5, 6)
    errors = np.array(found.observable_errors["prediction"])
    assert np.max(errors) < 4e-3
    off = (np.array(found.observables["prediction"]) - expected)[1:] / errors[1:]
    assert np.max(np.abs(off)) < 4 and np.sqrt(np.mean(off**2)) < 2


def test_one_step_is_a_spiked_matrix_in_closed_form():
    pairs = ("L=2", "activation=erf", "P=5", "T=1", "D=4", "gamma=8", "eta=8")
    found = theory(*pairs)
    _, values = problem(*pairs)
    for layer in found.layers:
        expected = by_hand.one_step_outliers(*points(values), 2, int(layer.label), 1.0, 8.0, 8.0)
        assert len(expected) == len(layer.outliers) > 0
        for z, exact, error in zip(layer.outliers, expected, layer.outlier_errors, strict=True):
            assert abs(z - exact) < 4 * error and error < 0.02 * exact


def test_the_printed_update_of_the_backward_fields_is_not_the_gradient():
    """The appendix ends the equation of z in phi_mu(t); at the second step that is another number."""
    solver, values = problem("L=2", "activation=linear", "P=4", "T=6", "D=3")
    right = by_hand.linear_network(*points(values), 1.0, values["gamma"], values["eta"], values["T"])
    sample = simulate(solver, values, 1000, 4, layers=[])
    off = (sample.mean("gradients1") - right["gradients1"]) / sample.stderr("gradients1")
    assert np.max(np.abs(off)) < 5


# -- the declaration is gradient descent


class Remembering:
    """A random generator that keeps what it has drawn."""

    def __init__(self, seed: int):
        self.rng, self.drawn = np.random.default_rng(seed), []

    def standard_normal(self, shape):
        self.drawn.append(self.rng.standard_normal(shape))
        return self.drawn[-1]


@pytest.mark.parametrize(
    ("choices", "activation", "loss"),
    [
        (("activation=tanh",), jnp.tanh, lambda f, y: (f - y) ** 2 / 2),
        (("activation=relu", "loss=cross_entropy"), jax.nn.relu, lambda f, y: jnp.log(1 + jnp.exp(-y * f))),
        (("activation=x+x**2/3",), lambda h: h + h**2 / 3, lambda f, y: (f - y) ** 2 / 2),
    ],
    ids=["tanh", "relu-cross-entropy", "typed"],
)
def test_the_declared_steps_are_gradients(choices, activation, loss):
    """The simulated declaration and a network trained by jax.grad from the same weights are the same."""
    solver, values = problem("L=2", *choices, "P=6", "B=3", "T=4", "D=3", "eta=0.05")
    N, gamma, eta = 60, values["gamma"], values["eta"]
    rng = Remembering(3)
    _, _, observables = solver.simulation.simulate(solver.point(values), N, rng)
    draws = {np.shape(x): x for x in rng.drawn}
    with jax.enable_x64(True):
        weights = tuple(jnp.asarray(draws[shape]) for shape in ((N, 3), (N, N), (N,)))

        def network(weights, x):
            V, W, w = weights
            h = W @ activation(V @ x.T / math.sqrt(3)) / math.sqrt(N)
            return w @ activation(h) / (gamma * N)

        def objective(weights, x, y):
            return jnp.mean(loss(network(weights, x), y))

        for t in range(values["T"] + 1):
            x, y = jnp.asarray(values["x"][t]), jnp.asarray(values["y"][t])
            assert np.asarray(network(weights, x)) == pytest.approx(np.asarray(observables["prediction"][t]), abs=1e-10)
            assert float(objective(weights, x, y)) == pytest.approx(float(observables["loss"][t]), abs=1e-10)
            slopes = jax.grad(objective)(weights, x, y)
            weights = tuple(a - eta * gamma**2 * N * b for a, b in zip(weights, slopes, strict=True))


# -- against simulation

FULL_BATCH = ("L=3", "P=5", "T=6", "D=4", "eta=0.4", "gamma=4")
MINIBATCH = ("L=2", "P=9", "B=3", "T=8", "D=4", "eta=0.3", "gamma=3")


@pytest.mark.parametrize("pairs", [FULL_BATCH, MINIBATCH], ids=["full-batch", "minibatch"])
def test_theory_and_networks_agree(pairs):
    """Within four standard errors at the larger width, and closer there than a correction of order 1/N allows."""
    solver, values = problem(*pairs)
    solution = theory(*pairs)
    samples = {N: simulate(solver, values, N, seeds, seed=2) for N, seeds in ((200, 16), (600, 8))}
    for layer in solution.layers:
        assert layer.outliers, "the case is chosen to have an outlier in every layer"
        means, errors = {}, {}
        for N, sample in samples.items():
            tops = np.array([e[-1] for e in sample.layer(layer.label).eigenvalues])
            means[N], errors[N] = tops.mean(), tops.std(ddof=1) / math.sqrt(len(tops))
        slope = (means[200] - means[600]) / (1 / 200 - 1 / 600)
        limit = means[600] - slope / 600
        error = math.hypot(1.5 * errors[600], 0.5 * errors[200], layer.outlier_errors[0])
        assert abs(limit - layer.outliers[0]) < 4 * error
    for name in ("loss", "features1", "features2"):
        small, large = (samples[N] for N in (200, 600))
        limit = 1.5 * large.mean(name) - 0.5 * small.mean(name)
        error = np.hypot(1.5 * large.stderr(name), 0.5 * small.stderr(name))
        error = np.hypot(error, solution.observable_errors[name])
        assert np.max(np.abs(limit - solution.observables[name]) / error) < 4, name


def test_outliers_appear_at_the_time_they_do_in_networks():
    solver, values = problem(*FULL_BATCH)
    layer = theory(*FULL_BATCH).layer("2")
    time = layer.bbp_time
    assert 0 < time < values["T"]
    later = [t for t in range(time, values["T"]) if layer.outlier_path[t][0] > 4.5]
    sample = simulate(solver, values, 600, 6, seed=3, times=tuple(range(values["T"] + 1)), layers=["2"])
    ends = sample.layer("2").ends
    for t in later:
        tops = np.array([e[t][-1] for e in ends])
        error = math.hypot(tops.std(ddof=1) / math.sqrt(len(tops)), layer.outlier_path_errors[t][0])
        assert abs(tops.mean() - layer.outlier_path[t][0]) < 4 * error + 10 / 600
    before = np.array([e[time - 1][-1] for e in ends])
    assert np.all(before < 4.3)


# -- sampling


@pytest.mark.parametrize("how, words", [("stein", "Stein's lemma"), ("pathwise", "derivatives along each path")])
def test_the_derivation_says_how_responses_are_found(how, words):
    model = load_problem("wide_network", ["L=1", f"responses={how}"]).model
    assert f"responses by {words}" in text_of_record(derive_model(model).order)


def test_without_outliers_there_are_no_overlaps_and_nothing_is_said_of_them():
    solver, values = problem(*LAZY)
    layer = solve(solver, values, samples=80_000, overlaps=True).layers[0]
    assert layer.outliers == [] and layer.overlaps == [] and "overlaps" not in layer.diagnostics


def test_a_large_pencil_has_the_same_outliers(monkeypatch):
    """Arnoldi's method on the same eigenproblem gives what all eigenvalues give."""
    solution = theory(*MINIBATCH)
    problem = replace(solution.problem(), excluded=((0.0, 4.0),))
    whole = outlier_positions(problem)
    monkeypatch.setattr("numerics.outliers.linear.ALL_EIGENVALUES", 10)
    monkeypatch.setattr("numerics.outliers.finding.FIRST_EIGENVALUES", 4)
    assert outlier_positions(problem) == pytest.approx(whole)
