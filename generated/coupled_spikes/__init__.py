# Written by `derive build coupled_spikes` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Coupled spikes with linear laws: a rectangular Gaussian matrix plus S spikes that depend on it.

W(S) = W(0) + N0^(-1/2) sum_t g(t) phi(t)^T with N1 = alpha N0 and entries of W(0) of variance sigma^2. The spikes
see the initial matrix through chi(t) = W(0) phi(t) / sqrt(N0) and xi(t) = (sqrt(N0) / N1) W(0)^T g(t), and each is
an elementwise law of the earlier ones. The spectrum is that of W(S)^T W(S) / N1.

`declare` takes the two laws, so that another law is one short file (see coupled_spikes_tanh).
"""

NAME = "coupled_spikes"
# what was chosen of a family of models
CHOICES = ()
# fingerprint of the declaration
DECLARATION = "097f0c36391614bc"
OBSERVABLES = ("phi_norm", "g_norm", "alignment")
# exact forward pass if true, sampled otherwise
LINEAR = True
# parameters that are the number of steps and the number of class labels, where there are any
STEPS = "S"
CLASSES = None
# 1 if fields are there at time 0 and after the last step, 0 if before it only
ENDPOINT = 0
# arrays of data that training and simulation take after the parameters, each with its axes
DATA = ()
# each probed matrix: label, the modules of A(z) and of its bulk, the observable added to its diagonal
PROBES = (("", "probe", "bulk", ""),)
# name, default, whole number: in the order in which all functions take them
PARAMETERS = (
    ("alpha", 2.0, False),
    ("sigma", 1.0, False),
    ("theta", 1.5, False),
    ("kappa", 0.5, False),
    ("S", 3, True),
)
