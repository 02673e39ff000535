# Written by `derive build extensive_multilayer L=2 layer=1` (two-level-dmft 0.1.0) from a declaration; edits are lost.
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


def sectors(nu, chi, gamma0, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"N": nu * size, "D": size, "C": chi * size}


def numbers(nu, chi, gamma0, size):
    """Roughly how many numbers a sample holds at once."""
    # sizes of the sectors
    D = size
    C = max(1, round((chi) * size))
    N = max(1, round((nu) * size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = N * N + N * D + C * D + N * C
    # products on the way to the probed matrices
    working = 4 * max(0, C * N, D * N, N * N)
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * max(0, N * N)
    return held + max(working, spectrum)


def simulate(nu, chi, gamma0, size, rng, progress=lambda fraction: None, watch=None, xp=np, special=sc):
    """One sample with base size `size`: probed matrices by label, for each the directions of its spikes
    on either side and, of K^T K, its half K (as functions), and observables, one row a time.

    `watch(time, probed)` is called at every time; probed() gives the matrices as they then are.
    `xp` and `special` are where arrays and special functions come from: numpy and scipy.special, or
    jax.numpy and jax.scipy.special.
    """
    # sizes of the sectors
    D = size
    C = max(1, round((chi) * size))
    N = max(1, round((nu) * size))
    # random matrices and vectors
    W1 = xp.asarray(rng.standard_normal((N, N)))
    W0 = xp.asarray(rng.standard_normal((N, D)))
    B = xp.asarray(rng.standard_normal((C, D)))
    A = xp.asarray(rng.standard_normal((N, C)))

    def probed():
        return {
            "": (N ** (-1.0))
            * (
                (W1.T + W0 @ B.T @ ((gamma0 / (xp.sqrt(C) * xp.sqrt(D))) * (A.T)))
                @ (W1 + ((gamma0 / (xp.sqrt(C) * xp.sqrt(D))) * (A)) @ B @ W0.T)
            )
        }

    # what is observed
    observables = {}
    spikes = {"": {"half": lambda: W1 + ((gamma0 / (xp.sqrt(C) * xp.sqrt(D))) * (A)) @ B @ W0.T}}
    return probed(), spikes, observables
