"""Two-layer linear network with extensively many outputs after gradient steps on its first layer: the bulk moves.

Width N = nu D, outputs C = chi D, readout A fixed. With the loss |F - Y|^2 / (2 C P), F = A^T W X / (gamma0 N) and
Y = B X / sqrt(D), a step at the learning rate eta gamma0^2 N sqrt(C D) is W <- W + (gamma / sqrt(C)) A E S, with the
error E = B - sqrt(D) A^T W / (gamma0 N) and gamma = eta gamma0. Here S = 1 on the population (sample=population), and
S = X^T X / P on P = alpha D samples that are the same at each step (sample=finite). The error omits the network's own
output, E = B, unless output=included. The spectrum is that of W^T W / N.
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


BASIC = {"W0": "W(0)", "psi0": "v^0", "z": (-1, r"i\omega"), "G": (-1, r"\mathcal{H}")}
LETTERS = {
    **BASIC,
    "B psi0": "v^1",
    "psi2": "v^1",
    "psi1": "v^2",
    "A^T psi1": (nu / chi, "v^3"),
    "psi3": (gamma * nu / chi, "v^3"),
    "u[B psi0]": "u_1",
    "u[A^T psi1]": "u_3",
    "u[psi1]": "u_2",
    "u[psi0]": "u_4",
    "C[psi0,psi0]": "C_{00}",
    "C[psi2,psi2]": "C_{11}",
    "C[psi1,psi1]": "C_{22}",
    "C[psi3,psi3]": "C_{33}",
    "R[psi0,W0^T psi1]": "R_{04}",
    "R[psi0,B^T psi3]": "R_{04}",
    "R[psi2,A^T psi1]": "R_{13}",
    "R[psi1,W0 psi0]": "R_{22}",
    "R[psi1,A psi2]": (gamma, "R_{22}"),
    "R[psi3,B psi0]": "R_{31}",
}
"""The letters of the paper's appendix on many outputs, for one step on the population."""


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
    printed = sample == "population" and steps == 1 and not own
    return Model(parameters=used, probe=spectrum(W.T @ W / N), notation=LETTERS if printed else BASIC)


MODEL = family(
    declare,
    sample=one_of("population", "finite", doc="samples: infinitely many, or P = alpha D of them"),
    steps=whole_choice(1, high=4, doc="gradient steps on the first layer"),
    output=one_of("left_out", "included", doc="the network's own output in the error"),
)
