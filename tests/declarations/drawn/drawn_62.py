"""Declaration 62 of seed 2026, as drawn by `derive selftest`."""

from sympy import sqrt

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
    trait,
    weights,
    whole_positive,
)

nu = parameter("nu", default=2.0, domain=positive)
T = parameter("T", default=1, domain=whole_positive)
kappa1 = parameter("kappa1", default=-0.75)
c1 = parameter("c1", default=-0.5)
kappa2 = parameter("kappa2", default=0.5)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
l1 = trait("l1", N, values=[1], weights=[1])
E = gaussian("E", D, N, variance=0.25)
n1 = normal("n1", D, t)
n2 = normal("n2", N, t)
m3 = normal("m3", N)
x = field("x", N)
y = field("y", D, t)
u = field("u", N, t)
v = field("v", N, t)
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
        Eq(W(0), E),
        Eq(x, m3),
        Eq(y(t), 1),
        Eq(u(t), l1 * c1 * x + 0.5 * x),
        Eq(v(t), sqrt(l1) * kappa1 * v(t - 5)),
        Eq(W(t + 1), W(t) + sqrt(kappa2**2) / sqrt(N) * outer(n1(t), u(t - 2) + c1 * n2(t)) + 0.1 * E),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(y(t) ** 2),
        "o3": mean(y(t) * n1(t)),
        "o4": mean(u(t) ** 2),
        "o5": mean(u(t) * n2(t)),
        "o6": mean(v(t) ** 2),
        "o7": mean(v(t) * m3),
        "o8": mean(l1),
        "o9": mean(l1**2 * u(t) ** 2),
    },
    probe=spectrum((W(T).T @ W(T)) / N),
)
