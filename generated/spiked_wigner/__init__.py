# Written by `derive build spiked_wigner` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Spiked Wigner: a GOE matrix plus one planted direction, M = M0 + (gamma0 / D) v v^T with |v|^2 = D.

The classical BBP problem: the simplest matrix with a bulk and an outlier.
"""

NAME = "spiked_wigner"
# what was chosen of a family of models
CHOICES = ()
# fingerprint of the declaration
DECLARATION = "fd391bd2b1f92065"
OBSERVABLES = ("spike_norm",)
# exact forward pass if true, sampled otherwise
LINEAR = True
# parameters that are the number of steps and the number of class labels, where there are any
STEPS = None
CLASSES = None
# each probed matrix: label, the modules of A(z) and of its bulk, the observable added to its diagonal
PROBES = (("", "probe", "bulk", ""),)
# name, default, whole number: in the order in which all functions take them
PARAMETERS = (("gamma0", 2.0, False),)
