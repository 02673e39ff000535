"""The stationary limit of linear training: ridge and ridgeless estimators, without running there."""

from __future__ import annotations

import json
import pickle
from functools import cache

import numpy as np
import pytest
from agreement import BOUND
from click.testing import CliRunner
from linear_models import network, random_features
from resolvent_by_hand import (
    few_features_test_loss,
    interpolator_test_loss,
    ridge_test_loss,
)
from sympy import Rational, sqrt

import derive
from derive import (
    Domain,
    Eq,
    Model,
    field,
    fields,
    gaussian,
    goe,
    mean,
    nonnegative,
    normal,
    parameter,
    positive,
    sectors,
    training_clock,
    whole_positive,
)
from derive.cli import main
from derive.errors import DeclarationError, NumericalError, ParameterError

T = parameter("T", default=30, domain=whole_positive)
alpha = parameter("alpha", default=2.0, domain=positive)
eta = parameter("eta", default=0.1, domain=positive)
sigma = parameter("sigma", default=0.3, domain=nonnegative)
ridge = parameter("ridge", default=0.1, domain=nonnegative)
mu = parameter("mu", default=0.5, domain=Domain(0, 1, low_included=True))
g = parameter("g", default=0.4, domain=positive)
t = training_clock("t", steps=T)


@cache
def regression(spectrum: str = "isotropic"):
    return derive.load("structured_regression", spectrum=spectrum)


@cache
def started():
    """With momentum as a velocity, from weights that are drawn; the labels are a field of their own."""
    D, P = sectors("D", P=alpha)
    Z, teacher, eps, first = gaussian("Z", P, D), normal("teacher", D), normal("eps", P), normal("first", D, scale=2)
    w, v, delta, y = field("w", D, t), field("v", D, t), field("delta", P, t), field("y", P)
    return derive.load(
        Model(
            parameters=(alpha, eta, sigma, ridge, mu, T),
            equations=[
                Eq(y, Z @ teacher / sqrt(D) + sigma * eps),
                Eq(delta(t), y - Z @ w(t) / sqrt(D)),
                Eq(v(0), 0 * first),
                Eq(v(t + 1), mu * v(t) + eta * (sqrt(D) / P * Z.T @ delta(t) - ridge * w(t))),
                Eq(w(0), first),
                Eq(w(t + 1), w(t) + v(t + 1)),
            ],
            observe={
                "distance": mean((w(t) - teacher) ** 2),
                "cosine": mean(w(t) * teacher) / sqrt(mean(w(t) ** 2)),
                "two_times": mean(w(t) * w(t - 2)),
            },
        )
    )


@pytest.mark.parametrize(("alpha", "ridge"), [(0.5, 0.1), (1.0, 1e-3), (3.0, 2.0)])
def test_ridge_regression_by_hand(alpha, ridge):
    """For two groups of variances against deterministic equivalents; the rate and the momentum do not matter."""
    lam, weights = np.array([1.0, 4.0]), np.array([0.75, 0.25])
    right = ridge_test_loss(alpha, ridge, 0.3, lam, weights)
    theory = regression("two_groups")
    given = {"eta": 0.02} if alpha == 1.0 else {"eta": 0.05, "mu": 0.6}
    assert theory.limit(alpha=alpha, ridge=ridge, **given)["test_loss"] == pytest.approx(right, rel=1e-10)


@pytest.mark.long_cases("0.9")
@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.1, 2.0])
def test_double_descent_without_a_ridge(alpha):
    """On isotropic inputs, by hand: least squares above alpha = 1, below it the interpolator of smallest norm."""
    found = regression().limit(alpha=alpha, ridge=0, eta=0.05, sigma=0.5)
    assert found["test_loss"] == pytest.approx(interpolator_test_loss(alpha, 0.5), rel=1e-10)
    assert found["train_loss"] == pytest.approx(max(0.0, 0.25 * (1 - 1 / alpha)), abs=1e-12)


@pytest.mark.slow
def test_random_features():
    """Few features are least squares with what they miss as noise; many are ridge regression on the inputs."""
    theory = random_features()
    found = theory.limit(alpha=3, nu=0.5, ridge=0)
    assert found["test_loss"] == pytest.approx(few_features_test_loss(3, 0.5, 0.3), rel=1e-10)
    wide = [theory.limit(alpha=2, nu=n, ridge=0.1 * n, eta=0.1 / n)["test_loss"] for n in (1e4, 1e5)]
    one = np.ones(1)
    assert wide[1] + (wide[1] - wide[0]) / 9 == pytest.approx(ridge_test_loss(2, 0.1, 0.3, one, one), rel=1e-7)


@pytest.mark.long_cases("0.5-1.5")
@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "nu"), [(2.0, 1.5), (0.5, 1.5), (0.8, 0.5)])
def test_the_risk_of_random_features_is_a_trace_of_the_resolvent(alpha, nu):
    """What noise adds is sigma^2 (nu/alpha) (-tr R A - ridge tr R A R) at z = -ridge, A the covariance of features:
    the limit of training and traces of the resolvent are derived in different ways."""
    theory = random_features()
    given = {"alpha": alpha, "nu": nu, "ridge": 0.1, "eta": 0.05}
    noisy, clean = (theory.limit(sigma=s, **given)["test_loss"] for s in (1.0, 0.0))
    s = theory.solve(T=1, **given)
    beside, between = s.resolvent(-0.1, beside="features"), s.resolvent(-0.1, between="features")
    assert noisy - clean - 1 == pytest.approx(nu / alpha * (-beside - 0.1 * between), rel=1e-9)


@pytest.mark.parametrize("values", [{}, {"ridge": 0}, {"ridge": 0, "alpha": 0.5}, {"ridge": 0, "alpha": 0.5, "mu": 0}])
def test_training_ends_there(values):
    """At 400 steps the forward pass is where the limit says, starts that are never forgotten included."""
    theory = started()
    found, run = theory.limit(**values), theory.solve(T=400, **values)
    for name, value in found.observables.items():
        assert run[name][-1] == pytest.approx(value, rel=2e-4)
    assert any(abs(run[name][100] - value) > 1e-7 for name, value in found.observables.items())


def test_training_approaches_it_at_the_rate_of_its_slowest_mode():
    """What is left falls like (1 - eta (x + ridge))^t t^(-3/2), x the lower edge of Marchenko and Pastur."""
    theory = regression()
    given = {"alpha": 3.0, "ridge": 0.05, "eta": 0.3, "sigma": 0.0}
    run, end = theory.solve(T=320, **given)["distance"], theory.limit(**given)["distance"]
    slowest = 1 - 0.3 * ((1 - 1 / np.sqrt(3)) ** 2 + 0.05)
    left = [abs(run[step] - end) * step**1.5 for step in (160, 320)]
    assert run[320] == pytest.approx(end, rel=1e-9)
    assert np.log(left[1] / left[0]) / 160 == pytest.approx(np.log(slowest), rel=0.02)


@pytest.mark.parametrize("symmetric", [True, False])
def test_recurrent_networks(symmetric):
    """By hand: x = (1 - g M)^-1 b for a symmetric M, activity 1/(1 - g^2) for an asymmetric one."""
    theory = network(symmetric)
    found = theory.limit(g=0.4)
    if symmetric:
        z = 1 / 0.4
        transform = (z - np.sqrt(z**2 - 4)) / 2
        assert found["memory"] == pytest.approx(z * transform, rel=1e-12)
        rate = (1 - z / np.sqrt(z**2 - 4)) / 2
        assert found["activity"] == pytest.approx(-(z**2) * rate, rel=1e-12)
    else:
        assert found["activity"] == pytest.approx(1 / (1 - 0.16), rel=1e-12)
    assert not theory.limit(g=0.51 if symmetric else 1.01)
    assert theory.limit(g=0.49 if symmetric else 0.99)


@pytest.mark.long_cases("features")
@pytest.mark.slow
@pytest.mark.parametrize("case", ["ridgeless", "features"])
def test_simulation_at_two_sizes(case, simulation_seed):
    """After many steps, extrapolated to infinite size."""
    theory = started() if case == "ridgeless" else random_features()
    given = {"ridge": 0, "alpha": 0.5} if case == "ridgeless" else {"ridge": 0.5, "alpha": 1.0, "eta": 0.2}
    end = theory.limit(**given)
    drawn = [
        theory.simulate(size=n, seeds=k, seed=simulation_seed + n, T=150, **given) for n, k in ((60, 200), (180, 60))
    ]
    for name, value in end.observables.items():
        means = [sim[name][:, -1].mean() for sim in drawn]
        errors = [sim[name][:, -1].std(ddof=1) / np.sqrt(sim.seeds) for sim in drawn]
        difference = (3 * means[1] - means[0]) / 2 - value
        assert abs(difference) < BOUND * np.hypot(1.5 * errors[1], 0.5 * errors[0]) + abs(means[1] - means[0]) / 20


@pytest.mark.slow
def test_what_does_not_come_to_rest():
    """Stable rates are told from unstable ones: for isotropic inputs they end at 2 (1 + mu) / (upper edge + ridge)."""
    theory = regression()
    edge = (1 + np.sqrt(0.5)) ** 2
    for mu in (0.0, 0.9):
        largest = 2 * (1 + mu) / (edge + 0.05)
        assert theory.limit(eta=0.99 * largest, mu=mu, ridge=0.05)
        beyond = theory.limit(eta=1.01 * largest, mu=mu, ridge=0.05)
        assert not beyond and "lower the rate" in beyond.trouble[0]
        with pytest.raises(NumericalError, match="grows without bound"):
            _ = beyond["test_loss"]
    assert "add a ridge" in theory.limit(alpha=1, ridge=0).trouble[0]
    assert theory.limit(alpha=1, ridge=1e-4) and theory.limit(alpha=1.02, ridge=0)


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ({"target": "structured_regression", "batch": "online"}, "drawn anew at each step"),
        ({"target": "anti_hebbian"}, "not linear"),
        ({"target": "coupled_spikes_tanh"}, "no clock|not linear"),
        ({"target": "spiked_wigner"}, "no clock"),
    ],
)
def test_what_has_no_limit_is_refused_in_a_sentence(target, told):
    with pytest.raises(DeclarationError, match=told):
        derive.load(target.pop("target"), **target).limit()


b_sector = sectors("D")


def one_field(rule, **observe) -> Model:
    D = b_sector
    b, x = normal("b", D), field("x", D, t)
    return Model(
        parameters=(g, T),
        equations=[Eq(x(0), b), Eq(x(t + 1), rule(x(t), b))],
        observe=observe or {"q": mean(x(t) ** 2)},
    )


def test_more_that_is_refused():
    for model, told in (
        (one_field(lambda x, b: g * x / (t + 1) + b), "changes with time"),
        (one_field(lambda x, b: g * x * mean(x**2) + b), "not linear"),
        (one_field(lambda x, b: g * x + normal("noise", b_sector, t)(t)), "noise is drawn anew at each step"),
        (one_field(lambda x, b: g * x + b, ratio=mean(field("x", b_sector, t)(t) ** 2) / T), "the time itself"),
    ):
        with pytest.raises(DeclarationError, match=told):
            derive.load(model).limit()
    assert derive.load(one_field(lambda x, b: -g * x + b)).limit(g=0.5)["q"] == pytest.approx(1 / 1.5**2)
    assert not derive.load(one_field(lambda x, b: -g * x + b)).limit(g=1.5)
    assert not derive.load(one_field(lambda x, b: x + b)).limit()


def test_a_weak_pull_is_not_lost_in_rounding():
    """x(t+1) = x + mu (x - x(t-1)) + g (b - x) rests at b: 1 + mu - g and mu cancel but for g = 1e-6."""
    D = b_sector
    b, x = normal("b", D), field("x", D, t)
    model = Model(
        parameters=(g, mu, T),
        equations=[Eq(x(0), 0 * b), Eq(x(t + 1), x(t) + mu * (x(t) - x(t - 1)) + g * (b - x(t)))],
        observe={"q": mean(x(t) ** 2)},
    )
    assert derive.load(model).limit(g=1e-6, mu=0.3)["q"] == pytest.approx(1, rel=1e-12)


def test_a_sum_of_a_decaying_field_leaves_out_the_start_that_its_equation_does_not_use():
    """x ends at y(1) + y(2) + ... = g/(1 - g) v, without y(0) = v."""
    D = sectors("D")
    x, y, v = field("x", D, t), field("y", D, t), normal("v", D)
    equations = [Eq(y(0), v), Eq(y(t + 1), g * y(t)), Eq(x(0), 0 * v), Eq(x(t + 1), x(t) + y(t + 1))]
    theory = derive.load(Model((g, T), equations, {"q": mean(x(t) ** 2)}))
    assert theory.limit(g=0.4)["q"] == pytest.approx((0.4 / 0.6) ** 2, rel=1e-10)


@pytest.mark.parametrize("kept", [1, 0.5])
def test_a_remembered_start_is_refused_also_where_no_memory_contains_its_field(kept):
    """x(t) = kept^t W v: at kept = 1 its mean square stays 1, which is not a limit of drawn sources."""
    D = sectors("D")
    W, x, v = gaussian("W", D, D), field("x", D, t), normal("v", D)
    equations = [Eq(x(0), W @ v / sqrt(D)), Eq(x(t + 1), kept * x(t))]
    found = derive.load(Model((T,), equations, {"q": mean(x(t) ** 2)})).limit()
    if kept == 1:
        assert not found and "the start of x is not a drawn source" in found.trouble[0]
    else:
        assert found["q"] == 0


@pytest.mark.slow
def test_a_start_that_is_not_drawn_counts_only_where_it_is_remembered():
    D, P = sectors("D", P=alpha)
    Z, teacher, w, delta = gaussian("Z", P, D), normal("teacher", D), field("w", D, t), field("delta", P, t)
    model = Model(
        parameters=(alpha, eta, ridge, T),
        equations=[
            Eq(delta(t), Z @ (teacher - w(t)) / sqrt(D)),
            Eq(w(0), sqrt(D) / P * Z.T @ normal("xi", P)),
            Eq(w(t + 1), w(t) + eta * (sqrt(D) / P * Z.T @ delta(t) - ridge * w(t))),
        ],
        observe={"distance": mean((w(t) - teacher) ** 2)},
    )
    theory = derive.load(model)
    assert theory.solve(T=400)["distance"][-1] == pytest.approx(theory.limit()["distance"], rel=1e-3)
    refused = theory.limit(ridge=0, alpha=0.5)
    assert not refused and "never forget their initial condition" in refused.trouble[0]


def test_results_convert_save_and_print(tmp_path):
    found = regression().limit(alpha=2, ridge=0.1)
    for again in (derive.open(found.save(tmp_path / "end.nc")), pickle.loads(pickle.dumps(found))):
        assert again.observables == found.observables and again.made.command == found.made.command
    assert "T=" not in found.made.command and "test_loss" in repr(found) and "test_loss" in found._repr_html_()
    assert found.to_frame()["test_loss"][0] == found["test_loss"]
    assert float(found.to_xarray()["limit"]["test_loss"]) == found["test_loss"]
    assert "responses" in str(regression().derivation.limit)
    with pytest.raises(ParameterError, match="no observable 'risk'"):
        found["risk"]


@pytest.mark.slow
def test_the_command_line(tmp_path):
    words = ["limit", "structured_regression", "spectrum=isotropic", "ridge=0", "sigma=0.5", "eta=0.05"]
    run = CliRunner().invoke(main, [*words, "alpha=0.5,1,2", "--json"], catch_exceptions=False)
    points = json.loads(run.stdout)["points"]
    assert [point["parameters"]["alpha"] for point in points] == [0.5, 1.0, 2.0]
    assert points[0]["observables"]["test_loss"] == pytest.approx(interpolator_test_loss(0.5, 0.5))
    assert "add a ridge" in points[1]["error"] and run.exit_code == 0
    file = tmp_path / "descent.csv"
    run = CliRunner().invoke(main, [*words, "alpha=0.5,1,2", "--out", str(file)])
    assert run.exit_code == 0 and "none" in run.stdout and len(file.read_text().splitlines()) == 4
    run = CliRunner().invoke(main, [*words, "alpha=1"])
    assert run.exit_code == 3 and "has no stationary limit" in run.output


def _drawn_recursion(seed: int) -> Model:
    """Two fields of D and one of P, each with a random start and a random linear rule that forgets, keeps or sums."""
    rng = np.random.default_rng(seed)
    D, P = sectors("D", P=2)
    W, M, S = gaussian("W", D, D), goe("M", D), gaussian("S", P, D)
    v, u = normal("v", D), normal("u", P)
    (x, y), z = fields("x y", D, t), field("z", P, t)
    starts = [0, 1, v, 2 * v, W @ v / sqrt(D), M @ v]

    def pick(of):
        return of[rng.integers(len(of))]

    keeps = [0, Rational(1, 2), -Rational(1, 2), 1]
    return Model(
        parameters=(T,),
        equations=[
            Eq(x(0), pick(starts)),
            Eq(x(t + 1), pick(keeps) * x(t) + pick([0, v, M @ x(t) / 10, -M @ (M @ x(t)) / 20])),
            Eq(y(0), pick(starts)),
            Eq(y(t + 1), pick(keeps) * y(t) + pick([0, v, x(t), x(t) - x(t - 1), M @ x(t) / 10, W.T @ x(t) / sqrt(D)])),
            Eq(z(0), pick([0, 1, u, S @ v / sqrt(D)])),
            Eq(z(t + 1), pick(keeps) * z(t) + pick([0, u, S @ x(t) / sqrt(D), S @ (y(t) - y(t - 1)) / sqrt(D)])),
        ],
        observe={"xx": mean(x(t) ** 2), "xy": mean(x(t) * y(t)), "yy": mean(y(t) ** 2), "zz": mean(z(t) ** 2)},
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_limit_is_the_value_after_many_steps_or_is_refused(seed):
    model = derive.load(_drawn_recursion(seed))
    limit = model.limit()
    if limit:
        after = model.solve(T=250)
        for name in ("xx", "xy", "yy", "zz"):
            assert limit[name] == pytest.approx(after[name][-1], rel=1e-6, abs=1e-9), name
