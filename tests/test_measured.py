"""Means that multiply random matrices in a probed matrix: numbers of the training level, parameters of the bulk."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import tanh

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
from derive.errors import DeclarationError, DeriveError


def taught(held: bool = False, name: str = "rate") -> Model:
    """A learning symmetric matrix beside a Wishart matrix, times a mean of the last time or a parameter."""
    rate = parameter(name, default=0.8, domain=positive)
    weight = parameter("weight", default=1.0, domain=positive)
    T = parameter("T", default=4, domain=whole_positive)
    D, N = sectors("D", N=2)
    t = training_clock("t", steps=T)
    M0, A, start, v, M = goe("M0", D), gaussian("A", N, D), normal("start", D), field("v", D, t), weights("M", D, D, t)
    factor = weight if held else mean(v(T) ** 2)
    return Model(
        parameters=(rate, weight, T),
        equations=[
            Eq(v(0), start),
            Eq(v(t + 1), (v(t) + M(t) @ v(t)) / 2),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + rate / D * outer(v(t), v(t))),
        ],
        observe={"square": mean(v(t) ** 2)},
        probe=spectrum(M(T) + factor / 40 * A.T @ A / N),
    )


@pytest.fixture(scope="module")
def both():
    return derive.load(taught()), derive.load(taught(held=True))


@pytest.mark.parametrize("rate", [0.8, 1.5])
def test_a_mean_in_the_bulk_is_the_number_that_the_training_level_gives(both, rate):
    measured, held = both
    found = measured.solve(rate=rate)
    by_hand = held.solve(rate=rate, weight=float(found["square"][-1]))
    assert found.outliers.size
    assert found.bulk_edges == pytest.approx(by_hand.bulk_edges, rel=1e-11)
    assert found.outliers == pytest.approx(by_hand.outliers, rel=1e-11)


def test_along_the_path_the_bulk_is_that_of_each_time(both):
    measured, held = both
    found = measured.solve(rate=1.5, path=True)
    for time in (1, 3):
        then = held.solve(rate=1.5, T=time, weight=float(found["square"][time]))
        assert found.outlier_path[time] == pytest.approx(then.outliers, rel=1e-10)


def test_a_multiple_of_a_random_matrix_has_its_edges_times_the_mean():
    """By hand: a Wigner matrix times <v(T)^2>, v(T) = 3^T start, has its edges at plus and minus 2 * 9^T."""
    T = parameter("T", default=2, domain=whole_positive)
    D = sectors("D")
    t = training_clock("t", steps=T)
    v = field("v", D, t)
    model = Model(
        parameters=(T,),
        equations=[Eq(v(0), normal("start", D)), Eq(v(t + 1), 3 * v(t))],
        probe=spectrum(mean(v(T) ** 2) * goe("M0", D)),
    )
    assert derive.load(model).solve(T=2).bulk_edges == pytest.approx(np.array([[-162.0, 162.0]]), rel=1e-12)


def test_the_name_that_the_mean_gets_is_nobodys(both):
    found = derive.load(taught(name="mean_v")).solve(mean_v=1.5)
    assert found.outliers == pytest.approx(both[0].solve(rate=1.5).outliers, rel=1e-13)


@pytest.mark.slow
def test_slopes_of_the_edge_go_through_the_mean(both):
    import jax

    edge = both[0].function("edge", of=["rate"])
    step = 1e-3
    assert float(jax.grad(edge)(1.0)) == pytest.approx(float(edge(1 + step) - edge(1 - step)) / (2 * step), rel=1e-3)


def test_series_do_not_hold_the_mean_fixed(both):
    with pytest.raises(DeriveError, match="changes with the parameters"):
        both[0].expand("edge", "1/rate")


def test_sampled_means_are_refused_in_a_sentence():
    T = parameter("T", default=2, domain=whole_positive)
    D = sectors("D")
    t = training_clock("t", steps=T)
    u, v, A = field("u", D, t), field("v", D, t), gaussian("A", D, D)
    model = Model(
        parameters=(T,),
        equations=[Eq(v(0), normal("start", D)), Eq(u(t), goe("M0", D) @ v(t)), Eq(v(t + 1), tanh(v(t) + u(t)))],
        probe=spectrum(mean(v(T) ** 2) * A.T @ A / D),
    )
    with pytest.raises(DeclarationError, match="sampled here"):
        derive.load(model).solve()
