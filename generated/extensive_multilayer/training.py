# Written by `derive build extensive_multilayer L=2 layer=1 sample=population` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level, exactly: all laws are linear, so all fields are Gaussian and one pass is enough."""

import jax.numpy as jnp

from numerics.runtime.exact import empty
from numerics.runtime.interface import ExactTraining


def sites(p, times):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    return ()


def carried(p, times):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    return ()


def results(p, state):
    """Order parameters before the last update, observables at all times, times before anything overflowed."""
    times = 1
    () = state
    order = {}
    observables = {}
    return order, observables, 1


def forward_pass(p):
    """Order parameters before the last update, observables at all times, and the number of times before
    anything overflowed. Whole-number parameters fix shapes.
    """
    return results(p, empty(carried(p, 1)))


def strides(p):
    """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
    return {}


TRAINING = ExactTraining(forward_pass, strides)
