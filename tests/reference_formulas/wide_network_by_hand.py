"""Limits of the wide network in closed form, by hand and in plain NumPy: lazy training, one step, linear networks.

Model.  f_m = w . phi(h^L_m) / (gamma N),  h^{l+1}_m = W^l phi(h^l_m) / sqrt(N),  h^1_m = V x_m / sqrt(D); every weight
has variance sigma^2; a step moves each by -eta gamma^2 N times the gradient of the mean loss over B points.

Kernels at the start, for phi = erf (Williams 1998): with H the covariance of two preactivations,
    <erf(a) erf(b)>   = (2/pi) arcsin(2 H_ab / sqrt((1 + 2 H_aa)(1 + 2 H_bb)))
    <erf'(a) erf'(b)> = (4/pi) / sqrt((1 + 2 H_aa)(1 + 2 H_bb) - 4 H_ab^2)
    H^1 = sigma^2 x x^T / D,  F^l = <phi phi>(H^l),  H^{l+1} = sigma^2 F^l,  E^l = <phi' phi'>(H^l)
    G^L = sigma^2 E^L,  G^l = sigma^2 G^{l+1} * E^l          (entry by entry)

Lazy limit, gamma -> 0.  Delta = y - f, and f moves by eta/B (F^L + sum_l G^{l+1} * F^l + G^1 * x x^T / D) Delta.

One step.  At the start f = 0 and nothing answers to anything: the spikes of W^l are independent of it, so its outliers
are z = (sigma^2 + s)^2 / s for the eigenvalues s > sigma^2 of (eta gamma / B)^2 times the product of F^l and
y G^{l+1} y.

Linear network with two layers of hidden units.  Sites of the second layer are linear in w(0) and in the noise u_m(t)
of W(0) phi, with <u u> = sigma^2 <h1 h1>; those of the first in V(0) and in the noise r(t) of W(0)^T w, with
<r r> = sigma^2 <w w>:
    h2_m(t) = u_m(t) + sum_s [sigma^2 dh1_m(t)/dr(s) + (eta gamma/B) sum_n Delta_n(s) <h1_m(t) h1_n(s)>] w(s)
    z(t)    = r(t)   + sum_sn [sigma^2 dw(t)/du_n(s) + (eta gamma/B) Delta_n(s) <w(t) w(s)>] h1_n(s)
    w(t+1)  = w(t) + (eta gamma/B) sum_m Delta_m(t) h2_m(t)
    V(t+1)  = V(t) + (eta gamma/(B sqrt(D))) sum_m Delta_m(t) x_m z(t),   h1_m(t) = x_m . V(t) / sqrt(D)
    f_m     = <w h2_m> / gamma,  Delta = y - f

Departures of the printed appendix, "Nonlinear Networks": the equation of z^l ends in phi_mu(t) where phi_nu(s) is
meant, as the update of W^l shows; chi^l is printed with W^l(0) where the forward pass has W^{l-1}(0).
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def erf_kernel(h: Array) -> Array:
    root = np.sqrt(1 + 2 * np.diagonal(h))
    return 2 / np.pi * np.arcsin(np.clip(2 * h / np.outer(root, root), -1, 1))


def erf_slope_kernel(h: Array) -> Array:
    squares = 1 + 2 * np.diagonal(h)
    return 4 / np.pi / np.sqrt(np.outer(squares, squares) - 4 * h**2)


def start_kernels(x: Array, L: int, sigma: float) -> tuple[list[Array], list[Array]]:
    """F^1 .. F^L and G^1 .. G^L for phi = erf."""
    h = sigma**2 * x @ x.T / x.shape[1]
    features, slopes = [], []
    for _ in range(L):
        features.append(erf_kernel(h))
        slopes.append(erf_slope_kernel(h))
        h = sigma**2 * features[-1]
    gradients = [sigma**2 * slopes[-1]]
    for slope in reversed(slopes[:-1]):
        gradients.insert(0, sigma**2 * gradients[0] * slope)
    return features, gradients


def lazy_predictions(x: Array, y: Array, L: int, sigma: float, eta: float, T: int) -> Array:
    """f at times 0 .. T in the limit gamma -> 0, one row a time."""
    features, gradients = start_kernels(x, L, sigma)
    kernel = features[-1] + sum(g * f for g, f in zip(gradients[1:], features[:-1], strict=True))
    kernel = kernel + gradients[0] * (x @ x.T / x.shape[1])
    f = [np.zeros(len(y))]
    for _ in range(T):
        f.append(f[-1] + eta / len(y) * kernel @ (y - f[-1]))
    return np.array(f)


def one_step_outliers(x: Array, y: Array, L: int, layer: int, sigma: float, gamma: float, eta: float) -> list[float]:
    """Outliers of W^layer(1)^T W^layer(1) / N, descending."""
    features, gradients = start_kernels(x, L, sigma)
    spikes = y[:, None] * gradients[layer] * y[None, :]
    s = np.linalg.eigvals((eta * gamma / len(y)) ** 2 * features[layer - 1] @ spikes).real
    return sorted(((sigma**2 + v) ** 2 / v for v in s if v > sigma**2 * (1 + 1e-12)), reverse=True)


def linear_network(x: Array, y: Array, sigma: float, gamma: float, eta: float, T: int) -> dict[str, Array]:
    """Two hidden layers, phi(h) = h, full batch: losses, predictions and <h1 h1>, <h2 h2> averaged over the points."""
    (B, D), times = x.shape, T + 1
    kernel_x = x / np.sqrt(D)
    # coefficients: first layer over V(0) and r(s); second layer over w(0) and u_n(s)
    V = np.zeros((times + 1, D, D + times))
    V[0, :, :D] = np.eye(D)
    w = np.zeros((times + 1, 1 + times * B))
    w[0, 0] = 1.0
    h1, h2 = np.zeros((times, B, D + times)), np.zeros((times, B, 1 + times * B))
    z = np.zeros((times, D + times))
    first, second = np.zeros((D + times, D + times)), np.zeros((1 + times * B, 1 + times * B))
    first[:D, :D], second[0, 0] = sigma**2 * np.eye(D), sigma**2
    delta, f = np.zeros((times, B)), np.zeros((times, B))
    push = eta * gamma / B
    for t in range(times):
        h1[t] = kernel_x @ V[t]
        new = slice(1 + t * B, 1 + (t + 1) * B)
        for s in range(t + 1):
            block = sigma**2 * h1[t] @ first @ h1[s].T
            old = slice(1 + s * B, 1 + (s + 1) * B)
            second[new, old], second[old, new] = block, block.T
        h2[t] = np.eye(second.shape[0])[new]
        for s in range(t):
            overlap = h1[t] @ first @ h1[s].T
            h2[t] += np.outer(sigma**2 * h1[t][:, D + s] + push * overlap @ delta[s], w[s])
        f[t] = h2[t] @ second @ w[t] / gamma
        delta[t] = y - f[t]
        for s in range(t + 1):
            first[D + t, D + s] = first[D + s, D + t] = sigma**2 * w[t] @ second @ w[s]
        z[t, D + t] = 1.0
        for s in range(t):
            old = slice(1 + s * B, 1 + (s + 1) * B)
            z[t] += (sigma**2 * w[t, old] + push * delta[s] * (w[t] @ second @ w[s])) @ h1[s]
        w[t + 1] = w[t] + push * delta[t] @ h2[t]
        V[t + 1] = V[t] + push / np.sqrt(D) * np.outer(x.T @ delta[t], z[t])
    return {
        "loss": np.mean(delta**2, axis=1) / 2,
        "prediction": f,
        "features1": np.array([np.trace(h @ first @ h.T) / B for h in h1]),
        "features2": np.array([np.trace(h @ second @ h.T) / B for h in h2]),
        "gradients1": np.array([v @ first @ v for v in z]),
    }
