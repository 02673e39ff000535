"""Hebbian learning in a matrix whose diagonal differs from site to site: a density of local fields."""

from derive import (
    Eq,
    Model,
    diag,
    field,
    goe,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    trait,
    training_clock,
    weights,
    whole_positive,
)

rate = parameter("rate", default=1.2, domain=positive)
width = parameter("width", default=1.5, domain=positive)
T = parameter("T", default=3, domain=whole_positive)

D = sectors("D")
t = training_clock("t", steps=T)
local = trait("local", D, density=lambda x: 2 - x / width, low=-width, high=width)
M0 = goe("M0", D)
start = normal("start", D)
v = field("v", D, t)
M = weights("M", D, D, t)

MODEL = Model(
    parameters=(rate, width, T),
    equations=[
        Eq(v(0), start),
        Eq(v(t + 1), (v(t) + M(t) @ v(t)) / 2),
        Eq(M(0), M0),
        Eq(M(t + 1), M(t) + rate / D * outer(v(t), v(t))),
    ],
    observe={"activity": mean(v(t) ** 2)},
    probe=spectrum(M(T) + diag(local)),
)
