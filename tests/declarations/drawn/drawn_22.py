"""Declaration 22 of seed 2026, as drawn by `derive selftest`."""

from sympy import sqrt

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
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)

T = parameter("T", default=1, domain=whole_positive)
c1 = parameter("c1", default=0.75)
c2 = parameter("c2", default=-0.5)
c3 = parameter("c3", default=0.5, doc="a number")
D, N = sectors("D", N=0.5)
t = training_clock("t", steps=T, endpoint=False)
l1 = trait("l1", D, values=[0.25, 1.5], weights=[0.25, 0.75])
A = goe("A", D)
B = gaussian("B", N, N)
n1 = normal("n1", D)
x = field("x", N, t)
y = field("y", D, t)
W = weights("W", N, N, t)

MODEL = Model(
    parameters=(
        T,
        c1,
        c2,
        c3,
    ),
    equations=[
        Eq(W(0), 0.5 * B),
        Eq(x(t), (-0.5) * x(t - 2) + c2 / sqrt(N) * (W(t) @ (x(t - 1) + c1 * x(t - 1)))),
        Eq(y(t), l1**2 * 0.25 * (A @ n1)),
        Eq(W(t + 1), W(t) + c3 / sqrt(N) * outer(x(t - 1), x(t - 1))),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * x(t - 2)),
        "o3": mean(0.5 + (-0.25) * x(t) ** 2),
        "o4": mean(y(t) ** 2),
        "o5": (-0.5) * mean(x(t) ** 2) + 1,
        "o6": mean(l1),
        "o7": mean(l1**2 * y(t) ** 2),
    },
    probe=spectrum((W(T).T @ W(T)) / N),
)
