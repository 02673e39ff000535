"""A polynomial of a rectangular, a square and a symmetric Gaussian matrix, each used several times."""

from derive import Model, gaussian, goe, parameter, positive, sectors, spectrum

a = parameter("a", default=1.5, domain=positive, doc="rows over columns of the rectangular matrix")
b = parameter("b", default=0.7, doc="weight of the term in the square matrix")
D, N = sectors("D", N=a)
X, S = gaussian("X", N, D), goe("S", D)
Q = gaussian("Q", D, D, variance=1 / D)

MODEL = Model(parameters=(a, b), probe=spectrum(X.T @ X @ S / N + S @ X.T @ X / N + b * (Q + Q.T) @ S @ (Q + Q.T)))
