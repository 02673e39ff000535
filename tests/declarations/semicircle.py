"""One symmetric Gaussian matrix of variance sigma^2: the semicircle on [-2 sigma, 2 sigma]."""

from derive import Model, goe, parameter, positive, sectors, spectrum

sigma = parameter("sigma", default=1.0, domain=positive, doc="half of the radius")
D = sectors("D")

MODEL = Model(parameters=(sigma,), probe=spectrum(sigma * goe("M0", D)))
