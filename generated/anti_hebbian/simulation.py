# Written by `derive build anti_hebbian` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""

import numpy as np
import scipy.special as sc

from numerics.runtime.finite_size import Past, average, columns, goe, kicked, normal, outer, whole_sizes
from numerics.runtime.interface import FiniteSize


def sectors(p, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"D": size}


def numbers(p, size):
    """Approximate number of numbers that a sample holds at once."""
    # sizes of the sectors
    (D,) = whole_sizes(sectors(p, size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = 6 * D**2 + D * (p.T + 1) + D
    # intermediate products of the probed matrices
    working = 0
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
    (D,) = whole_sizes(sectors(p, size))
    kicks = kicks or {}
    # random matrices and vectors
    M0 = goe(rng, xp, D, 1 / D)
    start = normal(rng, xp, D)
    start = kicked(start, kicks.get("start"))

    def probed():
        return {
            "": M,
        }

    # training
    v = Past(D, 1, kicks.get("v"))
    M = xp.zeros((D, D))
    for t in range(p.T + 1):
        M_before = M
        if t == 0:
            M = M0
        else:
            M = M_before + (p.dt * p.gamma0 / D) * outer(v[t - 1], v[t - 1])
        if t == 0:
            v.append(start)
        else:
            v.append(v[t - 1] - p.dt * (M_before @ v[t - 1]))
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (p.T + 1))
    # what is observed
    observables = {
        "activity": [average(v[t] ** 2) for t in range(p.T + 1)],
        "memory": [average(start * v[t]) for t in range(p.T + 1)],
    }
    spikes = {
        "": {
            "right": lambda: columns(xp, D, (v[t] for t in range(p.T))),
        },
    }
    if follow is not None:
        follow({"v": v, "start": start})
    return probed(), spikes, observables


SIMULATION = FiniteSize(simulate, sectors, numbers)
