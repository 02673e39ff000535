"""Declaration 45 of seed 2026, as drawn by `derive selftest`."""

from sympy import Piecewise, sqrt

from derive import (
    Eq,
    Model,
    family,
    field,
    formula,
    gaussian,
    mean,
    normal,
    one_of,
    outer,
    overlap,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_choice,
    whole_positive,
)


def declare(kind, members, shape):
    T = parameter("T", default=3, domain=whole_positive)
    beta1 = parameter("beta1", default=1.5, domain=positive)
    kappa2 = parameter("kappa2", default=0.5)
    c1 = parameter("c1", default=-0.25)
    c2 = parameter("c2", default=1.0)
    c3 = parameter("c3", default=-0.25)
    c4 = parameter("c4", default=0.75)
    D = sectors("D")
    t = training_clock("t", steps=T)
    A = gaussian("A", D, D, variance=beta1)
    n1 = normal("n1", D)
    x = field("x", D, t)
    y = field("y", D, t)
    u = field("u", D, t)
    W = weights("W", D, D, t)

    return Model(
        parameters=(
            T,
            beta1,
            kappa2,
            c1,
            c2,
            c3,
            c4,
        ),
        equations=[
            Eq(W(0), A / sqrt(D)),
            Eq(
                x(t),
                0.25 * mean(x(t - 1) * x(t - 1)) * y(t - 1) + Piecewise((kappa2, kappa2 > 0), (0.25, True)) * y(t - 2),
            ),
            Eq(y(0), n1),
            Eq(y(1), n1),
            Eq(
                y(t + 2),
                c1 * past_sum(lambda s: 0.25 * mean(u(s) * u(s)) * u(s), t)
                + 0.5 / (1 + mean(y(t) ** 2)) * x(t)
                + c2 / sqrt(D) * (A @ x(t)),
            ),
            Eq(u(t), c3 * y(t)),
            Eq(W(t + 1), W(t) + c4 / D * outer(x(t - 2), u(t - 1)) + c1 / D * outer(x(t - 1), n1)),
        ],
        observe={
            "o1": mean(x(t) ** 2),
            "o2": overlap(x(t), u(t - 1)),
            "o3": mean(y(t) ** 2),
            "o4": mean(0.5 + (-0.25) * y(t) ** 2),
            "o5": mean(u(t) ** 2),
            "o6": mean(u(t) * x(t)),
            "o7": (-0.5) * mean(x(t) ** 2) + 1,
        },
        probe=spectrum(W(T).T @ W(T)),
    )


MODEL = family(
    declare,
    kind=one_of("plain", "other", doc="a word"),
    members=whole_choice(3, low=2, high=4, doc="a number"),
    shape=formula("y", doc="a function", bent="tanh(y)"),
)
