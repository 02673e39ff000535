"""Patterns, given as mixtures of random directions, drive saturating units, and a symmetric matrix stores the activity.

The table contains the component of each of the P patterns along each of the K random directions at each time.
"""

from sympy import tanh

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    fields,
    goe,
    mean,
    normal,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)

rate = parameter("rate", default=4.0)
back = parameter("back", default=0.4)
P = parameter("P", default=2, domain=whole_positive)
K = parameter("K", default=3, domain=whole_positive)
T = parameter("T", default=2, domain=whole_positive)
D = sectors("D")
t, p, k = training_clock("t", steps=T), axis("p", P), axis("k", K)
mixture, weight = data("mixture", p, k, clock=t), data("weight", p)
u = normal("u", D, axes=k)
drive, act, felt, written = fields("drive act felt written", D, t, axes=p)
J = goe("J", D)
M = weights("M", D, D, t)


def patterns(values: dict) -> dict:
    """Mixtures that turn in time, the first pattern stronger than the others."""
    import numpy as np

    turns = np.arange(values["T"] + 1)[:, None, None] + np.arange(values["P"])[None, :, None]
    return {
        "mixture": np.cos(0.7 * turns * (1 + np.arange(values["K"]))),
        "weight": 1.0 / (1.0 + np.arange(values["P"])),
    }


MODEL = Model(
    parameters=(rate, back, P, K, T),
    equations=[
        Eq(drive(t), mixture(t) @ u),
        Eq(act(0), tanh(drive(0))),
        Eq(act(t + 1), tanh(drive(t + 1) + back * felt(t))),
        Eq(felt(t), M(t) @ act(t)),
        Eq(written(t), weight * act(t)),
        Eq(M(0), J),
        Eq(M(t + 1), M(t) + rate / D * outer(written(t), written(t))),
    ],
    observe={"activity": each(mean(act(t) ** 2)), "agreement": mean(act(t) * drive(t))},
    probe=spectrum(M(T)),
    arrays=patterns,
)
