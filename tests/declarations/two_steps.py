"""Two-layer linear network with extensively many outputs: two gradient steps on the hidden layer, readout fixed.

Each step is W <- W + (eta gamma0 / sqrt(C)) A E with the error E = B - sqrt(D) A^T W / (gamma0 N), in the
population limit.
"""

from sympy import sqrt

from derive import Model, gaussian, nonnegative, parameter, positive, sectors, spectrum

nu = parameter("nu", default=2.0, domain=positive, doc="width over input dimension, N / D")
chi = parameter("chi", default=1.0, domain=positive, doc="outputs over input dimension, C / D")
eta = parameter("eta", default=0.5, domain=nonnegative, doc="learning rate")
gamma0 = parameter("gamma0", default=1.0, domain=nonnegative, doc="output scale")
D, N, C = sectors("D", N=nu, C=chi)
W0, A, B = gaussian("W0", N, D), gaussian("A", N, C), gaussian("B", C, D)


def step(W):
    return W + eta * gamma0 / sqrt(C) * A @ B - eta / sqrt(chi) / N * A @ A.T @ W


W2 = step(step(W0))

MODEL = Model(parameters=(nu, chi, eta, gamma0), probe=spectrum(W2.T @ W2 / N))
