# Written by `derive build spiked_wigner` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Spiked Wigner: a GOE matrix plus one planted direction, M = M0 + (gamma0 / D) v v^T with |v|^2 = D.

The classical BBP problem: the simplest matrix with a bulk and an outlier.
"""

NAME = "spiked_wigner"
# what was chosen of a family of models
CHOICES = ()
# fingerprint of the declaration
DECLARATION = "1b578f93ebc03093"
OBSERVABLES = ("spike_norm",)
# exact forward pass if true, sampled otherwise
LINEAR = True
# parameters that are the number of steps and the number of class labels, where there are any
STEPS = None
CLASSES = None
# 1 if fields are there at time 0 and after the last step, 0 if before it only
ENDPOINT = 0
# arrays of data that training and simulation take after the parameters, each with its axes
DATA = ()
# each probed matrix: label, the modules of A(z) and of its bulk, the observable added to its diagonal
PROBES = (("", "probe", "bulk", ""),)
# name, default, whole number: in the order in which all functions take them
PARAMETERS = (("gamma0", 2.0, False),)
