# Written by `derive build coupled_spikes` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Coupled spikes with linear laws: a rectangular Gaussian matrix plus S spikes that depend on it.

W(S) = W(0) + N0^(-1/2) sum_t g(t) phi(t)^T with N1 = alpha N0 and entries of W(0) of variance sigma^2. The spikes
see the initial matrix through chi(t) = W(0) phi(t) / sqrt(N0) and xi(t) = (sqrt(N0) / N1) W(0)^T g(t), and each is
an elementwise law of the earlier ones. The spectrum is that of W(S)^T W(S) / N1.

`declare` takes the two laws, so that a model with other laws is a short file (see coupled_spikes_tanh).
"""

from numerics.runtime.interface import FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="coupled_spikes",
    choices=(),
    declaration="7800a90355bba1d8",
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
        FieldOf("phi", "N0", True, (), True, None),
        FieldOf("chi", "N1", True, (), True, "phi"),
        FieldOf("g", "N1", True, (), True, None),
        FieldOf("xi", "N0", True, (), True, "g"),
        FieldOf("a", "N0", True, (), True, None),
        FieldOf("b", "N1", True, (), True, None),
    ),
    exact=True,
    steps="S",
    labels=(),
    endpoint=False,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
