"""Two-layer linear network with extensively many outputs after gradient steps on its first layer: the bulk moves.

Width N = nu D, outputs C = chi D, readout A held. With the loss |F - Y|^2 / (2 C P), F = A^T W X / (gamma0 N) and
Y = B X / sqrt(D), a step at the learning rate eta gamma0^2 N sqrt(C D) is W <- W + (gamma / sqrt(C)) A E S, with the
error E = B - sqrt(D) A^T W / (gamma0 N) and gamma = eta gamma0. On the population S = 1 (sample=population), on the
same P = alpha D samples at each step S = X^T X / P (sample=finite). The network's own output is left out of the
error, E = B, unless output=included. The spectrum is that of W^T W / N.
"""

from sympy import sqrt

from derive import (
    Model,
    family,
    gaussian,
    nonnegative,
    one_of,
    parameter,
    positive,
    sectors,
    spectrum,
    whole_choice,
)

nu = parameter("nu", default=2.0, domain=positive, doc="width over input dimension, N / D")
chi = parameter("chi", default=1.0, domain=positive, doc="outputs over input dimension, C / D")
alpha = parameter("alpha", default=4.0, domain=positive, doc="samples over input dimension, P / D")
gamma = parameter("gamma", default=1.0, domain=nonnegative, doc="strength of a step, eta gamma0")
gamma0 = parameter("gamma0", default=1.0, domain=positive, doc="output scale; large is rich")


def declare(sample: str, steps: int, output: str) -> Model:
    """Return the network after a number of steps, on finitely many samples or on the population."""
    finite, own = sample == "finite", output == "included"
    D, N, C, P = sectors("D", N=nu, C=chi, P=alpha)
    W, A, B, X = gaussian("W0", N, D), gaussian("A", N, C), gaussian("B", C, D), gaussian("X", P, D)
    for _ in range(steps):
        change = gamma / sqrt(C) * A @ B
        if own:
            change -= gamma / sqrt(chi) / (gamma0 * N) * A @ A.T @ W
        W += change @ X.T @ X / P if finite else change
    used = (nu, chi, *((alpha,) if finite else ()), gamma, *((gamma0,) if own else ()))
    return Model(parameters=used, probe=spectrum(W.T @ W / N))


MODEL = family(
    declare,
    sample=one_of("population", "finite", doc="samples: infinitely many, or P = alpha D of them"),
    steps=whole_choice(1, high=4, doc="gradient steps on the first layer"),
    output=one_of("left_out", "included", doc="the network's own output in the error"),
)
