"""Errors of sampled theories: those seen between seeds, and their means against what is known exactly."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from conftest import solver_of as shipped, values_of
from sampled_by_hand import batch_perceptron, partly_symmetric_network
from seeds import Seen, over_seeds, wrong
from sympy import sqrt, tanh

from derive import (
    Eq,
    Model,
    field,
    fields,
    gaussian,
    mean,
    normal,
    parameter,
    positive,
    sectors,
    training_clock,
    whole_positive,
)
from derive.codegen import solver_files
from numerics.runtime.samples import SampledPass
from numerics.solver import load_solver, solve

g = parameter("g", default=1.5, domain=positive)
k = parameter("k", default=0.5)
eta = parameter("eta", default=0.5)
a = parameter("a", default=1.5, domain=positive)
T = parameter("T", default=3, domain=whole_positive)
D, N = sectors("D", N=a)
t = training_clock("t", steps=T)
SEEDS = 40


def partly_symmetric():
    J, x, r = gaussian("J", D, D), *fields("x r", D, t)
    return Model(
        parameters=(g, k, T),
        equations=[
            Eq(x(0), normal("start", D)),
            Eq(r(t), tanh(x(t))),
            Eq(x(t + 1), g / sqrt(D) * J @ r(t) + g * k / sqrt(D) * J.T @ r(t)),
        ],
        observe={"square": mean(x(t) ** 2), "late": mean(x(t) * x(t - 2)), "active": mean(r(t) ** 2)},
    )


def perceptron():
    """One set of data for all steps, so that rows and weights remember."""
    X, v = gaussian("X", N, D), normal("v", D)
    s, y, (d, row) = field("s", D, t), field("y", N), fields("d row", N, t)
    return Model(
        parameters=(a, eta, T),
        equations=[
            Eq(s(0), normal("start", D)),
            Eq(row(t), X @ s(t) / sqrt(D)),
            Eq(y, X @ v / sqrt(D)),
            Eq(d(t), (tanh(y) - tanh(row(t))) * (1 - tanh(row(t)) ** 2)),
            Eq(s(t + 1), s(t) + eta * sqrt(D) / N * X.T @ d(t)),
        ],
        observe={
            "loss": mean((tanh(y) - tanh(row(t))) ** 2),
            "norm": mean(s(t) ** 2),
            "overlap": mean(s(t) * v),
        },
    )


@cache
def solver_of(name):
    return load_solver(solver_files({"network": partly_symmetric, "perceptron": perceptron}[name]()))


def known(name):
    """What is known by hand, to six digits or better: observables and their times."""
    if name == "network":
        found = partly_symmetric_network(1.5, 0.5, 3)
        late = {("late", time): found["xx"][time, time - 2] for time in (2, 3)}
        squares = {("square", time): found["xx"][time, time] for time in range(4)}
        return squares | late | {("active", time): found["rr"][time, time] for time in range(4)}
    found = batch_perceptron(0.5, 1.5, 60)
    return {(name, time): value for name, series in found.items() for time, value in enumerate(series)}


def solved(name, samples, seed, **more):
    values = {"network": {"g": 1.5, "k": 0.5, "T": 3}, "perceptron": {"a": 1.5, "eta": 0.5, "T": 2}}[name]
    return solve(solver_of(name), values, samples=samples, seed=seed, **more)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["network", "perceptron"])
def test_laws_that_remember_themselves_against_integrals_over_all_noises(name):
    assert isinstance(solver_of(name).training, SampledPass)
    found = solved(name, 200_000, 3)
    for (observable, time), truth in known(name).items():
        error = found.errors[observable][time]
        assert abs(found.observables[observable][time] - truth) < 5 * error + 1e-6, (observable, time)
        assert error < 3e-3


@pytest.mark.long_cases("perceptron")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["network", "perceptron"])
def test_errors_are_those_between_seeds_and_means_are_right(name):
    seen = over_seeds([solved(name, 6000, seed) for seed in range(SEEDS)])
    truth = {("observable", *place): (value, 1e-6) for place, value in known(name).items()}
    assert len(set(truth) & set(seen)) >= 6
    assert not wrong(seen, truth)


@pytest.mark.slow
def test_errors_of_outliers_paths_and_overlaps_and_their_means():
    solver, values = shipped("coupled_spikes_tanh"), values_of("coupled_spikes_tanh", S=4, theta=1.5)

    def one(seed, samples=3000):
        return solve(solver, values, samples=samples, seed=seed, path=True, overlaps=True)

    seen = over_seeds([one(seed) for seed in range(SEEDS)])
    assert {name[0] for name in seen} == {"observable", "outlier", "path", "overlap"}
    (long,) = [over_seeds([one(1000, 200_000)] * 2)]
    assert not wrong(seen, {name: (found.values[0], found.errors[0]) for name, found in long.items()})


def test_errors_that_are_half_or_twice_the_spread_are_found_and_so_is_a_bias():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(SEEDS)
    for factor, right in ((1.0, True), (0.45, False), (2.2, False)):
        errors = factor * np.sqrt(rng.chisquare(9, SEEDS) / 9)
        assert (Seen(("x",), values, errors, 9).wrong_error() == "") is right
    seen = Seen(("x",), values, np.ones(SEEDS), 9)
    assert seen.wrong_mean(0.0) == "" and seen.wrong_mean(2.0) != ""
