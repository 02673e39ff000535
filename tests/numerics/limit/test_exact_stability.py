"""The largest stable rate of linear training is exact: ten digits of closed forms, on fixed and on fresh data."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import sympy as sp
from conftest import solver_and_values
from linear_models import network, random_features
from stability_by_hand import (
    asymmetric_network,
    covariance_radius,
    fresh_batches,
    fresh_batches_of_random_features,
    heavy_ball,
    mini_batches,
    mini_batches_in_closed_form,
    power_law,
    random_features_edge,
    spiked_edge,
    upper_edge,
)
from sympy import sqrt

import derive
from derive import (
    Eq,
    Model,
    discrete,
    drawn,
    field,
    gaussian,
    mean,
    nonnegative,
    normal,
    parameter,
    positive,
    sectors,
    training_clock,
    whole_positive,
)
from derive.errors import DeclarationError, NumericalError
from derive.expansions.critical_rates import closed_form, parameters_of
from numerics.limit.critical import critical_rate
from numerics.limit.recursion import CLOSEST, STEEPEST, needed_for, step_at
from numerics.limit.responses import Arc

T = parameter("T", default=4, domain=whole_positive)
alpha = parameter("alpha", default=2.0, domain=positive)
eta = parameter("eta", default=0.1, domain=positive)
ridge = parameter("ridge", default=0.0, domain=nonnegative)
t = training_clock("t", steps=T)
ONE = np.ones(1)


def critical(solver, values, of="eta", loss="train_loss"):
    return critical_rate(solver.recursion, lambda x: solver.point({**values, of: x}), values[of], loss)


def of_regression(**given):
    return critical(*solver_and_values("structured_regression", **given, T=4))


def of_model(theory, of="eta", loss="loss", **given):
    problem = theory._problem(given)
    return critical(theory._solver(problem.model, None), problem.inputs, of, loss)


# -- fixed data


HEAVY_BALL = [
    pytest.param(8.0, 0.0, 0.9, id="momentum"),
    pytest.param(2.0, 0.3, 0.5, marks=pytest.mark.long, id="ridge"),
    pytest.param(0.5, 0.0, 0.3, marks=pytest.mark.long, id="few samples"),
    pytest.param(1.0, 0.0, 0.0, marks=pytest.mark.long, id="no gap"),
    pytest.param(1e4, 0.0, 0.99, marks=pytest.mark.long, id="many samples"),
    pytest.param(1e-3, 5.0, 0.0, marks=pytest.mark.long, id="very few samples"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "decay", "momentum"), HEAVY_BALL)
def test_the_heavy_ball(samples, decay, momentum):
    found = of_regression(spectrum="isotropic", alpha=samples, ridge=decay, mu=momentum)
    assert found.rate == pytest.approx(heavy_ball((1 + samples**-0.5) ** 2 + decay, momentum), rel=1e-10)
    assert found.angle == math.pi and found.low < found.rate < found.high < found.low * (1 + 1e-6)


TWO_GROUPS = [
    pytest.param(2.0, 0.3, 0.5, 4.0, 0.25, marks=pytest.mark.slow, id="usual"),
    pytest.param(0.5, 0.0, 0.0, 100.0, 0.01, marks=pytest.mark.long, id="few strong inputs"),
    pytest.param(50.0, 0.0, 0.9, 30.0, 0.5, marks=pytest.mark.long, id="two bands"),
    pytest.param(2.0, 0.0, 0.0, 0.0, 0.5, marks=pytest.mark.long, id="inputs that vanish"),
]


@pytest.mark.parametrize(("samples", "decay", "momentum", "strong", "part"), TWO_GROUPS)
def test_two_groups_of_inputs(samples, decay, momentum, strong, part):
    found = of_regression(alpha=samples, ridge=decay, mu=momentum, kappa=strong, share=part)
    edge = upper_edge(samples, np.array([1.0, strong]), np.array([1 - part, part]))
    assert found.rate == pytest.approx(heavy_ball(edge + decay, momentum), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [10.0, pytest.param(0.3, marks=pytest.mark.long)])
def test_a_planted_direction(strength):
    """Its outlier overshoots before the bulk, if it has one."""
    found = of_regression(spectrum="isotropic", hessian="yes", alpha=2.0, spike=strength, mu=0.5, ridge=0.2)
    assert found.rate == pytest.approx(heavy_ball(spiked_edge(2.0, strength) + 0.2, 0.5), rel=1e-10)


@pytest.mark.parametrize(
    ("samples", "width"), [pytest.param(*x, marks=pytest.mark.long) for x in ((3.0, 0.5), (0.4, 2.5))]
)
def test_a_linear_network_with_a_layer_that_does_not_learn(samples, width):
    found = of_model(random_features(), loss="train_loss", alpha=samples, nu=width)
    assert found.rate == pytest.approx(2 / random_features_edge(samples, width), rel=1e-10)


@cache
def delayed():
    """Gradients that come one step late."""
    D, P = sectors("D", P=alpha)
    Z, w, e = gaussian("Z", P, D), field("w", D, t), field("e", P, t)
    return derive.load(
        Model(
            parameters=(alpha, eta, T),
            equations=[
                Eq(e(t), Z @ w(t) / sqrt(D)),
                Eq(w(0), normal("first", D)),
                Eq(w(t + 1), w(t) - eta * sqrt(D) / P * Z.T @ e(t - 1)),
            ],
            observe={"loss": mean(e(t) ** 2)},
            name="delayed",
        )
    )


@pytest.mark.long
def test_a_mode_that_turns():
    """l^2 - l + eta x = 0 has |l| = 1 at eta x = 1, at an angle of pi/3."""
    found = of_model(delayed(), alpha=2.0)
    assert found.rate == pytest.approx(1 / (1 + 2**-0.5) ** 2, rel=1e-10)
    assert found.angle == pytest.approx(math.pi / 3, rel=1e-6)


# -- matrices that are not symmetric


@pytest.mark.parametrize(("now", "before"), [(0.0, 0.0), (0.3, 0.0), (-0.4, 0.2), (0.0, -0.5), (0.3, -0.6)])
def test_networks_with_an_asymmetric_matrix(now, before):
    """The boundary of a spectrum in the plane reaches the circle, at a complex angle where the last step is undone."""
    found = of_model(network(False), of="g", loss="activity", a=now, b=before)
    assert found.rate == pytest.approx(asymmetric_network(now, before), rel=1e-9)


@pytest.mark.parametrize(("now", "rate"), [(0.3, 0.35), pytest.param(-0.3, 0.35, marks=pytest.mark.long)])
def test_networks_with_a_symmetric_matrix(now, rate):
    """a + 2 g reaches 1, or a - 2 g reaches -1."""
    found = of_model(network(True), of="g", loss="activity", a=now)
    assert found.rate == pytest.approx(rate, rel=1e-10) and found.angle == (0.0 if now > 0 else math.pi)


# -- fresh data


FRESH = [
    (2.0, 0.0, 0.0),
    (0.1, 0.3, 0.9),
    *(pytest.param(*x, marks=pytest.mark.long) for x in ((2.0, 0.0, 0.5), (1e-3, 0.0, 0.0), (1e4, 0.5, 0.3))),
]


@pytest.mark.parametrize(("batch", "decay", "momentum"), FRESH)
def test_fresh_batches(batch, decay, momentum):
    found = of_regression(spectrum="isotropic", batch="online", alpha=batch, ridge=decay, mu=momentum)
    assert found.rate == pytest.approx(fresh_batches(batch, ONE, ONE, decay, momentum), rel=1e-10)
    assert found.kind == "covariance"


def test_fresh_batches_in_closed_form():
    """2 alpha (1 - mu^2) / (1 + mu + alpha (1 - mu)), without a ridge."""
    assert fresh_batches(2.0, ONE, ONE, mu=0.5) == pytest.approx(1.2, rel=1e-14)


@pytest.mark.parametrize(
    ("batch", "strong", "part"), [(0.05, 50.0, 0.02), pytest.param(100.0, 20.0, 0.5, marks=pytest.mark.long)]
)
def test_fresh_batches_of_two_groups(batch, strong, part):
    found = of_regression(batch="online", alpha=batch, kappa=strong, share=part, mu=0.4, ridge=0.1)
    groups, weights = np.array([1.0, strong]), np.array([1 - part, part])
    assert found.rate == pytest.approx(fresh_batches(batch, groups, weights, 0.1, 0.4), rel=1e-10)


@pytest.mark.parametrize(("batch", "smallest"), [(2.0, 0.1), pytest.param(0.1, 1e-3, marks=pytest.mark.long)])
def test_fresh_batches_of_a_power_law(batch, smallest):
    """Covariances are lost a little before the mode at the end of the density overshoots."""
    found = of_regression(spectrum="power_law", batch="online", alpha=batch, cut=smallest)
    assert found.rate == pytest.approx(fresh_batches(batch, *power_law(1.5, smallest)), rel=1e-11)
    assert found.error < 1e-11 and found.kind == "covariance"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "kind"), [(0.3, "covariance"), pytest.param(2.0, "mean", marks=pytest.mark.long)], ids=["small", "large"]
)
def test_fresh_batches_with_a_layer_that_does_not_learn(batch, kind):
    """Fixed and fresh matrices together: noise adds up in small batches, the mean overshoots in large ones."""
    found = of_model(random_features(True), loss="train_loss", alpha=batch, nu=0.5)
    assert found.rate == pytest.approx(fresh_batches_of_random_features(batch, 0.5), rel=1e-10) and found.kind == kind


def test_parameters_of_a_density_are_among_those_of_the_step():
    """Its law has a density and two ends, where others have values and weights."""
    recursion = derive.load("structured_regression", spectrum="power_law", batch="online").derivation.recursion
    assert {"alpha", "eta", "decay", "cut"} <= {p.name for p in parameters_of(recursion)}


def test_a_planted_direction_in_fresh_batches():
    """Its mean overshoots where batches are large."""
    found = of_regression(spectrum="isotropic", batch="online", hessian="yes", alpha=2.0, spike=10.0, mu=0.5, ridge=0.2)
    assert found.rate == pytest.approx(heavy_ball(11.2, 0.5), rel=1e-6) and found.kind == "mean"


# -- mini-batches of a fixed set


@cache
def masked(again: bool = False, late: bool = False):
    """Each step takes samples at random; again: what it has taken once more; late: also those of the last step."""
    D, P = sectors("D", P=alpha)
    share = parameter("beta", default=0.25, domain=positive)
    s = drawn("s", P, discrete([0, 1 / share], [1 - share, share]), t)
    Z, w, e, g = gaussian("Z", P, D), field("w", D, t), field("e", P, t), field("g", P, t)
    taken = s(t) * (g(t) if again else e(t)) + (s(t - 1) * e(t) if late else 0)
    more = [Eq(g(t), s(t) * e(t))] if again else []
    return derive.load(
        Model(
            parameters=(alpha, eta, share, T),
            equations=[
                Eq(e(t), Z @ w(t) / sqrt(D)),
                *more,
                Eq(w(0), normal("first", D)),
                Eq(w(t + 1), w(t) - eta * sqrt(D) / P * Z.T @ taken),
            ],
            observe={"loss": mean(e(t) ** 2)},
            name="masked",
        )
    )


def test_a_mini_batch_is_noise_at_equal_times():
    """Its mean is the full batch, and its variance (1 - beta)/beta times the mean square of the errors."""
    found = masked().derivation.recursion
    (noise,) = (c for c in found.covariances if c.fresh)
    (share,) = (p for p in noise.coefficient.free_symbols if p.name == "beta")
    assert sp.cancel(noise.coefficient - (1 - share) / share) == 0 and {noise.a.name, noise.b.name} == {"e"}
    assert [part.coefficient for part in found.parts if part.target == noise.left] == [1]


@pytest.mark.parametrize("wrong", [{"again": True}, {"late": True}], ids=["again", "late"])
def test_noise_that_its_factor_depends_on_is_refused(wrong):
    with pytest.raises(DeclarationError, match="depends on the same draw"):
        _ = masked(**wrong).derivation.recursion


@pytest.mark.slow
def test_covariances_of_a_mini_batch_last_for_ever_at_the_closed_form():
    solver, values = solver_and_values("structured_regression", spectrum="isotropic", batch="mini", alpha=8.0, T=4)
    rate = mini_batches_in_closed_form(8.0, 3.0)
    step = step_at(needed_for(solver.recursion, "train_loss"), solver.point({**values, "beta": 0.25, "eta": rate}), 24)
    radius, error = step.white_radius()
    assert radius == pytest.approx(1, abs=1e-11) and error < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize(("samples", "share"), [(8.0, 0.3), pytest.param(3.0, 0.4, marks=pytest.mark.long)])
def test_covariances_of_a_mini_batch_are_finite_where_the_mean_overshoots(samples, share):
    """There their spectral radius is (1 - beta)/(beta sqrt(alpha))."""
    given = {"spectrum": "isotropic", "batch": "mini", "alpha": samples, "T": 4}
    solver, values = solver_and_values("structured_regression", **given)
    point = solver.point({**values, "beta": share, "eta": heavy_ball((1 + samples**-0.5) ** 2)})
    low, high = step_at(needed_for(solver.recursion, "train_loss"), point, 24).white_radius_beside(math.pi)
    assert low < (1 - share) / share / samples**0.5 < high < low + 1e-3


def test_a_density_that_passes_the_growth_test_stays_below_its_power_law():
    """(1 - u x)/x in units of the smaller distance, for the largest u that passes and for a smaller one."""
    most = (2**STEEPEST / 2**0.5 - 1) / (2**STEEPEST - 1)
    assert 0.27 < most < 0.28
    distance = np.geomspace(1e-12, 1, 200)
    for u in (most, most / 2, -1.0):
        density = (1 - u * distance**0.5) / distance**0.5
        assert np.all(density <= (1 - u) * distance**-STEEPEST * (1 + 1e-12))


@pytest.mark.long
@pytest.mark.parametrize(("samples", "share", "momentum"), [(8.0, 0.3, 0.0), (0.05, 0.6, 0.0), (1.5, 0.5, 0.9)])
def test_densities_grow_as_inverse_square_roots_beside_a_branch_point(samples, share, momentum):
    """The calibration of STEEPEST."""
    given = {"spectrum": "isotropic", "batch": "mini", "alpha": samples, "mu": momentum, "T": 4}
    solver, values = solver_and_values("structured_regression", **given)
    rate = heavy_ball((1 + samples**-0.5) ** 2, momentum)
    step = step_at(needed_for(solver.recursion, "train_loss"), solver.point({**values, "beta": share, "eta": rate}), 24)
    (panels,), _ = step._transfers([Arc(1.0, 1.0, (CLOSEST, math.pi - CLOSEST))])
    distances = math.pi - np.angle(1 - np.concatenate([panel.v for panel in panels]))
    sizes = np.max(np.abs(np.concatenate([panel.kept for panel in panels])), axis=(1, 2))
    near = int(np.argmin(distances))
    twice = int(np.argmin(np.abs(distances - 2 * distances[near])))
    power = np.log(sizes[near] / sizes[twice]) / np.log(distances[twice] / distances[near])
    assert 0.5 < power < 0.501


MINI = [(2.0, 0.25, 0.0, 0.0), (8.0, 0.3, 0.0, 0.0), (2.0, 0.2, 0.2, 0.6), (0.01, 0.4, 0.0, 0.0), (1.0, 0.3, 0.0, 0.0)]


@pytest.mark.long
@pytest.mark.parametrize(("samples", "share", "decay", "momentum"), MINI)
def test_mini_batches_of_a_fixed_set(samples, share, decay, momentum):
    given = {"alpha": samples, "beta": share, "ridge": decay, "mu": momentum}
    found = of_regression(spectrum="isotropic", batch="mini", **given)
    right = mini_batches(samples, ONE, ONE, (1 - share) / share, decay, momentum)
    assert abs(found.rate - right) <= max(found.error, 1e-13 * right) and found.error < 1e-10 * right


@pytest.mark.long
def test_mini_batches_of_two_groups():
    found = of_regression(batch="mini", alpha=2.0, beta=0.2, kappa=9.0, share=0.3, ridge=0.1, mu=0.4)
    right = mini_batches(2.0, np.array([1.0, 9.0]), np.array([0.7, 0.3]), 4.0, 0.1, 0.4)
    assert found.rate == pytest.approx(right, rel=1e-10)


@pytest.mark.long
def test_mini_batches_at_finite_size():
    """Covariances of errors on samples of matrices with more and more rows come closer to lasting for ever."""
    rate = mini_batches_in_closed_form(2.0, 3.0)
    off = []
    for D in (50, 200):
        seen = [covariance_radius(np.random.default_rng(k).normal(size=(2 * D, D)), rate, 3.0) for k in range(4)]
        off.append(np.mean(seen) - 1)
        assert abs(off[-1]) < 10 / D
    assert abs(off[1]) < abs(off[0])


@cache
def stirred():
    """Gradient descent with noise in the weights."""
    D, P = sectors("D", P=alpha)
    Z, w, e, xi = gaussian("Z", P, D), field("w", D, t), field("e", P, t), normal("xi", D, t)
    return derive.load(
        Model(
            parameters=(alpha, eta, ridge, T),
            equations=[
                Eq(e(t), Z @ w(t) / sqrt(D)),
                Eq(w(0), normal("first", D)),
                Eq(w(t + 1), w(t) - eta * (sqrt(D) / P * Z.T @ e(t) + ridge * w(t)) + sqrt(eta) * xi(t)),
            ],
            observe={"loss": mean(e(t) ** 2), "distance": mean(w(t) ** 2)},
            name="stirred",
        )
    )


@pytest.mark.long
def test_noise_that_adds_up_for_ever_is_no_stable_training():
    """Along directions without samples weights walk at random, at any rate; errors on samples do not see it."""
    right = heavy_ball((1 + 0.5**-0.5) ** 2)
    assert of_model(stirred(), alpha=0.5).rate == pytest.approx(right, rel=1e-10)
    assert of_model(stirred(), loss="distance", alpha=2.0).rate == pytest.approx(heavy_ball((1 + 2**-0.5) ** 2))
    assert of_model(stirred(), loss="distance", alpha=0.5, ridge=0.1).rate > 0.9 * right
    with pytest.raises(NumericalError, match="noise of each step accumulates in distance"):
        of_model(stirred(), loss="distance", alpha=0.5)


def test_the_step_prints_itself():
    told = str(derive.load("structured_regression", spectrum="isotropic", batch="online").derivation.recursion)
    assert "drawn afresh: at equal times only" in told and "mu" in told and "teacher" not in told


# -- closed forms


def closed(theory, kind, rate, **given):
    values = {**theory._problem(given).values, "eta": rate}
    found = closed_form(theory.derivation.recursion, "eta", values, kind, math.pi if kind == "mean" else None)
    return found, {p.name: p for p in theory.derivation.model.parameters}


def test_the_formula_of_the_heavy_ball():
    theory, given = derive.load("structured_regression", spectrum="isotropic"), {"alpha": 8.0, "mu": 0.9, "ridge": 0.2}
    found, p = closed(theory, "mean", heavy_ball((1 + 8**-0.5) ** 2 + 0.2, 0.9), **given)
    by_hand = 2 * (1 + p["mu"]) / ((1 + p["alpha"] ** -sp.S.Half) ** 2 + p["ridge"])
    elsewhere = {p["alpha"]: sp.Rational(9, 4), p["mu"]: sp.Rational(1, 3), p["ridge"]: sp.Rational(1, 7)}
    assert found.formula.subs(elsewhere) == by_hand.subs(elsewhere)
    assert found.polynomial.subs(elsewhere).subs(p["eta"], by_hand.subs(elsewhere)) == 0


def test_the_formula_of_fresh_batches():
    theory = derive.load("structured_regression", spectrum="isotropic", batch="online")
    found, p = closed(theory, "covariance", 1.2, alpha=2.0, mu=0.5)
    alpha, mu = p["alpha"], p["mu"]
    assert sp.cancel(found.formula - 2 * alpha * (1 - mu**2) / (1 + mu + alpha * (1 - mu))) == 0


@pytest.mark.long
def test_a_polynomial_is_given_where_there_is_no_formula():
    """Of fourth degree for two groups: the rate is its root, and a rate beside it is not."""
    groups, weights = np.array([1.0, 4.0]), np.array([0.75, 0.25])
    rate = heavy_ball(upper_edge(2.0, groups, weights), 0.5)
    theory = derive.load("structured_regression")
    found, p = closed(theory, "mean", rate, alpha=2.0, mu=0.5)
    assert found.formula is None and sp.degree(found.polynomial, p["eta"]) == 4
    assert min(abs(x - rate) for x in sp.Poly(found.polynomial, p["eta"]).nroots()) < 1e-12
    assert closed(theory, "mean", 1.001 * rate, alpha=2.0, mu=0.5)[0] is None


# -- what a rate is not


def test_what_cannot_be_found_is_refused():
    with pytest.raises(NumericalError, match="remains bounded up to"):
        critical(*solver_and_values("structured_regression", spectrum="isotropic", batch="online", T=4), of="sigma")
    with pytest.raises(NumericalError, match="training grows at all rates"):
        of_model(network(False), of="g", loss="activity", a=1.5)


# -- many points


def drawn_point(rng, mini=False):
    """A setting at random, with mini-batches or without, and its limit by hand."""
    samples, momentum = float(np.exp(rng.uniform(-5, 5))), float(rng.choice([0, rng.uniform(0, 0.99)]))
    decay = float(rng.choice([0, np.exp(rng.uniform(-6, 2))]))
    strong, part = float(np.exp(rng.uniform(-3, 4))), float(rng.uniform(0.01, 0.99))
    given = {"alpha": samples, "mu": momentum, "ridge": decay}
    grouped = rng.random() < 0.5
    lam, weights = (np.array([1.0, strong]), np.array([1 - part, part])) if grouped else (ONE, ONE)
    given |= {"kappa": strong, "share": part} if grouped else {"spectrum": "isotropic"}
    if mini:
        taken = float(rng.uniform(0.02, 0.9))
        right = mini_batches(samples, lam, weights, (1 - taken) / taken, decay, momentum)
        return given | {"batch": "mini", "beta": taken}, right
    if rng.random() < 0.6:
        return given | {"batch": "online"}, fresh_batches(samples, lam, weights, decay, momentum)
    return given, heavy_ball(upper_edge(samples, lam, weights) + decay, momentum)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(15))
def test_drawn_points(seed):
    """Ten at a time: ratios from 1/150 to 150, momentum up to 0.99, ridges, groups, fixed and fresh data."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        given, right = drawn_point(rng)
        assert of_regression(**given).rate == pytest.approx(right, rel=1e-9), given


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_drawn_mini_batches(seed):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        given, right = drawn_point(rng, mini=True)
        found = of_regression(**given)
        assert abs(found.rate - right) <= max(found.error, 1e-10 * right), given
