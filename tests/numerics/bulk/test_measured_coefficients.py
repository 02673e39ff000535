"""Means that multiply random matrices in a probed matrix: numbers of the training level, parameters of the bulk."""

from __future__ import annotations

import numpy as np
import pytest
from sympy import Max, tanh

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
from derive.equations.stopping import _measures
from derive.errors import DeriveError


def taught(held: bool = False, name: str = "rate", law=lambda x: x) -> Model:
    """A learning symmetric matrix beside a Wishart matrix, times a mean of the last time or a parameter."""
    rate = parameter(name, default=0.8, domain=positive)
    weight = parameter("weight", default=1.0, domain=positive)
    T = parameter("T", default=4, domain=whole_positive)
    D, N = sectors("D", N=2)
    t = training_clock("t", steps=T)
    M0, A, start, v, M = goe("M0", D), gaussian("A", N, D), normal("start", D), field("v", D, t), weights("M", D, D, t)
    x = field("x", D, t)
    factor = weight if held else mean(v(T) ** 2)
    return Model(
        parameters=(rate, weight, T),
        equations=[
            Eq(v(0), start),
            Eq(x(t), M(t) @ v(t)),
            Eq(v(t + 1), (v(t) + law(x(t))) / 2),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + rate / D * outer(v(t), v(t))),
        ],
        observe={"square": mean(v(t) ** 2)},
        probe=spectrum(M(T) + factor / 40 * A.T @ A / N),
    )


@pytest.fixture(scope="module")
def both():
    return derive.load(taught()), derive.load(taught(held=True))


@pytest.mark.slow
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
    with pytest.raises(DeriveError, match="does not include this dependence"):
        both[0].expand("edge", "1/rate")


@pytest.mark.long
@pytest.mark.slow
def test_sampled_means_are_the_exact_ones_where_laws_are_linear_after_all(both):
    """A law that is linear at all sites there are, which the engine has to sample."""
    sampled = derive.load(taught(law=lambda x: Max(x, -80))).solve(rate=1.5, T=3, samples=4000, path=True)
    exact = both[0].solve(rate=1.5, T=3, path=True)
    assert exact.exact and not sampled.exact and exact.outlier_path[2].size
    assert sampled.bulk_edges == pytest.approx(exact.bulk_edges, rel=1e-8)
    for time in (2, 3):
        assert sampled.outlier_path[time] == pytest.approx(exact.outlier_path[time], rel=1e-8)


@pytest.mark.long
@pytest.mark.slow
def test_errors_of_a_bulk_that_follows_a_sampled_mean_are_its_spread_over_seeds():
    theory = derive.load(taught(law=tanh))
    runs = [theory.solve(rate=2.5, T=3, samples=2000, seed=seed, overlaps=False).layer() for seed in range(10)]
    places = np.array([[*np.ravel(run.bulk_edges), *run.outliers, run.moments[2]] for run in runs])
    said = [[*np.ravel(run.edge_errors), *run.outlier_errors, run.moment_errors[2]] for run in runs]
    ratio = places.std(axis=0, ddof=1) / np.sqrt(np.mean(np.square(said), axis=0))
    assert places.shape == (10, 4) and np.all((ratio > 0.4) & (ratio < 1.7)), ratio


@pytest.mark.long
@pytest.mark.slow
def test_a_sampled_mean_in_the_bulk_is_that_of_samples():
    found = derive.load(taught(law=tanh)).compare(rate=2.5, T=3, size=300, seeds=10, samples=20_000, path=True)
    assert found.agrees and any(row.quantity.startswith("outlier") for row in found.rows)


def test_points_of_a_sweep_keep_the_numbers_that_their_bulk_takes():
    T = parameter("T", default=2, domain=whole_positive)
    rate = parameter("rate", default=0.5, domain=positive)
    D = sectors("D")
    t, A, B = training_clock("t", steps=T), goe("A", D), goe("B", D)
    v = field("v", D, t)
    model = Model(
        parameters=(rate, T),
        equations=[Eq(v(0), normal("start", D)), Eq(v(t + 1), rate * v(t))],
        probe=spectrum(mean(v(T) ** 2) * A + B, between={"A": A}),
    )
    theory = derive.load(model)
    swept = theory.sweep(rate=[0.5, 0.8], T=2)
    for point, value in zip(swept.points, (0.5, 0.8), strict=True):
        # by hand: g (z - s2 g) = 1 with s2 = a^2 + 1, a = <v(T)^2>; tr R A = a g^2
        a, z = value**4, 1 + 2j
        g = (z - np.sqrt(z - 2 * np.sqrt(a**2 + 1)) * np.sqrt(z + 2 * np.sqrt(a**2 + 1))) / (2 * (a**2 + 1))
        assert complex(point.resolvent(z)) == pytest.approx(g, rel=1e-9)
        assert complex(point.resolvent(z, beside="A")) == pytest.approx(a * g**2, rel=1e-9)


def test_a_mean_inside_a_product_makes_a_matrix_depend_on_its_time():
    D = sectors("D")
    t = training_clock("t", steps=parameter("T", default=2, domain=whole_positive))
    S, v = goe("S", D), field("v", D, t)
    inside = S @ (S + mean(v(2) ** 2) * S) @ S
    for matrix in (inside, S + inside):
        assert _measures(spectrum(matrix).matrix)
    assert not _measures(spectrum(S + S @ S).matrix)
