"""Declaration 11 of seed 2026, as drawn by `derive selftest`."""

from sympy import Abs, Heaviside, Rational, sqrt

from derive import (
    Eq,
    Model,
    field,
    gaussian,
    mean,
    normal,
    outer,
    overlap,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)

nu = parameter("nu", default=2.0, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
kappa1 = parameter("kappa1", default=0.5)
c1 = parameter("c1", default=0.25)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
l1 = trait("l1", N, values=[0.25, 0.5], weights=[0.25, 0.75])
l2 = trait("l2", N, values=[1.5])
B = gaussian("B", N, N, variance=0.25)
n2 = normal("n2", N)
x = field("x", N, t)
y = field("y", N, t)
u = field("u", N, t)
W = weights("W", N, N, t)

MODEL = Model(
    parameters=(
        nu,
        T,
        kappa1,
        c1,
    ),
    equations=[
        Eq(W(0), B / sqrt(N)),
        Eq(x(t), 0.5 * (1 + Heaviside(kappa1)) * Abs(t + (-1)) * x(t - 1)),
        Eq(y(0), n2),
        Eq(y(t + 1), kappa1 * Rational(0, 1) ** t * x(t - 1) + 0.25 * y(t)),
        Eq(u(t), c1 * x(t) + 0.75 * Rational(0, 1) ** t * y(t)),
        Eq(W(t + 1), 0.9 * W(t) + 0.5 / N * outer(x(t), u(t)) + 0.1 * B / sqrt(N)),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": overlap(x(t), n2),
        "o3": mean(0.5 + (-0.25) * x(t) ** 2),
        "o4": mean(x(t)),
        "o5": mean(y(t) ** 2),
        "o6": overlap(y(t), u(t - 5)),
        "o7": mean(u(t) ** 2),
        "o8": mean(u(t) * u(t - 5)),
        "o9": (-0.5) * mean(x(t) ** 2) + 1,
        "o10": mean(1 + 0.5 * l1),
        "o11": mean(l2),
        "o12": mean(1 / (1 + l2) * x(t) ** 2),
    },
    probe=spectrum(W(T) @ W(T).T),
)
