"""Declaration 4 of seed 2026, as drawn by `derive selftest`."""

from sympy import sign, sqrt

from derive import (
    Eq,
    Model,
    axis,
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

nu = parameter("nu", default=1.5, domain=positive)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
c1 = parameter("c1", default=0.25)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T, endpoint=False)
along_along_classes = axis("along_classes", C)
A = gaussian("A", N, D, variance=0.25)
n1 = normal("n1", D, scale=0.5)
n2 = normal("n2", N, scale=0.5, axes=along_along_classes)
x = field("x", N)
y = field("y", D, t, axes=along_along_classes)
W = weights("W", N, D, t)
Wm = weights("Wm", N, D, t)

MODEL = Model(
    parameters=(
        nu,
        T,
        C,
        c1,
    ),
    equations=[
        Eq(W(0), A / sqrt(D)),
        Eq(x, c1 / sqrt(D) * (A @ n1)),
        Eq(y(0), n1),
        Eq(y(t + 1), 0.5 * sqrt(N / D) * (1 + 0.5 * sign(t)) * y(t)),
        Eq(Wm(0), 0),
        Eq(Wm(t + 1), 0.5 * Wm(t) + 0.5 * sqrt(2) / D * (1 + 0.5 * sign(t)) * outer(n2, y(t))),
        Eq(W(t + 1), 0.75 * W(t) + Wm(t + 1)),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(x * n2),
        "o3": mean(y(t) ** 2),
        "o4": mean(y(t) * n1),
        "o5": mean(y(t) * y(t - 5)),
    },
    probe=spectrum(W(T).T @ W(T)),
    responses="stein",
)
