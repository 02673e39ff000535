# Written by `derive build spiked_wigner` (two-level-dmft 0.3.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Two-time functions of all fields: the forward pass again, with sources in all equations."""

import jax.numpy as jnp

from numerics.runtime.exact import empty, site, units
from numerics.runtime.interface import TwoTimeOf
from numerics.runtime.two_time import Rows, two_time


def sites(p, times, wanted):
    """The Gaussian variables of a site: the noises of each random matrix, then what is drawn; times x labels."""
    # a site of D: v
    D = site(drawn=((1, 1),))
    return (D,)


def carried(p, times, wanted):
    """The axes of all that is carried through time, each as the lengths of its parts."""
    (D,) = sites(p, times, wanted)
    return ()


def results(p, wanted, state):
    """The two-time functions asked for, and the number of times before anything overflowed."""
    times = 1
    (D,) = sites(p, times, wanted)
    (in_v,) = D
    () = state
    fields = {
        "v": Rows(units(in_v), 1, in_v, 1, D, ()),
    }
    return two_time(wanted, fields), 1


def forward_pass(p, wanted):
    """Two-time functions, wanted as ("C", a, b) and ("R", a, b), each as times of a x labels of a x times
    of b x labels of b, and the number of times before anything overflowed.
    """
    return results(p, wanted, empty(carried(p, 1, wanted)))


TWO_TIME = TwoTimeOf(
    forward_pass,
    {},
)
