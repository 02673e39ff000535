"""Two-layer linear network with extensively many outputs: two gradient steps on both layers.

With the error E = B - sqrt(D) A^T W / (gamma0 N), a step is W <- W + g A E and A <- A + g W E^T,
g = eta gamma0 / sqrt(C), in the population limit. Correlations between the layers build up: every initial matrix is
used many times.
"""

from sympy import sqrt

from derive import Model, gaussian, nonnegative, parameter, positive, sectors, spectrum

nu = parameter("nu", default=2.0, domain=positive, doc="width over input dimension, N / D")
chi = parameter("chi", default=1.0, domain=positive, doc="outputs over input dimension, C / D")
eta = parameter("eta", default=0.2, domain=nonnegative, doc="learning rate")
gamma0 = parameter("gamma0", default=1.0, domain=positive, doc="output scale")
D, N, C = sectors("D", N=nu, C=chi)
W0, A0, B = gaussian("W0", N, D), gaussian("A0", N, C), gaussian("B", C, D)
g = eta * gamma0 / sqrt(C)


def error(W, A):
    return B - sqrt(D) / (gamma0 * N) * A.T @ W


W1 = W0 + g * A0 @ error(W0, A0)
A1 = A0 + g * W0 @ error(W0, A0).T
W2 = W1 + g * A1 @ error(W1, A1)

MODEL = Model(parameters=(nu, chi, eta, gamma0), probe=spectrum(W2.T @ W2 / N))
