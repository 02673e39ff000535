# Written by `derive build anti_hebbian` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""The declaration at finite size: draw the disorder, run the equations, return the probed matrix."""

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
    return np.outer(left, right) if left.ndim == 1 else left @ right.T


def project(left, right, vector):
    """The matrix left right^T times a vector, without making the matrix."""
    if left.ndim == 1:
        return np.multiply.outer(left, right @ vector)
    return left @ (right.T @ vector)


def simulate(gamma0, dt, T, size, rng, progress=lambda fraction: None):
    """One sample with base size `size`: (probed matrix or None, observables: one row a time)."""
    # sizes of the sectors
    D = size
    # random matrices and vectors
    M0 = goe(D, D ** (-1.0), rng)
    start = rng.standard_normal(D)
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
        progress((t + 1) / (T + 1))
    # what is observed
    observables = {
        "activity": [np.mean(v[t] ** 2) for t in range(T + 1)],
        "memory": [np.mean(start * v[t]) for t in range(T + 1)],
    }
    return M, observables
