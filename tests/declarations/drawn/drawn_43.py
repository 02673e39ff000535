"""Declaration 43 of seed 2026, as drawn by `derive selftest`."""

from sympy import Min, Rational, sqrt

from derive import (
    Eq,
    Model,
    alignment,
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

T = parameter("T", default=2, domain=whole_positive)
kappa1 = parameter("kappa1", default=-0.75)
kappa2 = parameter("kappa2", default=0.0)
kappa3 = parameter("kappa3", default=0.0)
kappa4 = parameter("kappa4", default=-0.5, doc="a number")
kappa5 = parameter("kappa5", default=-0.5, doc="a number")
kappa6 = parameter("kappa6", default=-0.5, doc="a number")
kappa7 = parameter("kappa7", default=1.25)
kappa8 = parameter("kappa8", default=-0.75)
kappa9 = parameter("kappa9", default=0.0)
kappa10 = parameter("kappa10", default=-0.75)
beta1 = parameter("beta1", default=0.25, domain=positive)
D, N, P = sectors("D", N=1.5, P=1.5)
t = training_clock("t", steps=T)
A = gaussian("A", N, N, variance=Rational(4, 9))
n1 = normal("n1", D, scale=0.5)
n2 = normal("n2", N, t)
n3 = normal("n3", P)
x = field("x", P, t)
y = field("y", D, t)
u = field("u", D, t)
v = field("v", P, t)
W = weights("W", N, N, t)

MODEL = Model(
    parameters=(
        T,
        kappa1,
        kappa2,
        kappa3,
        kappa4,
        kappa5,
        kappa6,
        kappa7,
        kappa8,
        kappa9,
        kappa10,
        beta1,
    ),
    equations=[
        Eq(W(0), 0.5 * A),
        Eq(x(t), Min(kappa1, 0.25) * x(t - 1) + Min(kappa2, 0.25) * n3),
        Eq(y(t), kappa3 / (1 + kappa4**2) * past_sum(lambda s: y(s), t) + 0.5 * D / P * past_sum(lambda s: y(s), t)),
        Eq(u(0), Min(kappa5, 0.25) * n1 + 0.5),
        Eq(u(t + 1), 0.5 / mean(1 + y(t) ** 2) * u(t) + Min(kappa6, 0.25) * y(t - 2)),
        Eq(
            v(t),
            Min(kappa7, 0.25) * Rational(9, 10) ** t * x(t)
            + Min(kappa8, 0.25) * past_sum(lambda s: 0.25 * mean(x(s) * x(t - 1)) * x(s - 1), t)
            + Min(kappa9, 0.25) * x(t),
        ),
        Eq(W(t + 1), W(t) + Min(kappa10, 0.25) / sqrt(N) * beta1**t * outer(n2(t), n2(t))),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * n3),
        "o3": mean(y(t) ** 2),
        "o4": mean(y(t) * y(t - 5)),
        "o5": mean(u(t) ** 2),
        "o6": mean(u(t) * y(t - 1)),
        "o7": mean(u(t) * u(t - 1)),
        "o8": mean(v(t) ** 2),
        "o9": mean(v(t) * n3),
        "a1": alignment(n2(t)),
    },
    probe=spectrum((W(T) @ W(T).T) / N),
    doc="A declaration, as written by the laws.",
    notation={"z": "w"},
)
