"""Two-layer linear network on fresh data at every step."""

from sympy import sqrt

from derive import (
    Eq,
    Model,
    field,
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

nu = parameter("nu", default=0.7, domain=positive)
alpha = parameter("alpha", default=1.5, domain=positive)
gamma0 = parameter("gamma0", default=4.0, domain=positive)
eta = parameter("eta", default=0.1, domain=positive)
T = parameter("T", default=10, domain=whole_positive)

D, N, P = sectors("D", N=nu, P=alpha)
t = training_clock("t", steps=T)
X, W0 = gaussian("X", P, D, fresh=t), gaussian("W0", N, D)
teacher, eps, w0 = normal("teacher", D), normal("eps", P, t, scale=0.4), normal("w0", N)
v, h0 = fields("v h0", D, t)
delta = field("delta", P, t)
h1, g1 = fields("h1 g1", N, t)
W = weights("W", N, D, t)

MODEL = Model(
    parameters=(nu, alpha, gamma0, eta, T),
    equations=[
        Eq(v(t), teacher - sqrt(D) / (N * gamma0) * W(t).T @ g1(t)),
        Eq(delta(t), X(t) @ v(t) / sqrt(D) + eps(t)),
        Eq(h0(t), sqrt(D) / P * X(t).T @ delta(t)),
        Eq(h1(t), W(t) @ h0(t) / sqrt(D)),
        Eq(g1(0), w0),
        Eq(g1(t + 1), g1(t) + eta * gamma0 * h1(t)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) + eta * gamma0 / sqrt(D) * outer(g1(t), h0(t))),
    ],
    observe={"test_loss": mean(v(t) ** 2), "train_loss": mean(delta(t) ** 2)},
    probe=spectrum(W(T).T @ W(T) / N),
)
