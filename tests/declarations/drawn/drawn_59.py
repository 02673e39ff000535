"""Declaration 59 of seed 2026, as drawn by `derive selftest`."""

import numpy

from sympy import exp, sqrt

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    field,
    gaussian,
    mean,
    nonnegative,
    normal,
    outer,
    overlap,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    total,
    training_clock,
    trait,
    weights,
    whole_positive,
)


def arrays(values):
    return {
        "b1": numpy.fromfunction(lambda *n: numpy.round(numpy.cos(1 + 2 * n[0]), 3), (values["P1"],)),
    }


T = parameter("T", default=1, domain=whole_positive)
kappa1 = parameter("kappa1", default=-0.75)
beta1 = parameter("beta1", default=1.5, domain=positive)
lam1 = parameter("lam1", default=0.5, domain=nonnegative)
lam2 = parameter("lam2", default=0.5, domain=nonnegative)
lam3 = parameter("lam3", default=0.0, domain=nonnegative)
lam4 = parameter("lam4", default=1.0, domain=nonnegative)
kappa2 = parameter("kappa2", default=-0.75)
kappa3 = parameter("kappa3", default=-0.75)
lam5 = parameter("lam5", default=0.5, domain=nonnegative)
lam6 = parameter("lam6", default=1.0, domain=nonnegative)
c1 = parameter("c1", default=-0.5)
c2 = parameter("c2", default=0.75)
P1 = parameter("P1", default=2, domain=whole_positive)
lam7 = parameter("lam7", default=1.0, domain=nonnegative)
D = sectors("D")
t = training_clock("t", steps=T, endpoint=False)
along_along2_P1 = axis("along2_P1", P1)
b1 = data("b1", along_along2_P1)
l1 = trait("l1", D, values=[1.5, 1, 1], weights=[0.25, 0.25, 0.5])
A = gaussian("A", D, D, variance=beta1)
B = gaussian("B", D, D)
n1 = normal("n1", D)
k1 = normal("k1", D, axes=along_along2_P1)
x = field("x", D)
y = field("y", D, t)
u = field("u", D, t)
f = field("f", D, t, axes=along_along2_P1)
W = weights("W", D, D, t)
Wm = weights("Wm", D, D, t)

MODEL = Model(
    parameters=(
        T,
        kappa1,
        beta1,
        lam1,
        lam2,
        lam3,
        lam4,
        kappa2,
        kappa3,
        lam5,
        lam6,
        c1,
        c2,
        P1,
        lam7,
    ),
    equations=[
        Eq(W(0), A),
        Eq(x, kappa1 / sqrt(D) * (A.T @ n1) + exp((-1) * lam1)),
        Eq(
            y(t),
            0.75 / sqrt(D) * (B.T @ (exp((-1) * lam2) / sqrt(D) * (B.T @ x)))
            + exp((-1) * lam3) / sqrt(D) * (B @ x)
            + (-0.25) / sqrt(D) * (W(t) @ x)
            + 1 / (1 + l1) * 0.25 * total(mean(f(t - 1) ** 2) * f(t - 1)),
        ),
        Eq(
            u(t),
            l1 * exp((-1) * lam4) / sqrt(D) * (B.T @ n1)
            + kappa2 / (1 + kappa3**2) * past_sum(lambda s: 0.25 * mean(y(s) * y(s)) * y(s), t),
        ),
        Eq(Wm(0), 0),
        Eq(
            Wm(t + 1),
            0.5 * Wm(t)
            + exp((-1) * lam6) / sqrt(D) * outer(l1 * y(t), l1 * (u(t) + exp((-1) * lam5) * y(t - 2)))
            + c2 / sqrt(D) * outer(l1 * u(t), l1 * (y(t) + c1 * u(t))),
        ),
        Eq(W(t + 1), W(t) + Wm(t + 1) + 0.25 / sqrt(D) * outer(sqrt(l1) * f(t), sqrt(l1) * k1)),
        Eq(f(t), exp((-1) * lam7) * f(t - 1) + b1 * y(t) + 0.25 * mean(f(t - 1) * y(t)) * y(t)),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(y(t) ** 2),
        "o3": overlap(y(t), x),
        "o4": mean(u(t) ** 2),
        "o5": mean(u(t) * x),
        "o6": total(b1 * mean(f(t) * f(t))),
        "o7": each(mean(f(t) * f(t))),
        "o8": mean(l1),
        "o9": mean(sqrt(l1) * x**2),
        "o10": mean(l1 * y(t) ** 2),
        "o11": mean(1 / (1 + l1) * u(t) ** 2),
    },
    probe=spectrum((W(T) @ W(T).T) / D),
    arrays=arrays,
)
