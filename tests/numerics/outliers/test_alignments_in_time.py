"""Squared cosines with directions at any time, of the matrix at any time: closed forms, laws, and samples by hand."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sympy import sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    alignment,
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

pytestmark = pytest.mark.slow

rate = parameter("rate", default=0.8, domain=positive)
nu = parameter("nu", default=1.5, domain=positive)
T = parameter("T", default=4, domain=whole_positive)


def growing(scheduled):
    """A spike that grows by a step at a time, by less and less where there is a schedule."""
    D, t = sectors("D"), training_clock("t", steps=T)
    M0, v, w = goe("M0", D), normal("v", D), normal("w", D)
    M, still = weights("M", D, D, t), field("still", D, t)
    added = rate * (1 - t / T) if scheduled else rate
    return Model(
        parameters=(rate, T),
        equations=[
            Eq(still(t), v + t * w / 4),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + added / D * outer(v, v)),
        ],
        observe={"spike": alignment(v), "still": alignment(still(t)), "end": alignment(still(T))},
        probe=spectrum(M(T)),
        name=f"growing_{scheduled}",
    )


@pytest.mark.long_cases("False")
@pytest.mark.parametrize("scheduled", [False, True])
def test_a_spike_that_grows_is_at_each_time_a_planted_one(scheduled):
    """Outliers at theta + 1/theta with squared cosine 1 - 1/theta^2, theta what has been added so far."""
    layer = derive.load(growing(scheduled)).solve(rate=1.2, T=4, path=True).layer()
    for time in range(5):
        theta = sum(1.2 * (1 - t / 4 if scheduled else 1) for t in range(time))
        assert len(layer.outlier_path[time]) == (theta > 1)
        if theta <= 1:
            assert layer.alignment_path[time] == {}
            continue
        assert np.isclose(layer.outlier_path[time][0], theta + 1 / theta, rtol=1e-9)
        found = layer.alignment_path[time]
        whole = 1 - 1 / theta**2
        assert np.isclose(found["spike"]["right"][0], whole, rtol=1e-8)
        shares = 1 / (1 + (np.arange(5) / 4) ** 2)  # of `still` along v, also at times after the matrix is taken
        assert np.allclose(found["still"]["right"][0], whole * shares, rtol=1e-8)
        assert np.isclose(found["end"]["right"][0], whole / 2, rtol=1e-8)


def rectangle(law, name):
    """A rectangular matrix that decays and learns what it drives; directions on both sides hold its noise."""
    D, N = sectors("D", N=nu)
    t = training_clock("t", steps=T)
    W0, start = gaussian("W0", N, D), normal("start", D)
    x, v, W = field("x", N, t), field("v", D, t), weights("W", N, D, t)
    return Model(
        parameters=(rate, nu, T),
        equations=[
            Eq(v(0), start),
            Eq(x(t), W(t) @ v(t) / sqrt(D)),
            Eq(v(t + 1), law(v(t)) / 2 + W(t).T @ x(t) / sqrt(N) / 3),
            Eq(W(0), W0),
            Eq(W(t + 1), 0.9 * W(t) + rate / sqrt(D) * outer(x(t), v(t))),
        ],
        observe={"size": mean(v(t) ** 2), "v": alignment(v(t)), "x": alignment(x(t)), "start": alignment(start)},
        probe=spectrum(W(T).T @ W(T) / N),
        name=name,
    )


@functools.cache
def linear_rectangle():
    return derive.load(rectangle(lambda x: x, "rectangle"))


def test_the_matrix_on_the_way_is_the_last_one_of_a_shorter_run():
    whole = linear_rectangle().solve(rate=0.7, T=4, path=True).layer()
    for time in (2, 3):
        last = linear_rectangle().solve(rate=0.7, T=time)
        assert len(last.outliers) and np.allclose(whole.outlier_path[time], last.outliers, rtol=1e-8)
        for name, sides in last.alignments.items():
            for side, values in sides.items():
                found = whole.alignment_path[time][name][side]
                found = found if name == "start" else found[:, : time + 1]
                assert np.allclose(found, values, rtol=1e-7), (time, name)


def by_hand(law, size, seeds, strength, steps, taken):
    """Squared cosines of the top singular vectors of W(taken) with v and x at all times, mean and error over seeds."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        D, N = size, 3 * size // 2
        W, v, xs, vs, kept = rng.standard_normal((N, D)), rng.standard_normal(D), [], [], None
        for time in range(steps + 1):
            x = W @ v / np.sqrt(D)
            if time == taken:
                kept = W.copy()
            xs.append(x), vs.append(v)
            v = law(v) / 2 + W.T @ x / np.sqrt(N) / 3
            W = 0.9 * W + strength / np.sqrt(D) * np.outer(x, vs[-1])
        left, _, right = np.linalg.svd(kept)
        found.append([[(right[0] @ a) ** 2 / (a @ a) for a in vs], [(left[:, 0] @ a) ** 2 / (a @ a) for a in xs]])
    return np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(seeds)


def test_samples_by_hand_approach_the_theory_on_the_way():
    """W(2) with v and x at the times 0, ..., 3, of which the last two are after its last spike."""
    layer = linear_rectangle().solve(rate=0.7, T=3, path=True).layer()
    theory = np.array([layer.alignment_path[2][name][side][0] for name, side in (("v", "right"), ("x", "left"))])
    small, large = (by_hand(lambda x: x, size, seeds, 0.7, 3, 2) for size, seeds in ((100, 24), (400, 12)))
    assert np.all(np.abs(large[0] - theory) < 4 * large[1] + 3 / 400)
    assert np.sum(np.abs(large[0] - theory)) < np.sum(np.abs(small[0] - theory)) + 0.02
    assert np.min(theory) > 0.3 and np.ptp(theory) > 0.05


@pytest.mark.long
def test_sampled_theories_have_errors_on_the_way():
    layer = derive.load(rectangle(tanh, "rectangle_tanh")).solve(rate=0.9, T=3, samples=6000, path=True).layer()
    assert layer.alignment_path_errors is not None and layer.outlier_path[2].size
    large = by_hand(np.tanh, 400, 10, 0.9, 3, 2)
    for row, (name, side) in enumerate((("v", "right"), ("x", "left"))):
        found, errors = layer.alignment_path[2][name][side][0], layer.alignment_path_errors[2][name][side][0]
        assert np.all((errors > 0) & (errors < 0.05))
        assert np.all(np.abs(found - large[0][row]) < 4 * np.hypot(errors, large[1][row]) + 3 / 400)


def test_a_result_keeps_the_way(tmp_path):
    theory = linear_rectangle()
    found = theory.solve(rate=0.7, T=2, path=True)
    again = derive.open(found.save(tmp_path / "way.nc"))
    assert np.array_equal(again.layer().alignment_path[2]["v"]["right"], found.layer().alignment_path[2]["v"]["right"])
    assert found.to_xarray()["theory/alignment_v_right_path"].dims[:2] == ("path_time", "path_rank")
    plain = found.as_dict()
    assert len(plain["alignment_path"]) == 3 and plain["alignment_path"][0] == []
    # runs differ much in how far they grow, which moves means by more than errors where cosines are close to one
    compared = theory.compare(rate=0.3, T=3, size=200, seeds=8, path=True)
    asked = {row.quantity: row for row in compared.rows if row.quantity.endswith("at time 2")}
    named = [row for what, row in asked.items() if what.startswith(("x at 2 (left)", "v at 2 (right)", "start"))]
    assert len(named) == 3 and all(abs(row.difference) < 4 for row in named)
