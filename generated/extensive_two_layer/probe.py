# Written by `derive build extensive_two_layer sample=population steps=1 output=left_out` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""

from numerics.runtime.interface import Probe
from numerics.runtime.operators import block


def a_matrix(p, z, r, order):
    """A(z), a row of blocks for the equation of each unknown."""
    return block([], ())


PROBE = Probe(
    unknowns=(),
    a_matrix=a_matrix,
    sides=(),
    cycles=(),
    reduced=True,
    steady=True,
)
