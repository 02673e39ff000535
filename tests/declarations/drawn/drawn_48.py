"""Declaration 48 of seed 2026, as drawn by `derive selftest`."""

from sympy import cosh, exp, sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    discrete,
    drawn,
    field,
    gaussian,
    half_normal,
    mean,
    nonnegative,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

nu = parameter("nu", default=2.0, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
C = parameter("C", default=3, domain=whole_positive)
kappa1 = parameter("kappa1", default=-0.5)
beta1 = parameter("beta1", default=0.25, domain=positive)
c1 = parameter("c1", default=0.0)
lam1 = parameter("lam1", default=1.0, domain=nonnegative)
c2 = parameter("c2", default=0.0)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
along_along_classes = axis("along_classes", C)
A = gaussian("A", D, D, variance=beta1)
n1 = drawn("n1", D, half_normal(), t, axes=along_along_classes)
n3 = drawn("n3", D, discrete([-1, 1]))
x = field("x", D, t, axes=along_along_classes)
y = field("y", D)
u = field("u", D, t, axes=along_along_classes)
W = weights("W", D, D, t)

MODEL = Model(
    parameters=(
        nu,
        T,
        C,
        kappa1,
        beta1,
        c1,
        lam1,
        c2,
    ),
    equations=[
        Eq(W(0), A),
        Eq(x(0), n3),
        Eq(x(t + 1), 0),
        Eq(y, 0.25 / cosh(n3 + 0.5 * sqrt(N / D))),
        Eq(u(t), (-0.25) / cosh(y) + c1 / cosh(n1(t))),
        Eq(
            W(t + 1),
            W(t)
            + exp((-1) * lam1) / sqrt(D) * outer(1 / cosh(x(t - 1)), 1 / cosh(u(t - 1)))
            + kappa1 / sqrt(D) * (1 + t**2) * outer(1 / cosh(x(t - 1)), 1 / cosh(u(t - 2))),
        ),
    ],
    observe={
        "o1": mean(x(t) ** 2),
        "o2": mean(x(t) * n3),
        "o3": mean(y**2),
        "o4": mean(u(t) ** 2),
        "o5": mean(u(t) * n1(t)),
        "o6": mean(u(t) * u(t - 1)),
        "o7": mean(u(t)),
        "o8": mean(tanh(u(t))),
    },
    probe=spectrum((W(T).T @ W(T)) / D + c2 / (sqrt(D) * sqrt(D)) * ((W(T).T @ A) + (A.T @ W(T)))),
    doc="A declaration, as written by the laws.",
    notation={"z": "w"},
)
