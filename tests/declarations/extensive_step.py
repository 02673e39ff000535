"""A pure bulk problem: (W + gamma A B / sqrt(C)) squared, three independent matrices and no fields."""

from sympy import sqrt

from derive import Model, gaussian, parameter, positive, sectors, spectrum

nu = parameter("nu", default=2.0, domain=positive)
chi = parameter("chi", default=1.0, domain=positive)
gamma = parameter("gamma", default=1.0, domain=positive)
D, N, C = sectors("D", N=nu, C=chi)
W, A, B = gaussian("W", N, D), gaussian("A", N, C), gaussian("B", C, D)
step = W + gamma / sqrt(C) * A @ B

MODEL = Model(parameters=(nu, chi, gamma), probe=spectrum(step.T @ step / N))
