# Written by `derive build deep_linear L=2 data=full_batch param=mup spectrum=isotropic kernel=shift teachers=alike` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""

import numpy as np
import scipy.special as sc

from numerics.runtime.finite_size import Past, average, columns, gaussian, kicked, normal, outer, whole_sizes
from numerics.runtime.interface import FiniteSize


def sectors(p, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"D": size, "N1": p.nu * size, "P": p.alpha * size, "N2": p.nu * size}


def numbers(p, size):
    """Approximate number of numbers that a sample holds at once."""
    # sizes of the sectors
    D, N1, P, N2 = whole_sizes(sectors(p, size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = (
        2 * p.C * D * (p.T + 1)
        + p.C * D
        + 2 * p.C * N1 * (p.T + 1)
        + 2 * p.C * N2 * (p.T + 1)
        + p.C * N2
        + p.C * P * (p.T + 1)
        + p.C * P
        + 4 * D * N1
        + D * P
        + 4 * N1 * N2
    )
    # intermediate products of the probed matrices
    working = 4 * max(D**2, N1**2)
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * max(D**2, N1**2)
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
    D, N1, P, N2 = whole_sizes(sectors(p, size))
    kicks = kicks or {}
    # random matrices and vectors
    X = gaussian(rng, xp, P, D)
    J0 = gaussian(rng, xp, N1, D)
    J1 = gaussian(rng, xp, N2, N1)
    teacher = normal(rng, xp, D, p.C)
    teacher = kicked(teacher, kicks.get("teacher"))
    eps = normal(rng, xp, P, p.C)
    eps = kicked(eps, kicks.get("eps"))
    readout = normal(rng, xp, N2, p.C)
    readout = kicked(readout, kicks.get("readout"))

    def probed():
        return {
            "0": (1 / N1) * (W0.T @ W0),
            "1": (1 / N2) * (W1.T @ W1),
        }

    # training
    g2 = Past(N2, p.C, kicks.get("g2"))
    g1 = Past(N1, p.C, kicks.get("g1"))
    v = Past(D, p.C, kicks.get("v"))
    delta = Past(P, p.C, kicks.get("delta"))
    h0 = Past(D, p.C, kicks.get("h0"))
    h1 = Past(N1, p.C, kicks.get("h1"))
    h2 = Past(N2, p.C, kicks.get("h2"))
    W0 = xp.zeros((N1, D))
    W1 = xp.zeros((N2, N1))
    for t in range(p.T + 1):
        W0_before, W1_before = W0, W1
        if t == 0:
            W0 = J0
        else:
            W0 = W0_before + (p.eta * p.gamma0 / xp.sqrt(D)) * outer(g1[t - 1], h0[t - 1])
        if t == 0:
            W1 = J1
        else:
            W1 = W1_before + (p.eta * p.gamma0 / xp.sqrt(N1)) * outer(g2[t - 1], h1[t - 1])
        if t == 0:
            g2.append(readout)
        else:
            g2.append(p.eta * p.gamma0 * h2[t - 1] + g2[t - 1])
        g1.append((W1.T @ g2[t]) / xp.sqrt(N1))
        v.append(teacher - xp.sqrt(D) * (W0.T @ g1[t]) / (p.gamma0 * N1))
        delta.append(p.sigma * eps + (X @ v[t]) / xp.sqrt(D))
        h0.append(xp.sqrt(D) * (X.T @ delta[t]) / P)
        h1.append((W0 @ h0[t]) / xp.sqrt(D))
        h2.append((W1 @ h1[t]) / xp.sqrt(N1))
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (p.T + 1))
    # what is observed
    observables = {
        "train_loss": [average(delta[t] ** 2) for t in range(p.T + 1)],
        "test_loss": [p.sigma**2 + average(v[t] ** 2) for t in range(p.T + 1)],
    }
    spikes = {
        "0": {
            "half": lambda: W0,
            "right": lambda: columns(xp, D, (h0[t] for t in range(p.T))),
            "left": lambda: columns(xp, N1, (g1[t] for t in range(p.T))),
        },
        "1": {
            "half": lambda: W1,
            "right": lambda: columns(xp, N1, (h1[t] for t in range(p.T))),
            "left": lambda: columns(xp, N2, (g2[t] for t in range(p.T))),
        },
    }
    if follow is not None:
        follow(
            {
                "v": v,
                "g1": g1,
                "teacher": teacher,
                "delta": delta,
                "eps": eps,
                "h0": h0,
                "g2": g2,
                "readout": readout,
                "h2": h2,
                "h1": h1,
            }
        )
    return probed(), spikes, observables


SIMULATION = FiniteSize(simulate, sectors, numbers)
