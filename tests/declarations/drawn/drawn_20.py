"""Declaration 20 of seed 2026, as drawn by `derive selftest`."""

import numpy

from sympy import Piecewise, sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    field,
    gaussian,
    mean,
    normal,
    outer,
    overlap,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)


def arrays(values):
    return {
        "b2": numpy.fromfunction(
            lambda *n: numpy.round(numpy.cos(2 + 2 * n[0] + 3 * n[1]), 3),
            (
                values["T"] + 1,
                values["P1"],
            ),
        ),
        "b3": numpy.fromfunction(
            lambda *n: 0.5 + 0.5 * (n[-1] == n[-2]),
            (
                values["P1"],
                values["P1"],
            ),
        ),
    }


nu = parameter("nu", default=2.0, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
c1 = parameter("c1", default=-0.25, doc="a number")
kappa2 = parameter("kappa2", default=-0.75)
kappa3 = parameter("kappa3", default=-0.75)
kappa4 = parameter("kappa4", default=0.5)
kappa5 = parameter("kappa5", default=0.0)
c2 = parameter("c2", default=-0.25)
kappa6 = parameter("kappa6", default=-0.75)
kappa7 = parameter("kappa7", default=0.5)
c3 = parameter("c3", default=0.25, doc="a number")
P1 = parameter("P1", default=2, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
along_along2_P1 = axis("along2_P1", P1)
b2 = data("b2", along_along2_P1, clock=t)
b3 = data("b3", along_along2_P1, along_along2_P1)
A = gaussian("A", D, D)
n1 = normal("n1", D)
n2 = normal("n2", N)
k1 = normal("k1", D, axes=along_along2_P1)
x = field("x", D, t)
y = field("y", N, t)
u = field("u", N, t)
f = field("f", D, t, axes=along_along2_P1)
W = weights("W", D, D, t)

MODEL = Model(
    parameters=(
        nu,
        T,
        c1,
        kappa2,
        kappa3,
        kappa4,
        kappa5,
        c2,
        kappa6,
        kappa7,
        c3,
        P1,
    ),
    equations=[
        Eq(W(0), A),
        Eq(
            x(t),
            c1 * sqrt(1 + x(t - 1) ** 2)
            + 0.5 * t * n1
            + 0.5 * sqrt(1 + (x(t - 2) + Piecewise((kappa2, kappa2 > 0), (0.25, True))) ** 2),
        ),
        Eq(y(0), n2),
        Eq(y(1), n2),
        Eq(y(t + 2), kappa3 / (1 + kappa4**2) * sqrt(1 + y(t) ** 2) + 0.25 * sqrt(1 + (kappa4 * n2 + y(t) + c1) ** 2)),
        Eq(u(0), n2),
        Eq(u(1), kappa4 * n2 + 1),
        Eq(
            u(t + 2),
            c2 * sqrt(1 + (Piecewise((kappa5, kappa5 > 0), (0.25, True)) * u(t) + u(t)) ** 2)
            + 0.5 * D / N * sqrt(1 + (kappa6 / (1 + kappa7**2) * u(t) + u(t)) ** 2),
        ),
        Eq(
            W(t + 1),
            W(t)
            + c3 / sqrt(D) * mean(x(t) ** 2) * outer(sqrt(1 + x(t - 2) ** 2), x(t - 2))
            + kappa2 / sqrt(D) * 0.5 * t * outer(x(t - 1), x(t - 1)),
        ),
        Eq(f(t), tanh(b2(t - 1) * k1) + 0.5 * (b3 @ k1)),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * n1),
        "o3": mean(tanh(x(t))),
        "o4": mean(y(t) ** 2),
        "o5": overlap(y(t), u(t - 5)),
        "o6": mean(u(t) ** 2),
        "o7": mean(u(t) * n2),
        "o8": mean(u(t) * u(t - 2)),
        "o9": (-0.5) * mean(x(t) ** 2) + 1,
        "o10": mean(f(t) * k1),
        "o11": each(mean(f(t) * k1)),
    },
    probe=spectrum((W(T) @ W(T).T) / D),
    arrays=arrays,
)
