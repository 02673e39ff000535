# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.1.0) from a declaration; edits are lost.
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


def sectors(alpha, sigma, theta, kappa, S, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"N0": size, "N1": alpha * size}


def numbers(alpha, sigma, theta, kappa, S, size):
    """Roughly how many numbers a sample holds at once."""
    # sizes of the sectors
    N0 = size
    N1 = max(1, round((alpha) * size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = N1 * N0 + 3 * N1 * N0 + S * N0 + S * N1 + S * N1 + S * N0 + S * N0 + S * N1
    # products on the way to the probed matrices
    working = 4 * max(0, N0 * N0)
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * max(0, N0 * N0)
    return held + max(working, spectrum)


def simulate(
    alpha, sigma, theta, kappa, S, size, rng, progress=lambda fraction: None, watch=None, xp=np, special=sc
):
    """One sample with base size `size`: probed matrices by label, for each the directions of its spikes
    on either side and, of K^T K, its half K (as functions), and observables, one row a time.

    `watch(time, probed)` is called at every time; probed() gives the matrices as they then are.
    `xp` and `special` are where arrays and special functions come from: numpy and scipy.special, or
    jax.numpy and jax.scipy.special.
    """
    # sizes of the sectors
    N0 = size
    N1 = max(1, round((alpha) * size))
    # random matrices and vectors
    W0 = (sigma) * xp.asarray(rng.standard_normal((N1, N0)))

    def probed():
        return {"": (N1 ** (-1.0)) * (W.T @ W)}

    # training
    phi = []
    chi = []
    g = []
    xi = []
    a = []
    b = []
    W = W_before = None
    for t in range(S):
        if t == 0:
            W = W0
        else:
            W_before = W
            W = W_before + (1 / xp.sqrt(N0)) * (outer(earlier(g, t - 1, N1), earlier(phi, t - 1, N0)))
        a.append(xp.asarray(rng.standard_normal(N0)))
        b.append(xp.asarray(rng.standard_normal(N1)))
        phi.append(xp.tanh(kappa * sum((xi[s] for s in range(0, t)), 0.0) + a[t]))
        chi.append((W0 @ (phi[t])) / xp.sqrt(N0))
        g.append(theta * xp.tanh(kappa * sum((chi[s] for s in range(0, t)), 0.0) + b[t]))
        xi.append(xp.sqrt(N0) * (W0.T @ (g[t])) / N1)
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (S))
    t = S
    W_before = W
    W = W_before + (1 / xp.sqrt(N0)) * (outer(earlier(g, t - 1, N1), earlier(phi, t - 1, N0)))
    if watch is not None:
        watch(t, probed)
    # what is observed
    observables = {
        "phi_norm": [xp.mean(phi[t] ** 2) for t in range(S)],
        "g_norm": [xp.mean(g[t] ** 2) for t in range(S)],
        "alignment": [xp.mean(chi[t] * g[t]) for t in range(S)],
    }
    spikes = {
        "": {
            "half": lambda: W,
            "right": lambda: xp.concatenate([*(columns(phi[t]) for t in range(S))], axis=1),
            "left": lambda: xp.concatenate([*(columns(g[t]) for t in range(S))], axis=1),
        }
    }
    return probed(), spikes, observables
