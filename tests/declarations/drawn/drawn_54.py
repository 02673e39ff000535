"""Declaration 54 of seed 2026, as drawn by `derive selftest`."""

from sympy import KroneckerDelta, Min, exp, sqrt

from derive import (
    Eq,
    Model,
    drawn,
    field,
    gaussian,
    log_normal,
    mean,
    nonnegative,
    normal,
    outer,
    overlap,
    parameter,
    sectors,
    spectrum,
    training_clock,
    whole_positive,
)

T = parameter("T", default=3, domain=whole_positive)
lam1 = parameter("lam1", default=0.5, domain=nonnegative, doc="a number")
lam2 = parameter("lam2", default=1.0, domain=nonnegative)
c1 = parameter("c1", default=0.5)
kappa1 = parameter("kappa1", default=-0.5, doc="a number")
lam3 = parameter("lam3", default=0.0, domain=nonnegative)
lam4 = parameter("lam4", default=1.0, domain=nonnegative)
D, N, P = sectors("D", N=1.5, P=0.5)
t = training_clock("t", steps=T, endpoint=False)
A = gaussian("A", N, N)
B = gaussian("B", D, P, variance=2.25, fresh=t)
n1 = normal("n1", D, t)
m4 = drawn("m4", P, log_normal(0, 0.5))
m5 = normal("m5", N)
x = field("x", P, t)
y = field("y", N, t)
u = field("u", N)

MODEL = Model(
    parameters=(
        T,
        lam1,
        lam2,
        c1,
        kappa1,
        lam3,
        lam4,
    ),
    equations=[
        Eq(x(0), m4),
        Eq(x(1), exp((-1) * lam1) * m4 + 1),
        Eq(x(t + 2), exp((-1) * lam2) * KroneckerDelta(t, 0) * x(t) + c1 / sqrt(D) * (B(t).T @ n1(t))),
        Eq(y(0), Min(kappa1, 0.25) * m5 + 0.5),
        Eq(y(t + 1), 0.75 * 0.5 * t * y(t) + exp((-1) * lam3) / sqrt(N) * (A.T @ y(t))),
        Eq(u, (-0.25) * sqrt(3) * m5 + exp((-1) * lam4) * m5 + m5),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": overlap(x(t), m4),
        "o3": mean((x(t) + 1) ** 3),
        "o4": mean(y(t) ** 2),
        "o5": mean((y(t) + 1) ** 3),
        "o6": mean(u**2),
    },
    probe=spectrum(
        ((A + 4 * (-0.25) * sqrt(3) / sqrt(N) * outer(m5, u)).T @ (A + 4 * (-0.25) * sqrt(3) / sqrt(N) * outer(m5, u)))
        / N
    ),
)
