"""Declaration 24 of seed 2026, as drawn by `derive selftest`."""

from sympy import Max, Min, sqrt, tanh

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
    whole_positive,
)

nu = parameter("nu", default=2.0, domain=positive)
T = parameter("T", default=1, domain=whole_positive, latex="\\hat{q}_{7}")
kappa1 = parameter("kappa1", default=0.0)
kappa2 = parameter("kappa2", default=0.5)
kappa3 = parameter("kappa3", default=-0.75, latex="\\hat{q}_{11}")
kappa4 = parameter("kappa4", default=0.5)
kappa5 = parameter("kappa5", default=-0.75)
c1 = parameter("c1", default=1.0, latex="\\hat{q}_{14}")
D, N, P = sectors("D", N=nu, P=1.5)
t = training_clock("t", steps=T)
A = gaussian("A", P, N, latex="\\hat{q}_{16}")
B = gaussian("B", N, D, variance=kappa1**2)
n1 = normal("n1", D)
n2 = normal("n2", N)
n3 = normal("n3", P, latex="\\hat{q}_{2}")
x = field("x", P, latex="\\hat{q}_{3}")
y = field("y", D, t)
u = field("u", D, t)

MODEL = Model(
    parameters=(
        nu,
        T,
        kappa1,
        kappa2,
        kappa3,
        kappa4,
        kappa5,
        c1,
    ),
    equations=[
        Eq(x, Min(kappa2, 0.25) * n3),
        Eq(y(0), n1),
        Eq(y(t + 1), Max(kappa3, 0.25) * u(t - 1)),
        Eq(
            u(t),
            Max(kappa5, 0.25) / sqrt(N) * (B.T @ (n2 + Max(kappa4, 0.25) * n2))
            + c1 * y(t - 5)
            + 0.25 * y(t) * tanh(y(t)),
        ),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(x * n3),
        "o3": mean(x),
        "o4": mean(y(t) ** 2),
        "o5": mean(y(t) * y(t - 5)),
        "o6": mean(y(t)),
        "o7": mean(u(t) ** 2),
        "o8": mean(tanh(u(t))),
    },
    probe=spectrum(
        (
            (A + 2 * 0.5 * sqrt(P / D) / sqrt(N) * mean(n3**2) * outer(n3, n2)).T
            @ (A + 2 * 0.5 * sqrt(P / D) / sqrt(N) * mean(n3**2) * outer(n3, n2))
        )
        / N
    ),
    responses="pathwise",
)
