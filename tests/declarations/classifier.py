"""A wide network with C outputs learns classes by cross-entropy: two axes of labels, a nonlinear law and a probed
matrix.

h_p = W phi(V x_p) / sqrt(N), f_pc = <w_c phi(h_p)>; W and w follow the gradient of the mean cross-entropy. Spikes are
sums over samples of vectors that are themselves sums over classes.
"""

from typing import Any

from sympy import sqrt, tanh

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    entries,
    field,
    fields,
    gaussian,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    softmax,
    spectrum,
    total,
    training_clock,
    weights,
    whole_positive,
)

eta = parameter("eta", default=4.0, domain=positive, doc="learning rate")
P = parameter("P", default=3, domain=whole_positive, doc="samples")
C = parameter("C", default=3, domain=whole_positive, doc="classes")
D = parameter("D", default=2, domain=whole_positive, doc="inputs")
T = parameter("T", default=3, domain=whole_positive, doc="steps")

N = sectors("N")
t = training_clock("t", steps=T)
p, c, d = axis("p", P), axis("c", C), axis("d", D)
x, onehot = data("x", p, d), data("onehot", p, c)

V, w0, J = normal("V", N, axes=d), normal("w0", N, axes=c), gaussian("J", N, N)
first = field("first", N, axes=p)
w = field("w", N, t, axes=c)
h, phi, g = fields("h phi g", N, t, axes=p)
W = weights("W", N, N, t)

f = mean(w(t) * phi(t))
error = entries(onehot) - softmax(f, c)


def points(values: dict[str, Any]) -> dict[str, Any]:
    """Inputs on a circle, labels one after the other."""
    import numpy as np

    angle = 2 * np.pi * np.arange(values["P"]) / values["P"]
    x = np.stack([np.cos((k // 2 + 1) * angle + k % 2) for k in range(values["D"])], axis=1) * 1.5
    return {"x": x, "onehot": np.eye(values["C"])[np.arange(values["P"]) % values["C"]]}


MODEL = Model(
    parameters=(eta, P, C, D, T),
    equations=[
        Eq(first, tanh(x @ V)),
        Eq(h(t), W(t) @ first / sqrt(N)),
        Eq(phi(t), tanh(h(t))),
        Eq(g(t), (1 - tanh(h(t)) ** 2) * total(error * w(t), c)),
        Eq(w(0), w0),
        Eq(w(t + 1), w(t) + eta / P * total(error * phi(t), p)),
        Eq(W(0), J),
        Eq(W(t + 1), W(t) + eta / P / sqrt(N) * outer(g(t), first)),
    ],
    observe={
        "right": total(entries(onehot) * softmax(f, c)) / P,
        "output": each(f),
        "gradient": mean(g(t) ** 2),
    },
    probe=spectrum(W(T).T @ W(T) / N),
    arrays=points,
)
