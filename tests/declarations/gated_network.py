"""A nonlinear rule with labels: elementwise gates, means as coefficients, sampled."""

from sympy import sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    fields,
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

nu = parameter("nu", default=1.5, domain=positive)
rate = parameter("rate", default=1.2)
T = parameter("T", default=3, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
D, N = sectors("D", N=nu)
t, c = training_clock("t", steps=T), axis("c", C)
W0 = gaussian("W0", N, D)
x = normal("x", D, axes=c)
h, g = fields("h g", N, t, axes=c)
back, f = fields("back f", D, t, axes=c)
W = weights("W", N, D, t)

MODEL = Model(
    parameters=(nu, rate, T, C),
    equations=[
        Eq(f(0), x),
        Eq(f(t + 1), tanh(f(t) + back(t))),
        Eq(h(t), W(t) @ f(t) / sqrt(D)),
        Eq(g(t), h(t) * (1 - tanh(h(t)) ** 2)),
        Eq(back(t), sqrt(D) / N * W(t).T @ g(t)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) + rate / sqrt(D) * outer(g(t), f(t))),
    ],
    observe={"feature": mean(f(t) ** 2), "gate": mean(g(t) ** 2)},
    probe=spectrum(W(T).T @ W(T) / N),
)
