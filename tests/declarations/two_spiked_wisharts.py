"""The sum of two Wishart matrices with spikes in both: A(z) has three different scalars and no cycle."""

from sympy import sqrt

from derive import Model, gaussian, normal, outer, parameter, positive, sectors, spectrum

a = parameter("a", default=2.0, domain=positive)
b = parameter("b", default=1.5, domain=positive)
p = parameter("p", default=2.0)
q = parameter("q", default=1.8)
D, N, P = sectors("D", N=a, P=b)
A, B = gaussian("A", N, D), gaussian("B", P, D)
x, y = normal("x", D), normal("y", D)
u, w = normal("u", N), normal("w", P)
first = A + p * outer(u, x) / sqrt(D)
second = B + q * outer(w, x) / sqrt(D) + q * outer(w, y) / sqrt(D)

MODEL = Model(parameters=(a, b, p, q), probe=spectrum(first.T @ first / N + second.T @ second / P))
