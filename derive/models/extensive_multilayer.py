"""Deep linear network with extensively many outputs: one hidden layer after one gradient step.

Weights W0 (N x D) and W1 ... W(L-1) (N x N), readout A (N x C), target B (C x D), all of unit variance. With the
forward map H = W(l-1)/sqrt(N) ... W1/sqrt(N) W0 and the backward map K = W(l+1)^T/sqrt(N) ... W(L-1)^T/sqrt(N) A, the
step on layer l is (gamma0 / sqrt(C D)) K B H^T, or (gamma0 / sqrt(C D)) K B (X^T X / P) H^T on P = alpha D samples X
(sample=finite). Any depth L >= 2 and any hidden layer 1 <= l < L.
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
from derive.errors import ParameterError


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
    return Model(parameters=used, probe=spectrum(trained.T @ trained / N))


MODEL = family(
    declare,
    L=whole_choice(2, low=2, doc="weight matrices below the readout"),
    layer=whole_choice(1, doc="the hidden layer that is probed, 1 <= layer < L"),
    sample=one_of("population", "finite", doc="samples: infinitely many, or P = alpha D of them"),
)
