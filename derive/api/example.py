"""A small model for the examples of docstrings: a symmetric Gaussian matrix with one planted direction."""

from derive.language.equations import spectrum
from derive.language.matrices import goe, outer
from derive.language.model import Model
from derive.language.symbols import parameter, positive, sectors
from derive.language.vectors import mean, normal

_strength = parameter("strength", default=2.0, domain=positive, doc="size of the planted direction")
_D = sectors("D")
_v = normal("v", _D)

SPIKE = Model(
    name="spike",
    parameters=(_strength,),
    equations=[],
    observe={"norm": mean(_v**2)},
    probe=spectrum(goe("M", _D) + _strength / _D * outer(_v, _v)),
)
