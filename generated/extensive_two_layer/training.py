# Written by `derive build extensive_two_layer sample=population steps=1 output=left_out` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level, exactly: all laws are linear, so all fields are Gaussian, in one pass."""

from numerics.runtime.program import Training


def order(p, x):
    """Order parameters before the last update."""
    return {}


TRAINING = Training(
    closure="exact",
    times=lambda p: 1,
    before=lambda p: 1,
    vectors=(),
    products=(),
    observables=(),
    step=None,
    order=order,
)
