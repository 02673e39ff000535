# Written by `derive build spiked_wigner` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level, exactly: all laws are linear, so all fields are Gaussian and one pass is enough."""

import jax.numpy as jnp

from numerics.runtime.exact import dual, empty, mean_of_labels, products_by_time, series, site, units
from numerics.runtime.interface import ExactTraining


def sites(p, times):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of D: v
    D = site(drawn=((1, 1),))
    return (D,)


def carried(p, times):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    (D,) = sites(p, times)
    return ()


def results(p, state):
    """Order parameters before the last update, observables at all times, times before anything overflowed."""
    times = 1
    (D,) = sites(p, times)
    (in_v,) = D
    () = state
    order = {
        ("C", "v", "v"): dual(units(in_v), D) @ units(in_v).T,
    }
    observables = {
        # spike_norm = <v^2>
        "spike_norm": series(mean_of_labels(products_by_time(dual(units(in_v), D), 1, units(in_v), 1))),
    }
    return order, observables, 1


def forward_pass(p):
    """Order parameters before the last update, observables at all times, and the number of times before
    anything overflowed. Whole-number parameters fix shapes.
    """
    return results(p, empty(carried(p, 1)))


def strides(p):
    """Entries per time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        ("C", "v", "v"): (0, 0),
    }


TRAINING = ExactTraining(forward_pass, strides)
