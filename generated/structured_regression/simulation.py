# Written by `derive build structured_regression spectrum=two_groups batch=full hessian=no` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""

import numpy as np
import scipy.special as sc

from numerics.runtime.finite_size import Past, average, gaussian, kicked, normal, trait_of_values, whole_sizes
from numerics.runtime.interface import FiniteSize


def sectors(p, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"D": size, "P": p.alpha * size}


def numbers(p, size):
    """Approximate number of numbers that a sample holds at once."""
    # sizes of the sectors
    D, P = whole_sizes(sectors(p, size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = D * P + 3 * D * (p.T + 1) + 2 * D + P * (p.T + 1) + P
    # intermediate products of the probed matrices
    working = 0
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 0
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
    D, P = whole_sizes(sectors(p, size))
    kicks = kicks or {}
    # random matrices and vectors
    Z = gaussian(rng, xp, P, D)
    teacher = normal(rng, xp, D)
    teacher = kicked(teacher, kicks.get("teacher"))
    eps = normal(rng, xp, P)
    eps = kicked(eps, kicks.get("eps"))
    lam = trait_of_values(rng, xp, D, (1, p.kappa), (1 - p.share, p.share))

    def probed():
        return {}

    # training
    w = Past(D, 1, kicks.get("w"))
    u = Past(D, 1, kicks.get("u"))
    delta = Past(P, 1, kicks.get("delta"))
    h = Past(D, 1, kicks.get("h"))
    for t in range(p.T + 1):
        if t == 0:
            w.append(0)
        else:
            w.append(
                p.eta * (h[t - 1] * xp.sqrt(lam) - p.ridge * w[t - 1])
                + p.mu * (w[t - 1] - w[t - 2])
                + w[t - 1]
            )
        u.append(xp.sqrt(lam) * (teacher - w[t]))
        delta.append(p.sigma * eps + (Z @ u[t]) / xp.sqrt(D))
        h.append(xp.sqrt(D) * (Z.T @ delta[t]) / P)
        progress((t + 1) / (p.T + 1))
    # what is observed
    observables = {
        "train_loss": [average(delta[t] ** 2) for t in range(p.T + 1)],
        "test_loss": [p.sigma**2 + average(u[t] ** 2) for t in range(p.T + 1)],
        "distance": [average((teacher - w[t]) ** 2) for t in range(p.T + 1)],
    }
    spikes = {}
    if follow is not None:
        follow({"u": u, "w": w, "teacher": teacher, "delta": delta, "eps": eps, "h": h})
    return probed(), spikes, observables


SIMULATION = FiniteSize(simulate, sectors, numbers)
