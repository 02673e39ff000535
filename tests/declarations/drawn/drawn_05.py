"""Declaration 5 of seed 2026, as drawn by `derive selftest`."""

import numpy

from sympy import Rational, sqrt

from derive import (
    Domain,
    Eq,
    Model,
    axis,
    data,
    drawn,
    exponential,
    field,
    gaussian,
    half_normal,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    total,
    whole_positive,
)


def arrays(values):
    return {
        "b1": numpy.fromfunction(lambda *n: numpy.round(numpy.cos(1 + 2 * n[0]), 3), (values["P1"],)),
    }


nu = parameter("nu", default=0.125, domain=positive)
beta1 = parameter("beta1", default=0.25, domain=positive, doc="a number")
whole1 = parameter("whole1", default=0, domain=Domain(0, 2, low_included=True, high_included=True, whole=True))
beta2 = parameter("beta2", default=0.25, domain=positive, doc="a number")
whole2 = parameter("whole2", default=2, domain=Domain(0, 2, low_included=True, high_included=True, whole=True))
c1 = parameter("c1", default=-0.5)
beta3 = parameter("beta3", default=1.5, domain=positive)
whole3 = parameter("whole3", default=0, domain=Domain(0, 2, low_included=True, high_included=True, whole=True))
P1 = parameter("P1", default=2, domain=whole_positive)
beta5 = parameter("beta5", default=1.5, domain=positive, doc="a number")
whole5 = parameter("whole5", default=0, domain=Domain(0, 2, low_included=True, high_included=True, whole=True))
D, N = sectors("D", N=nu)
along_along2_P1 = axis("along2_P1", P1)
b1 = data("b1", along_along2_P1)
A = gaussian("A", D, D)
B = gaussian("B", D, D, variance=Rational(4, 9))
n1 = normal("n1", D, scale=0.5)
n2 = drawn("n2", N, half_normal(0.5))
k1 = drawn("k1", D, exponential(0.5), axes=along_along2_P1)
x = field("x", N)
y = field("y", D)
u = field("u", D)
f = field("f", D, axes=along_along2_P1)

MODEL = Model(
    parameters=(
        nu,
        beta1,
        whole1,
        beta2,
        whole2,
        c1,
        beta3,
        whole3,
        P1,
        beta5,
        whole5,
    ),
    equations=[
        Eq(x, beta1**whole1 * n2 + beta2**whole2 * n2),
        Eq(y, 0.5),
        Eq(u, beta3**whole3 / sqrt(D) * ((B + c1 * B.T) @ n1)),
        Eq(f, 0.5 * N / D * k1 + k1),
    ],
    observe={
        "o1": mean(x**2),
        "o2": mean(y**2),
        "o3": mean(y * u),
        "o4": mean(u**2),
        "o5": total(b1 * mean(f * k1)),
    },
    probe=spectrum(
        ((A + 2 * beta5**whole5 / sqrt(D) * outer(y, u)).T @ (A + 2 * beta5**whole5 / sqrt(D) * outer(y, u))) / D,
        plus="o3",
    ),
    arrays=arrays,
    refuses=lambda given: "",
)
