"""A planted direction in samples of different quality: weighted rows, and a spike that also depends on the weights."""

from sympy import sqrt

from derive import (
    Model,
    diag,
    gaussian,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    trait,
)

nu = parameter("nu", default=2.0, domain=positive)
kappa = parameter("kappa", default=4.0, domain=positive)
theta = parameter("theta", default=1.5)

D, N = sectors("D", N=nu)
s = trait("s", N, values=[1, kappa], weights=[0.75, 0.25])
W = gaussian("W", N, D)
u, v = normal("u", N), normal("v", D)
K = diag(sqrt(s)) @ (W + theta / sqrt(D) * outer(u + s * u / 4, v))

MODEL = Model(parameters=(nu, kappa, theta), probe=spectrum(K.T @ K / N))
