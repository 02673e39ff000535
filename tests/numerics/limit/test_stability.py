"""The largest stable rate: from the loss itself and from the curvature, and what a diverged training says."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from agreement import seed_of
from click.testing import CliRunner
from conftest import solver_and_values

import derive
from derive.cli import main
from derive.errors import NumericalError, ParameterError
from numerics.limit.stability import GROWTH, SHARES, Horizon, _given_limit, late_growth, stable_rate
from numerics.simulation.samples import simulate
from numerics.solver import solve

ONLINE = {"L": 1, "data": "online", "T": 6, "C": 1, "alpha": 50.0, "nu": 2.0, "gamma0": 1.0, "sigma": 0.1}


@pytest.mark.long_cases("4.0-0.15-2.0")
@pytest.mark.slow
@pytest.mark.parametrize(("times", "least", "most"), [(0.25, 0.6, math.inf), (4.0, 0.15, 2.0)])
def test_the_size_that_is_told_is_where_simulations_begin_to_follow(times, least, most, simulation_seed):
    """The logarithm of the loss spreads by sqrt(size / D), up to the factor that a rule of thumb leaves open."""
    solver, values = solver_and_values("deep_linear", L=1, data="online", T=4)
    found = stable_rate(solver, values, layer=None)
    values = {**values, "eta": SHARES[-2] * found.by_divergence}
    theory = np.asarray(solve(solver, values, layers=()).observables["train_loss"])
    D = round(times * found.size)
    seen = simulate(solver, values, D, 24, seed=seed_of(simulation_seed, "rate", D), layers=())
    spread = np.max(np.std(np.log(np.asarray(seen.observables["train_loss"]) / theory), axis=0, ddof=1))
    assert least < spread < most


@pytest.mark.slow
def test_limits_are_where_the_loss_and_the_curvature_say():
    solver, values = solver_and_values("deep_linear", **ONLINE)
    found = stable_rate(solver, values, layer="ntk")
    assert found.at_start == pytest.approx(2 / ((1 + 2**-0.5) ** 2 + 1), rel=1e-5)
    assert found.by_curvature is not None and found.by_curvature <= found.at_start * 1.001
    assert [h.steps for h in found.horizons] == [6, 3]
    assert found.by_divergence <= found.horizons[0].within
    assert abs(found.by_divergence - found.horizons[0].by_growth) <= found.by_divergence_error
    for share, bounded in ((0.998, True), (1.002, False)):
        eta = share * found.horizons[0].within
        losses = solve(solver, {**values, "eta": eta}, layers=()).observables["train_loss"]
        assert (max(losses) <= GROWTH * losses[0]) == bounded
    below, above = (
        solve(solver, {**values, "eta": share * found.by_curvature}, layers=("ntk",), path=True)
        for share in (0.998, 1.002)
    )
    sharpest = [s.inputs["eta"] * max(s.layers[0].largest_path[:-1]) for s in (below, above)]
    assert sharpest[0] <= 2.0 < sharpest[1]


LEAST_SQUARES = """
from sympy import sqrt
from derive import *
alpha = parameter("alpha", default=2.0, domain=positive)
eta = parameter("eta", default=0.5, domain=positive)
noise = parameter("noise", default=0.0, domain=nonnegative)
T = parameter("T", default=6, domain=whole_positive)
D, P = sectors("D", P=alpha)
t = training_clock("t", steps=T)
X = gaussian("X", P, D{fresh})
teacher, eps = normal("teacher", D), normal("eps", P, t)
v, delta = field("v", D, t), field("delta", P, t)
MODEL = Model(
    parameters=(alpha, eta, noise, T),
    equations=[
        Eq(v(0), teacher),
        Eq(delta(t), X{at} @ v(t) / sqrt(D) + noise * eps(t)),
        Eq(v(t + 1), v(t) - eta / alpha / sqrt(D) * X{at}.T @ delta(t)),
    ],
    observe={{"train_loss": mean(delta(t) ** 2)}},
)
"""


def _limits(declared, fresh: bool, *values: str) -> list[dict]:
    text = LEAST_SQUARES.format(fresh=", fresh=t" if fresh else "", at="(t)" if fresh else "")
    path = declared(text, "least_squares.py")
    result = CliRunner().invoke(main, ["stability", str(path), *values, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["points"]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0, 1])
def test_on_fresh_data_the_limit_is_exact_for_any_number_of_steps(declared, noise):
    """The mean square of (1 - eta X^T X / P) v is 1 - 2 eta + eta^2 (1 + 1/alpha) times that of v."""
    for point in _limits(declared, True, "T=6,20", f"noise={noise}"):
        assert point["by_divergence"] == pytest.approx(2 / (1 + 1 / 2), rel=1e-10)
        assert point["exact"]["kind"] == "covariance" and not point["horizons"]


@pytest.mark.slow
def test_on_fixed_data_the_limit_is_that_of_the_largest_eigenvalue(declared):
    """The spectrum ends at (1 + 1/sqrt(alpha))^2 without an isolated eigenvalue, so the loss sees its end slowly."""
    (point,) = _limits(declared, False, "T=40")
    assert point["by_divergence"] == pytest.approx(2 / (1 + 2**-0.5) ** 2, rel=1e-10)
    assert point["exact"]["low"] < point["by_divergence"] < point["exact"]["high"] and point["size"] > 1


def test_growth_is_that_of_the_strongest_direction_at_late_times():
    t = np.arange(41.0)
    assert late_growth(3 * 1.1**t + 5 * 0.8**t + 100 * 0.3**t) == pytest.approx(math.log(1.1), abs=1e-6)
    assert late_growth(7 + 0.9**t) == pytest.approx(math.log(0.9), abs=1e-5)
    assert late_growth(7 + (-1.05) ** t) == pytest.approx(math.log(1.05), abs=1e-9)
    assert late_growth(7 + 0.2**t) == -math.inf  # settled to rounding
    assert late_growth(np.exp(1.5 ** t[:15])) > 1  # faster than any power
    noisy = 2 + 1e-3 * np.random.default_rng(0).standard_normal(41)
    assert late_growth(noisy, 5e-3) == -math.inf


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rate": "T"}, "no real parameter 'T'"),
        ({"loss": "speed"}, "observes no 'speed'"),
        ({"layer": "7"}, "has no layer '7'"),
    ],
)
def test_bad_requests_are_one_sentence(changes, sentence):
    solver, values = solver_and_values("deep_linear", **ONLINE)
    with pytest.raises(ParameterError, match=sentence):
        stable_rate(solver, values, **changes)


def test_growth_beyond_double_precision_is_divergence_at_a_step():
    """Before it overflows such a training gives numbers without digits: negative eigenvalues, overlaps above one."""
    solver, values = solver_and_values("deep_linear", L=1, T=8, C=1, eta=0.4)
    with pytest.raises(NumericalError, match=r"diverged at step \d \(\w+ explodes\)"):
        solve(solver, values)


@pytest.mark.slow
def test_a_grid_gives_paths_and_a_moved_curve_and_says_when_all_diverge():
    command = ["solve", "deep_linear", "L=1", "T=4", "nu=4", "gamma0=8,10", "--json"]
    points = json.loads(CliRunner().invoke(main, command).stdout)
    assert points["axes"] == {"gamma0": [8.0, 10.0]}
    for point in points["points"]:
        kernel = point["layers"][1]
        assert len(kernel["outlier_path"]) == 5 and kernel["overlaps"] is not None
        assert (kernel["bbp_time"] is None) == (not any(kernel["outlier_path"]))
        assert "(z - readout_norm)" in kernel["curve"] and "readout_norm" not in point["layers"][0]["curve"]
    result = CliRunner().invoke(main, ["solve", "deep_linear", "L=1", "T=4", "nu=4", "eta=50,60", "--json"])
    assert result.exit_code == 3
    assert all("diverged at step" in point["error"] for point in json.loads(result.stdout)["points"])


@pytest.mark.slow
def test_a_curvature_over_a_parameter_is_its_largest_eigenvalue_over_that_number():
    theory = derive.load("deep_linear", L=1)
    values = {"T": 3, "alpha": 4.0, "gamma0": 2.0, "nu": 2.0}
    plain, over = (theory.stable_rate(values, curvature=layer) for layer in ("ntk", "ntk/alpha"))
    assert over.at_start == pytest.approx(4.0 * plain.at_start, rel=1e-12)
    with pytest.raises(ParameterError, match="no other parameter 'eta'"):
        theory.stable_rate(values, curvature="ntk/eta")


def test_a_limit_that_contradicts_the_run_is_not_given():
    """Weakly damped oscillations look like growth to two horizons alike; the run itself does not diverge there."""
    horizons = (Horizon(30, 0.0272, 2.09), Horizon(15, 0.0271, None))
    limit, error = _given_limit(horizons, 2.09, 1e-3)
    assert limit == 2.09 and error > 2.0
    agreeing = (Horizon(30, 2.0, 2.2), Horizon(15, 1.99, None))
    assert _given_limit(agreeing, 2.2, 1e-3)[0] == 2.0


@pytest.mark.parametrize("steps", [4, 12, 40])
def test_a_loss_along_a_hardly_visible_direction_exceeds_its_bound_in_time(steps):
    """Gradient descent on a quadratic loss, 1e-8 of it along the sharpest direction: where the run first exceeds GROWTH
    the limit 2 / curvature is believed, even if the curvature halves; at one and a half times that rate it is not."""
    rates = np.linspace(1.0, 400.0, 400_000)  # in units of the limit
    exceeded = 1e-8 * (2 * rates - 1) ** (2 * steps) > GROWTH
    whole = 2 * float(rates[np.argmax(exceeded)])
    horizons = (Horizon(steps, 1.0, whole), Horizon(steps // 2, 1.0, None))
    assert _given_limit(horizons, 0.99 * whole, 1e-3)[0] == 1.0
    assert _given_limit(horizons, 1.5 * whole, 1e-3)[0] == 1.5 * whole
