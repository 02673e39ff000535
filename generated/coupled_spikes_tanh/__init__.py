# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Coupled spikes with nonlinear laws: phi(t) = tanh(a(t) + kappa sum xi), g(t) = theta tanh(b(t) + kappa sum chi).

The model of coupled_spikes with saturating laws, so that the spike vectors are not Gaussian and averages are sampled.
"""

from numerics.runtime.interface import ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="coupled_spikes_tanh",
    choices=(),
    declaration="a6b61ee8a330b8d9",
    parameters=(
        ParameterOf("alpha", 2.0, False),
        ParameterOf("sigma", 1.0, False),
        ParameterOf("theta", 1.5, False),
        ParameterOf("kappa", 0.5, False),
        ParameterOf("S", 3, True),
    ),
    data=(),
    observables=("phi_norm", "g_norm", "alignment"),
    exact=False,
    steps="S",
    labels=None,
    endpoint=False,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
