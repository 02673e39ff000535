"""Free sum of two different Wishart matrices, X^T X / N + c Y^T Y / P, with N = a D and P = b D."""

from derive import Model, gaussian, parameter, positive, sectors, spectrum

a = parameter("a", default=2.0, domain=positive, doc="rows of the first over columns")
b = parameter("b", default=0.6, domain=positive, doc="rows of the second over columns")
c = parameter("c", default=1.5, domain=positive, doc="strength of the second")
D, N, P = sectors("D", N=a, P=b)
X, Y = gaussian("X", N, D), gaussian("Y", P, D)

MODEL = Model(parameters=(a, b, c), probe=spectrum(X.T @ X / N + c * Y.T @ Y / P))
