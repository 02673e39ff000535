"""Declaration 66 of seed 2026, as drawn by `derive selftest`."""

from sympy import Heaviside, Min, Piecewise, exp, sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    field,
    gaussian,
    mean,
    normal,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

alpha = parameter("alpha", default=0.5, domain=positive)
T = parameter("T", default=3, domain=whole_positive)
kappa1 = parameter("kappa1", default=-0.75)
kappa2 = parameter("kappa2", default=-0.5)
kappa3 = parameter("kappa3", default=1.25)
kappa4 = parameter("kappa4", default=1.25, doc="a number")
kappa6 = parameter("kappa6", default=0.5)
kappa7 = parameter("kappa7", default=0.0)
kappa8 = parameter("kappa8", default=1.25)
D, N, P = sectors("D", N=2, P=alpha)
t = training_clock("t", steps=T)
along_along_classes = axis("along_classes", 2)
B = gaussian("B", D, N, variance=kappa1**2)
n1 = normal("n1", D, t, axes=along_along_classes)
n3 = normal("n3", P, t, scale=0.5, axes=along_along_classes)
x = field("x", P, t, axes=along_along_classes)
y = field("y", P, t, axes=along_along_classes)
u = field("u", D, t, axes=along_along_classes)
W = weights("W", D, N, t)

MODEL = Model(
    parameters=(
        alpha,
        T,
        kappa1,
        kappa2,
        kappa3,
        kappa4,
        kappa6,
        kappa7,
        kappa8,
    ),
    equations=[
        Eq(W(0), B / sqrt(N)),
        Eq(x(t), kappa1),
        Eq(
            y(t),
            tanh(kappa4) * Min(1, tanh(kappa2) * x(t - 2) + n3(t) + Piecewise((kappa3, kappa3 > 0), (0.25, True)))
            + 0.25 * x(t) ** 2,
        ),
        Eq(
            u(t),
            0.5 * (1 + Heaviside(kappa6)) * exp((-1) * t) * n1(t)
            + tanh(kappa7) * Min(1, n1(t))
            + tanh(kappa8) * Min(1, n1(t)),
        ),
        Eq(W(t + 1), W(t)),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(y(t) ** 2),
        "o3": mean(0.5 + (-0.25) * y(t) ** 2),
        "o4": mean(u(t) ** 2),
        "o5": mean(u(t) * n1(t)),
        "o6": mean(u(t) * u(t - 1)),
    },
    probe=spectrum(W(T) @ W(T).T),
)
