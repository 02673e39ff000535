"""The generated solvers as JAX programs: compiled, vectorised, differentiated, lowered for a GPU that is not here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import HERE, SHIPPED, STRANGERS, model_named, solver_and_values, solver_of, values_of
from sympy import tanh

from derive.codegen import generate_files
from derive.errors import DeriveError
from derive.models.coupled_spikes import declare, kappa, theta
from numerics.runtime.point import replaced
from numerics.solver import load_built, load_solver, solve
from numerics.support import compiling
from numerics.support.precision import in_float64

# a name with what is chosen of a family and which values are changed
DEEP = tuple(("deep_linear", {"L": L, "T": 2, "C": C}) for L, C in ((1, 2), (2, 1)))
OTHERS = (
    ("deep_linear", {"L": 2, "data": "online", "T": 3, "C": 2}),
    ("deep_linear", {"L": 3, "T": 3, "param": "ntk"}),
)
WIDE = ("wide_network", {"L": 2, "T": 2, "P": 2, "B": 2, "D": 2})
SAMPLED = ("coupled_spikes_tanh", "wide_network")
PURE_BULKS = "anticommutator extensive_step full_first_step mixed_polynomial two_steps two_steps_both_layers".split()
"""Nothing but polynomials, as all bulks are, and large ones."""
SETTINGS = (*((name, {}) for name in SHIPPED if name not in ("deep_linear", "wide_network")), *DEEP, WIDE)
TRAINED = tuple((name, {}) for name in ("linear_network", "hebbian_momentum"))
ALL = (*SETTINGS, *OTHERS, *((name, {}) for name in STRANGERS if name not in PURE_BULKS))


def _called(case) -> str:
    name, changes = case
    return "-".join([name, *(f"{key}={value}" for key, value in changes.items())])


def _call(case):
    """The solver, the point at which it is called, and what else its forward pass takes."""
    name, changes = case
    solver, values = solver_and_values(name, **changes)
    point = solver.point(values)
    if solver.setting.exact:
        return solver, point, ()
    shapes = solver.training.shapes(point, None)
    normals = {k: jax.random.normal(jax.random.key(1), (64, *shape), dtype=float) for k, shape in shapes.items()}
    return solver, point, (normals,)


def _moving(solver, point) -> dict[str, float]:
    """The real parameters."""
    return {q.name: vars(point)[q.name] for q in solver.setting.parameters if not q.whole}


def _order(solver, point, normals):
    """Order parameters and observables of one forward pass."""
    found, observables, *_ = solver.training.forward_pass(point, *normals)
    if not solver.setting.exact:
        found = solver.training.order_parameters(solver.training.moments_of(point, found), point)
    return found, observables


def _matrices(solver):
    """What is generated for the probed matrices: each A(z) once, with its bulk."""
    return {matrix.probe: matrix.bulk for matrix in solver.matrices}.items()


def _completed(point, probe, bulk):
    """The point with any numbers for those that the training level gives."""
    names = [name for spread in bulk.spreads for row in (*spread.lower, *spread.inverse) for name in row]
    return replaced(point, **dict.fromkeys((*probe.measured, *names), 1.0))


@pytest.mark.long_cases('extensive_multilayer', 'wide_network-L=2-T=2-P=2-B=2-D=2', 'deep_linear-L=2-data=online-T=3-C=2', 'deep_linear-L=3-T=3-param=ntk', 'classifier', 'driven_memory', 'frozen_features', 'gated_network', 'hebbian_momentum', 'linear_network', 'product_of_three', 'trained_product', 'two_spiked_wisharts', 'two_wisharts', 'uneven_samples', 'unlearning')
@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=_called)
@in_float64
def test_everything_lowers_for_cuda(case):
    solver, point, normals = _call(case)

    def exported(function, *given):
        done = jax.export.export(jax.jit(function), platforms=("cuda",))(*given)
        assert done.platforms == ("cuda",)

    exported(solver.training.forward_pass, point, *normals)
    order = jax.eval_shape(lambda: _order(solver, point, normals))[0]
    if not solver.setting.exact:
        kept = jax.eval_shape(lambda: solver.training.forward_pass(point, *normals))[0]
        exported(solver.training.moments_of, point, kept)
        moments = jax.eval_shape(solver.training.moments_of, point, kept)
        exported(solver.training.order_parameters, moments, point)
    for probe, bulk in _matrices(solver):
        responses = jnp.full(len(bulk.responses), 0.1)
        given = _completed(point, probe, bulk)
        exported(probe.at, given, 5.0, responses, order)
        for cycle in probe.cycles:
            exported(cycle.factors, given, order)
        for side in probe.sides:
            exported(partial(probe.driven, side), given, 5.0, responses, order)
        exported(bulk.residual, given, 5.0, responses)


@pytest.mark.long_cases('extensive_multilayer', 'linear_network')
@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in (*SETTINGS, *TRAINED) if case[0] not in SAMPLED], ids=_called)
@in_float64
def test_vectorised_over_all_real_parameters_equals_one_at_a_time(case):
    solver, middle, _ = _call(case)
    points = [jax.tree.map(lambda a, k=k: a * (1 + 0.1 * k), middle) for k in (-1, 0, 2)]
    together = solver.forward_passes(jax.tree.map(lambda *a: jnp.array(a), *points))
    for k, point in enumerate(points):
        alone = solver.forward_pass(point)
        for one, many in zip(jax.tree.leaves(alone), jax.tree.leaves(together), strict=True):
            assert np.allclose(many[k], one, rtol=1e-12, atol=1e-13)
    moving = [np.ptp(np.asarray(x), axis=0).max(initial=0.0) > 1e-3 for x in jax.tree.leaves(together)]
    assert any(moving) or solver.setting.steps is None, "nothing depends on the parameters"


@pytest.mark.slow
@in_float64
def test_a_short_pass_is_compiled_quickly_and_gives_the_same():
    solver, values = solver_and_values("coupled_spikes", S=5)
    assert solver.pass_of(values) is solver.short_pass
    assert solver.pass_of({**values, "S": 300}) is solver.forward_pass
    usual = jax.jit(solver.training.forward_pass)
    point = solver.point(values)
    for other in (solver.short_pass, solver.forward_pass):
        for ours, theirs in zip(*(jax.tree.leaves(run(point)) for run in (other, usual)), strict=True):
            assert np.allclose(ours, theirs, rtol=1e-12, atol=1e-13)


def test_a_built_setting_that_is_loaded_again_keeps_what_was_compiled_for_it():
    first = load_built("coupled_spikes")
    assert first is not None
    assert load_built("coupled_spikes") is first


def test_options_that_the_compiler_does_not_know_are_left_out(monkeypatch):
    monkeypatch.setattr(compiling, "QUICKLY", {"xla_option_of_another_version": True})
    compiling._understood.cache_clear()
    try:
        assert compiling.compiled(lambda x: x + 1, quickly=True)(1) == 2
    finally:
        compiling._understood.cache_clear()


def test_a_simulation_of_another_version_is_refused_in_a_sentence():
    files = {**generate_files(model_named("spiked_wigner")), "simulation.py": "SIMULATED = None\n"}
    with pytest.raises(DeriveError, match="written by another version .* run derive build"):
        _ = load_solver(files).simulation


@pytest.mark.long_cases('coupled_spikes_tanh', 'extensive_multilayer', 'structured_regression', 'deep_linear-L=1-T=2-C=2', 'deep_linear-L=2-T=2-C=1', 'wide_network-L=2-T=2-P=2-B=2-D=2', 'linear_network', 'hebbian_momentum')
@pytest.mark.slow
@pytest.mark.parametrize("case", (*SETTINGS, *TRAINED), ids=_called)
@in_float64
def test_derivatives_in_both_modes_agree_with_finite_differences(case):
    """Of one number that everything generated enters, in every real parameter: eta, gamma0, nu among them."""
    solver, point, normals = _call(case)
    real = _moving(solver, point)

    def everything(moved):
        there = replaced(point, **dict(zip(real, moved, strict=True)))
        order, observables = _order(solver, there, normals)
        parts = [*order.values(), *observables.values()]
        for probe, bulk in _matrices(solver):
            parts += [cycle.pencil(there, order).array(jnp) for cycle in probe.cycles]
            parts += [probe.at(there, 5.0, 0.1 * jnp.arange(1.0, len(bulk.responses) + 1), order)]
            parts += bulk.residual(there, 5.0, jnp.linspace(0.1, 0.3, len(bulk.responses)))
            for side in probe.sides:
                parts += [part.array(jnp) for part in side.spikes(there, order)]
        flat = jnp.concatenate([jnp.ravel(part) for part in parts])
        return jnp.sum(jnp.cos(jnp.arange(flat.size)) * flat)

    start = jnp.array(list(real.values()))
    units = jnp.eye(len(real))
    pushed = jax.jit(lambda x, along: jax.jvp(everything, (x,), (along,)), compiler_options=compiling.QUICKLY)
    forward = [pushed(start, unit)[1] for unit in units]
    backward = jax.jit(jax.grad(everything), compiler_options=compiling.QUICKLY)(start)
    # what is left is of order h^4, rounding of order 1e-16 / h: both are smallest near the fifth root of 1e-16
    steps = np.finfo(float).eps ** 0.2 * np.maximum(np.abs(start), 0.1)

    def difference(h, unit):
        return (pushed(start + h * unit, unit)[0] - pushed(start - h * unit, unit)[0]) / (2 * h)

    # two steps, so that the third derivative drops out
    expected = [(4 * difference(h / 2, unit) - difference(h, unit)) / 3 for h, unit in zip(steps, units, strict=True)]
    scale = float(np.max(np.abs(expected)))
    assert scale > 1e-2
    assert np.allclose(forward, expected, rtol=1e-6, atol=1e-8 * scale)
    assert np.allclose(backward, forward, rtol=1e-9, atol=1e-11 * scale)


@pytest.mark.slow
def test_solving_leaves_the_precision_of_the_caller_alone():
    code = (
        "import jax, jax.numpy as jnp, numerics.solver as s\n"
        "assert jnp.ones(1).dtype == jnp.float32\n"
        "x = s.solve(s.load_built('spiked_wigner'), {'gamma0': 2.0})\n"
        "assert jnp.ones(1).dtype == jnp.float32 and abs(x.outliers[0] - 2.5) < 1e-12\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def as_shipped(name: str) -> dict[str, str]:
    """The files of a setting in generated/."""
    found = sorted(path for path in (HERE.parent / "generated" / name).iterdir() if path.is_file())
    return {path.name: path.read_text(encoding="utf-8") for path in found}


@pytest.mark.slow
def test_same_bytes_under_any_hash_seed():
    """Exact and sampled models and a member of a family: with one seed as they are shipped, and strangers with one seed
    as with that of this process, which is drawn at random."""
    shipped = ("anti_hebbian", "coupled_spikes_tanh", "deep_linear")
    strangers = ("linear_network", "gated_network", "hebbian_momentum")
    code = (
        "import sys, json; sys.path.insert(0, 'tests')\n"
        "from conftest import model_named\n"
        "from derive.codegen import generate_files\n"
        f"print(json.dumps({{name: generate_files(model_named(name)) for name in {shipped + strangers!r}}}))"
    )
    known = {name: as_shipped(name) for name in shipped}
    known |= {name: generate_files(model_named(name)) for name in strangers}
    told = {**os.environ, "PYTHONHASHSEED": "4242"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE.parent, env=told, stdout=subprocess.PIPE, text=True, check=True
    )
    assert json.loads(done.stdout) == known


@pytest.mark.long
@pytest.mark.slow
def test_a_small_slope_law_treated_as_nonlinear_agrees_with_the_exact_solution():
    """tanh(eps x) / eps is x for small eps, but goes through the sampler, whose second moments are exact."""
    eps = 1e-6
    sampled = load_solver(
        generate_files(
            declare(
                phi_law=lambda a, earlier: tanh(eps * (a + kappa * earlier)) / eps,
                g_law=lambda b, earlier: theta * tanh(eps * (b + kappa * earlier)) / eps,
            )
        )
    )
    assert not sampled.setting.exact
    values = values_of("coupled_spikes", S=4)
    exact, estimate = solve(solver_of("coupled_spikes"), values), solve(sampled, values, samples=20_000)
    assert len(exact.outliers) == len(estimate.outliers)
    for a, b, error in zip(exact.outliers, estimate.outliers, estimate.outlier_errors, strict=True):
        assert abs(a - b) < 1e-7 * a and error < 1e-7 * a
    for name in exact.observables:
        for a, b, error in zip(
            exact.observables[name], estimate.observables[name], estimate.errors[name], strict=True
        ):
            assert abs(a - b) < 4.5 * error + 1e-8


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers():
    solver, values = solver_of("coupled_spikes_tanh"), values_of("coupled_spikes_tanh")
    first, second, other = (solve(solver, values, samples=4_000, seed=s) for s in (3, 3, 4))
    assert first == second and first.outliers.tolist() != other.outliers.tolist()


def test_a_setting_that_is_not_built_is_none():
    assert load_built("no_such_setting") is None
