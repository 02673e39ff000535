"""Deep linear network with extensively many outputs: one hidden layer after one gradient step.

Weights W0 (N x D) and W1 ... W(L-1) (N x N), readout A (N x C), target B (C x D), all of unit variance. With the
forward map H = W(l-1)/sqrt(N) ... W1/sqrt(N) W0 and the backward map K = W(l+1)^T/sqrt(N) ... W(L-1)^T/sqrt(N) A, the
update of layer l is (gamma0 / sqrt(C D)) K B H^T, or (gamma0 / sqrt(C D)) K B (X^T X / P) H^T on P = alpha D samples X
(sample=finite). Any depth L >= 2 and any hidden layer 1 <= l < L.
"""

from typing import Any

from sympy import Expr, Rational, sqrt

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
from derive.errors import ParameterError


def letters(nu: Expr, chi: Expr, gamma0: Expr) -> dict[str, Any]:
    """Return the letters of the fields of L=2, in the paper's appendix on many outputs."""
    v4 = nu ** Rational(3, 2) / chi
    v5 = gamma0 * v4 * sqrt(chi)
    fields = {"W0^T psi0": "v^1", "psi2": "v^1", "B psi2": "v^2", "psi3": "v^2", "psi1": "v^3"}
    scaled = {"A^T psi1": (v4, "v^4"), "psi4": (gamma0 * v4, "v^4"), "B^T psi4": (v5, "v^5"), "psi5": (v5, "v^5")}
    return {
        **fields,
        **scaled,
        "u[W0^T psi0]": "u_1",
        "u[B psi2]": "u_2",
        "u[A^T psi1]": "u_4",
        "u[B^T psi4]": "u_5",
        "u[psi1]": "u_3",
        "u[psi0]": "u_6",
        **{f"C[{psi},{psi}]": f"C_v^{k}" for k, psi in enumerate(("psi0", "psi2", "psi3", "psi1", "psi4", "psi5"))},
        "R[psi0,W1^T psi1]": "R_{06}",
        "R[psi0,W0 psi5]": "R_{06}",
        "R[psi2,B^T psi4]": "R_{15}",
        "R[psi3,A^T psi1]": "R_{24}",
        "R[psi1,W1 psi0]": "R_{33}",
        "R[psi1,A psi3]": (gamma0, "R_{33}"),
        "R[psi4,B psi2]": "R_{42}",
        "R[psi5,W0^T psi0]": "R_{51}",
    }


def declare(L: int, layer: int, sample: str) -> Model:
    """Return the network with L weight matrices below the readout, probed at one of its square layers."""
    if not 1 <= layer < L:
        raise ParameterError(f"layer={layer} is out of range: with L={L} the hidden layers are 1 to {L - 1}")
    nu = parameter("nu", default=2.0, domain=positive, doc="width over input dimension, N / D")
    chi = parameter("chi", default=1.0, domain=positive, doc="outputs over input dimension, C / D")
    gamma0 = parameter("gamma0", default=1.0, domain=nonnegative, doc="strength of the step")
    alpha = parameter("alpha", default=4.0, domain=positive, doc="samples over input dimension, P / D")
    finite = sample == "finite"
    D, N, C, P = sectors("D", N=nu, C=chi, P=alpha)
    W = [gaussian("W0", N, D), *(gaussian(f"W{i}", N, N) for i in range(1, L))]
    A, B, X = gaussian("A", N, C), gaussian("B", C, D), gaussian("X", P, D)
    forward = W[0]
    for i in range(1, layer):
        forward = W[i] @ forward / sqrt(N)
    backward = A
    for i in reversed(range(layer + 1, L)):
        backward = W[i].T @ backward / sqrt(N)
    target = B @ X.T @ X / P if finite else B
    trained = W[layer] + gamma0 / sqrt(C * D) * backward @ target @ forward.T
    used = (nu, chi, *((alpha,) if finite else ()), gamma0)
    notation: dict[str, Any] = {f"W{i}": f"W^{i}(0)" for i in range(L)}
    notation |= {"psi0": "v^0", "z": (-1, r"i\omega"), "G": (-1, r"\mathcal{H}")}
    if (L, finite) == (2, False):
        notation |= letters(nu, chi, gamma0)
    return Model(parameters=used, probe=spectrum(trained.T @ trained / N), notation=notation)


MODEL = family(
    declare,
    L=whole_choice(2, low=2, doc="weight matrices below the readout"),
    layer=whole_choice(1, doc="the hidden layer that is probed, 1 <= layer < L"),
    sample=one_of("population", "finite", doc="samples: infinitely many, or P = alpha D of them"),
)
