"""Declaration 9 of seed 2026, as drawn by `derive selftest`."""

from sympy import Abs, Piecewise, sign, sqrt

from derive import (
    Eq,
    Model,
    field,
    gaussian,
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

nu = parameter("nu", default=0.5, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
kappa1 = parameter("kappa1", default=-0.75)
c1 = parameter("c1", default=0.75)
kappa2 = parameter("kappa2", default=-0.75, doc="a number", latex="\\hat{q}_{9}")
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T, latex="\\hat{q}_{12}")
A = gaussian("A", D, N, variance=0.25)
n1 = normal("n1", D, scale=0.5)
n2 = normal("n2", N, t, latex="\\hat{q}_{1}")
x = field("x", N, t)
y = field("y", N, t)
u = field("u", D)
W = weights("W", D, N, t)

MODEL = Model(
    parameters=(
        nu,
        T,
        kappa1,
        c1,
        kappa2,
    ),
    equations=[
        Eq(W(0), A),
        Eq(
            x(t),
            Abs(kappa1) * Piecewise((1, t < 1), (0.5, True)) * y(t - 5)
            + Piecewise((1, t < 1), (0.5, True)) * x(t - 5)
            + 0.25 * Piecewise((1, t < 1), (0.5, True)) * y(t - 1),
        ),
        Eq(y(t), c1 * Piecewise((1, t < 1), (0.5, True)) * y(t - 2) + Piecewise((1, t < 1), (0.5, True)) * n2(t)),
        Eq(u, 0.75 * n1 + 0.5 * sign(kappa2) * n1),
        Eq(W(t + 1), W(t) + c1 / sqrt(N) * Piecewise((1, t < 1), (0.5, True)) * outer(u, y(t - 2) + kappa1 * x(t))),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * x(t - 1)),
        "o3": mean(y(t) ** 2),
        "o4": mean(u**2),
    },
    probe=spectrum((W(T) @ W(T).T) / N),
)
