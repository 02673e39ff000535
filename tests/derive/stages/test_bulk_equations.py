"""Extensive outputs and other polynomials of Gaussian matrices: equations, curves and moments, exactly."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
import sympy as sp
from agreement import Block, extrapolated, seed_of, too_far
from conftest import choices_of, derivation_of, model_named

import derive
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint
from derive.algebra.polynomials import MOST_UNKNOWNS, TooLarge, check_size, eliminate, proves_zero
from derive.equations.spectral_sites import RESOLVENT
from derive.errors import ParameterError
from derive.expansions.infinity import moments_of_curve, moments_of_system
from derive.inputs.loading import load_model
from derive.pipeline import derive_model
from derive.printing import text_of_record
from derive.stages.expand import expand_declaration

G = RESOLVENT


def _moments(name: str, order: int, **values) -> list[sp.Expr]:
    chosen = {key: values.pop(key) for key in choices_of(name) if key in values}
    return _moments_of(derivation_of(name, **chosen).first.probe, model_named(name, **chosen), order, values)


def _moments_of(probe, model, order: int, values: dict) -> list[sp.Expr]:
    point = {p: sp.Rational(values[p.name]) for p in model.parameters if p.name in values}
    return moments_of_system(probe.bulk_equations, probe.bulk_symbols, probe.resolvent, order, point)


@pytest.mark.parametrize(
    "name, inverse",
    [
        ("semicircle", lambda sigma: 1 / G + sigma**2 * G),
        ("marchenko_pastur", lambda alpha: 1 / G + alpha / (alpha - G)),
        ("two_wisharts", lambda a, b, c: 1 / G + a / (a - G) + b * c / (b - c * G)),
    ],
)
def test_r_transforms_of_classical_laws(name, inverse):
    curve = derivation_of(name).first.bulk.curve
    assert sp.simplify(curve.subs(Z, inverse(*model_named(name).parameters))) == 0


@pytest.mark.parametrize("name, factors", [("marchenko_pastur", 1), ("product_of_two", 2), ("product_of_three", 3)])
def test_square_products_have_fuss_catalan_moments(name, factors):
    ones = {p.name: 1 for p in model_named(name).parameters}
    expected = [sp.Rational(comb((factors + 1) * k, k), factors * k + 1) for k in range(9)]
    assert _moments(name, 8, **ones) == expected


def test_anticommutator_of_two_semicircles():
    """Its edge is sqrt((11 + 5 sqrt 5) / 2), its moments 2, 10, 66, 498."""
    bulk = derivation_of("anticommutator").first.bulk
    (scale,) = model_named("anticommutator").parameters
    edge = scale * sp.sqrt((11 + 5 * sp.sqrt(5)) / 2)
    assert any(sp.simplify(f.subs(Z, edge)) == 0 for f in bulk.edge_factors)
    assert _moments("anticommutator", 8, scale=1)[::2] == [1, 2, 10, 66, 498]
    assert not any(_moments("anticommutator", 7, scale=1)[1::2])


@pytest.mark.slow
def test_two_layer_curve_is_what_the_appendix_implies():
    """H and R22 of the appendix eliminated by hand: R22 from the resolvent equation is put into its own equation."""
    nu, chi, gamma = model_named("extensive_two_layer").parameters
    H, R = -G, sp.Symbol("R")
    delta = 1 + gamma**2 / chi * H * R
    first = sp.fraction(sp.together(H * (-Z + R + gamma**2 * R / delta) - 1))[0]
    second = sp.fraction(sp.together(R * (1 + H / nu + gamma**2 / nu * H / delta) - 1))[0]
    relation = sp.factor_list(sp.resultant(first, second, R))[1]
    curve = derivation_of("extensive_two_layer").first.bulk.curve
    matching = [f for f, _ in relation if sp.expand(f - curve) == 0 or sp.expand(f + curve) == 0]
    assert len(matching) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["extensive_two_layer", "two_wisharts", "product_of_two", "anticommutator"])
def test_moments_of_the_equations_are_those_of_the_curve(name):
    bulk = derivation_of(name).first.bulk
    values = {p: sp.Rational(7 + 2 * i, 5 + i) for i, p in enumerate(model_named(name).parameters)}
    from_curve = moments_of_curve(bulk.curve.subs(values), bulk.projected.resolvent, 5)
    assert from_curve == _moments(name, 5, **{p.name: v for p, v in values.items()})
    symbolic = [m.subs(values) for m in _moments(name, 5)]
    assert all(sp.simplify(x - y) == 0 for x, y in zip(from_curve, symbolic, strict=True))


def test_degenerate_parameters_have_the_right_moments():
    catalan = [1, 1, 2, 5, 14]
    assert _moments("extensive_two_layer", 4, nu=1, chi=3, gamma=0) == catalan
    nu, chi, gamma = model_named("extensive_two_layer").parameters
    second = _moments("extensive_two_layer", 2)[2]
    assert sp.simplify(sp.limit(second, nu, sp.oo) - (1 + gamma**2) ** 2 - gamma**4 / chi) == 0


@pytest.mark.parametrize("depth, layer", [(2, 1), (3, 1), (3, 2), (4, 2), (5, 4)])
def test_any_depth_and_layer(depth, layer):
    """Mean and second moment at gamma0 = 0 are those of a square Wishart; the step adds gamma0^2 to the mean."""
    model = _multilayer(depth, layer)
    record = derive_model(model).first.probe
    gamma0 = model.parameters[2]
    assert sp.simplify(_moments_of(record, model, 1, {})[1] - 1 - gamma0**2) == 0
    assert _moments_of(record, model, 4, {"gamma0": 0, "nu": 2, "chi": 1}) == [1, 1, 2, 5, 14]


def _multilayer(depth: int, layer: int):
    return load_model("extensive_multilayer", {"L": depth, "layer": layer})


def test_layers_outside_the_network_are_refused():
    with pytest.raises(ParameterError, match="the hidden layers are 1 to 2"):
        _multilayer(3, 3)


def _moments_block(name: str, sample, exact: np.ndarray, seed: int) -> Block:
    """Moments from the first, of matrices written out here, extrapolated in the size."""
    sizes, tables = ((50, 60), (150, 30)), []
    for size, seeds in sizes:
        rng = np.random.default_rng(seed_of(seed, name, size))
        draws = [np.linalg.eigvalsh(sample(rng, size)) for _ in range(seeds)]
        tables.append(np.array([[np.mean(e**k) for k in range(1, len(exact) + 1)] for e in draws]) - exact)
    found = [
        extrapolated(f"moment {k + 1}", value, [size for size, _ in sizes], [table[:, k] for table in tables])
        for k, value in enumerate(exact)
    ]
    return Block(name, tuple(found))


def _step(W, A, B, eta, gamma0, both):
    N, C, D = A.shape[0], A.shape[1], B.shape[1]
    g = eta * gamma0 / np.sqrt(C)
    error = B - np.sqrt(D) / (gamma0 * N) * A.T @ W
    return W + g * A @ error, A + g * W @ error.T if both else A


def _trained(steps: int, both: bool, eta: float):
    def sample(rng, D):
        N, C = 2 * D, D
        W, A, B = rng.standard_normal((N, D)), rng.standard_normal((N, C)), rng.standard_normal((C, D))
        for _ in range(steps):
            W, A = _step(W, A, B, eta, 1.0, both)
        return W.T @ W / N

    return sample


@pytest.mark.long_cases("two_steps_both_layers-2-True-1/5")
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, steps, both, eta",
    [
        ("full_first_step", 1, False, "1/2"),
        ("two_steps", 2, False, "1/2"),
        ("two_steps_both_layers", 2, True, "1/5"),
    ],
)
def test_gradient_steps_have_the_moments_of_their_own_simulation(name, steps, both, eta, simulation_seed):
    """The gradient written out here once more, from the loss, at finite size."""
    exact = np.array([float(m) for m in _moments(name, 3, nu=2, chi=1, eta=eta, gamma0=1)[1:]])
    sample = _trained(steps, both, float(sp.Rational(eta)))
    assert not too_far([_moments_block(name, sample, exact, simulation_seed)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "chosen, declaration", [({"steps": 2}, "two_steps"), ({"steps": 1}, "full_first_step")], ids=["two", "one"]
)
def test_steps_of_the_setting_are_those_written_out(chosen, declaration):
    """With gamma = eta gamma0, moment by moment."""
    sizes = {"nu": 2, "chi": sp.Rational(1, 2)}
    gamma0, eta = sp.Rational(3, 2), sp.Rational(1, 2)
    point = {**sizes, "gamma": eta * gamma0, "gamma0": gamma0}
    setting = _moments("extensive_two_layer", 3, output="included", **chosen, **point)
    assert setting == _moments(declaration, 3, **sizes, eta=eta, gamma0=gamma0)


@pytest.mark.long
@pytest.mark.slow
def test_the_upper_edge_on_a_sample_as_a_series_in_its_size():
    theory = derive.load("extensive_two_layer", sample="finite")
    found = theory.expand("edge", "1/alpha", order=1, at={"nu": 2, "chi": 1, "gamma": 1})
    whole = derive.load("extensive_two_layer").solve(nu=2, chi=1, gamma=1).bulk_edges[-1][1]
    zeroth, first = found.coefficients
    slopes = [(theory.solve(nu=2, chi=1, gamma=1, alpha=a).bulk_edges[-1][1] - whole) * a for a in (1e4, 2e4)]
    assert found.theta["near"] == f"{whole:.12g}" and zeroth.name == found.theta["name"]
    assert float(first.subs(zeroth, whole)) == pytest.approx(2 * slopes[1] - slopes[0], rel=1e-6)


def test_a_sample_adds_its_own_noise():
    """The squared norm of the step is that of the population times the mean square of a sample covariance."""
    sizes = {"nu": 2, "chi": sp.Rational(1, 2), "gamma": sp.Rational(3, 2)}
    alpha = sp.Rational(5, 2)
    plain, sampled = (
        _moments("extensive_two_layer", 2, **sizes, **more) for more in ({}, {"sample": "finite", "alpha": alpha})
    )
    assert plain[1] == 1 + sizes["gamma"] ** 2
    assert sampled[1] == 1 + sizes["gamma"] ** 2 * (1 + 1 / alpha)
    many = _moments("extensive_two_layer", 2, **sizes, sample="finite", alpha=sp.Integer(10) ** 12)
    assert abs(many[2] / plain[2] - 1) < 1e-10


@pytest.mark.long_cases("two_steps_both_layers", "full_first_step")
@pytest.mark.parametrize("name", ["two_steps", "two_steps_both_layers", "full_first_step"])
def test_what_is_too_large_to_eliminate_says_so(name):
    bulk = derivation_of(name).first.bulk
    assert bulk.curve is None and bulk.edge_factors == () and bulk.resolvent is None
    count = len(bulk.projected.bulk_equations)
    assert f"too large to eliminate: G is followed as one of {count} unknowns" in " ".join(text_of_record(bulk).split())


def test_work_bound_does_not_depend_on_time():
    symbols = list(sp.symbols(f"x0:{MOST_UNKNOWNS + 1}"))
    check_size(symbols[:MOST_UNKNOWNS])
    with pytest.raises(TooLarge, match="unknowns"):
        check_size(symbols)


def test_inner_products_are_shared():
    """A @ B @ psi occurs in both steps and gets one field."""
    fields = [f.field.name for f in expand_declaration(model_named("two_steps")).joined("").fields]
    assert len(fields) == len(set(fields)) and sum(name.startswith("B_") for name in fields) == 1


def test_relations_between_responses_are_proved_or_not():
    probe = derivation_of("extensive_two_layer").first.probe
    physical = PhysicalPoint.of(probe.bulk_equations, probe.bulk_symbols)
    others = [s for s in probe.bulk_symbols if s != probe.resolvent]
    R = {s.name: s for s in probe.bulk_symbols}
    true = R["R_psi0_W0T_psi1"] - R["G"]
    assert proves_zero(true, list(probe.bulk_equations), others, physical)
    nu, chi, gamma = model_named("extensive_two_layer").parameters
    held = R["R_psi1_W0_psi0"] + chi / nu * R["R_psi3_B_psi0"] - Z + 1 / R["G"]
    assert proves_zero(held, list(probe.bulk_equations), others, physical)
    assert not proves_zero(held + 1, list(probe.bulk_equations), others, physical)
    assert eliminate(list(probe.bulk_equations), others, physical).has(Z)


@pytest.mark.slow
def test_strange_polynomial_agrees_with_its_simulation(simulation_seed):
    def sample(rng, D):
        N = 3 * D // 2
        X, Q = rng.standard_normal((N, D)), rng.standard_normal((D, D)) / np.sqrt(D)
        S = rng.standard_normal((D, D)) / np.sqrt(2 * D)
        S, P = S + S.T, Q + Q.T
        wishart = X.T @ X / N
        return wishart @ S + S @ wishart + 0.7 * P @ S @ P

    exact = np.array([float(m) for m in _moments("mixed_polynomial", 4, a="3/2", b="7/10")[1:]])
    assert not too_far([_moments_block("mixed_polynomial", sample, exact, simulation_seed)])


@pytest.mark.slow
def test_the_declarations_load_by_path():
    model = load_model("extensive_multilayer")
    assert derive_model(model).first.bulk.curve is not None
