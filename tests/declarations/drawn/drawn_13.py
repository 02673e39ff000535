"""Declaration 13 of seed 2026, as drawn by `derive selftest`."""

import numpy

from sympy import Piecewise, Rational, exp, sqrt

from derive import (
    Eq,
    Model,
    axis,
    data,
    drawn,
    each,
    entries,
    exponential,
    field,
    gaussian,
    mean,
    nonnegative,
    parameter,
    relabel,
    sectors,
    total,
    training_clock,
    whole_positive,
)


def arrays(values):
    return {
        "b3": numpy.fromfunction(
            lambda *n: numpy.round(numpy.cos(3 + 2 * n[0] + 3 * n[1]), 3),
            (
                values["P1"],
                values["K1"],
            ),
        ),
    }


T = parameter("T", default=2, domain=whole_positive)
c1 = parameter("c1", default=0.25, doc="a number")
c2 = parameter("c2", default=0.75, doc="a number")
lam1 = parameter("lam1", default=0.5, domain=nonnegative)
P1 = parameter("P1", default=2, domain=whole_positive)
K1 = parameter("K1", default=3, domain=whole_positive)
D = sectors("D")
t = training_clock("t", steps=T)
along_along2_P1 = axis("along2_P1", P1)
along_along3_K1 = axis("along3_K1", K1)
along_alsoalong2_P1 = axis("alsoalong2_P1", P1)
b3 = data("b3", along_along2_P1, along_along3_K1)
A = gaussian("A", D, D, variance=Rational(4, 9), fresh=t)
n1 = drawn("n1", D, exponential())
n2 = drawn("n2", D, exponential())
k1 = drawn("k1", D, exponential(), axes=along_along2_P1)
k2 = drawn("k2", D, exponential(), axes=along_along3_K1)
x = field("x", D, t)
y = field("y", D, t)
f = field("f", D, t, axes=along_along2_P1)

MODEL = Model(
    parameters=(
        T,
        c1,
        c2,
        lam1,
        P1,
        K1,
    ),
    equations=[
        Eq(x(t), c2 / sqrt(D) * (A(t).T @ (c2 / sqrt(D) * ((A(t).T + c1 * A(t)) @ n1)))),
        Eq(y(0), n1),
        Eq(y(t + 1), exp((-1) * lam1) * Piecewise((1, t < 1), (0.5, True)) * x(t)),
        Eq(f(t), 0.25 * total(mean(f(t - 1) * k2) * k1, along_along3_K1) + c1 * f(t - 1) + 0.5 * (b3 @ k2)),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * x(t - 1)),
        "o3": mean(x(t) ** 4),
        "o4": mean(y(t) ** 2),
        "o5": mean(y(t) * n2),
        "o6": total(entries(b3) * mean(f(t) * k2)),
        "o7": each(mean(f(t) * relabel(f(t), along_along2_P1, along_alsoalong2_P1))),
    },
    arrays=arrays,
)
