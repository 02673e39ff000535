# Written by `derive build coupled_spikes_tanh` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Coupled spikes with nonlinear laws: phi(t) = tanh(a(t) + kappa sum xi), g(t) = theta tanh(b(t) + kappa sum chi).

The model of coupled_spikes with saturating laws, so that the spike vectors are not Gaussian and averages are sampled.
"""

from numerics.runtime.interface import FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="coupled_spikes_tanh",
    choices=(),
    declaration="ffd9047eb5c12be0",
    parameters=(
        ParameterOf("alpha", 2.0, False),
        ParameterOf("sigma", 1.0, False),
        ParameterOf("theta", 1.5, False),
        ParameterOf("kappa", 0.5, False),
        ParameterOf("S", 3, True),
    ),
    data=(),
    observables=(
        ObservableOf("phi_norm", 0),
        ObservableOf("g_norm", 0),
        ObservableOf("alignment", 0),
    ),
    fields=(
        FieldOf("phi_input", "N0", True, (), False, None),
        FieldOf("phi", "N0", True, (), True, None),
        FieldOf("chi", "N1", True, (), True, "phi"),
        FieldOf("g_input", "N1", True, (), False, None),
        FieldOf("g", "N1", True, (), True, None),
        FieldOf("xi", "N0", True, (), True, "g"),
        FieldOf("a", "N0", True, (), True, None),
        FieldOf("b", "N1", True, (), True, None),
    ),
    exact=False,
    steps="S",
    labels=(),
    endpoint=False,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
