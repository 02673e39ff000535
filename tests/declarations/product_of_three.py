"""Squared singular values of a product of three square Gaussian matrices: Fuss-Catalan moments at sigma = 1."""

from derive import Model, gaussian, parameter, positive, sectors, spectrum

sigma = parameter("sigma", default=1.0, domain=positive, doc="scale of the product")
D = sectors("D")
X, Y, U = (gaussian(name, D, D, variance=1 / D) for name in ("X", "Y", "U"))
product = sigma * U @ Y @ X

MODEL = Model(parameters=(sigma,), probe=spectrum(product.T @ product))
