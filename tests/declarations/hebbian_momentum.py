"""Hebbian learning with momentum and weight decay on a symmetric matrix: coefficients by recurrence."""

from derive import (
    Domain,
    Eq,
    Model,
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

rate = parameter("rate", default=0.4)
beta = parameter("beta", default=0.5)
decay = parameter("decay", default=0.1, domain=Domain(low=0, high=1, low_included=True))
T = parameter("T", default=3, domain=whole_positive)

D = sectors("D")
t = training_clock("t", steps=T)
J = goe("J", D)
x0 = normal("x0", D)
x, y = fields("x y", D, t)
M, B = weights("M", D, D, t), weights("B", D, D, t)

MODEL = Model(
    parameters=(rate, beta, decay, T),
    equations=[
        Eq(x(0), x0),
        Eq(x(t + 1), rate * y(t) + x0),
        Eq(y(t), M(t) @ x(t)),
        Eq(B(0), 0),
        Eq(B(t + 1), beta * B(t) + outer(x(t), x(t)) / D),
        Eq(M(0), J),
        Eq(M(t + 1), (1 - decay) * M(t) + rate * B(t + 1)),
    ],
    observe={"norm": mean(x(t) ** 2)},
    probe=spectrum(M(T)),
)
