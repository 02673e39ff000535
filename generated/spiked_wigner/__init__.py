# Written by `derive build spiked_wigner` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Spiked Wigner: a GOE matrix plus one planted direction, M = M0 + (gamma0 / D) v v^T with |v|^2 = D.

The classical BBP problem: the simplest matrix with a bulk and an outlier.
"""

from numerics.runtime.interface import FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="spiked_wigner",
    choices=(),
    declaration="7d88688acc9324e6",
    parameters=(ParameterOf("gamma0", 2.0, False),),
    data=(),
    observables=(ObservableOf("spike_norm", 0),),
    fields=(FieldOf("v", "D", False, (), True, None),),
    exact=True,
    steps=None,
    labels=(),
    endpoint=False,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
