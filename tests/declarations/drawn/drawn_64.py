"""Declaration 64 of seed 2026, as drawn by `derive selftest`."""

from sympy import Heaviside, sign, sqrt, tanh

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

nu = parameter("nu", default=1.0, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
c1 = parameter("c1", default=0.25)
kappa2 = parameter("kappa2", default=0.5)
kappa3 = parameter("kappa3", default=1.25)
kappa4 = parameter("kappa4", default=-0.75)
kappa5 = parameter("kappa5", default=0.5)
kappa6 = parameter("kappa6", default=0.5, doc="a number")
kappa7 = parameter("kappa7", default=0.5)
kappa8 = parameter("kappa8", default=0.0, doc="a number")
kappa9 = parameter("kappa9", default=1.25)
kappa10 = parameter("kappa10", default=-0.75)
kappa11 = parameter("kappa11", default=-0.75)
kappa12 = parameter("kappa12", default=1.25)
kappa13 = parameter("kappa13", default=-0.5)
kappa14 = parameter("kappa14", default=-0.5)
kappa15 = parameter("kappa15", default=-0.5, doc="a number")
D, N, P = sectors("D", N=nu, P=1.5)
t = training_clock("t", steps=T)
A = gaussian("A", P, P, variance=2.25)
B = gaussian("B", D, N)
n1 = normal("n1", D)
n2 = normal("n2", N, t)
n4 = normal("n4", N)
m5 = normal("m5", P)
x = field("x", P)
y = field("y", P, t)
u = field("u", N)
v = field("v", P, t)
W = weights("W", D, N, t)
V = weights("V", P, P, t)

MODEL = Model(
    parameters=(
        nu,
        T,
        c1,
        kappa2,
        kappa3,
        kappa4,
        kappa5,
        kappa6,
        kappa7,
        kappa8,
        kappa9,
        kappa10,
        kappa11,
        kappa12,
        kappa13,
        kappa14,
        kappa15,
    ),
    equations=[
        Eq(W(0), B),
        Eq(V(0), 0.5 * A),
        Eq(x, 1),
        Eq(y(0), m5),
        Eq(y(1), m5),
        Eq(y(t + 2), c1 * v(t) + 0.5 * (1 + Heaviside(kappa2)) / sqrt(P) * (V(t).T @ v(t))),
        Eq(u, kappa3 / (1 + kappa4**2)),
        Eq(v(t), 0.5 * sqrt(2) * m5 + kappa5 / (1 + kappa6**2) * y(t)),
        Eq(
            W(t + 1),
            tanh(kappa12) * W(t)
            + kappa7 / (1 + kappa8**2) / sqrt(N) * outer(n1, n2(t))
            + 0.5 * sign(kappa11) / sqrt(N) * mean(n1**2) * outer(n1, n4 + kappa9 / (1 + kappa10**2) * n2(t)),
        ),
        Eq(
            V(t + 1),
            0.9 * V(t)
            + 0.5 * (1 + Heaviside(kappa13)) / sqrt(P) * outer(y(t), y(t))
            + kappa14 / (1 + kappa15**2) / sqrt(P) * outer(m5, y(t - 1)),
        ),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(y(t) ** 2),
        "o3": mean(y(t) * v(t - 1)),
        "o4": mean(u**2),
        "o5": mean(v(t) ** 2),
        "o6": mean(v(t) * m5),
    },
    probe=spectrum((W(T) @ W(T).T) / N),
)
