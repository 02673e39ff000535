"""Linear models that the tests of stationary limits and of stable rates share."""

from __future__ import annotations

from functools import cache

from sympy import sqrt

import derive
from derive import (
    Eq,
    Model,
    field,
    gaussian,
    goe,
    mean,
    nonnegative,
    normal,
    parameter,
    positive,
    real,
    sectors,
    spectrum,
    training_clock,
    whole_positive,
)

T = parameter("T", default=4, domain=whole_positive)
alpha = parameter("alpha", default=2.0, domain=positive)
nu = parameter("nu", default=1.5, domain=positive)
eta = parameter("eta", default=0.1, domain=positive)
sigma = parameter("sigma", default=0.3, domain=nonnegative)
ridge = parameter("ridge", default=0.0, domain=nonnegative)
g = parameter("g", default=0.1, domain=positive)
a, b = (parameter(name, default=0.0, domain=real) for name in "ab")
t = training_clock("t", steps=T)


@cache
def random_features(fresh: bool = False):
    """Linear regression on W x / sqrt(D), W with nu D rows: a linear network whose first layer does not learn. With
    fixed samples also the matrices that its risk is made of."""
    D, P, N = sectors("D", P=alpha, N=nu)
    Z = gaussian("Z", P, D, fresh=t)(t) if fresh else gaussian("Z", P, D)
    W, teacher, eps = gaussian("W", N, D), normal("teacher", D), normal("eps", P)
    w, u, h, delta = field("w", N, t), field("u", D, t), field("h", D, t), field("delta", P, t)
    probed = {} if fresh else {"probe": spectrum(W @ Z.T @ Z @ W.T / (D * P), between={"features": W @ W.T / D})}
    return derive.load(
        Model(
            parameters=(alpha, nu, eta, sigma, ridge, T),
            equations=[
                Eq(u(t), teacher - W.T @ w(t) / sqrt(D)),
                Eq(delta(t), Z @ u(t) / sqrt(D) + sigma * eps),
                Eq(h(t), sqrt(D) / P * Z.T @ delta(t)),
                Eq(w(0), 0 * normal("nothing", N)),
                Eq(w(t + 1), w(t) + eta * (W @ h(t) / sqrt(D) - ridge * w(t))),
            ],
            observe={"train_loss": mean(delta(t) ** 2), "test_loss": mean(u(t) ** 2) + sigma**2},
            name=f"random_features_{fresh}",
            **probed,
        )
    )


@cache
def network(symmetric: bool):
    """A linear recurrent network with two steps of memory, driven by what never changes."""
    D = sectors("D")
    source, x = normal("source", D), field("x", D, t)
    drive = goe("M", D) @ x(t) if symmetric else gaussian("J", D, D) @ x(t) / sqrt(D)
    return derive.load(
        Model(
            parameters=(g, a, b, T),
            equations=[Eq(x(0), source), Eq(x(t + 1), g * drive + a * x(t) + b * x(t - 1) + source)],
            observe={"activity": mean(x(t) ** 2), "memory": mean(x(t) * source)},
            name=f"network_{symmetric}",
        )
    )
