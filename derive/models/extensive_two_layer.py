"""Two-layer linear network with extensively many outputs after one gradient step: the whole bulk moves.

Width N = nu D, outputs C = chi D. In the population limit one step from random initialisation adds the product of
readout and target, W(1) = W(0) + (gamma / sqrt(C)) A B*, with gamma = eta gamma0; the part of the gradient that comes
from the network's own output is left out. The spectrum is that of W(1)^T W(1) / N.
"""

from sympy import sqrt

from derive import Model, gaussian, nonnegative, parameter, positive, sectors, spectrum

nu = parameter("nu", default=2.0, domain=positive, doc="width over input dimension, N / D")
chi = parameter("chi", default=1.0, domain=positive, doc="outputs over input dimension, C / D")
gamma = parameter("gamma", default=1.0, domain=nonnegative, doc="strength of the step, eta gamma0")
D, N, C = sectors("D", N=nu, C=chi)
W0 = gaussian("W0", N, D)
A = gaussian("A", N, C)
B = gaussian("B", C, D)
W1 = W0 + gamma / sqrt(C) * A @ B

MODEL = Model(parameters=(nu, chi, gamma), probe=spectrum(W1.T @ W1 / N))
