"""Random Lotka-Volterra dynamics: species that compete through a matrix of any symmetry, as a map in small steps.

A_ij and A_ji have correlation gamma. Below sigma = sqrt(2)/(1 + gamma) abundances tend to the fixed point of the cavity
method (Bunin 2017, Galla 2018). A species survives if its growth rate in its absence, K, is positive.
"""

from sympy import Heaviside, exp, sqrt

from derive import (
    Eq,
    Model,
    field,
    gaussian,
    goe,
    mean,
    normal,
    parameter,
    positive,
    real,
    sectors,
    training_clock,
    whole_positive,
)

gamma = parameter("gamma", default=0.5, domain=real, doc="correlation of A_ij and A_ji, between -1 and 1")
sigma = parameter("sigma", default=0.8, domain=positive, doc="standard deviation of interactions times sqrt(D)")
mu = parameter("mu", default=4.0, domain=real, doc="mean of interactions times D")
dt = parameter("dt", default=0.5, domain=positive, doc="time step")
T = parameter("T", default=30, domain=whole_positive, doc="steps")

D = sectors("D")
t = training_clock("t", steps=T)
S, G = goe("S", D), gaussian("G", D, D)
start = normal("start", D)
N, AN = field("N", D, t), field("AN", D, t)
K = 1 - mu * mean(N(t)) - sigma * AN(t)

MODEL = Model(
    parameters=(gamma, sigma, mu, dt, T),
    equations=[
        Eq(N(0), exp(start / 2) / 5),
        Eq(AN(t), sqrt((1 + gamma) / 2) * S @ N(t) + sqrt((1 - gamma) / 4) * (G @ N(t) - G.T @ N(t)) / sqrt(D)),
        Eq(N(t + 1), N(t) * exp(dt * (K - N(t)))),
    ],
    observe={"M": mean(N(t)), "q": mean(N(t) ** 2), "survivors": mean(Heaviside(K))},
)
