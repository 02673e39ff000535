"""Laws of Gaussian fields by quadrature: the rules against mpmath, whole models against recursions written by hand,
against the sampled pass and against their own simulation."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
import sympy as sp
from agreement import too_far
from gaussian_by_hand import erf_kernel, online_perceptron, recurrent_network, relu_kernel, trained_readout
from simulated import block_of
from sympy import Abs, Heaviside, Max, Min, Rational, erf, exp, sign, sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    field,
    fields,
    gaussian,
    goe,
    load,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    total,
    training_clock,
    weights,
    whole_positive,
)
from derive.codegen import generate_files, solver_files
from derive.equations.gaussian_laws import _degree, _kinks
from derive.errors import NumericalError
from derive.inputs.problems import load_grid
from derive.pipeline import derive_model
from derive.program.forward_text import ForwardText
from derive.program.lowering import forward_pass
from derive.records.method import ClosureKind
from numerics.runtime.gaussian import SMOOTH, SPLIT, GaussianFunction, columns, facts, integrate, residuals
from numerics.runtime.keys import keyed
from numerics.runtime.point import replaced
from numerics.solver import load_solver, solve, solve_many
from numerics.support.precision import in_float64
from numerics.support.reports import TrainingMethod
from numerics.training.quadrature import OF_LAWS, check_settled, settle

a = parameter("a", default=1.5, domain=positive)
b = parameter("b", default=0.4)
c = parameter("c", default=1.3)
g = parameter("g", default=1.5, domain=positive)
dt = parameter("dt", default=0.1, domain=positive)
begin = parameter("begin", default=1.0, domain=positive)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
D, N = sectors("D", N=a)
t = training_clock("t", steps=T)
J, M0, W0 = gaussian("J", D, D), goe("M0", D), gaussian("W0", N, D)
v, w = normal("v", D), normal("w", D)


# -- rules


@cache
def integral(function, kinds, kinks, nodes, stein):
    """Compiled as a whole, as passes are: each operation by itself would be compiled for each shape."""
    return jax.jit(lambda at, square: integrate(nodes, kinds, at, square, lambda *u: (function(*u),), kinks, stein))


@in_float64
def mean_of(function, square, kinds, kinks=None, at=None, nodes=128, stein=False):
    square = [[float(square[i][j]) for j in range(i + 1)] for i in range(len(square))]
    at = [float(x) for x in (at or [0] * len(square))]
    return [float(x) for x in integral(function, kinds, kinks, nodes, stein)(at, square)]


def relu(u):
    return jnp.maximum(u, 0.0)


CORRELATIONS = [(1, 1, 0.5), (2, 0.3, -0.4), (1, 1, 1), (1, 1, -1), (4, 4, 0), (1, 1e-8, 0.9e-4), (1, 1, 1 - 1e-6)]


def at_zero(u, v):
    return u, v


PRODUCTS = {
    "relu": lambda u, v: relu(u) * relu(v),
    "erf": lambda u, v: jax.scipy.special.erf(u) * jax.scipy.special.erf(v),
    "sign": lambda u, v: jnp.sign(u) * jnp.sign(v),
    "powers": lambda u, v: u**4 * v**2,
}


@pytest.mark.long_cases("1-1-0.5", "2-0.3--0.4")
@pytest.mark.slow
@pytest.mark.parametrize(("aa", "bb", "ab"), CORRELATIONS)
def test_laws_with_closed_forms(aa, bb, ab):
    square = np.array([[aa, ab], [ab, bb]])
    (found,) = mean_of(PRODUCTS["relu"], square, (SPLIT, SPLIT), at_zero)
    assert found == pytest.approx(relu_kernel(square)[0, 1], rel=1e-12, abs=1e-15)
    (found,) = mean_of(PRODUCTS["erf"], square, (SMOOTH, SMOOTH))
    assert found == pytest.approx(erf_kernel(square)[0, 1], rel=1e-12, abs=1e-15)
    # the derivative of the arc sine has no bound: near correlation one a jump needs more nodes
    (found,) = mean_of(PRODUCTS["sign"], square, (SPLIT, SPLIT), at_zero, nodes=216)
    assert found == pytest.approx(2 / np.pi * np.arcsin(ab / np.sqrt(aa * bb)), abs=1e-10)
    (found,) = mean_of(PRODUCTS["powers"], square, (4, 2))
    assert found == pytest.approx(3 * aa**2 * bb + 12 * aa * ab**2, rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "nodes"), [(0.01, 64), (1.0, 96), (20.0, 486)])
def test_one_variable_against_mpmath(size, nodes):
    """The poles of tanh come nearer as the variance grows; then more nodes are needed."""
    spread = mp.sqrt(size)
    density = lambda z: mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)  # noqa: E731
    pieces = [-12, -4, -1, 0, 1, 4, 12]
    truth = mp.quad(lambda z: mp.tanh(spread * z + 0.3) ** 2 * density(z), pieces)
    (found,) = mean_of(lambda u: jnp.tanh(u) ** 2, [[size]], (SMOOTH,), at=[0.3], nodes=nodes)
    assert found == pytest.approx(float(truth), rel=1e-12)
    truth = mp.quad(
        lambda z: max(spread * z - 1, 0) * mp.tanh(spread * z) * density(z), [float(1 / spread), *(4, 8, 12)]
    )
    if 1 / spread < 4:
        (found,) = mean_of(lambda u: relu(u - 1) * jnp.tanh(u), [[size]], (SPLIT,), lambda u: (u - 1,), nodes=nodes)
        assert found == pytest.approx(float(truth), rel=1e-12)


@pytest.mark.slow
def test_kinks_away_from_the_mean_against_mpmath():
    aa, bb, ab = mp.mpf(1.3), mp.mpf(0.7), mp.mpf(0.6)
    slope, left = ab / mp.sqrt(aa), mp.sqrt(bb - ab**2 / aa)
    density = lambda z: mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)  # noqa: E731
    edge = mp.mpf(0.5) / mp.sqrt(aa)
    above = lambda z: mp.ncdf((slope * z + mp.mpf(0.2)) / left)  # noqa: E731
    truth = mp.quad(lambda z: (mp.sqrt(aa) * z - 0.5) * above(z) * density(z), [edge, 1, 3, 6, 12])
    (found,) = mean_of(
        lambda u, v: relu(u - 0.5) * jnp.heaviside(v + 0.2, 0.5),
        [[aa, ab], [ab, bb]],
        (SPLIT, SPLIT),
        lambda u, v: (u - 0.5, v + 0.2),
    )
    assert found == pytest.approx(float(truth), rel=1e-12)


@pytest.mark.slow
def test_kinks_that_cross_each_other():
    """<max(u, v)> and <max(u, v) max(u, -v)>, where the kinks are lines through both variables."""
    square = [[1.3, 0.2], [0.2, 0.9]]
    (found,) = mean_of(jnp.maximum, square, (SPLIT, SPLIT), lambda u, v: (u - v,))
    assert found == pytest.approx(np.sqrt((1.3 + 0.9 - 0.4) / 2 / np.pi), rel=1e-12)
    # max(u, v) max(u, -v) = u^2 where u > |v|; -v^2 where u < -|v|; |v| u elsewhere
    theta = mp.mpf(0)
    (found,) = mean_of(
        lambda u, v: jnp.maximum(u, v) * jnp.maximum(u, -v),
        [[1, 0], [0, 1]],
        (SPLIT, SPLIT),
        lambda u, v: (u - v, u + v),
    )
    polar = mp.quad(
        lambda x: max(mp.cos(x), mp.sin(x)) * max(mp.cos(x), -mp.sin(x)),
        [theta, mp.pi / 4, 3 * mp.pi / 4, 5 * mp.pi / 4, 7 * mp.pi / 4, 2 * mp.pi],
    )
    assert found == pytest.approx(float(polar / mp.pi), rel=1e-12)


@cache
def covariance_left(one, two, nodes):
    """Compiled as a whole, for any variances and means."""

    def left(variances, at, cross):
        known = [
            facts(nodes, law, (jnp.full((1, 1), v + m * m),), (jnp.full((1, 1), m),), columns((), 1), 1)
            for law, v, m in zip((one, two), variances, at, strict=True)
        ]
        return residuals(nodes, one, known[0], two, known[1], (jnp.full((1, 1), cross),))[0, 0]

    return jax.jit(left)


@in_float64
def left_of_two(one, two, variances, correlation, at=(0.0, 0.0), nodes=96):
    """The covariance of what is left of two analytic laws beside their linear parts."""
    cross = float(correlation * np.sqrt(np.prod(variances)) + np.prod(at))
    return float(covariance_left(one, two, nodes)(tuple(variances), tuple(at), cross))


ERF = GaussianFunction(jax.scipy.special.erf, lambda u: (2 / np.sqrt(np.pi) * jnp.exp(-u * u),), None, (SMOOTH,))
TANH = GaussianFunction(jnp.tanh, lambda u: (1 - jnp.tanh(u) ** 2,), None, (SMOOTH,))
OF_TANH = (lambda u, v: jnp.tanh(u) * jnp.tanh(v), lambda u, v: jnp.tanh(u), lambda u, v: jnp.tanh(v))
TANH_SLOPE = lambda u: 1 - jnp.tanh(u) ** 2  # noqa: E731


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [1.0, 0.999, 0.4, 0.0, -0.7, -1.0])
def test_series_of_two_laws(correlation):
    """Two laws in Hermite polynomials: a closed form, and the integral over the plane away from the mean."""
    for variances in ((0.3, 0.3), (1.0, 2.5)):
        across = correlation * np.sqrt(np.prod(variances))
        square = np.array([[variances[0], across], [across, variances[1]]])
        slopes = [2 / np.sqrt(np.pi * (1 + 2 * v)) for v in variances]
        truth = erf_kernel(square)[0, 1] - slopes[0] * slopes[1] * across
        assert left_of_two(ERF, ERF, variances, correlation) == pytest.approx(truth, rel=1e-11, abs=1e-13)
    at = (0.4, -1.1)
    product, one, two = (mean_of(f, square, (SMOOTH, SMOOTH), at=at, nodes=200)[0] for f in OF_TANH)
    slopes = [mean_of(TANH_SLOPE, [[v]], (SMOOTH,), at=[m], nodes=200)[0] for v, m in zip(variances, at, strict=True)]
    truth = product - one * two - slopes[0] * slopes[1] * across
    assert left_of_two(TANH, TANH, variances, correlation, at, nodes=200) == pytest.approx(truth, rel=1e-10, abs=1e-13)


RELU = GaussianFunction(relu, lambda u: (jnp.where(u > 0, 1.0, 0.0),), lambda u: (u,), (SPLIT,), True)
SIGN = GaussianFunction(jnp.sign, None, lambda u: (u,), (SPLIT,), True)
CLIP = GaussianFunction(lambda u: jnp.clip(u, -1, 0.5), None, lambda u: (u + 1, u - 0.5), (SPLIT,), True)
JUMP = GaussianFunction(lambda u: jnp.where(u > 0.3, 2 * u + 1, -u), None, lambda u: (u - 0.3,), (SPLIT,), True)


@pytest.mark.long_cases("1.0")
@pytest.mark.slow
@pytest.mark.parametrize("correlation", [1.0, 1 - 1e-6, 0.9, 0.0, -0.5, -1.0])
def test_straight_pieces_without_a_mean_have_closed_forms(correlation):
    square = np.array([[1.3, correlation * np.sqrt(1.3 * 0.7)], [correlation * np.sqrt(1.3 * 0.7), 0.7]])
    linear = np.sqrt(1.3 * 0.7) / (2 * np.pi) + square[0, 1] / 4
    found = left_of_two(RELU, RELU, (1.3, 0.7), correlation)
    assert found == pytest.approx(relu_kernel(square)[0, 1] - linear, abs=1e-12)
    found = left_of_two(SIGN, SIGN, (1.3, 0.7), correlation)
    assert found == pytest.approx(2 / np.pi * (np.arcsin(correlation) - correlation), abs=1e-10)


@pytest.mark.long_cases("0.9-one0-two0")
@pytest.mark.slow
@pytest.mark.parametrize("one, two", [(RELU, CLIP), (JUMP, JUMP), (CLIP, JUMP)])
@pytest.mark.parametrize("correlation", [0.9, -0.7])
def test_straight_pieces_are_those_integrated_over_the_plane(one, two, correlation):
    given = ((1.3, 0.7), correlation, (0.3, -0.2))
    plane = [dataclasses.replace(law, straight=False) for law in (one, two)]
    assert left_of_two(one, two, *given) == pytest.approx(left_of_two(*plane, *given), abs=1e-12)


@pytest.mark.slow
def test_straight_pieces_where_two_kinks_fall_together_or_far_away():
    both = GaussianFunction(lambda u: jnp.clip(u, 0, 0), None, lambda u: (u, u), (SPLIT,), True)
    twice = dataclasses.replace(RELU, kinks=lambda u: (u, u, u - 1e6, 0 * u + 1))
    assert left_of_two(both, RELU, (1.0, 1.0), 0.5) == 0
    assert left_of_two(twice, twice, (1.0, 2.0), 0.5) == pytest.approx(left_of_two(RELU, RELU, (1.0, 2.0), 0.5))
    assert left_of_two(RELU, RELU, (0.0, 1.0), 0.0) == 0


def test_which_laws_have_straight_pieces():
    u, law = sp.Symbol("u0", real=True), Heaviside(sp.Symbol("u0", real=True))
    straight = [Max(u, 0), Max(Min(u, 1), -1), sign(u) * Max(Abs(u) - 1, 0), law, u * law]
    straight.append(sp.Piecewise((u, u > 1), (0, True)))
    bent = [law * u**2, Max(u, 0) ** 2, tanh(Max(u, 0)), Abs(u) * Max(u, 0), exp(Abs(u))]
    assert all(_degree(one, u) <= 1 for one in straight) and all(_degree(one, u) > 1 for one in bent)
    assert {abs(kink.subs(u, 0)) for kink in _kinks(straight[2], (u,), "")} == {0, 1}
    assert len(_kinks(straight[1], (u,), "")) == 2


def test_series_without_variance():
    assert left_of_two(TANH, ERF, (0.0, 1.0), 0.0, (0.7, 0.2)) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.slow
def test_mean_slopes_by_correlations_are_those_by_derivatives():
    square, at = [[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 0.6]], [0.2, -0.1, 0.4]
    kinds = (2, SMOOTH, SMOOTH)
    found = mean_of(lambda x, y, z: x**2 * jnp.tanh(y) + x * jnp.sin(z), square, kinds, at=at, stein=True)
    slopes = [
        mean_of(f, square, kinds, at=at)[0]
        for f in (
            lambda x, y, z: 2 * x * jnp.tanh(y) + jnp.sin(z),
            lambda x, y, z: x**2 * (1 - jnp.tanh(y) ** 2),
            lambda x, y, z: x * jnp.cos(z),
        )
    ]
    assert found[1:] == pytest.approx(slopes, rel=1e-11)
    assert mean_of(jnp.sign, [[2.0]], (SPLIT,), lambda u: (u,), stein=True)[1] == pytest.approx(1 / np.sqrt(np.pi))


# -- models


def recurrent(named=False):
    x, y = fields("x y", D, t)
    law = [Eq(y(t), tanh(x(t)))] if named else []
    active = y(t) if named else tanh(x(t))
    return Model(
        parameters=(g, dt, begin, T),
        equations=[Eq(x(0), begin * w), *law, Eq(x(t + 1), (1 - dt) * x(t) + dt * g / sqrt(D) * J @ active)],
        observe={
            "square": mean(x(t) ** 2),
            "late": mean(x(t) * x(t - 10)),
            "active": mean(tanh(x(t)) ** 2),
            "joint": mean(tanh(x(t)) ** 2 * x(t - 1) ** 2),
        },
    )


def perceptron():
    """Fresh data at every step, a teacher and a student that saturate."""
    X = gaussian("X", N, D, fresh=t)
    s = field("s", D, t)
    e, d, k, y = fields("e d k y", N, t)
    noise = normal("noise", N, t, scale=Rational(3, 10))
    return Model(
        parameters=(a, b, T),
        equations=[
            Eq(s(0), w),
            Eq(k(t), X(t) @ s(t) / sqrt(D)),
            Eq(y(t), X(t) @ v / sqrt(D)),
            Eq(e(t), tanh(y(t)) + noise(t) - tanh(k(t))),
            Eq(d(t), e(t) * (1 - tanh(k(t)) ** 2)),
            Eq(s(t + 1), s(t) + b * sqrt(D) / N * X(t).T @ d(t)),
        ],
        observe={"loss": mean(e(t) ** 2), "norm": mean(s(t) ** 2), "overlap": mean(s(t) * v)},
    )


def power_iteration():
    """A denoiser on a matrix with a spike; the iterates are learned by a symmetric matrix."""
    x, h = fields("x h", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), b * v + w),
            Eq(h(t), J @ x(t) / sqrt(D)),
            Eq(x(t + 1), tanh(h(t) + 2 * v * mean(v * x(t)))),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t), x(t))),
        ],
        observe={"overlap": mean(x(t) * v), "norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )


def signs():
    """Laws that jump, also at the start, and an observable with a kink."""
    x, h = fields("x h", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), sign(w)),
            Eq(h(t), J @ x(t) / sqrt(D)),
            Eq(x(t + 1), sign(h(t) + b * v)),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t), h(t))),
        ],
        observe={"kept": mean(x(t) * x(t - 1)), "drift": mean(x(t) * v), "above": mean(Max(h(t), 0))},
        probe=spectrum(M(T).T @ M(T)),
    )


def readout(named=False):
    """Gaussian fields with memory; what is learned is a law with a kink, and a product, which answer to them."""
    x, y, bend = fields("x y bend", D, t)
    M = weights("M", D, D, t)
    law = [Eq(bend(t), Max(x(t), 0))] if named else []
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), v),
            Eq(x(t + 1), b * M0 @ x(t) + v + Rational(1, 3)),
            *law,
            Eq(y(t), (bend(t) if named else Max(x(t), 0)) + x(t) * tanh(x(t - 1))),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(y(t), x(t)) + b / D * outer(y(t), y(t))),
        ],
        observe={"square": mean(y(t) ** 2), "late": mean(y(t) * x(t - 1)), "height": mean(y(t))},
        probe=spectrum(M(T).T @ M(T)),
    )


def gates():
    """A gate times fresh noise: an integral over four variables, two of which enter as polynomials."""
    X = gaussian("X", N, D, fresh=t)
    f, back = fields("f back", D, t)
    h, y = fields("h y", N, t)
    noise = normal("noise", N, t)
    W = weights("W", N, D, t)
    return Model(
        parameters=(a, b, c, T),
        equations=[
            Eq(f(0), v),
            Eq(f(t + 1), f(t) + b * back(t)),
            Eq(h(t), X(t) @ f(t) / sqrt(D)),
            Eq(y(t), Heaviside(h(t)) * (noise(t) + h(t))),
            Eq(back(t), sqrt(D) / N * X(t).T @ y(t)),
            Eq(W(0), W0),
            Eq(W(t + 1), W(t) + c / sqrt(D) * outer(y(t), f(t))),
        ],
        observe={"gated": mean(y(t) ** 2), "norm": mean(f(t) ** 2)},
        probe=spectrum(W(T).T @ W(T) / N),
    )


def classes():
    """Class labels, a law that moves with time, a mean as a coefficient, a law one step late."""
    u, label = training_clock("t", steps=T), axis("label", C)
    x = normal("x", D, axes=label)
    h, y, r = fields("h y r", N, u, axes=label)
    W = weights("W", N, D, u)
    return Model(
        parameters=(a, b, c, T, C),
        equations=[
            Eq(h(u), W0 @ x / sqrt(D)),
            Eq(r(u), tanh(h(u) + b * u)),
            Eq(y(u), erf(h(u)) * mean(r(u) * h(u)) + r(u - 1)),
            Eq(W(0), W0),
            Eq(W(u + 1), W(u) + c / sqrt(D) * outer(y(u), x)),
        ],
        observe={"square": mean(y(u) ** 2), "seen": total(mean(y(u) * h(u)))},
        probe=spectrum(W(T).T @ W(T) / N),
    )


MODELS = {m.__name__: m for m in (recurrent, perceptron, power_iteration, signs, readout, gates, classes)}
PROBED = ("power_iteration", "signs", "readout", "gates", "classes")


@cache
def solver_of(name):
    return load_solver(solver_files(MODELS[name]()))


@cache
def theory_of(name):
    model = MODELS[name]()
    return solve(solver_of(name), {p.name: p.default for p in model.parameters}, overlaps=True)


def solved(model, **values):
    return solve(load_solver(solver_files(model)), {p.name: p.default for p in model.parameters} | values)


@pytest.mark.long_cases("values2-50-0.2024")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "late", "figure"),
    [
        ({"g": 1.5, "T": 30, "begin": 1.0}, 10, None),
        ({"g": 2.5, "T": 80, "begin": 0.01}, 50, 0.0755),
        ({"g": 1.5, "T": 100, "begin": 1.0}, 50, 0.2024),
    ],
)
def test_a_random_recurrent_network_has_ten_digits(values, late, figure):
    x = field("x", D, t)
    base = recurrent()
    observe = {"square": mean(x(t) ** 2), "late": mean(x(t) * x(t - late))}
    found = solved(Model(parameters=base.parameters, equations=base.equations, observe=observe), dt=0.1, **values)
    truth = recurrent_network(values["g"], 0.1, values["begin"], values["T"])
    times = np.arange(values["T"] + 1)
    assert found.errors is None and found.method.quadrature.error < 1e-10
    assert found.method.closure == "quadrature"
    np.testing.assert_allclose(found.observables["square"], truth[times, times], rtol=1e-10)
    np.testing.assert_allclose(found.observables["late"][late:], truth[times[late:], times[:-late]], rtol=1e-10)
    if figure is not None:
        assert found.observables["late"][-1] == pytest.approx(figure, abs=5e-5)


@pytest.mark.slow
def test_learning_from_fresh_data_by_hand():
    found = solved(perceptron(), T=6)
    truth = online_perceptron(0.4, 1.5, 0.3, 6)
    for column, name in enumerate(("loss", "norm", "overlap")):
        np.testing.assert_allclose(found.observables[name], truth[:, column], rtol=1e-10, atol=1e-13)


@pytest.mark.slow
def test_fixed_features_have_their_kernel():
    place = Path(__file__).parents[2] / "declarations" / "frozen_features.py"
    (problem,) = load_grid(str(place), ()).problems
    solver = load_solver(solver_files(problem.model))
    assert solver.training.training.closure == "quadrature"
    found = solve(solver, problem.inputs)
    x, y = np.asarray(problem.inputs["x"]), np.asarray(problem.inputs["y"])
    kernel = erf_kernel(x @ x.T / x.shape[1])
    steps = len(found.observables["prediction"]) - 1
    truth = trained_readout(kernel, y, problem.values["eta"], steps)
    np.testing.assert_allclose(found.observables["prediction"], truth, rtol=1e-10, atol=1e-12)


def sampled_solver(model):
    """The same setting with its laws sampled."""
    derivation = derive_model(model)
    files = dict(generate_files(model))
    files["training.py"] = ForwardText(
        forward_pass(derivation.layout, derivation.needs, ClosureKind.SAMPLED), "numerics.runtime"
    ).module()
    files["__init__.py"] = files["__init__.py"].replace("exact=True", "exact=False")
    return load_solver(files)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MODELS) - {"recurrent"}))
def test_the_sampled_pass_agrees_within_its_errors(name):
    model = MODELS[name]()
    other = sampled_solver(model)
    assert other.training.training.closure == "sampled" and solver_of(name).quadrature
    one, two = theory_of(name), solve(other, {p.name: p.default for p in model.parameters}, samples=20_000, seed=3)
    scores = [
        abs(x - y) / error
        for key, series in one.observables.items()
        for x, y, error in zip(series, two.observables[key], two.errors[key], strict=True)
        if error is not None and error > 1e-6  # before its lag an observable is not defined
    ]
    for here, there in zip(one.layers, two.layers, strict=True):
        if there.outlier_errors is not None and len(here.outliers) == len(there.outliers):
            found = zip(here.outliers, there.outliers, there.outlier_errors, strict=True)
            scores += [abs(x - y) / error for x, y, error in found if error > 1e-6]
    assert max(scores) < 5


@pytest.mark.long_cases("signs", "readout", "gates", "classes")
@pytest.mark.slow
@pytest.mark.parametrize("name", PROBED)
def test_finite_size_samples_agree(name, simulation_seed):
    assert not too_far([block_of(name, solver_of(name), theory_of(name), simulation_seed)])


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("model", [recurrent, readout])
def test_a_law_may_be_a_field_of_its_own_or_stand_inside_another(model):
    one, two = solved(model()), solved(model(named=True))
    for name, series in one.observables.items():
        here, there = np.array(series, float), np.array(two.observables[name], float)
        np.testing.assert_allclose(there, here, rtol=1e-11, atol=1e-14)  # not defined before a lag, in both
    for here, there in zip(one.layers, two.layers, strict=True):
        np.testing.assert_allclose(there.outliers, here.outliers, rtol=1e-11)


def test_what_answers_to_itself_nonlinearly_is_sampled():
    (x, y), noise = fields("x y", D, t), normal("noise", D, t)
    through = [Eq(x(0), v), Eq(x(t + 1), tanh(y(t))), Eq(y(t), M0 @ x(t))]  # a symmetric matrix: memory of x
    nested = [Eq(x(0), tanh(v)), Eq(x(t + 1), tanh(x(t) + v))]
    each_other = [Eq(x(t), erf(noise(t)) + erf(y(t - 1)) / 2), Eq(y(t), erf(x(t)))]  # to be written out without end
    for equations in (through, nested, each_other):
        model = Model(parameters=(T,), equations=equations, observe={"square": mean(x(t) ** 2)})
        assert derive_model(model).method.sampled
        assert load_solver(solver_files(model)).training.training.closure == "sampled"


@pytest.mark.long
@pytest.mark.slow
def test_points_side_by_side_and_derivatives():
    solver = solver_of("recurrent")
    points = [{"g": value, "dt": 0.1, "begin": 1.0, "T": 5} for value in (0.5, 1.5, 2.5)]
    together = list(solve_many(solver, points))
    for point, found in zip(points, together, strict=True):
        np.testing.assert_allclose(found.observables["square"], solve(solver, point).observables["square"], rtol=1e-12)
        assert found.method.quadrature.error < 1e-10

    def last(value):
        p = replaced(solver.point(points[1]), g=value)
        return solver.training.forward_pass(p, 96)[1]["square"][-1]

    slope = in_float64(jax.grad(last))(1.5)
    near = [solve(solver, {**points[1], "g": 1.5 + step}).observables["square"][-1] for step in (-1e-4, 1e-4)]
    assert float(slope) == pytest.approx((near[1] - near[0]) / 2e-4, rel=1e-7)


def test_results_that_are_all_zero_but_for_rounding_have_settled():
    def zero(nodes):
        return {}, {"mean": np.array([1e-17 * np.sin(nodes), 0.0])}, np.array(2)

    def growing(nodes):
        return {}, {"mean": np.array([1e-17 * np.sin(nodes), 1e-3 * nodes])}, np.array(2)

    for run, good in ((zero, True), (growing, False)):
        _, (how,) = settle(run, OF_LAWS)
        assert (how.quadrature.error == 0) is good and how.quadrature.converged is good


def settled(*errors, points: int | None = None) -> tuple[list[int], list[TrainingMethod]]:
    """The numbers of nodes that are tried where results are off by functions of them, and how each was found."""
    tried: list[int] = []

    def run(nodes):
        tried.append(nodes)
        off = [3.0 + error(nodes) for error in errors]
        alone = {}, {"x": np.array([2.0, off[0]])}, np.array(2)
        return alone if points is None else ({}, {"x": np.array(off)[:, None]}, np.full(points, 2))

    return tried, settle(run, OF_LAWS, points)[1]


def test_nodes_are_added_until_results_stand_still_and_errors_are_what_they_last_moved_by():
    tried, (how,) = settled(lambda nodes: 2.0 ** (-nodes / 4))
    assert tried == [64, 96, 144, 216] and how.quadrature.nodes == 216 and how.quadrature.converged
    assert how.quadrature.error == pytest.approx((2.0**-36 - 2.0**-54) / 3, rel=1e-3)
    assert how.closure == "quadrature" and how.quadrature.coarser == 144
    assert (
        how.sentence == f"Gaussian quadrature, 216 nodes per axis, relative change {how.quadrature.error:.1e} from 144"
    )
    # side by side the worst decides how many, and each has its own error
    tried, (fast, slow) = settled(lambda nodes: 0.0, lambda nodes: 2.0 ** (-nodes / 4), points=2)
    assert tried[-1] == 216 and fast.quadrature.error == 0
    assert slow.quadrature.error == pytest.approx(how.quadrature.error)


def test_results_that_rounding_moves_are_as_good_as_they_get():
    """More nodes gain less than a factor of four where movements are below 1e-8 and above the tolerance."""
    tried, (how,) = settled(lambda nodes: 3e-9 * (-1) ** (nodes % 5))
    assert len(tried) == 3 and 1e-10 < how.quadrature.error < 1e-8
    check_settled(how)


def test_results_that_do_not_stand_still_are_refused():
    """After the most nodes, and before them where they move by as much as they are."""
    for error, last in ((lambda nodes: 1e-3 * (-1) ** (nodes % 5), 486), (lambda nodes: 9.0 ** (nodes / 64), 324)):
        tried, (how,) = settled(error)
        assert tried[-1] == last
        with pytest.raises(NumericalError, match="have not converged: with"):
            check_settled(how)


def test_what_there_is_for_each_value_on_a_diagonal_counts_as_well():
    """Shares of two values that still move, and then a correlation for each of them."""

    def run(moving):
        def at(nodes):
            shares = np.array([[0.0, 0.5], [1.0, 0.5]])
            seen = np.ones(2)
            {"S": shares[:, 1], "W": seen}[moving][...] += np.array([1, -1]) / nodes
            return keyed({("S", "D"): shares, ("W", "D", "C x", "C x"): seen}), {}, np.array(2)

        return at

    for moving in ("S", "W"):
        _, (how,) = settle(run(moving), OF_LAWS)
        assert how.quadrature.error > 1e-4 and not how.quadrature.converged


@pytest.mark.parametrize("lag", [0, 1])
def test_what_weights_remember_meets_what_they_act_on(lag):
    """W(t) x(t) has c <b(s) x(t)> for each earlier update c b(s)^T: b = sin(v) and x = sin(2 v) of one normal v."""
    T, D = parameter("T", default=3, domain=whole_positive), sectors("D")
    t = training_clock("t", steps=T)
    W, v, c = weights("W", D, D, t), normal("v", D), normal("c", D)
    b, x, y = fields("b x y", D, t)
    equations = [
        Eq(b(t), sp.sin(v)),
        Eq(x(t), sp.sin(2 * v)),
        Eq(W(0), gaussian("W0", D, D) / sqrt(D)),
        Eq(W(t + 1), W(t) + outer(c, b(t - lag)) / D),
        Eq(y(t), W(t) @ x(t)),
    ]
    solution = load(Model((T,), equations, {"q": mean(y(t) * c)})).solve()
    each = (np.exp(-1 / 2) - np.exp(-9 / 2)) / 2
    assert solution["q"] == pytest.approx([max(0, time - lag) * each for time in range(4)], abs=1e-12)
