# Written by `derive build extensive_two_layer sample=population steps=1 output=left_out` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Two-layer linear network with extensively many outputs after gradient steps on its first layer: the bulk moves.

Width N = nu D, outputs C = chi D, readout A fixed. With the loss |F - Y|^2 / (2 C P), F = A^T W X / (gamma0 N) and
Y = B X / sqrt(D), a step at the learning rate eta gamma0^2 N sqrt(C D) is W <- W + (gamma / sqrt(C)) A E S, with the
error E = B - sqrt(D) A^T W / (gamma0 N) and gamma = eta gamma0. Here S = 1 on the population (sample=population), and
S = X^T X / P on P = alpha D samples that are the same at each step (sample=finite). The error omits the network's own
output, E = B, unless output=included. The spectrum is that of W^T W / N.
"""

from numerics.runtime.interface import ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="extensive_two_layer",
    choices=(("sample", "population"), ("steps", 1), ("output", "left_out")),
    declaration="846b2fc5c680f09c",
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
    labels=(),
    endpoint=False,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
