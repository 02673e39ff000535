"""A linear network with C outputs that learns classes by cross-entropy: labels along samples, classes and inputs.

f_pc = <w_c h_p> for sample p and class c, h_p = V x_p / sqrt(D); every weight moves down the gradient of the mean over
samples of log sum_c exp(f_pc) - f_pc(label of p). The errors are functions of a matrix over labels, such as softmax,
and multiply vectors with two axes.
"""

from typing import Any

from sympy import sqrt

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    entries,
    field,
    mean,
    normal,
    parameter,
    positive,
    relabel,
    sectors,
    softmax,
    total,
    training_clock,
    whole_positive,
)

eta = parameter("eta", default=0.5, domain=positive, doc="learning rate")
P = parameter("P", default=4, domain=whole_positive, doc="samples")
C = parameter("C", default=3, domain=whole_positive, doc="classes")
D = parameter("D", default=5, domain=whole_positive, doc="inputs")
T = parameter("T", default=6, domain=whole_positive, doc="steps")

N = sectors("N")
t = training_clock("t", steps=T)
p, c, d, k = axis("p", P), axis("c", C), axis("d", D), axis("k", C)
x, onehot = data("x", p, d), data("onehot", p, c)

V0, w0 = normal("V0", N, axes=d), normal("w0", N, axes=c)
V, w, h = field("V", N, t, axes=d), field("w", N, t, axes=c), field("h", N, t, axes=p)
pushed, back = field("pushed", N, t, axes=(p, c)), field("back", N, t, axes=p)

f = mean(w(t) * h(t))
error = entries(onehot) - softmax(f, c)


def points(values: dict[str, Any]) -> dict[str, Any]:
    """Inputs at random, labels one after the other."""
    import numpy as np

    x = np.random.default_rng(3).standard_normal((values["P"], values["D"]))
    return {"x": x, "onehot": np.eye(values["C"])[np.arange(values["P"]) % values["C"]]}


MODEL = Model(
    parameters=(eta, P, C, D, T),
    equations=[
        Eq(V(0), V0),
        Eq(V(t + 1), V(t) + eta / P / sqrt(D) * x.T @ back(t)),
        Eq(w(0), w0),
        Eq(w(t + 1), w(t) + eta / P * total(pushed(t), p)),
        Eq(h(t), x @ V(t) / sqrt(D)),
        Eq(pushed(t), error * h(t)),
        Eq(back(t), total(error * w(t), c)),
    ],
    observe={
        "probability": each(softmax(f, c)),
        "right": total(entries(onehot) * softmax(f, c)) / P,
        "readouts": each(mean(w(t) * relabel(w(t), c, k))),
    },
    arrays=points,
)
