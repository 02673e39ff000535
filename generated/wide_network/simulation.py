# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` from a declaration; edits are lost.
# The mathematics is in derivation.md in this directory.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""

import numpy as np
import scipy.special as sc

from numerics.runtime.finite_size import (
    Past,
    average,
    by_label,
    columns,
    gaussian,
    given,
    kicked,
    mean,
    normal,
    outer,
    total,
    total_number,
    whole_sizes,
)
from numerics.runtime.interface import FiniteSize


def sectors(p, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"N": size}


def numbers(p, size):
    """Approximate number of numbers that a sample holds at once."""
    # sizes of the sectors
    (N,) = whole_sizes(sectors(p, size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = 15 * p.B * N * (p.T + 1) + p.D * N * (p.T + 1) + p.D * N + 8 * N**2 + N * (p.T + 1) + N
    # intermediate products of the probed matrices
    working = 4 * N**2
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * N**2
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
    (N,) = whole_sizes(sectors(p, size))
    kicks = kicks or {}
    # random matrices and vectors
    J1 = p.sigma * gaussian(rng, xp, N, N)
    J2 = p.sigma * gaussian(rng, xp, N, N)
    V0 = p.sigma * normal(rng, xp, N, p.D)
    V0 = kicked(V0, kicks.get("V0"))
    w0 = p.sigma * normal(rng, xp, N)
    w0 = kicked(w0, kicks.get("w0"))

    def probed():
        return {
            "1": (1 / N) * (W1.T @ W1),
            "2": (1 / N) * (W2.T @ W2),
        }

    # training
    V = Past(N, p.D, kicks.get("V"))
    w = Past(N, 1, kicks.get("w"))
    h1 = Past(N, p.B, kicks.get("h1"))
    phi1 = Past(N, p.B, kicks.get("phi1"))
    h2 = Past(N, p.B, kicks.get("h2"))
    phi2 = Past(N, p.B, kicks.get("phi2"))
    h3 = Past(N, p.B, kicks.get("h3"))
    phi3 = Past(N, p.B, kicks.get("phi3"))
    pushed = Past(N, p.B, kicks.get("pushed"))
    g3 = Past(N, p.B, kicks.get("g3"))
    z2 = Past(N, p.B, kicks.get("z2"))
    g2 = Past(N, p.B, kicks.get("g2"))
    z1 = Past(N, p.B, kicks.get("z1"))
    g1 = Past(N, p.B, kicks.get("g1"))
    spike1 = Past(N, p.B, kicks.get("spike1"))
    spike2 = Past(N, p.B, kicks.get("spike2"))
    spike3 = Past(N, p.B, kicks.get("spike3"))
    W1 = xp.zeros((N, N))
    W2 = xp.zeros((N, N))
    for t in range(p.T + 1):
        W1_before, W2_before = W1, W2
        if t == 0:
            W1 = J1
        else:
            W1 = W1_before + (p.eta * p.gamma / xp.sqrt(N)) * outer(spike2[t - 1], phi1[t - 1])
        if t == 0:
            W2 = J2
        else:
            W2 = W2_before + (p.eta * p.gamma / xp.sqrt(N)) * outer(spike3[t - 1], phi2[t - 1])
        if t == 0:
            V.append(V0)
        else:
            V.append(V[t - 1] + p.eta * p.gamma * (spike1[t - 1] @ given(p.x, t - 1)) / xp.sqrt(p.D))
        if t == 0:
            w.append(w0)
        else:
            w.append(p.eta * p.gamma * total(pushed[t - 1]) + w[t - 1])
        h1.append((V[t] @ given(p.x, t).T) / xp.sqrt(p.D))
        phi1.append(xp.tanh(h1[t]))
        h2.append((W1 @ phi1[t]) / xp.sqrt(N))
        phi2.append(xp.tanh(h2[t]))
        h3.append((W2 @ phi2[t]) / xp.sqrt(N))
        phi3.append(xp.tanh(h3[t]))
        pushed.append(phi3[t] * (given(p.y, t) - mean(phi3[t] * w[t]) / p.gamma) / p.B)
        g3.append(w[t] * (1 - xp.tanh(h3[t]) ** 2))
        z2.append((W2.T @ g3[t]) / xp.sqrt(N))
        g2.append(z2[t] * (1 - xp.tanh(h2[t]) ** 2))
        z1.append((W1.T @ g2[t]) / xp.sqrt(N))
        g1.append(z1[t] * (1 - xp.tanh(h1[t]) ** 2))
        spike1.append(g1[t] * (given(p.y, t) - mean(phi3[t] * w[t]) / p.gamma) / p.B)
        spike2.append(g2[t] * (given(p.y, t) - mean(phi3[t] * w[t]) / p.gamma) / p.B)
        spike3.append(g3[t] * (given(p.y, t) - mean(phi3[t] * w[t]) / p.gamma) / p.B)
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (p.T + 1))
    # what is observed
    observables = {
        "loss": [
            total_number((1 / 2) * (mean(phi3[t] * w[t]) / p.gamma - given(p.y, t)) ** 2 / p.B)
            for t in range(p.T + 1)
        ],
        "prediction": [by_label(mean(phi3[t] * w[t]) / p.gamma) for t in range(p.T + 1)],
        "features1": [average(phi1[t] ** 2) for t in range(p.T + 1)],
        "features2": [average(phi2[t] ** 2) for t in range(p.T + 1)],
        "features3": [average(phi3[t] ** 2) for t in range(p.T + 1)],
        "gradients1": [average(g1[t] ** 2) for t in range(p.T + 1)],
        "gradients2": [average(g2[t] ** 2) for t in range(p.T + 1)],
        "gradients3": [average(g3[t] ** 2) for t in range(p.T + 1)],
    }
    spikes = {
        "1": {
            "half": lambda: W1,
            "right": lambda: columns(xp, N, (phi1[t] for t in range(p.T))),
            "left": lambda: columns(xp, N, (spike2[t] for t in range(p.T))),
        },
        "2": {
            "half": lambda: W2,
            "right": lambda: columns(xp, N, (phi2[t] for t in range(p.T))),
            "left": lambda: columns(xp, N, (spike3[t] for t in range(p.T))),
        },
    }
    if follow is not None:
        follow(
            {
                "V": V,
                "V0": V0,
                "spike1": spike1,
                "w": w,
                "w0": w0,
                "pushed": pushed,
                "phi3": phi3,
                "h1": h1,
                "phi1": phi1,
                "g1": g1,
                "z1": z1,
                "h2": h2,
                "g2": g2,
                "spike2": spike2,
                "phi2": phi2,
                "z2": z2,
                "h3": h3,
                "g3": g3,
                "spike3": spike3,
            }
        )
    return probed(), spikes, observables


SIMULATION = FiniteSize(simulate, sectors, numbers)
