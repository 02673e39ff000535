"""Declaration 17 of seed 2026, as drawn by `derive selftest`."""

from sympy import Heaviside, Piecewise, exp, sqrt

from derive import (
    Domain,
    Eq,
    Model,
    family,
    field,
    formula,
    goe,
    mean,
    nonnegative,
    normal,
    one_of,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    trait,
    uniform,
    weights,
    whole_choice,
    whole_positive,
)


def declare(kind, members, shape):
    nu = parameter("nu", default=1.0, domain=positive)
    T = parameter("T", default=3, domain=whole_positive)
    kappa1 = parameter("kappa1", default=-0.5)
    rho1 = parameter("rho1", default=0.6, domain=Domain(-1, 1, low_included=True, high_included=True))
    rho2 = parameter("rho2", default=-1.0, domain=Domain(-1, 1, low_included=True, high_included=True))
    lam1 = parameter("lam1", default=0.5, domain=nonnegative)
    kappa2 = parameter("kappa2", default=-0.5)
    kappa3 = parameter("kappa3", default=-0.75)
    kappa4 = parameter("kappa4", default=0.5, doc="a number")
    D, N = sectors("D", N=nu)
    t = training_clock("t", steps=T)
    l1 = trait("l1", D, law=uniform(0.25, 1))
    B = goe("B", D)
    n1 = normal("n1", D)
    n2 = normal("n2", N, t)
    x = field("x", N, t)
    y = field("y", D, t)
    u = field("u", N, t)
    v = field("v", N, t)
    W = weights("W", D, D, t)

    return Model(
        parameters=(
            nu,
            T,
            kappa1,
            rho1,
            rho2,
            lam1,
            kappa2,
            kappa3,
            kappa4,
        ),
        equations=[
            Eq(W(0), B),
            Eq(x(t), sqrt(kappa1**2) * Piecewise((1, t < 1), (0.5, True)) * x(t - 1)),
            Eq(y(0), n1),
            Eq(y(1), n1),
            Eq(y(t + 2), Piecewise((1, t < 1), (0.5, True)) * y(t - 1)),
            Eq(u(t), sqrt(1 + (-1) * rho1**2) * exp((-1) * t) * x(t)),
            Eq(v(t), sqrt(1 + (-1) * rho2**2) * Piecewise((1, t < 1), (0.5, True)) * x(t)),
            Eq(
                W(t + 1),
                Piecewise((kappa4, kappa4 > 0), (0.25, True)) * W(t)
                + sqrt(kappa3**2)
                / D
                * Piecewise((1, t < 1), (0.5, True))
                * (
                    outer(n1 + sqrt(1 + lam1) * y(t - 1), n1 + 0.5 * (1 + Heaviside(kappa2)) * y(t))
                    + outer(n1 + sqrt(1 + lam1) * y(t - 1), n1 + 0.5 * (1 + Heaviside(kappa2)) * y(t)).T
                ),
            ),
        ],
        observe={
            "o1": mean(x(t) ** 2),
            "o2": mean(x(t) * x(t - 1)),
            "o3": mean(y(t) ** 2),
            "o4": mean(y(t) * n1),
            "o5": mean(y(t) * y(t - 2)),
            "o6": mean(u(t) ** 2),
            "o7": mean(u(t) * n2(t)),
            "o8": mean(v(t) ** 2),
            "o9": mean(v(t) * x(t)),
            "o10": mean(l1**2),
        },
        probe=spectrum(W(T)),
    )


MODEL = family(
    declare,
    kind=one_of("plain", "other", doc="a word"),
    members=whole_choice(3, low=2, high=4, doc="a number"),
    shape=formula("y", doc="a function", bent="tanh(y)"),
)
