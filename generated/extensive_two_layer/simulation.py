# Written by `derive build extensive_two_layer sample=population steps=1 output=left_out` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""

import numpy as np
import scipy.special as sc

from numerics.runtime.finite_size import gaussian, whole_sizes
from numerics.runtime.interface import FiniteSize


def sectors(p, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"N": p.nu * size, "D": size, "C": p.chi * size}


def numbers(p, size):
    """Approximate number of numbers that a sample holds at once."""
    # sizes of the sectors
    N, D, C = whole_sizes(sectors(p, size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = C * D + C * N + D * N
    # intermediate products of the probed matrices
    working = 4 * max(C * N, D**2, D * N)
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * D**2
    return held + max(working, spectrum)


def simulate(
    p, size, rng, progress=lambda fraction: None, watch=None, kicks=None, follow=None, xp=np, special=sc
):
    """One sample with base size `size`: probed matrices by label, for each the directions of its spikes
    on either side and, of K^T K, its half K (as functions), and observables, one row per time.

    `watch(time, probed)` is called at every time; probed() returns the current matrices. kicks: by field, the impulses
    added to the right side of its equation, times x sites x labels. `follow(fields)` is called at the end with all
    fields by name: vectors, or series of them. `xp` and `special` are the modules of arrays and special functions:
    numpy and scipy.special, or jax.numpy and jax.scipy.special. A vector has two axes, sites x labels.
    """
    # sizes of the sectors
    N, D, C = whole_sizes(sectors(p, size))
    kicks = kicks or {}
    # random matrices and vectors
    W0 = gaussian(rng, xp, N, D)
    B = gaussian(rng, xp, C, D)
    A = gaussian(rng, xp, N, C)

    def probed():
        return {
            "": (1 / N)
            * ((W0.T + B.T @ ((p.gamma / xp.sqrt(C)) * A.T)) @ (W0 + ((p.gamma / xp.sqrt(C)) * A) @ B)),
        }

    # what is observed
    observables = {}
    spikes = {
        "": {
            "half": lambda: W0 + ((p.gamma / xp.sqrt(C)) * A) @ B,
        },
    }
    if follow is not None:
        follow({})
    return probed(), spikes, observables


SIMULATION = FiniteSize(simulate, sectors, numbers)
