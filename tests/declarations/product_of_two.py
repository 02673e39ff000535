"""Squared singular values of a product of two Gaussian matrices, (Y X)^T Y X / (N P)."""

from derive import Model, gaussian, parameter, positive, sectors, spectrum

a = parameter("a", default=1.0, domain=positive, doc="rows of the first over columns")
b = parameter("b", default=1.0, domain=positive, doc="rows of the second over columns of the first")
D, N, P = sectors("D", N=a, P=b)
X, Y = gaussian("X", N, D), gaussian("Y", P, N)
product = Y @ X

MODEL = Model(parameters=(a, b), probe=spectrum(product.T @ product / N / P))
