"""Declaration 16 of seed 2026, as drawn by `derive selftest`."""

from sympy import KroneckerDelta, sin, sqrt

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
    real,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

alpha = parameter("alpha", default=2.0, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
c1 = parameter("c1", default=0.25, domain=real)
c2 = parameter("c2", default=-0.5, domain=real)
kappa1 = parameter("kappa1", default=0.5, domain=real)
kappa2 = parameter("kappa2", default=-0.5, domain=real)
c3 = parameter("c3", default=0.5, domain=real)
D, N, P = sectors("D", N=0.5, P=alpha)
t = training_clock("t", steps=T)
B = gaussian("B", D, P)
n1 = normal("n1", D)
n2 = normal("n2", N)
n3 = normal("n3", P)
x = field("x", P, t)
y = field("y", N)
W = weights("W", D, P, t)
Wm = weights("Wm", D, P, t)

MODEL = Model(
    parameters=(
        alpha,
        T,
        c1,
        c2,
        kappa1,
        kappa2,
        c3,
    ),
    equations=[
        Eq(W(0), 0.5 * B),
        Eq(x(t), c1 * sin(0.5 * n3 + x(t - 5))),
        Eq(y, c2 * sin(n2) + kappa1 / (1 + kappa2**2) * sin(n2 + 0.25)),
        Eq(Wm(0), 0),
        Eq(Wm(t + 1), 0.5 * Wm(t) + c3 / sqrt(P) * KroneckerDelta(t, 0) * outer(n1, sin(x(t - 1)))),
        Eq(W(t + 1), W(t) + Wm(t + 1)),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": overlap(x(t), n3),
        "o3": mean(y**2),
        "o4": overlap(y, n2),
        "o5": mean(0.5 + (-0.25) * y**2),
    },
    probe=spectrum((W(T) @ W(T).T) / P),
)
