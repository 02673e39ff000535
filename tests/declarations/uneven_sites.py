"""Hebbian learning at unequal sites: traits with values and with a density in laws, initial conditions and spikes."""

from sympy import Symbol, sqrt

from derive import (
    Eq,
    Model,
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

rate = parameter("rate", default=0.6)
kappa = parameter("kappa", default=2.0, domain=positive)
power = parameter("power", default=1.5)
T = parameter("T", default=3, domain=whole_positive)

D = sectors("D")
t = training_clock("t", steps=T)
x = Symbol("x", positive=True)
gain = trait("gain", D, values=[1, kappa], weights=[0.75, 0.25])
speed = trait("speed", D, density=x**-power, low=0.1, high=1)
M0 = goe("M0", D)
start = normal("start", D)
v = field("v", D, t)
M = weights("M", D, D, t)

MODEL = Model(
    parameters=(rate, kappa, power, T),
    equations=[
        Eq(v(0), sqrt(gain) * start),
        Eq(v(t + 1), (1 - speed / 4) * v(t) - speed * (M(t) @ v(t)) / 2),
        Eq(M(0), M0),
        Eq(M(t + 1), M(t) + rate / D * outer(gain * v(t), gain * v(t))),
    ],
    observe={"activity": mean(v(t) ** 2), "fast": mean(speed * v(t) ** 2), "spread": mean(gain * speed)},
    probe=spectrum(M(T)),
)
