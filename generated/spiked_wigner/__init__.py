# Written by `derive build spiked_wigner` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Spiked Wigner: a GOE matrix plus one planted direction, M = M0 + (gamma0 / D) v v^T with |v|^2 = D.

The classical BBP problem: the simplest matrix with a bulk and an outlier.
"""

NAME = "spiked_wigner"
# fingerprint of the declaration
DECLARATION = "c0f4ff4fbead957d"
OBSERVABLES = ("spike_norm",)
# exact forward pass if true, sampled otherwise
LINEAR = True
# whether a matrix is probed: probe.py and bulk.py exist
PROBED = True
# name, default, whole number: in the order in which all functions take them
PARAMETERS = (("gamma0", 2.0, False),)
