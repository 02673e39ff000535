# Written by `derive build spiked_wigner` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Training level, exactly: all laws are linear, so all fields are Gaussian, in one pass."""

from numerics.runtime.program import Recorded, Training, Vector


def start(p, x):
    """Fields without time."""
    # spike_norm = <v^2>
    x.record("spike_norm", x.mean((x.drawn("v") * x.drawn("v")), 0))


def order(p, x):
    """Order parameters before the last update."""
    return {
        ("C", "v", "v"): x.correlation("v", "v"),
    }


TRAINING = Training(
    closure="exact",
    times=lambda p: 1,
    before=lambda p: 1,
    vectors=(Vector("v", "D", timed=False, role="normal"),),
    products=(),
    observables=(Recorded("spike_norm", timed=False),),
    step=None,
    order=order,
    start=start,
)
