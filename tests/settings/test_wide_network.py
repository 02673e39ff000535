"""Wide nonlinear networks: limits in closed form, networks trained by automatic differentiation, simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import wide_network_by_hand as by_hand
from agreement import Block, too_far, wrong
from simulated import block_of

from derive.codegen.store import stored_files
from derive.inputs.problems import load_problem
from derive.pipeline import derive_model
from derive.printing import text_of_record
from numerics.outliers.finding import outlier_positions
from numerics.simulation.samples import simulate
from numerics.solution import Prediction
from numerics.solver import load_solver, solve, spiked_problem


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


@pytest.mark.slow
def test_a_linear_network_is_solved_exactly():
    """Labels and data are no reason to sample."""
    solver, values = problem("L=2", "activation=linear", "P=4", "T=6", "D=3")
    found = solve(solver, values)
    assert solver.setting.exact and found.errors is None
    expected = by_hand.linear_network(*points(values), values["sigma"], values["gamma"], values["eta"], values["T"])
    for name, series in expected.items():
        assert np.allclose(found.observables[name], series, atol=1e-12), name


@pytest.mark.long
@pytest.mark.slow
def test_small_gamma_is_the_frozen_kernel():
    found = theory(*LAZY, samples=80_000)
    _, values = problem(*LAZY)
    expected = by_hand.lazy_predictions(*points(values), 2, 1.0, 0.5, 6)
    errors = np.array(found.errors["prediction"])
    assert np.max(errors) < 4e-3
    off = (np.array(found.observables["prediction"]) - expected)[1:] / errors[1:]
    assert np.max(np.abs(off)) < 4 and np.sqrt(np.mean(off**2)) < 2


@pytest.mark.slow
def test_one_step_is_a_spiked_matrix_in_closed_form():
    pairs = ("L=2", "activation=erf", "P=5", "T=1", "D=4", "gamma=8", "eta=8")
    found = theory(*pairs)
    _, values = problem(*pairs)
    for layer in found.layers:
        expected = by_hand.one_step_outliers(*points(values), 2, int(layer.label), 1.0, 8.0, 8.0)
        assert len(expected) == len(layer.outliers) > 0
        for z, exact, error in zip(layer.outliers, expected, layer.outlier_errors, strict=True):
            assert abs(z - exact) < 4 * error and error < 0.02 * exact


@pytest.mark.slow
def test_the_printed_update_of_the_backward_fields_is_not_the_gradient():
    """The appendix ends the equation of z in phi_mu(t) where the update of W has phi_nu(s). Both are evaluated along
    one network of finite width, where correlations are plain means, against z by automatic differentiation."""
    N, D, B, T, gamma, eta = 50, 3, 4, 3, 1.5, 0.4
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((B, D)), rng.standard_normal(B)
    with jax.enable_x64(True):
        weights = tuple(jnp.asarray(rng.standard_normal(shape)) for shape in ((N, D), (N, N), (N,)))
        start = weights[1]

        def forward(weights, nudge):
            V, W, w = weights
            phi = jnp.tanh(V @ x.T / math.sqrt(D)) + nudge
            h = W @ phi / math.sqrt(N)
            return phi, h, w @ jnp.tanh(h) / (gamma * N)

        def objective(weights):
            return jnp.mean((forward(weights, 0.0)[2] - y) ** 2) / 2

        phi, g, delta = [], [], []
        for t in range(T + 1):
            # points do not mix, so that the slope of the sum of all outputs is that of each
            z = gamma * N * jax.grad(lambda nudge, now=weights: jnp.sum(forward(now, nudge)[2]))(jnp.zeros((N, B)))
            features, h, f = forward(weights, 0.0)
            phi.append(features)
            g.append(weights[2][:, None] * (1 - jnp.tanh(h) ** 2))
            delta.append(y - f)
            right = printed = start.T @ g[t] / math.sqrt(N)
            for s in range(t):
                push = eta * gamma / B * (g[t].T @ g[s] / N) * delta[s]
                right = right + phi[s] @ push.T
                printed = printed + phi[t] * jnp.sum(push, axis=1)
            size = float(jnp.linalg.norm(z))
            assert float(jnp.linalg.norm(right - z)) < 1e-12 * size
            assert t == 0 or float(jnp.linalg.norm(printed - z)) > 0.02 * size
            slopes = jax.grad(objective)(weights)
            weights = tuple(a - eta * gamma**2 * N * b for a, b in zip(weights, slopes, strict=True))


# -- the declaration is gradient descent


class Remembering:
    """A random generator that keeps what it has drawn."""

    def __init__(self, seed: int):
        self.rng, self.drawn = np.random.default_rng(seed), []

    def standard_normal(self, shape):
        self.drawn.append(self.rng.standard_normal(shape))
        return self.drawn[-1]


@pytest.mark.slow
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


CASES = {"full batch": FULL_BATCH, "minibatch": MINIBATCH}
SIZES = ((100, 150), (300, 75))


def theory_of(case: str) -> Prediction:
    return theory(*CASES[case])


@cache
def block(case: str, seed: int) -> Block:
    last = problem(*CASES[case])[1]["T"]
    return block_of(case, problem(*CASES[case])[0], theory_of(case), seed, SIZES, times=(last - 2, last - 1))


@pytest.mark.long_cases("minibatch")
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_theory_and_networks_agree(case, simulation_seed):
    found = block(case, simulation_seed)
    names = [c.name for c in found.comparisons]
    for layer in theory_of(case).layers:
        assert f"layer {layer.label}: outlier 1 above the bulk" in names
    assert any("above the bulk at time" in name for name in names)
    assert all(any(name.startswith(word) for name in names) for word in ("loss", "features1", "gradients1"))
    assert not too_far([found])


@pytest.mark.slow
def test_networks_have_no_common_bias(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES])


@pytest.mark.slow
def test_outliers_are_not_there_before_the_time_they_appear(simulation_seed):
    solver, values = problem(*FULL_BATCH)
    time = theory(*FULL_BATCH).layer("2").bbp_time
    assert 0 < time < values["T"]
    sample = simulate(solver, values, 300, 20, seed=simulation_seed, times=(time - 1,), layers=["2"])
    assert np.mean([e[0][-1] for e in sample.layer("2").ends]) < 4.3


# -- sampling


@pytest.mark.parametrize("how, words", [("stein", "Stein's lemma"), ("pathwise", "derivatives along each path")])
def test_the_derivation_says_how_responses_are_found(how, words):
    model = load_problem("wide_network", ["L=1", f"responses={how}"]).model
    assert words in " ".join(text_of_record(derive_model(model).method).split())


@pytest.mark.long
@pytest.mark.slow
def test_without_outliers_there_are_no_overlaps_and_nothing_is_said_of_them():
    solver, values = problem(*LAZY)
    layer = solve(solver, values, samples=80_000, overlaps=True).layers[0]
    assert not len(layer.outliers) and layer.overlaps == {} and layer.diagnostics.overlaps is None


@pytest.mark.slow
def test_a_large_pencil_has_the_same_outliers(monkeypatch):
    """Arnoldi's method on the same eigenproblem gives what all eigenvalues give."""
    solution = theory(*MINIBATCH)
    spiked = replace(spiked_problem(problem(*MINIBATCH)[0], solution), excluded=((0.0, 4.0),))
    whole = outlier_positions(spiked)
    monkeypatch.setattr("numerics.outliers.linear.ALL_EIGENVALUES", 10)
    monkeypatch.setattr("numerics.outliers.finding.FIRST_EIGENVALUES", 4)
    assert outlier_positions(spiked) == pytest.approx(whole)
