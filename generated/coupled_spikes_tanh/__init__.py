# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Coupled spikes with nonlinear laws: phi(t) = tanh(a(t) + kappa sum xi), g(t) = theta tanh(b(t) + kappa sum chi).

The model of coupled_spikes with saturating laws, so that the spike vectors are not Gaussian and averages are sampled.
"""

NAME = "coupled_spikes_tanh"
# what was chosen of a family of models
CHOICES = ()
# fingerprint of the declaration
DECLARATION = "bbcf3953f0d1e94f"
OBSERVABLES = ("phi_norm", "g_norm", "alignment")
# exact forward pass if true, sampled otherwise
LINEAR = False
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
