"""Two-layer linear network with extensively many outputs: the whole first gradient step, own output included.

The loss |F - Y|^2 / (2 C P) with F = A^T W X / (gamma0 N) and Y = B X / sqrt(D), at P -> infinity and learning rate
eta gamma0^2 N sqrt(C D), gives W(1) = W(0) + (eta gamma0 / sqrt(C)) A B - eta sqrt(D/C) A A^T W(0) / N: the last term
is the network's own output at initialisation, and eta and gamma0 enter separately.
"""

from sympy import sqrt

from derive import Model, gaussian, nonnegative, parameter, positive, sectors, spectrum

nu = parameter("nu", default=2.0, domain=positive, doc="width over input dimension, N / D")
chi = parameter("chi", default=1.0, domain=positive, doc="outputs over input dimension, C / D")
eta = parameter("eta", default=0.5, domain=nonnegative, doc="learning rate")
gamma0 = parameter("gamma0", default=1.0, domain=nonnegative, doc="output scale")
D, N, C = sectors("D", N=nu, C=chi)
W0, A, B = gaussian("W0", N, D), gaussian("A", N, C), gaussian("B", C, D)
W1 = W0 + eta * gamma0 / sqrt(C) * A @ B - eta / sqrt(chi) * A @ A.T @ W0 / N

MODEL = Model(parameters=(nu, chi, eta, gamma0), probe=spectrum(W1.T @ W1 / N))
