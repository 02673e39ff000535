"""The wide network by damped iteration of whole kernels, by hand and in plain NumPy: what one writes without a forward
pass. Slow and noisy; used to measure speed, and nothing is proved with it.

Model.  f_m = w . phi(h^L_m) / (gamma N),  h^{l+1}_m = W^l phi(h^l_m) / sqrt(N),  h^1_m = V x_m / sqrt(D), phi = tanh,
one batch of P points, loss (f - y)^2 / 2 averaged over them, and a step of -eta gamma^2 N times the gradient.

Single site, with e_m(t) = y_m - f_m(t), entries mu = (t, m), F^l = <phi^l phi^l>, G^l = <g^l g^l>, g^l = phi'(h^l) z^l,
<u u> = sigma^2 F^l and <r r> = sigma^2 G^{l+1}:

    h^{l+1}_mu = u_mu + sum_nu [sigma^2 A^l_{mu nu} + eta gamma / P theta F^l_{mu nu} e_nu] g^{l+1}_nu
    z^l_mu     = r_mu + sum_nu [sigma^2 B^{l+1}_{mu nu} + eta gamma / P theta G^{l+1}_{mu nu} e_nu] phi^l_nu
    A^l_{mu nu} = <d phi^l_mu / d r_nu> of layer l,  B^l_{mu nu} = <d g^l_mu / d u_nu>,
    z^L(t) = w(t) = w(0) + eta gamma / P sum_{s<t} e(s) phi^L(s),  f = <w phi^L> / gamma,  theta: s < t.

A and B come from Stein's lemma, <phi r> = A <r r>. Kernels of all layers are guessed, sites are drawn and followed with
them, means over the sites give new kernels, and a part of these is mixed in, until the loss stands still.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
FLOOR = 1e-3
"""Share of the largest variance below which a direction of the noise carries no response."""


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    found: Array = vectors * np.sqrt(np.maximum(values, 0))
    return found


def _inverse(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    kept = values > FLOOR * max(values[-1], 1e-300)
    found: Array = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return found


def damped_iteration(
    x: Array,
    y: Array,
    *,
    L: int,
    sigma: float,
    gamma: float,
    eta: float,
    T: int,
    samples: int,
    weight: float = 0.5,
    sweeps: int = 20,
    seed: int = 0,
) -> Array:
    """The loss at times 0 .. T after each sweep, one row per sweep; weight: how much of what is new is mixed in."""
    rng = np.random.default_rng(seed)
    (P, D), times = x.shape, T + 1
    size, rate = times * P, eta * gamma / P
    when = np.repeat(np.arange(times), P)
    earlier, not_later = when[:, None] > when[None, :], when[:, None] >= when[None, :]
    F = [np.tile(x @ x.T / D, (times, times)), *(np.tile(np.eye(P), (times, times)) for _ in range(L))]
    G, A, B = ([np.zeros((size, size)) for _ in range(L + 2)] for _ in range(3))
    errors, losses = np.tile(y, times), np.zeros((sweeps, times))
    for sweep in range(sweeps):
        new = []
        f = np.zeros(size)
        for layer in range(1, L + 1):
            u = sigma * rng.standard_normal((samples, size)) @ _root(F[layer - 1]).T
            r = sigma * rng.standard_normal((samples, size)) @ _root(G[layer + 1]).T
            w = sigma * rng.standard_normal((samples, 1))
            into = sigma**2 * earlier * A[layer - 1] + rate * earlier * F[layer - 1] * errors
            back = sigma**2 * not_later * B[layer + 1] + rate * earlier * G[layer + 1] * errors
            phi, g = np.zeros((samples, size)), np.zeros((samples, size))
            for t in range(times):
                here, past = slice(t * P, (t + 1) * P), slice(0, (t + 1) * P)
                phi[:, here] = np.tanh(u[:, here] + g[:, past] @ into[here, past].T)
                z = w if layer == L else r[:, here] + phi[:, past] @ back[here, past].T
                g[:, here] = (1 - phi[:, here] ** 2) * z
                if layer == L:
                    f[here] = np.mean(phi[:, here] * w, axis=0) / gamma
                    w = w + rate * (phi[:, here] @ errors[here])[:, None]
            seen_r = phi.T @ r / samples @ _inverse(sigma**2 * G[layer + 1]) * earlier
            seen_u = g.T @ u / samples @ _inverse(sigma**2 * F[layer - 1]) * not_later
            new.append((phi.T @ phi / samples, g.T @ g / samples, seen_r, seen_u))
        for layer, kernels in enumerate(new, start=1):
            for table, kernel in zip((F, G, A, B), kernels, strict=True):
                table[layer] = (1 - weight) * table[layer] + weight * kernel
        losses[sweep] = np.mean((np.tile(y, times) - f).reshape(times, P) ** 2, axis=1) / 2
        errors = (1 - weight) * errors + weight * (np.tile(y, times) - f)
    return losses
