"""Declaration 32 of seed 2026, as drawn by `derive selftest`."""

from sympy import Abs, Rational, sign, sqrt

from derive import (
    Eq,
    Model,
    axis,
    field,
    gaussian,
    mean,
    normal,
    outer,
    overlap,
    parameter,
    sectors,
    spectrum,
    training_clock,
    whole_positive,
)

T = parameter("T", default=1, domain=whole_positive)
C = parameter("C", default=3, domain=whole_positive)
c1 = parameter("c1", default=0.25)
c2 = parameter("c2", default=0.25)
kappa1 = parameter("kappa1", default=-0.5)
c3 = parameter("c3", default=1.0)
D, N = sectors("D", N=0.5)
t = training_clock("t", steps=T)
along_along_classes = axis("along_classes", C)
A = gaussian("A", D, N, variance=Rational(4, 9))
n1 = normal("n1", D, t, axes=along_along_classes)
n2 = normal("n2", N)
m3 = normal("m3", D)
x = field("x", D, t, axes=along_along_classes)
y = field("y", D, t, axes=along_along_classes)
u = field("u", D, t, axes=along_along_classes)

MODEL = Model(
    parameters=(
        T,
        C,
        c1,
        c2,
        kappa1,
        c3,
    ),
    equations=[
        Eq(x(t), 0.5 * N / D * Abs(c1 * y(t - 2) + n1(t))),
        Eq(y(0), m3),
        Eq(y(t + 1), 0.25 * n1(t) ** 2 + c2 * Abs((-0.25) * n1(t) + x(t))),
        Eq(u(0), m3),
        Eq(u(t + 1), c3 * Abs(u(t) + 0.5 * sign(kappa1))),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * y(t)),
        "o3": mean(0.5 + (-0.25) * x(t) ** 2),
        "o4": mean(x(t)),
        "o5": mean(y(t) ** 2),
        "o6": mean(y(t) * y(t - 1)),
        "o7": mean(u(t) ** 2),
        "o8": overlap(u(t), y(t)),
        "o9": mean(u(t) * u(t - 1)),
        "o10": mean(0.5 + (-0.25) * u(t) ** 2),
    },
    probe=spectrum(((A + 4 * c2 / sqrt(N) * outer(m3, n2)).T @ (A + 4 * c2 / sqrt(N) * outer(m3, n2))) / N),
)
