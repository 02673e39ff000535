"""Unusual but legal declarations: each goes through unchanged stages and agrees with its own simulation."""

from __future__ import annotations

from functools import cache

import jax
import numpy as np
import pytest
from agreement import Block, sees_stretch, too_far, wrong
from simulated import block_of
from sympy import sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    field,
    fields,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)
from derive.codegen import solver_files
from derive.codegen.store import stored_files
from numerics.runtime.point import Point
from numerics.solution import Prediction
from numerics.solver import Solver, load_solver, solve
from numerics.support.precision import in_float64

a = parameter("a", default=1.5, domain=positive)
b = parameter("b", default=0.4)
c = parameter("c", default=1.3)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=3, domain=whole_positive)
D, N = sectors("D", N=a)
t = training_clock("t", steps=T)
u = training_clock("u", steps=T)
class_axis = axis("class_axis", C)
M0, W0 = goe("M0", D), gaussian("W0", N, D)
v, w = normal("v", D), normal("w", D)


def _hebbian(update, law=lambda x, y: b * y(t) + v, start=v, extra=(), observe=None):
    """A symmetric matrix, a field driven by it, and a given update."""
    x, y = fields("x y", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), start),
            Eq(x(t + 1), law(x, y)),
            Eq(y(t), M(t) @ x(t)),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + update(x, y, M)),
            *extra,
        ],
        observe=observe or {"norm": mean(x(t) ** 2), "drive": mean(y(t) ** 2)},
        probe=spectrum(M(T)),
    )


def shifted_sum():
    x = field("x", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), v),
            Eq(x(t + 1), b * M0 @ x(t) + b * past_sum(lambda s: x(s - 1), t)),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t), x(t))),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )


def shifted_outer():
    return _hebbian(lambda x, y, M: c / D * (outer(x(t), x(t - 1)) + outer(x(t - 1), x(t))))


def static_vector_in_update():
    return _hebbian(lambda x, y, M: b / D * (outer(x(t), w) + outer(w, x(t))))


def decaying_rate():
    return _hebbian(lambda x, y, M: c / (1 + t) / D * outer(x(t), x(t)))


def normalised_rate():
    return _hebbian(lambda x, y, M: c / mean(x(t) ** 2) / D * outer(x(t), x(t)), law=lambda x, y: y(t) + v)


def normalised_law():
    return _hebbian(lambda x, y, M: c / D * outer(x(t), x(t)), law=lambda x, y: tanh(y(t) / sqrt(mean(y(t) ** 2)) + v))


def lagged_argument():
    x = field("x", D, t)
    g = field("g", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(t), v + b * g(t)),
            Eq(g(t), M0 @ x(t - 2)),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t), x(t))),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )


def two_starting_values():
    x = field("x", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), v),
            Eq(x(1), w),
            Eq(x(t + 2), b * M0 @ x(t + 1) - b * x(t)),
            Eq(M(0), M0),
            Eq(M(t + 1), M(t) + c / D * outer(x(t), x(t))),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )


def symmetric_pair_in_a_buffer():
    x, y = fields("x y", D, t)
    M, B = weights("M", D, D, t), weights("B", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), v),
            Eq(x(t + 1), b * y(t) + w),
            Eq(y(t), M(t) @ x(t)),
            Eq(M(0), M0),
            Eq(B(0), 0),
            Eq(B(t + 1), b * B(t) + b / D * (outer(x(t), y(t)) + outer(y(t), x(t)))),
            Eq(M(t + 1), M(t) + B(t + 1)),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )


def pulled_to_the_start():
    return _hebbian(lambda x, y, M: b * (M0 - M(t)) + c / D * outer(x(t), x(t)))


def initial_matrix_with_its_size():
    W = weights("W", N, D, t)
    x, h = field("x", D, t), field("h", N, t)
    return Model(
        parameters=(a, b, c, T),
        equations=[
            Eq(W(0), W0 / sqrt(D)),
            Eq(h(t), W(t) @ x(t)),
            Eq(x(0), v),
            Eq(x(t + 1), b * x(t) + W(t).T @ h(t) / a),
            Eq(W(t + 1), W(t) + b / D * outer(h(t), x(t))),
        ],
        observe={"norm": mean(h(t) ** 2)},
        probe=spectrum(W(T).T @ W(T)),
    )


def labels_beside_none():
    x, y = fields("x y", D, u, axes=class_axis)
    M = weights("M", D, D, u)
    each = normal("each", D, axes=class_axis)
    return Model(
        parameters=(b, c, T, C),
        equations=[
            Eq(x(0), each),
            Eq(x(u + 1), b * y(u) + each - w),
            Eq(y(u), M(u) @ x(u)),
            Eq(M(0), M0),
            Eq(M(u + 1), M(u) + c / D * outer(x(u), x(u))),
        ],
        observe={"norm": mean(x(u) ** 2)},
        probe=spectrum(M(T)),
    )


def static_chain():
    y, k, q = field("y", D), field("k", D), field("q", D)
    return Model(
        parameters=(b, c),
        equations=[Eq(y, M0 @ v), Eq(k, v - b * y), Eq(q, M0 @ k)],
        observe={"norm": mean(q**2), "cross": mean(q * y)},
        probe=spectrum(M0 + c / D * outer(q, q) + c / D * outer(y, y)),
    )


def static_nonlinear():
    h, f = field("h", N), field("f", N)
    return Model(
        parameters=(a, b, c),
        equations=[Eq(h, W0 @ v / sqrt(D)), Eq(f, tanh(c * h) + b)],
        observe={"norm": mean(f**2)},
        probe=spectrum((W0 + c / sqrt(D) * outer(f, v)).T @ (W0 + c / sqrt(D) * outer(f, v)) / N),
    )


def only_as_an_argument():
    h = field("h", N)
    return Model(
        parameters=(a, c),
        equations=[Eq(h, W0 @ v / sqrt(D))],
        observe={"norm": mean(h**2)},
        probe=spectrum(W0 @ W0.T / N + c / N * outer(h, h)),
    )


def fresh_with_a_static_vector():
    X = gaussian("X", N, D, fresh=t)
    h, x = field("h", N, t), field("x", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(a, b, c, T),
        equations=[
            Eq(h(t), X(t) @ v / sqrt(D)),
            Eq(x(t), sqrt(D) / N * X(t).T @ h(t)),
            Eq(M(0), M0),
            Eq(M(t + 1), (1 - b) * M(t) + c / D * outer(x(t), x(t))),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )


def fresh_and_late():
    X = gaussian("X", N, D, fresh=t)
    h, x = field("h", N, t), field("x", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(a, b, c, T),
        equations=[
            Eq(h(t), X(t) @ (v + b * x(t)) / sqrt(D)),
            Eq(x(0), v),
            Eq(x(t + 1), sqrt(D) / N * X(t).T @ h(t)),
            Eq(M(0), M0),
            Eq(M(t + 1), (1 - b) * M(t) + c / D * outer(x(t), x(t))),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )


def square_matrix_both_ways():
    Q = gaussian("Q", D, D)
    x = field("x", D, t)
    M = weights("M", D, D, t)
    return Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), v),
            Eq(x(t + 1), v + b * Q.T @ (Q @ x(t)) / D + b * Q @ x(t) / sqrt(D)),
            Eq(M(0), Q),
            Eq(M(t + 1), M(t) + b / sqrt(D) * outer(x(t), v)),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T) @ M(T).T / D),
    )


CASES = {
    declaration.__name__: declaration
    for declaration in (
        shifted_sum,
        shifted_outer,
        static_vector_in_update,
        decaying_rate,
        normalised_rate,
        normalised_law,
        lagged_argument,
        two_starting_values,
        symmetric_pair_in_a_buffer,
        pulled_to_the_start,
        initial_matrix_with_its_size,
        labels_beside_none,
        static_chain,
        static_nonlinear,
        only_as_an_argument,
        fresh_with_a_static_vector,
        fresh_and_late,
        square_matrix_both_ways,
    )
}
FURTHER = (
    "pulled_to_the_start",
    "fresh_and_late",
    "static_nonlinear",
    "shifted_outer",
    "symmetric_pair_in_a_buffer",
    "lagged_argument",
    "initial_matrix_with_its_size",
    "normalised_rate",
    "decaying_rate",
    "shifted_sum",
)
"""Tried with the long tests only."""
CALMER = {"initial_matrix_with_its_size": {"b": 0.15, "T": 2}}
"""Where fields grow a hundredfold, their means over samples are far from normal."""
QUICK = ("static_chain", "pulled_to_the_start")


@cache
def solver_of(case: str) -> Solver:
    return load_solver(stored_files(CASES[case]()))


@cache
def theory_of(case: str) -> Prediction:
    values = {**{p.name: p.default for p in CASES[case]().parameters}, **CALMER.get(case, {})}
    return solve(solver_of(case), values, samples=40_000)


@cache
def block(case: str, seed: int) -> Block:
    return block_of(case, solver_of(case), theory_of(case), seed)


@pytest.mark.long_cases(*FURTHER)
@pytest.mark.parametrize("case", [pytest.param(c, marks=() if c in QUICK else pytest.mark.slow) for c in CASES])
def test_every_quantity_is_within_the_bound_of_the_suite(case, simulation_seed):
    assert len(theory_of(case).outliers)
    assert not too_far([block(case, simulation_seed)])


@pytest.mark.slow
def test_most_of_them_have_no_common_bias(simulation_seed):
    assert not wrong([block(case, simulation_seed) for case in CASES if case not in FURTHER])


@pytest.mark.long
@pytest.mark.slow
def test_all_of_them_have_no_common_bias_and_see_outliers_off_by_two_percent(simulation_seed):
    blocks = [block(case, simulation_seed) for case in CASES]
    assert not wrong(blocks)
    assert sees_stretch(blocks, 0.02)


@pytest.mark.long
@pytest.mark.slow
@in_float64
def test_full_decay_is_finite_when_vectorised_and_differentiated():
    """(1 - b)^n at b = 1 must not become 0^(-1) in the part of a sum that is masked out."""
    x, y = fields("x y", D, t)
    M = weights("M", D, D, t)
    model = Model(
        parameters=(b, c, T),
        equations=[
            Eq(x(0), v),
            Eq(x(t + 1), y(t)),
            Eq(y(t), M(t) @ x(t)),
            Eq(M(0), M0),
            Eq(M(t + 1), (1 - b) * M(t) + c / D * outer(x(t), x(t))),
        ],
        observe={"norm": mean(x(t) ** 2)},
        probe=spectrum(M(T)),
    )
    forward = load_solver(solver_files(model)).training.forward_pass

    def norm(rate):
        return forward(Point(b=rate, c=1.0, T=3))[1]["norm"]

    assert np.all(np.isfinite(jax.vmap(norm)(np.array([0.5, 1.0]))))
    assert np.all(np.isfinite(jax.jacrev(norm)(1.0)))
