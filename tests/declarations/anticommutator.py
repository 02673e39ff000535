"""X Y + Y X for two independent symmetric Gaussian matrices: a law with a cubic curve, each matrix used twice."""

from derive import Model, goe, parameter, positive, sectors, spectrum

scale = parameter("scale", default=1.0, domain=positive, doc="scale")
D = sectors("D")
X, Y = goe("X", D), goe("Y", D)

MODEL = Model(parameters=(scale,), probe=spectrum(scale * (X @ Y + Y @ X)))
