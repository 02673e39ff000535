# Written by `derive build anti_hebbian` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Anti-Hebbian Wigner dynamics: a symmetric matrix that learns the trajectory it drives.

v(t+1) = v(t) - dt M(t) v(t) from a standard normal v(0), and M(t+1) = M(t) + (gamma0 dt / D) v(t) v(t)^T from a
GOE matrix M(0). The spike directions depend on the bulk they are added to. The spectrum is that of M(T).
"""

NAME = "anti_hebbian"
# what was chosen of a family of models
CHOICES = ()
# fingerprint of the declaration
DECLARATION = "565f55f87ba80266"
OBSERVABLES = ("activity", "memory")
# exact forward pass if true, sampled otherwise
LINEAR = True
# parameters that are the number of steps and the number of class labels, where there are any
STEPS = "T"
CLASSES = None
# 1 if fields are there at time 0 and after the last step, 0 if before it only
ENDPOINT = 1
# arrays of data that training and simulation take after the parameters, each with its axes
DATA = ()
# each probed matrix: label, the modules of A(z) and of its bulk, the observable added to its diagonal
PROBES = (("", "probe", "bulk", ""),)
# name, default, whole number: in the order in which all functions take them
PARAMETERS = (
    ("gamma0", 4.0, False),
    ("dt", 0.1, False),
    ("T", 30, True),
)
