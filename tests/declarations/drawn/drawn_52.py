"""Declaration 52 of seed 2026, as drawn by `derive selftest`."""

from sympy import Abs, Rational, Symbol, sqrt, tanh

from derive import (
    Eq,
    Model,
    drawn,
    exponential,
    fields,
    gaussian,
    mean,
    overlap,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    training_clock,
    trait,
    whole_positive,
)

T = parameter("T", default=2, domain=whole_positive)
kappa2 = parameter("kappa2", default=-0.5)
beta2 = parameter("beta2", default=1.0, domain=positive, doc="a number")
c1 = parameter("c1", default=0.25)
c2 = parameter("c2", default=1.0)
beta3 = parameter("beta3", default=1.0, domain=positive)
D, N = sectors("D", N=1.5)
t = training_clock("t", steps=T)
l1 = trait("l1", N, density=1 + Symbol("x"), low=0, high=1)
A = gaussian("A", D, D, variance=2.25)
n2 = drawn("n2", N, exponential(0.5), t)
x, y, u = fields("x y u", N, t)

MODEL = Model(
    parameters=(
        T,
        kappa2,
        beta2,
        c1,
        c2,
        beta3,
    ),
    equations=[
        Eq(
            x(t),
            sqrt(l1) * Abs(kappa2) * Rational(9, 10) ** t * x(t - 1)
            + beta2**t * u(t - 5)
            + kappa2 * past_sum(lambda s: u(s), t),
        ),
        Eq(y(t), c1 * Rational(9, 10) ** t * x(t) + (-0.25) * Rational(9, 10) ** t * n2(t)),
        Eq(
            u(t),
            c2 * beta3**t * x(t - 1) + 0.5 * Rational(9, 10) ** t * y(t) + (-0.5) * Rational(9, 10) ** t * u(t - 5),
        ),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * x(t - 1)),
        "o3": mean(x(t)),
        "o4": mean(y(t) ** 2),
        "o5": mean(y(t) * n2(t)),
        "o6": mean(tanh(y(t))),
        "o7": mean(u(t) ** 2),
        "o8": overlap(u(t), y(t - 1)),
        "o9": mean(tanh(u(t))),
        "o10": mean(l1**2),
    },
    probe=spectrum((A.T @ A) / D, plus="o3"),
    doc="A declaration, as written by the laws.",
    notation={"z": "w"},
)
