"""Declaration 44 of seed 2026, as drawn by `derive selftest`."""

from sympy import Heaviside, KroneckerDelta, Min, sqrt

from derive import (
    Eq,
    Model,
    drawn,
    field,
    goe,
    mean,
    mixture,
    normal,
    normal_law,
    outer,
    overlap,
    parameter,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

T = parameter("T", default=3, domain=whole_positive)
c1 = parameter("c1", default=0.25, doc="a number")
kappa1 = parameter("kappa1", default=-0.5)
D, N = sectors("D", N=1.5)
t = training_clock("t", steps=T, endpoint=False)
B = goe("B", N, variance=0.25)
n2 = drawn("n2", N, mixture([0.25, 0.75], [normal_law(-1, 0.5), normal_law(0.5, 1)]), t)
m4 = normal("m4", N)
x = field("x", N, t)
y = field("y", N, t)
u = field("u", N, t)
W = weights("W", N, N, t)

MODEL = Model(
    parameters=(
        T,
        c1,
        kappa1,
    ),
    equations=[
        Eq(W(0), 0.5 * B),
        Eq(x(t), 0.5 * KroneckerDelta(t, 0) * n2(t) + c1 * 0.5 * t * u(t - 1) + KroneckerDelta(t, 0) * n2(t)),
        Eq(y(0), m4),
        Eq(y(t + 1), c1 * KroneckerDelta(t, 0) * m4),
        Eq(u(0), m4),
        Eq(u(t + 1), (-0.25) * KroneckerDelta(t, 0) * y(t) + (-0.25) * sqrt(3) * y(t - 1) + 0.5 * Min(t, 1) * x(t)),
        Eq(W(t + 1), W(t) + 0.5 * (1 + Heaviside(kappa1)) / N * outer(y(t - 1), y(t - 1))),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(y(t) ** 2),
        "o3": overlap(y(t), n2(t)),
        "o4": mean(u(t) ** 2),
        "o5": mean(u(t) * x(t)),
        "o6": mean(u(t) * u(t - 1)),
        "o7": (-0.5) * mean(x(t) ** 2) + 1,
    },
    probe=spectrum(W(T)),
)
