"""One Wishart matrix X^T X / N with N = alpha D: Marchenko-Pastur with ratio 1/alpha."""

from derive import Model, gaussian, parameter, positive, sectors, spectrum

alpha = parameter("alpha", default=2.0, domain=positive, doc="rows over columns")
D, N = sectors("D", N=alpha)
X = gaussian("X", N, D)

MODEL = Model(parameters=(alpha,), probe=spectrum(X.T @ X / N))
