# Written by `derive build extensive_multilayer L=2 layer=1 sample=population` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Deep linear network with extensively many outputs: one hidden layer after one gradient step.

Weights W0 (N x D) and W1 ... W(L-1) (N x N), readout A (N x C), target B (C x D), all of unit variance. With the
forward map H = W(l-1)/sqrt(N) ... W1/sqrt(N) W0 and the backward map K = W(l+1)^T/sqrt(N) ... W(L-1)^T/sqrt(N) A, the
update of layer l is (gamma0 / sqrt(C D)) K B H^T, or (gamma0 / sqrt(C D)) K B (X^T X / P) H^T on P = alpha D samples X
(sample=finite). Any depth L >= 2 and any hidden layer 1 <= l < L.
"""

from numerics.runtime.interface import ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="extensive_multilayer",
    choices=(("L", 2), ("layer", 1), ("sample", "population")),
    declaration="3374a20597179956",
    parameters=(
        ParameterOf("nu", 2.0, False),
        ParameterOf("chi", 1.0, False),
        ParameterOf("gamma0", 1.0, False),
    ),
    data=(),
    observables=(),
    fields=(),
    exact=True,
    steps=None,
    labels=(),
    endpoint=False,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
