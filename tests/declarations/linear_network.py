"""Two-layer linear network with C outputs under full-batch gradient descent: three sectors, two random matrices."""

from sympy import sqrt

from derive import (
    Eq,
    Model,
    axis,
    field,
    fields,
    gaussian,
    mean,
    nonnegative,
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

nu = parameter("nu", default=1.0, domain=positive)
alpha = parameter("alpha", default=2.0, domain=positive)
gamma0 = parameter("gamma0", default=4.0, domain=positive)
eta = parameter("eta", default=0.1, domain=positive)
sigma = parameter("sigma", default=0.3, domain=nonnegative)
T = parameter("T", default=10, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)

D, N, P = sectors("D", N=nu, P=alpha)
t, c = training_clock("t", steps=T), axis("c", C)
X, W0 = gaussian("X", P, D), gaussian("W0", N, D)
teacher, eps, w0 = normal("teacher", D, axes=c), normal("eps", P, axes=c), normal("w0", N, axes=c)
v, h0 = fields("v h0", D, t, axes=c)
delta = field("delta", P, t, axes=c)
h1, g1 = fields("h1 g1", N, t, axes=c)
W = weights("W", N, D, t)

MODEL = Model(
    parameters=(nu, alpha, gamma0, eta, sigma, T, C),
    equations=[
        Eq(v(t), teacher - sqrt(D) / (N * gamma0) * W(t).T @ g1(t)),
        Eq(delta(t), X @ v(t) / sqrt(D) + sigma * eps),
        Eq(h0(t), sqrt(D) / P * X.T @ delta(t)),
        Eq(h1(t), W(t) @ h0(t) / sqrt(D)),
        Eq(g1(0), w0),
        Eq(g1(t + 1), g1(t) + eta * gamma0 * h1(t)),
        Eq(W(0), W0),
        Eq(W(t + 1), W(t) + eta * gamma0 / sqrt(D) * outer(g1(t), h0(t))),
    ],
    observe={"test_loss": mean(v(t) ** 2) + sigma**2, "train_loss": mean(delta(t) ** 2)},
    probe=spectrum(W(T).T @ W(T) / N),
)
