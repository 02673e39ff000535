"""A product of two random matrices, the first with one Hebb step: no clock, matrices used several times."""

from sympy import sqrt

from derive import Eq, Model, field, gaussian, mean, normal, outer, parameter, positive, sectors, spectrum

a = parameter("a", default=2.0, domain=positive)
b = parameter("b", default=1.5, domain=positive)
p = parameter("p", default=0.8)
D, N, P = sectors("D", N=a, P=b)
A, B = gaussian("A", N, D), gaussian("B", P, N)
x = normal("x", D)
h, f, o = field("h", N), field("f", N), field("o", P)
trained = A + p * outer(f, x) / sqrt(D)

MODEL = Model(
    parameters=(a, b, p),
    equations=[Eq(h, A @ x / sqrt(D)), Eq(o, B @ h / sqrt(N)), Eq(f, B.T @ o / sqrt(N) + h)],
    observe={"output": mean(o**2), "feature": mean(f**2)},
    probe=spectrum(trained.T @ B.T @ B @ trained / N / P),
)
