# Written by `derive build extensive_multilayer L=2 layer=1` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Deep linear network with extensively many outputs: one hidden layer after one gradient step.

Weights W0 (N x D) and W1 ... W(L-1) (N x N), readout A (N x C), target B (C x D), all of unit variance. With the
forward map H = W(l-1)/sqrt(N) ... W1/sqrt(N) W0 and the backward map K = W(l+1)^T/sqrt(N) ... W(L-1)^T/sqrt(N) A, the
step on layer l is (gamma0 / sqrt(C D)) K B H^T. Any depth L >= 2 and any hidden layer 1 <= l < L.
"""

NAME = "extensive_multilayer"
# what was chosen of a family of models
CHOICES = (("L", 2), ("layer", 1))
# fingerprint of the declaration
DECLARATION = "4c9e62838e26fa40"
OBSERVABLES = ()
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
PARAMETERS = (
    ("nu", 2.0, False),
    ("chi", 1.0, False),
    ("gamma0", 1.0, False),
)
