"""The generated solvers as JAX programs: compiled, vectorised, differentiated, lowered for a GPU that is not here."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import HERE, SHIPPED, STRANGERS, model_named, solver_of, values_of
from sympy import tanh

from derive.codegen import generate_files
from derive.models.coupled_spikes import declare, kappa, theta
from numerics.precision import in_float64
from numerics.solver import load_built, load_solver, solve

ALL = (*SHIPPED, *STRANGERS)
TRAINED = ("anti_hebbian", "coupled_spikes", "linear_network", "hebbian_momentum")


def _call(name: str):
    """The forward pass, its arguments, and which of them are whole numbers."""
    solver = solver_of(name)
    arguments = solver.arguments(values_of(name))
    if not solver.front.LINEAR:
        shapes = solver.training.shapes(*arguments)
        normals = {k: jax.random.normal(jax.random.key(1), (64, *shape), dtype=float) for k, shape in shapes.items()}
        arguments = (*arguments, normals)
    return (
        solver,
        solver.training.forward_pass,
        arguments,
        tuple(i for i, a in enumerate(arguments) if isinstance(a, int)),
    )


@pytest.mark.parametrize("name", ALL)
@in_float64
def test_forward_pass_and_pencil_lower_for_cuda(name):
    solver, forward, arguments, whole = _call(name)
    exported = jax.export.export(jax.jit(forward, static_argnums=whole), platforms=("cuda",))(*arguments)
    assert exported.platforms == ("cuda",)
    if solver.probe is not None and solver.probe.CYCLES:
        order = jax.eval_shape(jax.jit(forward, static_argnums=whole), *arguments)[0]
        parameters = solver.arguments(values_of(name))
        pencil = jax.jit(
            solver.probe.pencil_0, static_argnums=tuple(1 + i for i, a in enumerate(parameters) if isinstance(a, int))
        )
        assert jax.export.export(pencil, platforms=("cuda",))(order, *parameters).platforms == ("cuda",)


@pytest.mark.parametrize("name", TRAINED)
@in_float64
def test_vectorised_over_a_parameter_equals_one_at_a_time(name):
    _, forward, arguments, whole = _call(name)
    first = next(i for i in range(len(arguments)) if i not in whole)
    values = jnp.array([0.8, 1.0, 1.3]) * arguments[first]

    @jax.jit
    def observables(value):
        return forward(*arguments[:first], value, *arguments[first + 1 :])[1]

    together = jax.jit(jax.vmap(observables))(values)
    for i, value in enumerate(values):
        alone = observables(value)
        for key in alone:
            assert np.allclose(together[key][i], alone[key], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("name", TRAINED)
@in_float64
def test_derivative_of_the_pencil_agrees_with_finite_differences(name, mode):
    solver, forward, arguments, whole = _call(name)
    first = next(i for i in range(len(arguments)) if i not in whole)

    @jax.jit
    def trace(value):
        changed = (*arguments[:first], value, *arguments[first + 1 :])
        return jnp.trace(solver.probe.pencil_0(forward(*changed)[0], *changed))

    value, step = arguments[first], 1e-5
    expected = (trace(value + step) - trace(value - step)) / (2 * step)
    assert jax.jit(mode(trace))(value) == pytest.approx(float(expected), rel=1e-6)


@in_float64
def test_sampled_solver_is_differentiable():
    _, forward, arguments, _ = _call("coupled_spikes_tanh")
    place = 3  # kappa

    @jax.jit
    def norm(value):
        return forward(*arguments[:place], value, *arguments[place + 1 :])[1]["g_norm"][-1]

    expected = (norm(arguments[place] + 1e-5) - norm(arguments[place] - 1e-5)) / 2e-5
    assert jax.jit(jax.grad(norm))(arguments[place]) == pytest.approx(float(expected), rel=1e-5)


def test_solving_leaves_the_precision_of_the_caller_alone():
    code = (
        "import jax, jax.numpy as jnp, numerics.solver as s\n"
        "assert jnp.ones(1).dtype == jnp.float32\n"
        "x = s.solve(s.load_built('spiked_wigner'), {'gamma0': 2.0})\n"
        "assert jnp.ones(1).dtype == jnp.float32 and abs(x.outliers[0] - 2.5) < 1e-12\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", SHIPPED)
def test_built_code_is_what_the_declaration_gives(name):
    folder = HERE.parent / "generated" / name
    built = {p.name: p.read_text() for p in folder.iterdir() if p.is_file()}
    assert built == generate_files(model_named(name)), f"run: derive build {name}"


@pytest.mark.parametrize("name", ["linear_network", "gated_network", "hebbian_momentum"])
def test_same_bytes_under_any_hash_seed(name):
    code = (
        "import sys, hashlib; sys.path.insert(0, 'tests')\n"
        "from conftest import model_named\n"
        "from derive.codegen import generate_files\n"
        f"print(hashlib.sha256(repr(generate_files(model_named({name!r}))).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=HERE.parent,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "4242")
    }
    assert len(digests) == 1


def test_a_small_slope_law_treated_as_nonlinear_agrees_with_the_exact_solution():
    """tanh(eps x) / eps is x for small eps, but goes through the sampler."""
    eps = 1e-4
    sampled = load_solver(
        generate_files(
            declare(
                phi_law=lambda a, earlier: tanh(eps * (a + kappa * earlier)) / eps,
                g_law=lambda b, earlier: theta * tanh(eps * (b + kappa * earlier)) / eps,
            )
        )
    )
    assert not sampled.front.LINEAR
    values = values_of("coupled_spikes", S=4)
    exact, estimate = solve(solver_of("coupled_spikes"), values), solve(sampled, values, samples=100_000)
    assert len(exact.outliers) == len(estimate.outliers)
    for a, b, error in zip(exact.outliers, estimate.outliers, estimate.outlier_errors, strict=True):
        assert abs(a - b) < 4 * error and error < 0.02 * a
    for name in exact.observables:
        for a, b, error in zip(
            exact.observables[name], estimate.observables[name], estimate.observable_errors[name], strict=True
        ):
            assert abs(a - b) < 4.5 * error + 1e-9


def test_sampling_error_falls_like_the_square_root_of_the_samples():
    solver, values = solver_of("coupled_spikes_tanh"), values_of("coupled_spikes_tanh", theta=2.5)
    coarse, fine = (solve(solver, values, samples=n) for n in (8_000, 128_000))
    assert 2.0 < coarse.outlier_errors[0] / fine.outlier_errors[0] < 8.0


def test_the_same_seed_gives_the_same_numbers():
    solver, values = solver_of("coupled_spikes_tanh"), values_of("coupled_spikes_tanh")
    first, second, other = (solve(solver, values, samples=4_000, seed=s) for s in (3, 3, 4))
    assert first.outliers == second.outliers and first.outliers != other.outliers


def test_a_setting_that_is_not_built_is_none():
    assert load_built("no_such_setting") is None
