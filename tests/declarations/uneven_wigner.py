"""A planted direction in a symmetric matrix whose entries have a variance profile that the direction shares."""

from derive import Model, diag, goe, normal, outer, parameter, positive, sectors, spectrum, trait

theta = parameter("theta", default=3.0)
spread = parameter("spread", default=0.5, domain=positive)

D = sectors("D")
a = trait("a", D, density=lambda x: 1 / x, low=1, high=1 + spread)
u, v = normal("u", D), normal("v", D)

MODEL = Model(
    parameters=(theta, spread),
    probe=spectrum(diag(a) @ goe("M", D) @ diag(a) + theta / D * outer(v + a * u / 2, v + a * u / 2)),
)
