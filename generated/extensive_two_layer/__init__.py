# Written by `derive build extensive_two_layer` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Two-layer linear network with extensively many outputs after one gradient step: the whole bulk moves.

Width N = nu D, outputs C = chi D. In the population limit one step from random initialisation adds the product of
readout and target, W(1) = W(0) + (gamma / sqrt(C)) A B*, with gamma = eta gamma0; the part of the gradient that comes
from the network's own output is left out. The spectrum is that of W(1)^T W(1) / N.
"""

from numerics.runtime.interface import ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="extensive_two_layer",
    choices=(),
    declaration="3adac0a4f06a0657",
    parameters=(
        ParameterOf("nu", 2.0, False),
        ParameterOf("chi", 1.0, False),
        ParameterOf("gamma", 1.0, False),
    ),
    data=(),
    observables=(),
    fields=(),
    exact=True,
    steps=None,
    labels=None,
    endpoint=False,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
