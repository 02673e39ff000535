"""Spikes that remove the action of the matrix on a few directions: outliers below the bulk of W^T W / N."""

from sympy import sqrt

from derive import (
    Eq,
    Model,
    field,
    gaussian,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

alpha = parameter("alpha", default=3.0, domain=positive)
rate = parameter("rate", default=0.7)
T = parameter("T", default=2, domain=whole_positive)
D, N = sectors("D", N=alpha)
t = training_clock("t", steps=T)
W0 = gaussian("W0", N, D)
x = normal("x", D, t)
h = field("h", N, t)
W = weights("W", N, D, t)

MODEL = Model(
    parameters=(alpha, rate, T),
    equations=[
        Eq(h(t), W(t) @ x(t) / sqrt(D)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) - rate / sqrt(D) * outer(h(t), x(t))),
    ],
    observe={"response": mean(h(t) ** 2)},
    probe=spectrum(W(T).T @ W(T) / N),
)
