"""Nonlinear models that no stage was written for, against exact recursions by hand: to nine digits where fields are
Gaussian, within errors that are those between seeds where sites are sampled."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import recursions_by_hand as by_hand
from seeds import over_seeds, wrong
from sympy import Abs, Heaviside, Max, Min, Rational, cos, erf, exp, sin, sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    field,
    fields,
    gaussian,
    goe,
    mean,
    normal,
    parameter,
    positive,
    relabel,
    sectors,
    training_clock,
    whole_positive,
)
from derive.codegen import solver_files
from numerics.runtime.samples import SampledPass
from numerics.solver import load_solver, solve
from numerics.training import sampling

a = parameter("a", default=1.5, domain=positive)
g = parameter("g", default=1.4, domain=positive)
k = parameter("k", default=0.6)
b = parameter("b", default=0.3)
T = parameter("T", default=5, domain=whole_positive)
P = parameter("P", default=3, domain=whole_positive)
F = parameter("F", default=4, domain=whole_positive)
D, N = sectors("D", N=a)
t = training_clock("t", steps=T)
J, K, L, S = gaussian("J", D, D), gaussian("K", D, D), gaussian("L", D, N), gaussian("S", N, D)
R, M = gaussian("R", N, N), goe("M", D)
u, v, w = normal("u", D), normal("v", D), normal("w", D)
x, r = fields("x r", D, t)
y, q = fields("y q", N, t)
SEEDS = 16


# -- Gaussian fields


def driven_rectifiers():
    """A threshold, a current that all sites have, and an input of each site that turns in time."""
    step = Rational(3, 10)
    return Model(
        parameters=(g, b, T),
        equations=[
            Eq(x(0), w + u / 2),
            Eq(r(t), Max(x(t), 0)),
            Eq(x(t + 1), (1 - step) * x(t) + step * (g / sqrt(D) * J @ r(t) + b * cos(t) * u - Rational(1, 5))),
        ],
        observe={"square": mean(x(t) ** 2), "late": mean(x(t) * x(t - 2)), "active": mean(r(t) ** 2)},
    ), driven_rectifiers_by_hand(1.4, 0.3, 5)


def table(c, k, m, q=0):
    """Observables of one population: <x^2>, <x(t) x(t-2)>, <f^2>."""
    times = range(len(c))
    square = [c[s, q, s, q] + m[s, q] ** 2 for s in times]
    late = [c[s, q, s - 2, q] + m[s, q] * m[s - 2, q] for s in times[2:]]
    return {"square": square, "late": [math.nan, math.nan, *late], "active": [k[q, s, s] for s in times]}


def driven_rectifiers_by_hand(g, b, steps):
    m, c, k = by_hand.populations(
        steps,
        0.7,
        [[1.0, 0.5]],
        lambda time: [[0.0, 0.3 * b * math.cos(time)]],
        lambda time: [-0.06],
        lambda time, now: np.array([[0.3 * g]]),
        by_hand.relu_pair,
    )
    return table(c, k, m)


def two_populations():
    """Excitation and inhibition of different sizes, with saturating units that share an input."""
    return Model(
        parameters=(a, g, b, T),
        equations=[
            Eq(x(0), w),
            Eq(r(t), erf(x(t))),
            Eq(x(t + 1), b * x(t) + g / sqrt(D) * J @ r(t) - 2 / sqrt(N) * L @ q(t)),
            Eq(y(0), S @ w / sqrt(D)),
            Eq(q(t), erf(y(t))),
            Eq(y(t + 1), b * y(t) + Rational(3, 2) / sqrt(D) * S @ r(t) - R @ q(t) / sqrt(N)),
        ],
        observe={
            "square": mean(x(t) ** 2),
            "late": mean(x(t) * x(t - 2)),
            "active": mean(r(t) ** 2),
            "other": mean(q(t) ** 2),
        },
    ), by_hand.excitation_and_inhibition(1.4, 0.3, 5)


def deep_kernel():
    """Labels: inputs that are given, three layers of rectifiers with biases that all inputs share."""
    p, other, f = axis("p", P), axis("other", P), axis("f", F)
    inputs = data("inputs", p, f)
    first = normal("first", D, axes=f)
    biases = [normal(f"bias{layer}", D) for layer in (1, 2, 3)]
    h1, h2, h3, f1, f2, f3 = fields("h1 h2 h3 f1 f2 f3", D, axes=p)
    value = np.random.default_rng(5).normal(size=(3, 4))
    layers = [Eq(out, sqrt(2) * Max(h, 0)) for h, out in ((h1, f1), (h2, f2), (h3, f3))]
    model = Model(
        parameters=(P, F),
        equations=[
            Eq(h1, inputs @ first / sqrt(F) + biases[0] / 4),
            Eq(h2, J @ f1 / sqrt(D) + biases[1] / 4),
            Eq(h3, K @ f2 / sqrt(D) + biases[2] / 4),
            *layers,
        ],
        observe={"kernel": each(mean(f3 * relabel(f3, p, other)))},
        arrays=lambda values: {"inputs": value},
    )
    return model, {"kernel": [by_hand.deep_relu_kernel(value, 3, 0.25)]}


def waves():
    """A law that turns over, with a phase, fresh noise and a gain that changes in time."""
    noise = normal("noise", D, t)
    return Model(
        parameters=(g, b, T),
        equations=[
            Eq(x(0), w + u),
            Eq(r(t), sin(x(t) + Rational(1, 2))),
            Eq(x(t + 1), b * x(t) + g * (1 + cos(t) / 3) / sqrt(D) * J @ r(t) + noise(t) / 4),
        ],
        observe={"square": mean(x(t) ** 2), "late": mean(x(t) * x(t - 2)), "active": mean(r(t) ** 2)},
    ), waves_by_hand(1.4, 0.3, 5)


def waves_by_hand(g, b, steps):
    def pair(mx, my, vx, vy, c):
        return by_hand.sin_pair(mx + 0.5, my + 0.5, vx, vy, c)

    m, c, k = by_hand.populations(
        steps,
        b,
        [[1.0, 1.0]],
        lambda time: [[0.0, 0.0]],
        lambda time: [0.0],
        lambda time, now: np.array([[g * (1 + math.cos(time) / 3)]]),
        pair,
        0.25,
    )
    return table(c, k, m)


def one_population(law, pair, gain=None):
    """x(t+1) = x(t)/2 + gain J f(x(t))."""

    def made():
        factor = g if gain is None else 1 / sqrt(mean(r(t) ** 2))
        model = Model(
            parameters=(g, T),
            equations=[Eq(x(0), w), Eq(r(t), law(x(t))), Eq(x(t + 1), x(t) / 2 + factor / sqrt(D) * J @ r(t))],
            observe={"square": mean(x(t) ** 2), "late": mean(x(t) * x(t - 2)), "active": mean(r(t) ** 2)},
        )
        m, c, k = by_hand.populations(
            5,
            0.5,
            [[1.0]],
            lambda time: [[0.0]],
            lambda time: [0.0],
            lambda time, now: np.array([[1.4 if gain is None else 1 / math.sqrt(now[0])]]),
            pair,
        )
        return model, table(c, k, m)

    return made


def product_of_fields():
    """A law of two Gaussian fields that know each other."""
    y = field("y", D, t)
    return Model(
        parameters=(g, k, b, T),
        equations=[
            Eq(x(0), u),
            Eq(y(0), u + w),
            Eq(r(t), tanh(x(t)) * y(t)),
            Eq(x(t + 1), g / sqrt(D) * J @ r(t) + u),
            Eq(y(t + 1), b * x(t) + k / sqrt(D) * K @ r(t)),
        ],
        observe={"active": mean(r(t) ** 2), "before": mean(r(t) * r(t - 1)), "meet": mean(x(t) * y(t))},
    ), product_by_hand(1.4, 0.6, 0.3, 5)


def product_by_hand(g, k, b, steps):
    rr, xy = by_hand.gated_pair(steps, g, k, b)
    before = [math.nan, *(rr[s, s - 1] for s in range(1, steps + 1))]
    return {"active": np.diag(rr), "before": before, "meet": xy}


def committee():
    """Two students that start alike, one teacher, fresh data."""
    X = gaussian("X", N, D, fresh=t)
    one, two = fields("one two", D, t)
    k1, k2, y, e, d1, d2 = fields("k1 k2 y e d1 d2", N, t)
    return Model(
        parameters=(a, k, T),
        equations=[
            Eq(one(0), w),
            Eq(two(0), (w + u) / 2),
            Eq(k1(t), X(t) @ one(t) / sqrt(D)),
            Eq(k2(t), X(t) @ two(t) / sqrt(D)),
            Eq(y(t), X(t) @ v / sqrt(D)),
            Eq(e(t), erf(y(t)) - erf(k1(t)) - erf(k2(t))),
            Eq(d1(t), e(t) * exp(-(k1(t) ** 2))),
            Eq(d2(t), e(t) * exp(-(k2(t) ** 2))),
            Eq(one(t + 1), one(t) + k * sqrt(D) / N * X(t).T @ d1(t)),
            Eq(two(t + 1), two(t) + k * sqrt(D) / N * X(t).T @ d2(t)),
        ],
        observe={
            "loss": mean(e(t) ** 2),
            "square": mean(one(t) ** 2),
            "across": mean(one(t) * two(t)),
            "overlap": mean(two(t) * v),
        },
    ), committee_by_hand(0.6, 1.5, 5)


def committee_by_hand(eta, alpha, steps):
    found = by_hand.committee(eta, alpha, steps)
    return {
        "loss": found["loss"],
        "square": found["square"][:, 0, 0],
        "across": found["square"][:, 0, 1],
        "overlap": found["overlap"][:, 1],
    }


def late_and_clipped():
    """A matrix that takes two laws of different times, fresh noise, and a current."""
    noise = normal("noise", D, t)
    return Model(
        parameters=(g, k, b, T),
        equations=[
            Eq(x(0), w),
            Eq(r(t), sin(x(t)) + k * Max(Min(x(t - 2), 1), -1)),
            Eq(x(t + 1), b * x(t) + g / sqrt(D) * J @ r(t) + noise(t) / 4 + Rational(1, 10)),
        ],
        observe={
            "square": mean(x(t) ** 2),
            "late": mean(x(t) * x(t - 2)),
            "active": mean(r(t) ** 2),
            "before": mean(r(t) * r(t - 1)),
        },
    ), by_hand.late_and_clipped(1.4, 0.6, 0.3, 5)


def rectifier_with_momentum():
    """A rectifier learns from fresh data, with momentum; what it learns by jumps."""
    X = gaussian("X", N, D, fresh=t)
    s, m = fields("s m", D, t)
    out, y, d = fields("out y d", N, t)
    return Model(
        parameters=(a, k, b, T),
        equations=[
            Eq(s(0), (w + v) / 2),
            Eq(m(0), 0 * w),
            Eq(out(t), X(t) @ s(t) / sqrt(D)),
            Eq(y(t), X(t) @ v / sqrt(D)),
            Eq(d(t), (Max(y(t), 0) - Max(out(t), 0)) * Heaviside(out(t))),
            Eq(m(t + 1), b * m(t) + k * sqrt(D) / N * X(t).T @ d(t)),
            Eq(s(t + 1), s(t) + b * m(t) + k * sqrt(D) / N * X(t).T @ d(t)),
        ],
        observe={
            "loss": mean((Max(y(t), 0) - Max(out(t), 0)) ** 2),
            "norm": mean(s(t) ** 2),
            "overlap": mean(s(t) * v),
            "move": mean(m(t) * s(t)),
        },
    ), by_hand.rectifier_with_momentum(0.6, 0.3, 1.5, 5)


GAUSSIAN = {
    "rectifiers": driven_rectifiers,
    "populations": two_populations,
    "deep kernel": deep_kernel,
    "waves": waves,
    "cubic": one_population(lambda x: x - x**3 / 9, by_hand.cubic_pair),
    "absolute": one_population(Abs, by_hand.abs_pair, "normalised"),
    "bump": one_population(lambda x: exp(-(x**2) / 2), by_hand.bump_pair),
    "soft sign": one_population(lambda x: x / sqrt(1 + x**2), by_hand.smooth_pair(lambda x: x / np.sqrt(1 + x**2))),
    "product": product_of_fields,
    "committee": committee,
    "late and clipped": late_and_clipped,
    "momentum": rectifier_with_momentum,
}


def defaults(model, **values):
    return {p.name: p.default for p in model.parameters} | values


@pytest.mark.long_cases("absolute", "bump", "committee", "deep kernel", "momentum", "populations", "soft sign")
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(GAUSSIAN))
def test_gaussian_fields_have_nine_digits(name):
    model, truth = GAUSSIAN[name]()
    arrays = model.arrays(defaults(model)) if model.arrays is not None else {}
    found = solve(load_solver(solver_files(model)), defaults(model, **arrays))
    assert found.errors is None
    for observable, series in truth.items():
        here = np.array(found.observables[observable], float)
        np.testing.assert_allclose(here, np.array(series, float), rtol=1e-9, atol=1e-12, err_msg=observable)


# -- sites that remember themselves


def symmetric_messages():
    """Approximate message passing on a symmetric matrix with a spike: what is sent back cancels the memory."""
    return Model(
        parameters=(g, b, T),
        equations=[
            Eq(x(0), b * v + w),
            Eq(r(t), tanh(x(t))),
            Eq(x(t + 1), M @ r(t) - mean(1 - r(t) ** 2) * r(t - 1) + g * mean(v * r(t)) * v),
        ],
        observe={"overlap": mean(v * r(t)), "square": mean(r(t) ** 2)},
    )


def symmetric_messages_by_hand():
    overlap, square = by_hand.symmetric_message_passing(1.4, 0.3, 4)
    return {"overlap": overlap, "square": square}


def rectangular_messages():
    """The same for a rectangular matrix that measures a vector."""
    A, noise = gaussian("A", N, D), normal("noise", N)
    return Model(
        parameters=(a, b, T),
        equations=[
            Eq(x(0), 0 * v),
            Eq(y(t), (A @ v - A @ x(t)) / sqrt(N) + b * noise + mean(1 - x(t) ** 2) / a * y(t - 1)),
            Eq(r(t), A.T @ y(t) / sqrt(N) + x(t)),
            Eq(x(t + 1), tanh(r(t))),
        ],
        observe={"off": mean((x(t) - v) ** 2)},
    )


def partly_symmetric():
    """A law that is not odd, an input that turns, couplings that are symmetric in part."""
    return Model(
        parameters=(g, k, b, T),
        equations=[
            Eq(x(0), u),
            Eq(r(t), sin(x(t)) + b),
            Eq(x(t + 1), g / sqrt(D) * J @ r(t) + g * k / sqrt(D) * J.T @ r(t) + cos(t) * u),
        ],
        observe={"square": mean(x(t) ** 2), "before": mean(x(t) * x(t - 1)), "level": mean(r(t))},
    )


def partly_symmetric_by_hand():
    found = by_hand.symmetric_in_part(1.4, 0.6, 0.3, math.cos, 3)
    before = [math.nan, *(found["xx"][s, s - 1] for s in (1, 2, 3))]
    return {"square": np.diag(found["xx"]), "before": before, "level": found["level"]}


def nested():
    """A site inside its own law."""
    return Model(
        parameters=(g, k, T),
        equations=[
            Eq(x(0), w),
            Eq(r(t), J @ x(t) / sqrt(D)),
            Eq(x(t + 1), tanh(k * x(t) + g * r(t) + Rational(1, 2))),
        ],
        observe={"square": mean(x(t) ** 2), "before": mean(x(t) * x(t - 1))},
    )


def nested_by_hand():
    xx = by_hand.nested(1.4, 0.6, 3)
    return {"square": np.diag(xx), "before": [math.nan, *(xx[s, s - 1] for s in (1, 2, 3))]}


def soft_messages():
    """Power iteration with a soft threshold, and what it sends back."""
    return Model(
        parameters=(g, b, T),
        equations=[
            Eq(x(0), b * v + w),
            Eq(r(t), Max(x(t) - Rational(1, 5), 0) + Min(x(t) + Rational(1, 5), 0)),
            Eq(
                x(t + 1),
                M @ r(t)
                - mean(Heaviside(x(t) - Rational(1, 5)) + Heaviside(-x(t) - Rational(1, 5))) * r(t - 1)
                + g * mean(v * r(t)) * v,
            ),
        ],
        observe={"overlap": mean(v * r(t)), "square": mean(r(t) ** 2)},
    )


def soft_messages_by_hand():
    overlap, square = by_hand.soft_message_passing(1.4, 0.3, 0.2, 4)
    return {"overlap": overlap, "square": square}


def symmetric_with_decay():
    """A symmetric network with a leak and a current."""
    return Model(
        parameters=(g, b, T),
        equations=[
            Eq(x(0), w),
            Eq(r(t), erf(x(t))),
            Eq(x(t + 1), (1 - b) * x(t) + g * M @ r(t) + Rational(1, 5)),
        ],
        observe={"square": mean(x(t) ** 2), "before": mean(x(t) * x(t - 1)), "level": mean(r(t))},
    )


def symmetric_with_decay_by_hand():
    found = by_hand.symmetric_with_decay(1.4, 0.3, 3)
    # <x(1) x(0)> is 1 - b whatever is drawn
    before = [math.nan, math.nan, *(found["xx"][s, s - 1] for s in (2, 3))]
    return {"square": np.diag(found["xx"]), "before": before, "level": found["level"]}


SAMPLED = {
    "symmetric messages": (symmetric_messages, 4, symmetric_messages_by_hand),
    "rectangular messages": (
        rectangular_messages,
        4,
        lambda: {"off": by_hand.rectangular_message_passing(1.5, 0.3, 4)},
    ),
    "partly symmetric": (partly_symmetric, 3, partly_symmetric_by_hand),
    "nested": (nested, 3, nested_by_hand),
    "soft messages": (soft_messages, 4, soft_messages_by_hand),
    "decay": (symmetric_with_decay, 3, symmetric_with_decay_by_hand),
}


@cache
def sampled(name):
    model, steps, truth = SAMPLED[name]
    solver = load_solver(solver_files(model()))
    assert isinstance(solver.training, SampledPass)
    return solver, defaults(model(), T=steps), truth()


@pytest.mark.long_cases("decay", "nested", "rectangular messages", "soft messages", "symmetric messages")
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_sampled_sites_have_the_errors_and_the_means_of_a_recursion(name):
    solver, values, truth = sampled(name)
    seen = over_seeds([solve(solver, values, samples=5000, seed=seed) for seed in range(SEEDS)])
    known = {
        ("observable", observable, time): (value, 1e-6)
        for observable, series in truth.items()
        for time, value in enumerate(series)
        if math.isfinite(value)
    }
    assert len(set(known) & set(seen)) >= 4
    assert not wrong(seen, known)


@pytest.mark.parametrize("name", ["rectangular messages", "symmetric messages"])
def test_the_same_declaration_at_finite_size_has_the_recursion(name, simulation_seed):
    """The mean of 1 - f(t)^2 in an equation has a term without a field."""
    solver, values, truth = sampled(name)
    runs = [
        solver.simulation.simulate(solver.point(values), 400, np.random.default_rng((simulation_seed, seed)))[2]
        for seed in range(12)
    ]
    for observable, series in truth.items():
        seen = np.array([np.ravel(one[observable]) for one in runs], float)
        error = seen.std(axis=0, ddof=1) / math.sqrt(len(runs))
        assert np.all(np.abs(seen.mean(axis=0) - series) < 6 * error + 4 / 400), observable


@cache
def growing():
    """Activity that grows from little in a symmetric network: directions that carry a hundredth of the variance early
    decide later ones."""
    model = Model(
        parameters=(g, b, T),
        equations=[Eq(x(0), w / 50), Eq(r(t), tanh(x(t))), Eq(x(t + 1), (1 - b) * x(t) + b * g * M @ r(t))],
        observe={"square": mean(x(t) ** 2), "late": mean(x(t) * x(t - 5))},
    )
    return load_solver(solver_files(model)), {"g": 1.5, "b": 0.3, "T": 16}


@pytest.mark.long
@pytest.mark.slow
def test_what_too_small_a_rank_moves_counts_as_an_error(monkeypatch):
    """Without the check by doubling the rank all times were off by two errors."""
    solver, values = growing()
    truth = solve(solver, values, samples=100_000, seed=9)
    assert truth.method.sampling.rank_effect is None

    def far(pairs):
        monkeypatch.setattr(sampling, "PAIRS", pairs)
        seen = []
        for seed in (1, 2, 3):
            found = solve(solver, values, samples=20_000, seed=seed, rank=8)
            assert (found.method.sampling.rank_effect is not None) == (pairs > 0)
            for name in ("square", "late"):
                off = np.subtract(found.observables[name][6:], truth.observables[name][6:])
                seen.append(off / np.array(found.errors[name][6:]))
        return math.sqrt(np.mean(np.square(seen)))

    assert far(sampling.PAIRS) < 1.3 < 1.6 < far(0)


@pytest.mark.slow
def test_the_check_of_the_rank_draws_numbers_that_no_replicate_has(monkeypatch):
    """What it adds to an error is an independent estimate only with normals of its own, other ones each time."""
    drawn, original = [], sampling.draw

    def recorded(groups, shapes, sites, seed, *more):
        drawn.append((sites, seed))
        return original(groups, shapes, sites, seed, *more)

    monkeypatch.setattr(sampling, "draw", recorded)
    solver, values = growing()
    found = solve(solver, values, samples=20_000, seed=1, rank=8)
    most = max(sites for sites, _ in drawn)
    checks, replicates = [s for n, s in drawn if n < most], {s for n, s in drawn if n == most}
    assert len(checks) == len(set(checks)) == sampling.PAIRS
    assert len(replicates) == found.method.sampling.replicates and not replicates & set(checks)
