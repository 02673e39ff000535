# Written by `derive build extensive_two_layer` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Two-layer linear network with extensively many outputs after one gradient step: the whole bulk moves.

Width N = nu D, outputs C = chi D. In the population limit one step from random initialisation adds the product of
readout and target, W(1) = W(0) + (gamma / sqrt(C)) A B*, with gamma = eta gamma0; the part of the gradient that comes
from the network's own output is left out. The spectrum is that of W(1)^T W(1) / N.
"""

NAME = "extensive_two_layer"
# what was chosen of a family of models
CHOICES = ()
# fingerprint of the declaration
DECLARATION = "a4912d36be99d0ee"
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
    ("gamma", 1.0, False),
)
