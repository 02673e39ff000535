"""The step that training applies over and over: which noises are drawn afresh."""

from __future__ import annotations

from sympy import sqrt

from derive import (
    Eq,
    Model,
    field,
    fields,
    gaussian,
    goe,
    mean,
    normal,
    parameter,
    sectors,
    training_clock,
    whole_positive,
)
from derive.pipeline import derive_model

D = sectors("D")
A = goe("A", D)
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)
v = normal("v", D)


def test_noise_of_each_step_stirs_the_fields_whose_equations_hold_it():
    noise = normal("noise", D, t)
    equations = [Eq(x(0), v), Eq(x(t + 1), x(t) / 2 + noise(t)), Eq(y(0), v), Eq(y(t + 1), A @ y(t) / 4 + x(t))]
    recursion = derive_model(Model((T,), equations, {"q": mean(y(t) ** 2)})).recursion
    assert [str(one) for one in recursion.stirred] == ["x"]


def test_noise_added_to_noise_that_multiplies_stirs_too():
    """Also a product of noises or a function of one; what is drawn once does not."""
    noise, other = normal("noise", D, t), normal("other", D, t)
    equations = [
        Eq(x(0), v),
        Eq(x(t + 1), x(t) * noise(t) / 2 + noise(t) * other(t)),
        Eq(y(0), v),
        Eq(y(t + 1), y(t) * other(t) / 2 + v),
    ]
    recursion = derive_model(Model((T,), equations, {"q": mean(y(t) ** 2)})).recursion
    assert [str(one) for one in recursion.stirred] == ["x"]


def test_a_memory_of_what_is_drawn_once_drives_and_is_no_part_of_the_step():
    """<h w> from the response of x to W^T w drives h, but a perturbation of h neither sees nor changes w."""
    W, w, h = gaussian("W", D, D), normal("w", D), field("h", D, t)
    equations = [
        Eq(x(0), v),
        Eq(h(t), W @ x(t) / sqrt(D)),
        Eq(x(t + 1), x(t) / 2 + W.T @ h(t) / sqrt(D) / 5 + W.T @ w / sqrt(D)),
    ]
    derivation = derive_model(Model((T,), equations, {"q": mean(x(t) ** 2)}))
    assert {m.on for m in derivation.saddle.memories} >= {w, h}
    memories = {(m.target, m.on) for m in derivation.recursion.memories}
    assert (h, h) in memories and all({a, b} <= set(derivation.recursion.fields) for a, b in memories)
