# Written by `derive build anti_hebbian` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""Anti-Hebbian Wigner dynamics: a symmetric matrix that learns the trajectory it drives.

v(t+1) = v(t) - dt M(t) v(t) from a standard normal v(0), and M(t+1) = M(t) + (gamma0 dt / D) v(t) v(t)^T from a
GOE matrix M(0). The spike directions depend on the random matrix to which they are added. The spectrum is that of M(T).
"""

from numerics.runtime.interface import FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting

SETTING = Setting(
    name="anti_hebbian",
    choices=(),
    declaration="e72affd2d2bee725",
    parameters=(
        ParameterOf("gamma0", 4.0, False),
        ParameterOf("dt", 0.1, False),
        ParameterOf("T", 30, True),
    ),
    data=(),
    observables=(
        ObservableOf("activity", 0),
        ObservableOf("memory", 0),
    ),
    fields=(
        FieldOf("v", "D", True, (), True, None),
        FieldOf("M0_v", "D", True, (), False, "v"),
        FieldOf("start", "D", False, (), True, None),
    ),
    exact=True,
    steps="T",
    labels=(),
    endpoint=True,
    probes=(ProbeOf("", "probe", "bulk", ""),),
)
