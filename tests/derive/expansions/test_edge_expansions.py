"""Expansions of edges, outliers and thresholds: closed forms, and every coefficient against the exact quantity."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import flint
import mpmath
import pytest
import sympy as sp
from click.testing import CliRunner
from conftest import derivation_of, model_named

from derive import Model, diag, gaussian, goe, load, normal, outer, parameter, positive, sectors, spectrum, trait
from derive.cells.spectrum import CellSpectrum
from derive.cli import main
from derive.errors import DeriveError
from derive.expansions.branches import exact as exact_fraction
from derive.expansions.cases import Case
from derive.expansions.edges import filled_curve
from derive.expansions.limits import SMALL, ParameterLimit
from derive.expansions.quantities import expand_quantity
from derive.expansions.series import DIGITS, expand_root
from derive.pipeline import derive_model

x, e = sp.symbols("x e")
a = sp.Symbol("a", positive=True)


@cache
def _expanded(name: str, of: str, text: str, order, **fixed):
    probed = derivation_of(name).first
    limit, at = _limit(name, text, fixed)
    return expand_quantity(probed, of, limit, sp.Rational(order), at).expansion


def _limit(name: str, text: str, fixed: dict):
    parameters = {p.name: p for p in model_named(name).parameters}
    return ParameterLimit.of(text, tuple(parameters.values())), {
        parameters[k]: sp.Rational(v) for k, v in fixed.items()
    }


def richardson(value, known, point: dict, small):
    """(value - what is known) / small**next_power: tends to the next coefficient as small goes to zero."""
    with mpmath.workdps(DIGITS):
        power = mpmath.mpf(int(known.next_power.p)) / int(known.next_power.q)
        return (value(small) - known.value(small, point)) / mpmath.mpf(small) ** power


def _checked_by_richardson(name: str, of: str, text: str, order, **fixed) -> None:
    """Each coefficient is the limit of (edge - the terms before it) / power, extrapolated from two small values."""
    found = _expanded(name, of, text, order, **fixed)
    limit, at = _limit(name, text, fixed)
    case = Case.of(derivation_of(name).first, limit, at)
    curve, point = filled_curve(case), case.sampled(())

    @cache
    def value(small):
        spectrum = CellSpectrum(curve, {**point, SMALL: exact_fraction(small)})
        with flint.ctx.workprec(4 * DIGITS):
            return mpmath.mpf(
                spectrum.zeros.balls()[spectrum.ends[-1 if of == "edge" else 0]].str(DIGITS, radius=False)
            )

    assert len(found.powers) > 1
    for k, (power, exact) in enumerate(zip(found.powers, found.numbers(point), strict=True)):
        before = replace(found, powers=found.powers[:k], coefficients=found.coefficients[:k], next_power=power)
        with mpmath.workdps(DIGITS):
            step = found.powers[k + 1] - power if k + 1 < len(found.powers) else found.next_power - power
            ratio = mpmath.mpf(2) ** (mpmath.mpf(int(step.p)) / int(step.q))
            far, near = (richardson(value, before, point, s) for s in (mpmath.mpf(2) ** -29, mpmath.mpf(2) ** -30))
            limit_value = (ratio * near - far) / (ratio - 1)
            assert abs(limit_value - exact) < mpmath.mpf(10) ** -5 * (1 + abs(exact)), (power, limit_value, exact)


@pytest.mark.slow
def test_order_zero_and_one_of_the_upper_edge_are_those_of_the_paper():
    nu, chi, gamma = model_named("extensive_two_layer").parameters
    found = _expanded("extensive_two_layer", "edge", "1/nu", 2)
    assert found.powers == (0, 1, 2)
    plateau = 1 + gamma**2 * (1 + chi ** sp.Rational(-1, 2)) ** 2
    assert sp.simplify(found.coefficients[0] - plateau) == 0
    nu_star = sp.sqrt(chi) + chi / (gamma**2 * (1 + sp.sqrt(chi)))
    assert sp.simplify(found.coefficients[1] / found.coefficients[0] - nu_star) == 0


@pytest.mark.slow
def test_second_order_of_the_upper_edge_is_a_perfect_fourth_power():
    """New: the second coefficient is -chi^(7/2) lambda^4 / (4 gamma^6 (1 + sqrt(chi))^4) with the plateau lambda."""
    nu, chi, gamma = model_named("extensive_two_layer").parameters
    plateau = 1 + gamma**2 * (1 + chi ** sp.Rational(-1, 2)) ** 2
    found = _expanded("extensive_two_layer", "edge", "1/nu", 2).coefficients[2]
    by_hand = -(chi ** sp.Rational(7, 2)) * plateau**4 / (4 * gamma**6 * (1 + sp.sqrt(chi)) ** 4)
    assert sp.simplify(found - by_hand) == 0


@pytest.mark.long_cases(
    "edge-1/nu-4-fixed0",
    "lower_edge-1/nu-2-fixed2",
    "edge-gamma-6-fixed3",
    "edge-chi-1-fixed4",
    "edge-nu-1-fixed5",
    "edge-1/gamma-2-fixed6",
    "lower_edge-nu-1-3-fixed7",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    "of, text, order, fixed",
    [
        ("edge", "1/nu", 4, {}),
        ("edge", "1/nu", 3, {"chi": "4", "gamma": "1/2"}),
        ("lower_edge", "1/nu", 2, {"chi": "3", "gamma": "1"}),
        ("edge", "gamma", 6, {}),
        ("edge", "chi", 1, {}),
        ("edge", "nu", 1, {"chi": "1", "gamma": "2"}),
        ("edge", "1/gamma", 2, {"chi": "1/3", "nu": "2"}),
        ("lower_edge", "nu-1", 3, {"chi": "1", "gamma": "1"}),
    ],
)
def test_every_coefficient_agrees_with_the_exact_edge(of, text, order, fixed):
    _checked_by_richardson("extensive_two_layer", of, text, order, **fixed)


@pytest.mark.slow
def test_edges_of_a_free_sum():
    _checked_by_richardson("two_wisharts", "edge", "1/a", 2)


@pytest.mark.long
@pytest.mark.slow
def test_small_number_of_outputs_needs_half_powers():
    found = _expanded("extensive_two_layer", "edge", "chi", 0)
    nu, _, gamma = model_named("extensive_two_layer").parameters
    assert found.powers == (-1, sp.Rational(-1, 2), 0)
    assert sp.simplify(found.coefficients[0] - gamma**2) == 0
    assert sp.simplify(found.coefficients[1] - 2 * gamma**2 * sp.sqrt(1 + 1 / nu)) == 0


@pytest.mark.slow
def test_without_a_step_the_edge_is_marchenko_pastur_and_the_series_ends():
    found = _expanded("extensive_two_layer", "edge", "1/nu", 2, gamma=0)
    assert found.powers == (0, sp.Rational(1, 2), 1) and found.coefficients == (1, 2, 1) and found.ends


@pytest.mark.slow
def test_hard_edge_stays_at_zero():
    found = _expanded("extensive_two_layer", "lower_edge", "gamma", 3, nu=1)
    assert found.coefficients == (0,) and found.ends


def test_outlier_of_a_planted_direction():
    found = _expanded("spiked_wigner", "outlier", "1/gamma0", 6)
    assert found.powers == (-1, 1) and found.coefficients == (1, 1) and found.ends
    near_two = _expanded("spiked_wigner", "outlier", "gamma0-2", 3)
    assert near_two.coefficients == (sp.Rational(5, 2), sp.Rational(3, 4), sp.Rational(1, 8), sp.Rational(-1, 16))


def test_weak_spike_has_no_outlier_and_says_so():
    with pytest.raises(DeriveError, match="no outlier"):
        _expanded("spiked_wigner", "outlier", "gamma0", 2)


def _spiked_wishart():
    alpha, p = (parameter(name, default=d, domain=positive) for name, d in (("alpha", 2.0), ("p", 3.0)))
    D, N = sectors("D", N=alpha)
    X, v = gaussian("X", N, D), normal("v", D)
    model = Model(parameters=(alpha, p), probe=spectrum(X.T @ X / N + p / D * outer(v, v)))
    return alpha, p, derive_model(model).first


@pytest.mark.slow
def test_threshold_and_outlier_of_a_spiked_wishart():
    alpha, p, probed = _spiked_wishart()
    limit = ParameterLimit.of("1/alpha", (alpha, p))
    threshold = expand_quantity(probed, "threshold", limit, sp.Integer(2), {}).expansion
    assert threshold.powers == (sp.Rational(1, 2), 1) and threshold.coefficients == (1, 1) and threshold.ends
    outlier = expand_quantity(probed, "outlier", limit, sp.Integer(3), {}).expansion
    exact = sp.series(p + 1 / (1 - e / p), e, 0, 4).removeO()
    for power, coefficient in zip(outlier.powers, outlier.coefficients, strict=True):
        assert sp.simplify(coefficient - sp.expand(exact).coeff(e, power)) == 0


def test_threshold_follows_the_strength_of_the_bulk():
    sigma, p = (parameter(name, default=d, domain=positive) for name, d in (("sigma", 1.5), ("p", 3.0)))
    D = sectors("D")
    v = normal("v", D)
    probe = spectrum(sigma * goe("M", D) + p / D * outer(v, v))
    probed = derive_model(Model(parameters=(sigma, p), probe=probe)).first
    found = expand_quantity(probed, "threshold", ParameterLimit.of("sigma", (sigma, p)), sp.Integer(3), {}).expansion
    assert found.powers == (1,) and found.coefficients == (1,)


@pytest.mark.parametrize(
    "polynomial, value, order, powers, coefficients",
    [
        (x**2 - a - e, lambda s: mpmath.sqrt(3 + s), 1, (0, 1), (sp.sqrt(a), 1 / (2 * sp.sqrt(a)))),
        (x**2 - a * e, lambda s: -mpmath.sqrt(3 * s), 2, (sp.Rational(1, 2),), (-sp.sqrt(a),)),
        (e * x**2 - x - 1, lambda s: (1 + mpmath.sqrt(1 + 4 * s)) / (2 * s), 2, (-1, 0, 1, 2), (1, 1, -1, 2)),
        (
            (x - 1) ** 2 - e * (1 + e),
            lambda s: 1 + mpmath.sqrt(s * (1 + s)),
            2,
            (0, sp.Rational(1, 2), sp.Rational(3, 2)),
            (1, 1, sp.Rational(1, 2)),
        ),
        ((x - 1 - e) ** 2 - e**3, lambda s: 1 + s + mpmath.sqrt(s**3), 2, (0, 1, sp.Rational(3, 2)), (1, 1, 1)),
        (x**2 - 2 * x - a - e, lambda s: 1 + mpmath.sqrt(4 + s), 0, (0,), (1 + sp.sqrt(1 + a),)),
    ],
)
def test_puiseux_series_of_simple_roots(polynomial, value, order, powers, coefficients):
    found = expand_root(polynomial, x, e, sp.Integer(order), value, {a: sp.Integer(3)})
    assert found.powers == powers
    for c, expected in zip(found.coefficients, coefficients, strict=True):
        assert sp.simplify(c - expected) == 0


def test_algebraic_numbers_of_higher_degree_are_named():
    def root(s):
        return mpmath.findroot(lambda t: t**5 - t - 1 - s, 1.16)

    found = expand_root(x**5 - x - 1 - e, x, e, sp.Integer(2), root, {})
    theta = sp.Symbol("theta")
    assert sp.expand(found.minimal - (theta**5 - theta - 1)) == 0
    with mpmath.workdps(40):
        here = root(mpmath.mpf(0))
        slope = sp.N(found.coefficients[1].subs(theta, sp.Float(str(here), 40)), 20)
        assert abs(slope - 1 / (5 * here**4 - 1)) < 1e-12


def _run(*arguments: str):
    return CliRunner().invoke(main, ["expand", *arguments])


@pytest.mark.slow
def test_command_prints_text_latex_and_json():
    told = _run(
        "extensive_two_layer", "--of", "edge", "--in", "1/nu", "--order", "1", "--at", "chi=1", "--at", "gamma=1"
    )
    assert told.exit_code == 0 and "(1/nu)^0:  5" in told.output and "(1/nu)^1:  15/2" in told.output
    latex = _run("extensive_two_layer", "--in", "1/nu", "--order", "1", "--format", "latex")
    assert latex.exit_code == 0 and r"\sqrt{\chi}" in latex.output and r"\mathcal{O}" in latex.output
    data = json.loads(_run("extensive_two_layer", "--in", "1/nu", "--order", "1", "--json").stdout)
    assert [t["power"] for t in data["terms"]] == ["0", "1"] and data["next_power"] == "2"
    assert data["branch"].keys() == {"chi", "gamma"} and data["theta"] is None
    nu_star = sp.sympify(data["terms"][1]["relative"], {"gamma": sp.Symbol("gamma"), "chi": sp.Symbol("chi")})
    assert sp.simplify(nu_star.subs({"chi": 4, "gamma": 1}) - (2 + sp.Rational(4, 3))) == 0


@pytest.mark.slow
def test_a_series_is_grouped_by_the_scale_of_its_first_correction_in_symbols_of_the_user():
    m = load("extensive_two_layer")
    series = m.expand("edge", "1/nu", order=1)
    star, value = series.scale
    chi, gamma, nu = (sp.Symbol(name, positive=True) for name in ("chi", "gamma", "nu"))
    mine = series.sympy(symbols=(chi, gamma, nu))
    assert mine.free_symbols == {chi, gamma, nu} and str(star) == "nu_star"
    assert series.sympy(symbols=m.parameters).free_symbols <= set(m.parameters)
    grouped = series.leading * (1 + value / sp.Symbol("nu"))
    assert sp.simplify(grouped - series.sympy()) == 0 and "1 + nu_star/nu + ..." in series.grouped
    assert value.subs({"chi": 1, "gamma": 1}) == sp.Rational(3, 2)  # no singularity where coefficients have none
    there = m.expand("edge", "gamma-1", order=1, at={"nu": 4, "chi": 1})
    assert there.scale is None or sp.simplify(there.leading / there.coefficients[1] - there.scale[1]) == 0
    assert load("spiked_wigner").expand("outlier", "1/gamma0").scale is None


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--in", "width"), "cannot expand in 'width'"),
        (("--in", "1/nu", "--at", "nu=2"), "leave it out of --at"),
        (("--in", "1/nu", "--at", "chi=0"), "chi must be a number in"),
        (("--in", "1/nu", "--at", "chi=some"), "is not a number"),
        (("--in", "1/nu", "--of", "outlier"), "has no spikes"),
        (("--in", "1/nu", "--at", "beta=1"), "one of the parameters nu, chi, gamma"),
    ],
)
def test_bad_requests_are_one_sentence(arguments, sentence):
    told = _run("extensive_two_layer", *arguments)
    assert told.exit_code == 2 and sentence in told.stderr and told.stderr.count("\n") == 1


def test_an_outlier_leaves_the_edge_quadratically():
    """gamma0 + 1/gamma0 = 2 + (gamma0 - 1)^2 + ... just above its threshold."""
    told = _run("spiked_wigner", "--of", "outlier", "--in", "gamma0-1", "--json")
    terms = json.loads(told.stdout)["terms"]
    assert [(term["power"], term["coefficient"]) for term in terms] == [("0", "2"), ("2", "1"), ("3", "-1")]


@pytest.mark.slow
def test_each_cell_has_its_series():
    """The lower edge of the extensive network tends to 1 for chi < 1 and to a Marchenko-Pastur edge for chi > 1."""
    told = json.loads(
        _run("extensive_two_layer", "--of", "lower_edge", "--in", "1/nu", "--order", "0", "--json").stdout
    )
    found = {series["cell"]: series for series in (told, *told["others"])}
    nu, chi, gamma = sp.symbols("nu chi gamma", positive=True)
    assert found["for chi < 1"]["terms"][0]["coefficient"] == "1"
    beyond = sp.sympify(found["for chi > 1"]["terms"][0]["coefficient"], {"chi": chi, "gamma": gamma})
    assert sp.simplify(beyond - 1 - gamma**2 * (1 - 1 / sp.sqrt(chi)) ** 2) == 0
    assert {series["status"] for series in found.values()} == {"proved"}


def test_an_edge_that_grows_without_bound_is_expanded():
    """For large b the upper edge is b + 2/sqrt(3), that of the third of the sites with the entry b."""
    b, D = parameter("b", default=0.5, domain=positive), sectors("D")
    entries = trait("s", D, values=[b, -b], weights=[sp.Rational(1, 3), sp.Rational(2, 3)])
    probed = derive_model(Model(parameters=(b,), probe=spectrum(goe("M", D) + diag(entries)))).first
    expansion = expand_quantity(probed, "edge", ParameterLimit(b, 1 / SMALL), sp.S.Zero, {}).expansion
    assert dict(zip(expansion.powers, expansion.coefficients, strict=True)) == {-1: 1, 0: 2 / sp.sqrt(3)}


def test_a_coefficient_may_vanish_where_the_numbers_are_taken():
    """(x - 1 - e) ((a - 1) x - 1) has another root, which is at infinity at a = 1."""
    polynomial = sp.expand((x - 1 - e) * ((a - 1) * x - 1))
    series = expand_root(polynomial, x, e, sp.Integer(1), lambda small: 1 + small, {a: sp.Integer(1)})
    assert series.powers == (0, 1) and series.coefficients == (1, 1)


@pytest.mark.slow
def test_the_edge_of_hidden_layers_after_a_small_step_does_not_depend_on_ratios():
    """4 + 4 gamma0^2; at the defaults a coefficient of its polynomial vanishes."""
    series = load("extensive_multilayer").expand("edge", "gamma0", order=2).series
    assert series.startswith("(4) + (4)*(gamma0**2)")
    solved = load("extensive_multilayer").solve(nu=3, chi=0.5, gamma0=0.01).bulk_edges[-1, 1]
    assert (solved - 4) / 0.01**2 == pytest.approx(4, abs=0.01)
