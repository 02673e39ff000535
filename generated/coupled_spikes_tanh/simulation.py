# Written by `derive build coupled_spikes_tanh` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""

import numpy as np
import scipy.special as sc

from numerics.runtime.finite_size import Past, average, columns, gaussian, normal, outer, whole_sizes
from numerics.runtime.interface import FiniteSize


def sectors(p, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"N0": size, "N1": p.alpha * size}


def numbers(p, size):
    """Approximate number of numbers that a sample holds at once."""
    # sizes of the sectors
    N0, N1 = whole_sizes(sectors(p, size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = 3 * p.S * N0 + 3 * p.S * N1 + 4 * N0 * N1
    # intermediate products of the probed matrices
    working = 4 * N0**2
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * N0**2
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
    N0, N1 = whole_sizes(sectors(p, size))
    kicks = kicks or {}
    # random matrices and vectors
    W0 = p.sigma * gaussian(rng, xp, N1, N0)

    def probed():
        return {
            "": (1 / N1) * (W.T @ W),
        }

    # training
    phi = Past(N0, 1, kicks.get("phi"))
    chi = Past(N1, 1, kicks.get("chi"))
    g = Past(N1, 1, kicks.get("g"))
    xi = Past(N0, 1, kicks.get("xi"))
    a = Past(N0, 1, kicks.get("a"))
    b = Past(N1, 1, kicks.get("b"))
    W = xp.zeros((N1, N0))
    for t in range(p.S):
        W_before = W
        a.append(normal(rng, xp, N0))
        b.append(normal(rng, xp, N1))
        if t == 0:
            W = W0
        else:
            W = W_before + (1 / xp.sqrt(N0)) * outer(g[t - 1], phi[t - 1])
        phi.append(xp.tanh(p.kappa * sum((xi[s] for s in range(t)), xp.zeros((N0, 1))) + a[t]))
        chi.append((W0 @ phi[t]) / xp.sqrt(N0))
        g.append(p.theta * xp.tanh(p.kappa * sum((chi[s] for s in range(t)), xp.zeros((N1, 1))) + b[t]))
        xi.append(xp.sqrt(N0) * (W0.T @ g[t]) / N1)
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (p.S))
    t = p.S
    W_before = W
    if t == 0:
        W = W0
    else:
        W = W_before + (1 / xp.sqrt(N0)) * outer(g[t - 1], phi[t - 1])
    if watch is not None:
        watch(t, probed)
    # what is observed
    observables = {
        "phi_norm": [average(phi[t] ** 2) for t in range(p.S)],
        "g_norm": [average(g[t] ** 2) for t in range(p.S)],
        "alignment": [average(chi[t] * g[t]) for t in range(p.S)],
    }
    spikes = {
        "": {
            "half": lambda: W,
            "right": lambda: columns(xp, N0, (phi[t] for t in range(p.S))),
            "left": lambda: columns(xp, N1, (g[t] for t in range(p.S))),
        },
    }
    if follow is not None:
        follow({"phi": phi, "xi": xi, "a": a, "g": g, "chi": chi, "b": b})
    return probed(), spikes, observables


SIMULATION = FiniteSize(simulate, sectors, numbers)
