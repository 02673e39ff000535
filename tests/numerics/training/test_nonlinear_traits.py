"""Sites that differ, in laws that are not linear: by quadrature, by sampling, by hand, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from reference_formulas.gains_by_hand import driven, leaky
from sympy import sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)
from derive.errors import ParameterError

T = parameter("T", default=3, domain=whole_positive)
GAINS = {"values": [0.5, 2], "weights": [0.7, 0.3]}
THRESHOLDS = {"values": [0.5, -1], "weights": [0.25, 0.75]}


def given(name: str, D, law):
    """A trait, or a number."""
    return trait(name, D, **law) if isinstance(law, dict) else sp.nsimplify(law)


def gains(lam=GAINS, threshold=THRESHOLDS, **more) -> Model:
    """Gains and thresholds that vary from site to site, also in the start."""
    D, t = sectors("D"), training_clock("t", steps=T)
    lam, threshold = given("lam", D, lam), given("threshold", D, threshold)
    J, start, v, h = gaussian("J", D, D), normal("start", D), field("v", D, t), field("h", D, t)
    return Model(
        parameters=(T,),
        equations=[
            Eq(v(0), threshold + start / 2),
            Eq(h(t), J @ v(t) / sqrt(D)),
            Eq(v(t + 1), lam * tanh(2 * h(t) + threshold) + v(t) / 4),
        ],
        observe={
            "first": mean(v(t)),
            "weighed": mean(lam * v(t)),
            "square": mean(v(t) ** 2),
            **{name: of(v(t)) for name, of in more.items()},
        },
    )


def fourth(v):
    """An average that is no integral in few variables, so that sites are sampled."""
    return mean(v**4)


def leaks(law) -> Model:
    """Given its leak a site is Gaussian at all times."""
    D, t = sectors("D"), training_clock("t", steps=T)
    leak = given("leak", D, law)
    J, start, v, phi, h = gaussian("J", D, D), normal("start", D), *(field(x, D, t) for x in ("v", "phi", "h"))
    return Model(
        parameters=(T,),
        equations=[
            Eq(v(0), start),
            Eq(phi(t), tanh(v(t))),
            Eq(h(t), 2 * J @ phi(t) / sqrt(D)),
            Eq(v(t + 1), (1 - leak) * v(t) + leak * h(t)),
        ],
        observe={"square": mean(v(t) ** 2), "weighed": mean(leak * v(t) ** 2)},
    )


@pytest.fixture(scope="module")
def by_quadrature():
    return derive.load(gains()).solve(T=3)


@pytest.mark.slow
def test_gains_and_thresholds_by_hand(by_quadrature):
    groups = [(a * b, x, y) for x, a in ((0.5, 0.7), (2, 0.3)) for y, b in ((0.5, 0.25), (-1, 0.75))]
    for name, expected in zip(("first", "weighed", "square"), driven(groups, 2, 3), strict=True):
        np.testing.assert_allclose(by_quadrature[name], expected, rtol=1e-11)
    assert by_quadrature.method.quadrature.error < 1e-10


@pytest.mark.slow
def test_leaks_by_hand():
    found = derive.load(leaks({"values": [0.2, 0.9], "weights": [0.6, 0.4]})).solve(T=4)
    square, weighed = leaky([(0.6, 0.2), (0.4, 0.9)], 4)
    np.testing.assert_allclose(found["square"], square, rtol=1e-11)
    np.testing.assert_allclose(found["weighed"], weighed, rtol=1e-11)
    np.testing.assert_allclose(np.diagonal(found.C["v", "v"].values), square, rtol=1e-11)


@pytest.mark.slow
def test_a_density_is_many_values():
    """Uniform leaks at the nodes of Gauss and Legendre, by hand."""
    x, w = np.polynomial.legendre.leggauss(12)
    found = derive.load(leaks({"density": 1, "low": 0.2, "high": 0.8})).solve(T=2)
    square, _ = leaky(list(zip(w / 2, 0.5 + 0.3 * x, strict=True)), 2)
    np.testing.assert_allclose(found["square"], square, rtol=1e-10)


@pytest.mark.slow
def test_sampled_sites_agree_with_quadrature(by_quadrature):
    found = derive.load(gains(fourth=fourth)).solve(T=3)
    assert found.method.closure == "sampled"
    for name in ("first", "weighed", "square"):
        errors = np.maximum(found.errors[name], 1e-12)
        assert np.all(np.abs(found[name] - by_quadrature[name]) < 5 * errors)
        assert np.all(errors < 0.02)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True], ids=["integrals", "sampled"])
def test_one_value_is_a_number(sampled):
    more = {"fourth": fourth} if sampled else {}
    one, number = (derive.load(gains(lam, -0.3, **more)).solve(T=2) for lam in ({"values": [1.5, 1.5]}, 1.5))
    for name in ("first", "weighed", "square"):
        np.testing.assert_allclose(one[name], number[name], rtol=1e-12, atol=1e-14)


@pytest.mark.long
@pytest.mark.slow
def test_a_group_may_be_split(by_quadrature):
    law = {"values": [2, 0.5, 2, 0.5], "weights": [0.1, 0.7, 0.2, 0]}
    found = derive.load(gains(law)).solve(T=3)
    for name in ("first", "weighed", "square"):
        np.testing.assert_allclose(found[name], by_quadrature[name], rtol=1e-12)


@pytest.mark.parametrize(
    ("power", "observed", "match"),
    [(2.5, {}, "the mean square of v over trait lam"), (4.5, {"fourth": fourth}, "observable fourth")],
    ids=["variance", "fourth moment"],
)
def test_averages_that_do_not_exist_are_refused(power, observed, match):
    x = sp.Symbol("x")
    theory = derive.load(gains({"density": x**-power, "low": 1, "high": sp.oo}, 0.2, **observed))
    with pytest.raises(ParameterError, match=match):
        theory.solve(T=1)


def learner(**law) -> Model:
    """A symmetric matrix that learns what it drives: memory acts on sites that saturate, each at its own level."""
    D, t = sectors("D"), training_clock("t", steps=T)
    lam, start = trait("lam", D, **law), normal("start", D)
    J, v, h, M = goe("J", D), field("v", D, t), field("h", D, t), weights("M", D, D, t)
    return Model(
        parameters=(T,),
        equations=[
            Eq(v(0), start),
            Eq(h(t), M(t) @ v(t)),
            Eq(v(t + 1), (1 - lam / 2) * v(t) + lam * tanh(h(t) + lam)),
            Eq(M(0), J),
            Eq(M(t + 1), M(t) + outer(v(t), v(t)) / D / 2),
        ],
        observe={"square": mean(v(t) ** 2), "first": mean(v(t)), "weighed": mean(lam * v(t))},
        probe=spectrum(M(T)),
    )


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "law", [{"values": [0.5, 2], "weights": [0.7, 0.3]}, {"density": 1, "low": 0, "high": 2}], ids=["values", "density"]
)
def test_learning_sites_agree_with_simulation(law, simulation_seed):
    """At two sizes: with forty samples six standard errors are a chance of 1e-6."""
    theory = derive.load(learner(**law))
    for size in (150, 400):
        found = theory.compare(size=size, seeds=40, T=3, seed=simulation_seed)
        compared = [row for row in found.rows if row.compared]
        assert len(compared) > 9
        assert all(abs(row.difference) < 6 for row in compared), found
