"""Regression on given points with a frozen hidden layer: erf features of random weights, only the readout learns."""

from sympy import erf, sqrt

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    field,
    mean,
    normal,
    parameter,
    positive,
    sectors,
    total,
    training_clock,
    whole_positive,
)

eta = parameter("eta", default=0.8, domain=positive)
P = parameter("P", default=3, domain=whole_positive)
D = parameter("D", default=2, domain=whole_positive)
T = parameter("T", default=6, domain=whole_positive)
N = sectors("N")
t, p, d = training_clock("t", steps=T), axis("p", P), axis("d", D)
x, y = data("x", p, d), data("y", p)
V, w0 = normal("V", N, axes=d), normal("w0", N)
h, phi = field("h", N, axes=p), field("phi", N, axes=p)
w = field("w", N, t)
pushed = field("pushed", N, t, axes=p)
f = mean(w(t) * phi)


def points(values: dict) -> dict:
    """Points on a line through the plane, with labels that bend."""
    import numpy as np

    along = np.linspace(-1.0, 1.5, values["P"])
    return {"x": along[:, None] * np.linspace(1.0, 0.5, values["D"]) + 0.3, "y": along**2 - 0.5}


MODEL = Model(
    parameters=(eta, P, D, T),
    equations=[
        Eq(h, x @ V / sqrt(D)),
        Eq(phi, erf(h)),
        Eq(pushed(t), (y - f) * phi),
        Eq(w(0), w0),
        Eq(w(t + 1), w(t) + eta / P * total(pushed(t))),
    ],
    observe={"loss": total((f - y) ** 2 / 2 / P), "prediction": each(f), "norm": mean(w(t) ** 2)},
    arrays=points,
)
