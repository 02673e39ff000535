"""Declaration 18 of seed 2026, as drawn by `derive selftest`."""

from sympy import KroneckerDelta, Max, Piecewise, Rational, sqrt

from derive import (
    Eq,
    Model,
    drawn,
    field,
    gaussian,
    goe,
    mean,
    mixture,
    normal_law,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)

T = parameter("T", default=2, domain=whole_positive)
kappa1 = parameter("kappa1", default=1.25)
kappa2 = parameter("kappa2", default=1.25)
kappa3 = parameter("kappa3", default=0.5)
c1 = parameter("c1", default=-0.5)
D, N = sectors("D", N=0.5)
t = training_clock("t", steps=T)
l1 = trait("l1", D, values=[0.5, 1.5, 0.5], weights=[0.25, 0.25, 0.5])
A = goe("A", D, variance=2.25)
B = gaussian("B", N, N, variance=kappa1**2)
n1 = drawn("n1", D, mixture([0.25, 0.75], [normal_law(-1, 0.5), normal_law(0.5, 1)]))
m3 = drawn("m3", N, mixture([0.25, 0.75], [normal_law(-1, 0.5), normal_law(0.5, 1)]))
x = field("x", D, t)
y = field("y", D, t)
u = field("u", N, t)
W = weights("W", D, D, t)
V = weights("V", N, N, t)
Wm = weights("Wm", D, D, t)

MODEL = Model(
    parameters=(
        T,
        kappa1,
        kappa2,
        kappa3,
        c1,
    ),
    equations=[
        Eq(W(0), A),
        Eq(V(0), B),
        Eq(x(0), l1 * n1),
        Eq(
            x(t + 1),
            0.5 * D / N * Piecewise((1, t < 1), (0.5, True)) * y(t)
            + (-0.5) * ((W(t) + Max(kappa2, 0.25) * W(t).T) @ n1)
            + 0.5 * Rational(9, 10) ** t * n1,
        ),
        Eq(y(t), 0.5 * sqrt(D / N) / sqrt(1 + t) * n1),
        Eq(u(0), m3),
        Eq(
            u(t + 1),
            Max(kappa3, 0.25) * KroneckerDelta(t, 0) * m3 + c1 * Piecewise((1, t < 1), (0.5, True)) * u(t) + 0.5,
        ),
        Eq(Wm(0), 0),
        Eq(Wm(t + 1), 0.5 * Wm(t) + 0.5 * D / N / D * mean(y(t) ** 2) * outer(n1, n1)),
        Eq(W(t + 1), 0.9 * W(t) + Wm(t + 1)),
        Eq(V(t + 1), V(t) + 0.25 / sqrt(N) * mean(u(t) ** 2) * outer(u(t - 1) + (-0.25) * sqrt(3) * u(t - 2), u(t))),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(y(t) ** 2),
        "o3": mean(u(t) ** 2),
        "o4": mean(sqrt(l1)),
        "o5": mean(l1 * x(t) ** 2),
        "o6": mean((1 + 0.5 * l1) * y(t) ** 2),
    },
    probe={
        "0": spectrum(W(T) @ W(T).T),
        "1": spectrum((V(T) @ V(T).T) / N),
    },
)
