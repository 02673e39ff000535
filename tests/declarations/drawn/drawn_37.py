"""Declaration 37 of seed 2026, as drawn by `derive selftest`."""

from sympy import Abs, Heaviside, erf, log, sign, sqrt, tanh

from derive import (
    Eq,
    Model,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    overlap,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

nu = parameter("nu", default=0.5, domain=positive)
alpha = parameter("alpha", default=0.5, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
c1 = parameter("c1", default=0.5)
c2 = parameter("c2", default=0.25, doc="a number")
kappa2 = parameter("kappa2", default=-0.5)
kappa3 = parameter("kappa3", default=-0.5)
kappa4 = parameter("kappa4", default=-0.5)
kappa5 = parameter("kappa5", default=0.5)
kappa7 = parameter("kappa7", default=0.5)
kappa8 = parameter("kappa8", default=0.5)
D, N, P = sectors("D", N=nu, P=alpha)
t = training_clock("t", steps=T)
A = gaussian("A", D, N, variance=0.25)
B = goe("B", N)
n1 = normal("n1", D, t)
n2 = normal("n2", N)
m4 = normal("m4", D)
x = field("x", D, t)
y = field("y", N, t)
u = field("u", N, t)
W = weights("W", D, N, t)

MODEL = Model(
    parameters=(
        nu,
        alpha,
        T,
        c1,
        c2,
        kappa2,
        kappa3,
        kappa4,
        kappa5,
        kappa7,
        kappa8,
    ),
    equations=[
        Eq(W(0), 0.5 * A),
        Eq(x(0), m4),
        Eq(x(t + 1), 0.5 * (1 + Heaviside(kappa2)) * erf(c1 * n1(t) + x(t - 1) + c2) + 0.5),
        Eq(y(0), n2),
        Eq(
            y(t + 1),
            0.5 * (1 + Heaviside(kappa3)) * past_sum(lambda s: 0.25 * mean(u(s) * y(t)) * u(s), t)
            + 0.5 * (1 + Heaviside(kappa4)) * (B @ u(t)),
        ),
        Eq(u(0), n2),
        Eq(u(t + 1), 0.5 * (1 + Heaviside(kappa5)) / sqrt(D) * (A.T @ x(t - 1)) + 0.25 * u(t - 1) * tanh(u(t))),
        Eq(
            W(t + 1),
            W(t)
            + 0.5 * P / D / sqrt(N) * outer(x(t), log(1 + y(t) ** 2))
            + 0.5 * (1 + Heaviside(kappa7)) / sqrt(N) * Abs(t + (-1)) * outer(n1(t), sign(n2)),
        ),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": overlap(x(t), n1(t)),
        "o3": mean(y(t) ** 2),
        "o4": mean(0.5 + (-0.25) * y(t) ** 2),
        "o5": mean(y(t)),
        "o6": mean(u(t) ** 2),
        "o7": mean(u(t) * y(t - 5)),
        "o8": mean(0.5 + (-0.25) * u(t) ** 2),
    },
    probe=spectrum(
        (W(T).T @ W(T)) / N + 0.5 * (1 + Heaviside(kappa8)) / (sqrt(N) * sqrt(N)) * ((W(T).T @ A) + (A.T @ W(T)))
    ),
)
