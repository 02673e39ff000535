"""Declaration 69 of seed 2026, as drawn by `derive selftest`."""

from sympy import sqrt

from derive import (
    Domain,
    Eq,
    Model,
    field,
    gaussian,
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

T = parameter("T", default=3, domain=whole_positive)
c1 = parameter("c1", default=1.0, doc="a number")
beta1 = parameter("beta1", default=1.5, domain=positive)
whole1 = parameter(
    "whole1", default=2, domain=Domain(0, 2, low_included=True, high_included=True, whole=True), doc="a number"
)
c2 = parameter("c2", default=1.0)
D = sectors("D")
t = training_clock("t", steps=T)
B = gaussian("B", D, D, variance=2.25)
n1 = normal("n1", D)
x = field("x", D, t)
y = field("y", D, t)
u = field("u", D, t)
W = weights("W", D, D, t)

MODEL = Model(
    parameters=(
        T,
        c1,
        beta1,
        whole1,
        c2,
    ),
    equations=[
        Eq(W(0), B),
        Eq(x(0), n1),
        Eq(x(1), 0.75 * n1 + 1),
        Eq(
            x(t + 2),
            0.75 * past_sum(lambda s: 0.25 * mean(u(s) * y(t)) * u(s), t)
            + beta1**whole1 * past_sum(lambda s: x(s) + c1 * x(s - 1), t),
        ),
        Eq(y(0), n1),
        Eq(y(1), n1),
        Eq(y(t + 2), 0.5 * past_sum(lambda s: y(s), t)),
        Eq(u(0), n1),
        Eq(u(t + 1), past_sum(lambda s: u(s - 1), t) + c2 * past_sum(lambda s: u(s), t)),
        Eq(W(t + 1), (-0.5) * W(t) + (-0.25) / sqrt(D) * outer(y(t - 1), y(t))),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * n1),
        "o3": mean(y(t) ** 2),
        "o4": mean(y(t) * n1),
        "o5": mean(y(t) * y(t - 5)),
        "o6": mean(0.5 + (-0.25) * y(t) ** 2),
        "o7": mean(u(t) ** 2),
    },
    probe=spectrum((W(T).T @ W(T)) / D),
    doc="A declaration, as written by the laws.",
    notation={"z": "w"},
)
