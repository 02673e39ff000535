"""Outliers and thresholds of trained models, expanded exactly: against closed forms and against solved numbers."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner
from conftest import derivation_of, model_named, solver_and_values, target_of

from derive import Model, diag, goe, normal, outer, parameter, positive, sectors, spectrum, trait
from derive.cli import main
from derive.errors import ParameterError
from derive.expansions.exact_level import ExactLevel
from derive.expansions.limits import ParameterLimit
from derive.expansions.quantities import expand_quantity
from derive.pipeline import derive_model
from derive.records.probe import MAP
from numerics.solver import solve
from numerics.support.precision import in_float64


@cache
def expanded(name: str, of: str, text: str | None, order: int, fixed: tuple = (), wanted=None, choices: tuple = ()):
    names = {p.name: p for p in model_named(name, **dict(choices)).parameters}
    limit = None if text is None else ParameterLimit.of(text, tuple(names.values()))
    at = {names[key]: sp.Rational(value) for key, value in fixed}
    probed = derivation_of(name, **dict(choices)).first
    return expand_quantity(probed, of, limit, sp.Integer(order), at, wanted).expansion


def same(left, right) -> bool:
    return sp.simplify(sp.sympify(left) - right) == 0


# the forward pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, choices, whole, open_one",
    [
        ("hebbian_momentum", {}, {"T": 3}, "decay"),
        ("deep_linear", {"L": 1}, {"T": 2, "C": 2}, "nu"),
    ],
)
def test_characteristic_polynomial_is_that_of_the_generated_matrix(name, choices, whole, open_one):
    model = model_named(name, **choices)
    solver, values = solver_and_values(name, **choices, **whole)
    exact = {p: sp.nsimplify(values[p.name], rational=True) for p in model.parameters}
    probed = derivation_of(name, **choices).first
    steps = ExactLevel(probed, {p: v for p, v in exact.items() if p.name != open_one})
    (cycle,) = probed.pencil.cycles
    found: list[complex] = []
    for factor in steps.characteristic(cycle):
        found += sp.Poly(factor.subs(exact), MAP).nroots(n=30, maxsteps=500)

    @in_float64
    def generated() -> np.ndarray:
        point = solver.point(values)
        order, _, _ = solver.training.forward_pass(point)
        return np.linalg.eigvals(solver.matrices[0].probe.cycles[0].pencil(point, order).array(np))

    expected = generated()
    size = np.max(np.abs(expected))
    left = [complex(f) for f in found if abs(f) > 1e-8 * size]
    right = [e for e in expected if abs(e) > 1e-8 * size]
    assert len(left) == len(right) > 0
    for value in left:
        assert min(abs(value - e) for e in right) < 1e-7 * size


# closed forms


@pytest.mark.slow
def test_one_spike_of_a_rectangular_matrix():
    """Its strength is theta^2 whatever kappa; Benaych-Georges and Nadakuditi give the rest."""
    alpha, sigma, theta, _, _ = model_named("coupled_spikes").parameters
    found = expanded("coupled_spikes", "outlier", "1/theta", 4, (("S", "1"),))
    assert found.powers == (-2, 0, 2) and found.ends
    for c, expected in zip(found.coefficients, (1, sigma**2 * (1 + 1 / alpha), sigma**4 / alpha), strict=True):
        assert same(c, expected)
    (threshold,) = expanded("coupled_spikes", "threshold", None, 0, (("S", "1"),), "theta").coefficients
    assert same(threshold, sigma / alpha ** sp.Rational(1, 4))


@pytest.mark.slow
def test_one_step_of_a_plastic_matrix_is_a_planted_direction():
    _, dt, _ = model_named("anti_hebbian").parameters
    found = expanded("anti_hebbian", "outlier", "1/gamma0", 2, (("T", "1"),))
    assert (
        found.powers == (-1, 1)
        and found.ends
        and same(found.coefficients[0], dt)
        and same(found.coefficients[1], 1 / dt)
    )
    (threshold,) = expanded("anti_hebbian", "threshold", None, 0, (("T", "1"),), "gamma0").coefficients
    assert same(threshold, 1 / dt)


@pytest.mark.long
@pytest.mark.slow
def test_coupling_of_two_spikes_acts_in_first_order():
    """Both responses are kappa times the matrix J with one entry below the diagonal, theta for g, so to first order
    K = theta^2 + kappa sigma^2 theta (1 + theta / alpha) (J + J^T), which splits theta^2 by that coefficient.
    """
    alpha, sigma, theta, _, _ = model_named("coupled_spikes").parameters
    found = expanded("coupled_spikes", "outlier", "kappa", 1, (("S", "2"),))
    s = sp.Symbol("s", positive=True)
    place = (s + sigma**2) * (s + sigma**2 / alpha) / s
    moved = sigma**2 * theta * (1 + theta / alpha)
    assert same(found.coefficients[0], place.subs(s, theta**2))
    assert same(found.coefficients[1], sp.diff(place, s).subs(s, theta**2) * moved)


@pytest.mark.long
@pytest.mark.slow
def test_another_scaling_of_the_output_is_another_gamma0():
    """With param=ntk the declaration holds gamma0 / sqrt(nu): roots of parameters pass through the algebra."""
    _, nu, _, *_ = model_named("deep_linear", L=1).parameters
    fixed = (("T", "1"), ("C", "1"))
    plain = expanded("deep_linear", "outlier", "1/gamma0", 2, fixed, None, (("L", 1),))
    scaled = expanded("deep_linear", "outlier", "1/gamma0", 2, fixed, None, (("L", 1), ("param", "ntk")))
    assert plain.powers == scaled.powers == (-2, 0, 2)
    for power, a, b in zip(plain.powers, plain.coefficients, scaled.coefficients, strict=True):
        assert same(b, a * nu ** (power / 2))


@pytest.mark.slow
def test_without_a_limit_the_quantity_itself_is_given():
    (gamma0,) = model_named("spiked_wigner").parameters
    assert expanded("spiked_wigner", "threshold", None, 0).coefficients == (1,)
    outlier = expanded("spiked_wigner", "outlier", None, 3)
    assert outlier.ends and same(outlier.coefficients[0], gamma0 + 1 / gamma0)
    alpha, sigma, *_ = model_named("coupled_spikes").parameters
    assert same(
        expanded("coupled_spikes", "edge", None, 0).coefficients[0], sigma**2 * (1 + alpha ** sp.Rational(-1, 2)) ** 2
    )


# against solved numbers


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, choices, text, order, fixed, smalls",
    [
        ("spiked_wigner", (), "gamma0-2", 3, (), (0.04, 0.02)),
        ("coupled_spikes", (), "1/theta", 2, (("S", "1"), ("alpha", "2"), ("sigma", "1")), None),
        (
            "coupled_spikes",
            (),
            "kappa",
            3,
            (("S", "2"), ("alpha", "2"), ("sigma", "1"), ("theta", "3/2")),
            (0.04, 0.02),
        ),
        ("anti_hebbian", (), "1/gamma0", 2, (("T", "1"), ("dt", "1/2")), None),
        ("anti_hebbian", (), "1/gamma0", 1, (("T", "2"), ("dt", "1/2")), (0.02, 0.01)),
        ("hebbian_momentum", (), "decay", 2, (("T", "2"), ("beta", "1/2"), ("rate", "2")), (0.02, 0.01)),
        (
            "deep_linear",
            (("L", 1),),
            "1/gamma0",
            2,
            (("T", "1"), ("C", "1"), ("alpha", "2"), ("nu", "2"), ("eta", "1/2"), ("sigma", "0")),
            (0.1, 0.05),
        ),
    ],
)
def test_series_of_the_largest_outlier_leaves_an_error_of_the_next_power(name, choices, text, order, fixed, smalls):
    found = expanded(name, "outlier", text, order, fixed, None, choices)
    limit = ParameterLimit.of(text, model_named(name, **dict(choices)).parameters)
    errors = []
    for small in smalls or (0.2, 0.1):
        parameter = float(limit.value.subs({next(iter(limit.value.free_symbols)): small}))
        given = {key: float(sp.Rational(value)) for key, value in fixed}
        whole = {key: int(value) for key, value in given.items() if key in ("S", "T", "C")}
        solver, values = solver_and_values(name, **dict(choices), **{**given, **whole, limit.parameter.name: parameter})
        errors.append(abs(solve(solver, values).outliers[0] - float(found.value(small, {}))))
    if found.ends:
        assert max(errors) < 1e-9
        return
    assert errors[1] > 1e-11  # rounding would hide the order
    assert np.log2(errors[0] / errors[1]) == pytest.approx(float(found.next_power), abs=0.25)


@pytest.mark.long_cases("coupled_spikes-theta-fixed1", "hebbian_momentum-rate-fixed3")
@pytest.mark.slow
@pytest.mark.parametrize(
    "name, wanted, fixed",
    [
        ("spiked_wigner", "gamma0", ()),
        ("coupled_spikes", "theta", (("S", "2"), ("alpha", "2"), ("sigma", "1"), ("kappa", "1/2"))),
        ("anti_hebbian", "gamma0", (("T", "2"), ("dt", "1/2"))),
        ("hebbian_momentum", "rate", (("T", "2"), ("beta", "1/2"), ("decay", "1/10"))),
    ],
)
def test_at_the_threshold_an_outlier_merges_with_the_edge(name, wanted, fixed):
    (critical,) = expanded(name, "threshold", None, 0, fixed, wanted).numbers({})
    given = {key: int(value) if key in ("S", "T") else float(sp.Rational(value)) for key, value in fixed}

    def distance(factor: float) -> float | None:
        solver, values = solver_and_values(name, **given, **{wanted: float(critical) * factor})
        solution = solve(solver, values)
        edge = max(high for _, high in solution.bulk_edges)
        above = [z - edge for z in solution.outliers if z > edge]
        return min(above) if above else None

    assert distance(1 - 1e-3) is None
    far, near = distance(1 + 4e-3), distance(1 + 2e-3)
    assert far is not None and near is not None
    assert far / near == pytest.approx(4, rel=0.02)  # an outlier leaves as the square of the distance


@pytest.mark.long
@pytest.mark.slow
def test_threshold_as_a_series_agrees_with_the_exact_one():
    _, dt, _ = model_named("anti_hebbian").parameters
    series = expanded("anti_hebbian", "threshold", "dt", 3, (("T", "2"),), "gamma0")
    assert series.powers[0] == -1 and same(series.coefficients[0], sp.Rational(1, 2))
    errors = []
    for step in ("1/10", "1/20"):
        (exact,) = expanded("anti_hebbian", "threshold", None, 0, (("T", "2"), ("dt", step)), "gamma0").numbers({})
        errors.append(abs(float(exact - series.value(sp.Rational(step), {}))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(float(series.next_power), abs=0.25)


# what cannot be expanded says so


def _run(*arguments: str):
    return CliRunner().invoke(main, ["expand", *arguments])


@pytest.mark.parametrize(
    "name, arguments, sentence",
    [
        ("anti_hebbian", ("--of", "outlier", "--in", "1/gamma0"), "fix T, such as --at T=1"),
        ("anti_hebbian", ("--of", "outlier", "--in", "1/gamma0", "--at", "T=40"), "80 rows"),
        ("anti_hebbian", ("--of", "threshold", "--at", "T=2"), "--parameter: gamma0, dt are open"),
        ("anti_hebbian", ("--of", "outlier", "--in", "dt+1", "--at", "T=1"), "dt would go to -1 from above"),
        ("hebbian_momentum", ("--of", "edge", "--in", "1/decay"), "decay would go to infinity"),
        ("hebbian_momentum", ("--of", "edge", "--in", "decay"), "fix T, such as --at T=1"),
        ("coupled_spikes_tanh", ("--of", "outlier", "--in", "theta", "--at", "S=1"), "nonlinear laws"),
        ("coupled_spikes", ("--of", "outlier", "--in", "theta", "--at", "S=1"), "no outlier for small theta"),
        (
            "coupled_spikes",
            ("--of", "threshold", "--parameter", "theta", "--in", "theta", "--at", "S=1"),
            "open parameters are",
        ),
        ("trained_product", ("--of", "outlier", "--in", "1/p"), "does not reduce to an eigenproblem"),
    ],
)
def test_requests_out_of_reach_are_one_sentence(name, arguments, sentence):
    told = _run(target_of(name), *arguments)
    assert told.exit_code == 2 and sentence in told.stderr and told.stderr.count("\n") == 1, told.output


def test_a_layer_that_is_moved_by_an_observable_is_refused():
    told = _run("deep_linear", "L=1", "layer=ntk", "--of", "outlier", "--in", "1/gamma0", "--at", "T=1", "--at", "C=1")
    assert told.exit_code == 2 and "readout_norm" in told.stderr


@pytest.mark.slow
def test_command_names_the_algebraic_number_apart_from_parameters():
    fixed = ("--at", "S=2", "--at", "kappa=1/2", "--at", "alpha=2", "--at", "sigma=1")
    data = json.loads(_run("coupled_spikes", "--of", "threshold", "--parameter", "theta", *fixed, "--json").stdout)
    assert data["in"] is None and data["order"] is None and data["parameter"] == "theta"
    assert data["theta"]["name"] == "vartheta" == data["terms"][0]["coefficient"]
    near = sp.Poly(sp.sympify(data["theta"]["polynomial"])).nroots(n=20, maxsteps=500)
    assert min(abs(r - sp.Float(data["theta"]["near"])) for r in near) < 1e-9


def test_limits_must_be_inside_the_domain():
    with pytest.raises(ParameterError, match="would go to -1"):
        ParameterLimit.of("nu+1", model_named("extensive_two_layer").parameters)
    gamma0, *_ = model_named("anti_hebbian").parameters
    assert ParameterLimit.of("gamma0+1", (gamma0,)).parameter == gamma0


@pytest.mark.slow
@pytest.mark.parametrize(
    "b", ["3/2", pytest.param("1/2", marks=pytest.mark.long), pytest.param("3", marks=pytest.mark.long)]
)
def test_the_threshold_is_that_of_the_upper_edge_where_the_bulk_has_a_gap(b):
    """Beside a gap the map takes critical values at regular points too, which are not edges.

    G = w / (w^2 - b^2) and z = w + G with w = z - G: the bulk ends where dz/dw = 0, and a spike leaves it at 1 / G.
    """
    level, strength = parameter("b", default=2.0, domain=positive), parameter("k", default=3.0, domain=positive)
    D = sectors("D")
    g, s = normal("g", D), trait("s", D, values=[-1, 1], weights=[0.5, 0.5])
    matrix = goe("S", D) + level * diag(s) + strength / D * outer(g, g)
    probed = derive_model(Model(parameters=(level, strength), equations=[], probe=spectrum(matrix))).first
    (found,) = expand_quantity(probed, "threshold", None, sp.S.Zero, {level: sp.Rational(b)}, "k").expansion.numbers({})
    x = float(sp.Rational(b)) ** 2
    squared = max(np.roots([1, -2 * x - 1, x * x - x]))  # (w^2 - b^2)^2 = w^2 + b^2
    assert found == pytest.approx((squared - x) / np.sqrt(squared), abs=1e-12)
