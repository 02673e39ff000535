# Written by `derive build deep_linear L=2 data=full_batch param=mup` (two-level-dmft 0.1.0) from a declaration; edits are lost.
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


def sectors(alpha, nu, gamma0, eta, sigma, T, C, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"D": size, "N1": nu * size, "P": alpha * size, "N2": nu * size}


def numbers(alpha, nu, gamma0, eta, sigma, T, C, size):
    """Roughly how many numbers a sample holds at once."""
    # sizes of the sectors
    D = size
    N1 = max(1, round((nu) * size))
    N2 = max(1, round((nu) * size))
    P = max(1, round((alpha) * size))
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = (
        P * D
        + N1 * D
        + N2 * N1
        + 3 * N1 * D
        + 3 * N2 * N1
        + (T + 1) * C * N2
        + (T + 1) * C * N1
        + (T + 1) * C * D
        + (T + 1) * C * P
        + (T + 1) * C * D
        + (T + 1) * C * N1
        + (T + 1) * C * N2
        + C * D
        + C * P
        + C * N2
    )
    # products on the way to the probed matrices
    working = 4 * max(0, D * D, N1 * N1)
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * max(0, D * D, N1 * N1)
    return held + max(working, spectrum)


def simulate(
    alpha,
    nu,
    gamma0,
    eta,
    sigma,
    T,
    C,
    size,
    rng,
    progress=lambda fraction: None,
    watch=None,
    xp=np,
    special=sc,
):
    """One sample with base size `size`: probed matrices by label, for each the directions of its spikes
    on either side and, of K^T K, its half K (as functions), and observables, one row a time.

    `watch(time, probed)` is called at every time; probed() gives the matrices as they then are.
    `xp` and `special` are where arrays and special functions come from: numpy and scipy.special, or
    jax.numpy and jax.scipy.special.
    """
    # sizes of the sectors
    D = size
    N1 = max(1, round((nu) * size))
    N2 = max(1, round((nu) * size))
    P = max(1, round((alpha) * size))
    # random matrices and vectors
    X = xp.asarray(rng.standard_normal((P, D)))
    J0 = xp.asarray(rng.standard_normal((N1, D)))
    J1 = xp.asarray(rng.standard_normal((N2, N1)))
    teacher = xp.asarray(rng.standard_normal((D, C)))
    eps = xp.asarray(rng.standard_normal((P, C)))
    readout = xp.asarray(rng.standard_normal((N2, C)))

    def probed():
        return {"0": (N1 ** (-1.0)) * (W0.T @ W0), "1": (N2 ** (-1.0)) * (W1.T @ W1)}

    # training
    g2 = []
    g1 = []
    v = []
    delta = []
    h0 = []
    h1 = []
    h2 = []
    W0 = W0_before = None
    W1 = W1_before = None
    for t in range(T + 1):
        if t == 0:
            W0 = J0
            W1 = J1
        else:
            W0_before, W1_before = W0, W1
            W0 = W0_before + (eta * gamma0 / xp.sqrt(D)) * (
                outer(earlier(g1, t - 1, (N1, C)), earlier(h0, t - 1, (D, C)))
            )
            W1 = W1_before + (eta * gamma0 / xp.sqrt(N1)) * (
                outer(earlier(g2, t - 1, (N2, C)), earlier(h1, t - 1, (N1, C)))
            )
        if t == 0:
            g2.append(readout)
        else:
            g2.append(eta * gamma0 * earlier(h2, t - 1, (N2, C)) + earlier(g2, t - 1, (N2, C)))
        g1.append((W1.T @ (g2[t])) / xp.sqrt(N1))
        v.append(teacher - xp.sqrt(D) * (W0.T @ (g1[t])) / (gamma0 * N1))
        delta.append(sigma * eps + (X @ (v[t])) / xp.sqrt(D))
        h0.append(xp.sqrt(D) * (X.T @ (delta[t])) / P)
        h1.append((W0 @ (h0[t])) / xp.sqrt(D))
        h2.append((W1 @ (h1[t])) / xp.sqrt(N1))
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (T + 1))
    # what is observed
    observables = {
        "train_loss": [xp.mean(delta[t] ** 2) for t in range(T + 1)],
        "test_loss": [sigma**2 + xp.mean(v[t] ** 2) for t in range(T + 1)],
    }
    spikes = {
        "0": {
            "half": lambda: W0,
            "right": lambda: xp.concatenate([*(columns(h0[t]) for t in range(T))], axis=1),
            "left": lambda: xp.concatenate([*(columns(g1[t]) for t in range(T))], axis=1),
        },
        "1": {
            "half": lambda: W1,
            "right": lambda: xp.concatenate([*(columns(h1[t]) for t in range(T))], axis=1),
            "left": lambda: xp.concatenate([*(columns(g2[t]) for t in range(T))], axis=1),
        },
    }
    return probed(), spikes, observables
