# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.1.0) from a declaration; edits are lost.
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


def sectors(gamma, eta, sigma, P, D, B, T, draw, size):
    """Sizes of the sectors as their ratios have them; a sample has whole ones."""
    return {"N": size}


def numbers(gamma, eta, sigma, P, D, B, T, draw, size):
    """Roughly how many numbers a sample holds at once."""
    # sizes of the sectors
    N = size
    # random matrices; weights, with those of the time before and a working copy; fields at all times
    held = (
        N * N
        + N * N
        + 3 * N * N
        + 3 * N * N
        + (T + 1) * D * N
        + (T + 1) * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + (T + 1) * B * N
        + D * N
        + N
    )
    # products on the way to the probed matrices
    working = 4 * max(0, N * N)
    # later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes
    spectrum = 6 * max(0, N * N)
    return held + max(working, spectrum)


def simulate(
    gamma,
    eta,
    sigma,
    P,
    D,
    B,
    T,
    draw,
    x,
    y,
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
    N = size
    # random matrices and vectors
    J1 = (sigma) * xp.asarray(rng.standard_normal((N, N)))
    J2 = (sigma) * xp.asarray(rng.standard_normal((N, N)))
    V0 = (sigma) * xp.asarray(rng.standard_normal((N, D)))
    w0 = (sigma) * xp.asarray(rng.standard_normal(N))

    def probed():
        return {"1": (N ** (-1.0)) * (W1.T @ W1), "2": (N ** (-1.0)) * (W2.T @ W2)}

    # training
    V = []
    w = []
    h1 = []
    phi1 = []
    h2 = []
    phi2 = []
    h3 = []
    phi3 = []
    pushed = []
    g3 = []
    z2 = []
    g2 = []
    z1 = []
    g1 = []
    spike1 = []
    spike2 = []
    spike3 = []
    W1 = W1_before = None
    W2 = W2_before = None
    for t in range(T + 1):
        if t == 0:
            W1 = J1
            W2 = J2
        else:
            W1_before, W2_before = W1, W2
            W1 = W1_before + (eta * gamma / xp.sqrt(N)) * (
                outer(earlier(spike2, t - 1, (N, B)), earlier(phi1, t - 1, (N, B)))
            )
            W2 = W2_before + (eta * gamma / xp.sqrt(N)) * (
                outer(earlier(spike3, t - 1, (N, B)), earlier(phi2, t - 1, (N, B)))
            )
        if t == 0:
            V.append(V0)
        else:
            V.append(
                earlier(V, t - 1, (N, D))
                + eta
                * gamma
                * ((earlier(spike1, t - 1, (N, B))) @ earlier(x, t - 1, x[0].shape))
                / xp.sqrt(D)
            )
        if t == 0:
            w.append(w0)
        else:
            w.append(eta * gamma * (earlier(pushed, t - 1, (N, B))).sum(axis=-1) + earlier(w, t - 1, N))
        h1.append(((V[t]) @ x[t].T) / xp.sqrt(D))
        phi1.append(xp.tanh(h1[t]))
        h2.append((W1 @ (phi1[t])) / xp.sqrt(N))
        phi2.append(xp.tanh(h2[t]))
        h3.append((W2 @ (phi2[t])) / xp.sqrt(N))
        phi3.append(xp.tanh(h3[t]))
        pushed.append(phi3[t] * (y[t] - xp.mean((w[t])[:, None] * phi3[t], axis=0) / gamma) / B)
        g3.append((w[t])[:, None] * (1 - xp.tanh(h3[t]) ** 2))
        z2.append((W2.T @ (g3[t])) / xp.sqrt(N))
        g2.append(z2[t] * (1 - xp.tanh(h2[t]) ** 2))
        z1.append((W1.T @ (g2[t])) / xp.sqrt(N))
        g1.append(z1[t] * (1 - xp.tanh(h1[t]) ** 2))
        spike1.append(g1[t] * (y[t] - xp.mean((w[t])[:, None] * phi3[t], axis=0) / gamma) / B)
        spike2.append(g2[t] * (y[t] - xp.mean((w[t])[:, None] * phi3[t], axis=0) / gamma) / B)
        spike3.append(g3[t] * (y[t] - xp.mean((w[t])[:, None] * phi3[t], axis=0) / gamma) / B)
        if watch is not None:
            watch(t, probed)
        progress((t + 1) / (T + 1))
    # what is observed
    observables = {
        "loss": [
            xp.sum((1 / 2) * (-y[t] + xp.mean((w[t])[:, None] * phi3[t], axis=0) / gamma) ** 2 / B)
            for t in range(T + 1)
        ],
        "prediction": [xp.mean((w[t])[:, None] * phi3[t], axis=0) / gamma for t in range(T + 1)],
        "features1": [xp.mean(phi1[t] ** 2) for t in range(T + 1)],
        "features2": [xp.mean(phi2[t] ** 2) for t in range(T + 1)],
        "features3": [xp.mean(phi3[t] ** 2) for t in range(T + 1)],
        "gradients1": [xp.mean(g1[t] ** 2) for t in range(T + 1)],
        "gradients2": [xp.mean(g2[t] ** 2) for t in range(T + 1)],
        "gradients3": [xp.mean(g3[t] ** 2) for t in range(T + 1)],
    }
    spikes = {
        "1": {
            "half": lambda: W1,
            "right": lambda: xp.concatenate([*(columns(phi1[t]) for t in range(T))], axis=1),
            "left": lambda: xp.concatenate([*(columns(spike2[t]) for t in range(T))], axis=1),
        },
        "2": {
            "half": lambda: W2,
            "right": lambda: xp.concatenate([*(columns(phi2[t]) for t in range(T))], axis=1),
            "left": lambda: xp.concatenate([*(columns(spike3[t]) for t in range(T))], axis=1),
        },
    }
    return probed(), spikes, observables
