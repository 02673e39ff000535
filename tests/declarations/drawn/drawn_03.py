"""Declaration 3 of seed 2026, as drawn by `derive selftest`."""

from sympy import KroneckerDelta, Rational, exp, sqrt

from derive import (
    Eq,
    Model,
    alignment,
    axis,
    drawn,
    exponential,
    field,
    gaussian,
    mean,
    outer,
    overlap,
    parameter,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

T = parameter("T", default=2, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
c1 = parameter("c1", default=0.25)
c2 = parameter("c2", default=-0.5)
c3 = parameter("c3", default=0.25, doc="a number")
c4 = parameter("c4", default=0.5)
D = sectors("D")
t = training_clock("t", steps=T)
along_along_classes = axis("along_classes", C)
B = gaussian("B", D, D, variance=Rational(4, 9))
n1 = drawn("n1", D, exponential())
x = field("x", D, t, axes=along_along_classes)
y = field("y", D, t, axes=along_along_classes)
u = field("u", D, t, axes=along_along_classes)
W = weights("W", D, D, t)

MODEL = Model(
    parameters=(
        T,
        C,
        c1,
        c2,
        c3,
        c4,
    ),
    equations=[
        Eq(W(0), 0.5 * B),
        Eq(x(t), c1 * exp((-1) * t) * n1 + 0.25 * mean(y(t - 1) * u(t - 2)) * u(t - 2) + c2 * exp((-1) * t) * n1),
        Eq(
            y(t), 0.5 * KroneckerDelta(t, 0) * y(t - 5) + 0.5 * sqrt(2) * exp((-1) * t) * u(t - 1) + c3 * 0.5 * t * x(t)
        ),
        Eq(u(t), c4 * exp((-1) * t) * u(t - 2) + 0.25 * exp((-1) * t) * x(t - 1)),
        Eq(W(t + 1), W(t) + (-0.25) / sqrt(D) * exp((-1) * t) * outer(x(t - 1), x(t - 1) + c2 * x(t)) + 0.1 * 0.5 * B),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": overlap(x(t), y(t)),
        "o3": mean(x(t) * x(t - 5)),
        "o4": mean(y(t) ** 2),
        "o5": mean(u(t) ** 2),
        "o6": mean(u(t) * x(t)),
        "o7": mean(u(t)),
        "a1": alignment(n1),
    },
    probe=spectrum((W(T).T @ W(T)) / D + c3 * ((0.5 * B).T @ (0.5 * B)) / D),
)
