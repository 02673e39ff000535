# Written by `derive build anti_hebbian` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""

import numpy as np
import scipy.special as sc  # noqa: F401


def goe(size, variance, rng):
    """Symmetric Gaussian matrix: off-diagonal entries of the given variance, twice that on the diagonal."""
    entries = rng.standard_normal((size, size))
    return np.sqrt(variance / 2) * (entries + entries.T)


def earlier(values, time, shape):
    """A field at an earlier time; before the start everything is zero."""
    return values[time] if time >= 0 else np.zeros(shape)


def outer(left, right):
    """left right^T; class labels, the second axis, are summed over."""
    return left[:, None] * right[None, :] if left.ndim == 1 else left @ right.T


def columns(vector):
    """A vector as one column; one with class labels has a column for each already."""
    return vector[:, None] if vector.ndim == 1 else vector


def project(left, right, vector):
    """The matrix left right^T times a vector, without making the matrix."""
    if left.ndim > 1:
        return left @ (right.T @ vector)
    found = right @ vector
    return left * found if found.ndim == 0 else left[:, None] * found[None, :]


def sectors(gamma0, dt, T, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"D": size}


def numbers(gamma0, dt, T, size):
    """Roughly how many numbers a sample holds at once."""
    # sizes of the sectors
    D = size
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = 3 * D * D + 3 * D * D + (T + 1) * D + D
    # products on the way to the probed matrices
    working = 0
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * max(0, D * D)
    return held + max(working, spectrum)


def simulate(gamma0, dt, T, size, rng, progress=lambda fraction: None, watch=None, xp=np, special=sc):
    """One sample with base size `size`: probed matrices by label, for each the directions of its spikes
    on either side and, of K^T K, its half K (as functions), and observables, one row a time.

    `watch(time, probed)` is called at every time; probed() gives the matrices as they then are.
    `xp` and `special` are where arrays and special functions come from: numpy and scipy.special, or
    jax.numpy and jax.scipy.special.
    """
    # sizes of the sectors
    D = size
    # random matrices and vectors
    M0 = xp.asarray(goe(D, D ** (-1.0), rng))
    start = xp.asarray(rng.standard_normal(D))

    def probed():
        return {"": M}

    # training
    v = []
    M = M_before = None
    for t in range(T + 1):
        if t == 0:
            M = M0
        else:
            M_before = M
            M = M_before + (dt * gamma0 / D) * (outer(earlier(v, t - 1, D), earlier(v, t - 1, D)))
        if t == 0:
            v.append(start)
        else:
            v.append(-dt * (M_before @ (earlier(v, t - 1, D))) + earlier(v, t - 1, D))
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (T + 1))
    # what is observed
    observables = {
        "activity": [xp.mean(v[t] ** 2) for t in range(T + 1)],
        "memory": [xp.mean(start * v[t]) for t in range(T + 1)],
    }
    spikes = {"": {"right": lambda: xp.concatenate([*(columns(v[t]) for t in range(T))], axis=1)}}
    return probed(), spikes, observables
