"""The Jacobian of a layer of saturating units whose weights have learned one example, at that example."""

from sympy import sqrt, tanh

from derive import (
    Eq,
    Model,
    diag,
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

nu = parameter("nu", default=3.0, domain=positive)
rate = parameter("rate", default=0.4, domain=positive)
aim = parameter("aim", default=4.0)
T = parameter("T", default=2, domain=whole_positive)

D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
W0 = gaussian("W0", N, D)
x, y = normal("x", D), normal("y", N)
h = field("h", N, t)
W = weights("W", N, D, t)
J = diag(1 - tanh(h(T) / 4) ** 2) @ W(T)

MODEL = Model(
    parameters=(nu, rate, aim, T),
    equations=[
        Eq(h(t), W(t) @ x / sqrt(D)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) + rate / sqrt(D) * outer(aim * y - h(t), x)),
    ],
    observe={"activity": mean(h(t) ** 2)},
    probe=spectrum(J.T @ J / N),
)
