"""Means in the coefficients of probed matrices: of outer products, and of random matrices, whose bulk they change."""

from __future__ import annotations

import pytest
from agreement import too_far
from simulated import block_of
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
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)
from derive.errors import DeriveError

rate = parameter("rate", default=0.8, domain=positive)
nu = parameter("nu", default=1.5, domain=positive)
theta = parameter("theta", default=2.0, domain=positive)
T = parameter("T", default=4, domain=whole_positive)
SIZES = ((90, 48), (180, 24))


def learning(probe, law=lambda x: x, **more) -> Model:
    """A symmetric matrix that learns what it does; probe: of M(T), M0, v, its start and a vector that it never sees."""
    D = sectors("D")
    t = training_clock("t", steps=T)
    M0, start, b = goe("M0", D), normal("start", D), normal("b", D)
    v, M, h = field("v", D, t), weights("M", D, D, t), field("h", D, t)
    return Model(
        parameters=(rate, T),
        equations=[
            Eq(h(t), M(t) @ v(t)),
            Eq(v(0), start),
            Eq(v(t + 1), law((v(t) + h(t)) / 2)),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + rate / D * outer(v(t), v(t))),
        ],
        observe={"activity": mean(v(t) ** 2)},
        probe=probe(M(T), M0, v, start, outer(b, b) / D),
        **more,
    )


def measured() -> Model:
    """Two random matrices, scaled by nonlinear functions of what one of them does; its laws are integrals."""
    D, N = sectors("D", N=nu)
    W, M, a, h = gaussian("W", N, D), goe("M", D), normal("a", D), field("h", N)
    first, second = mean(tanh(h) ** 2), mean(h * tanh(h))
    matrix = first * W.T @ W / N + second * M + theta / D * outer(a, a)
    return Model(
        parameters=(nu, theta),
        equations=[Eq(h, W @ a / sqrt(D))],
        observe={"first": first, "second": second},
        probe=spectrum(matrix, between={"gram": W.T @ W / N}),
    )


@pytest.fixture(scope="module")
def nonlinear():
    return derive.load(measured())


@pytest.mark.slow
def test_a_scaled_matrix_has_the_scaled_spectrum():
    """spectrum(q M) is q times spectrum(M), outliers, bulk, overlaps and all times, and so is its resolvent."""
    plain, scaled = (
        derive.load(learning(probe)).solve(path=True)
        for probe in (lambda M, *_: spectrum(M), lambda M, M0, v, *_: spectrum(mean(v(T) ** 2) * M))
    )
    q = plain["activity"]
    assert scaled.outliers == pytest.approx(q[-1] * plain.outliers, rel=1e-12)
    assert scaled.bulk_edges == pytest.approx(q[-1] * plain.bulk_edges, rel=1e-12)
    assert scaled.overlaps["right"] == pytest.approx(plain.overlaps["right"], rel=1e-9)
    for time, (now, then) in enumerate(zip(plain.outlier_path, scaled.outlier_path, strict=True)):
        assert then == pytest.approx(q[time] * now, rel=1e-10)
    assert scaled.resolvent(2j) == pytest.approx(plain.resolvent(2j / q[-1]) / q[-1], rel=1e-10)


@pytest.mark.slow
def test_a_mean_is_the_parameter_that_has_its_value(nonlinear):
    """The same matrix with numbers in place of the means has the same bulk, outlier and traces."""
    s = nonlinear.solve(nu=1.3, theta=2.5)
    p, q = (parameter(name, default=float(s[what][-1])) for name, what in (("p", "first"), ("q", "second")))
    D, N = sectors("D", N=nu)
    W, M, a = gaussian("W", N, D), goe("M", D), normal("a", D)
    matrix = p * W.T @ W / N + q * M + theta / D * outer(a, a)
    model = Model(parameters=(nu, theta, p, q), probe=spectrum(matrix, between={"gram": W.T @ W / N}))
    right = derive.load(model).solve(nu=1.3, theta=2.5)
    assert s.bulk_edges == pytest.approx(right.bulk_edges, rel=1e-10)
    assert s.outliers == pytest.approx(right.outliers, rel=1e-10)
    assert s.overlaps["right"] == pytest.approx(right.overlaps["right"], rel=1e-8)
    assert s.resolvent(-3.0, between="gram") == pytest.approx(right.resolvent(-3.0, between="gram"), rel=1e-9)
    points = nonlinear.sweep(nu=1.3, theta=[2.0, 2.5]).points
    assert points[1].outliers == pytest.approx(s.outliers, rel=1e-12)
    assert points[1].resolvent(-3.0, between="gram") == pytest.approx(s.resolvent(-3.0, between="gram"), rel=1e-12)


@pytest.mark.long
@pytest.mark.slow
def test_an_outlier_is_a_function_of_the_parameters(nonlinear):
    """Its slope has that of the means."""
    import jax

    f = nonlinear.function("outlier", of=["nu"])
    step = 1e-3
    high, low = (nonlinear.solve(nu=1.5 + sign * step).outliers[0] for sign in (1, -1))
    assert float(jax.grad(f)(1.5)) == pytest.approx((high - low) / (2 * step), rel=1e-3)


@pytest.mark.long_cases("one", "sampled")
@pytest.mark.slow
@pytest.mark.parametrize("case", ["one", "sum", "two", "integrals", "sampled"])
def test_agreement_with_simulation(case, nonlinear, simulation_seed):
    cases = {
        "one": lambda M, M0, v, start, spike: spectrum(mean(v(T) ** 2) * M + 3 * spike),
        "sum": lambda M, M0, v, start, spike: spectrum(M + mean(v(T) * v(T - 1)) * M0 + mean(start**2) * M0),
        "two": lambda M, M0, v, start, spike: {
            0: spectrum(M + 3 * mean(v(T) ** 2) * spike),
            1: spectrum(mean(start * v(T)) * M0 + 2 * mean(v(0) ** 2) * spike),
        },
        "sampled": lambda M, M0, v, start, spike: spectrum(M + 3 * mean(v(T) ** 2) * spike),
    }
    law = tanh if case == "sampled" else (lambda x: x)
    theory = nonlinear if case == "integrals" else derive.load(learning(cases[case], law))
    found = theory.solve(path=True, samples=20000 if case == "sampled" else None)
    block = block_of(f"means in a probe, {case}", theory.solver, found, simulation_seed, SIZES)
    assert len(block.comparisons) >= 3 and not too_far([block])


def test_what_is_refused(nonlinear):
    with pytest.raises(DeriveError, match="does not include"):
        nonlinear.expand("edge", "1/nu", order=1)
    assert "mean_h = " in str(nonlinear.derivation.probe)
