"""A deep linear network of finite size and its neural tangent kernel, by hand in plain NumPy: an independent reference.

One output, muP scaling. The core B is put together layer by layer: what a change of one layer's weights changes of the
network's linear map, summed over layers.
"""

import numpy as np


class Network:
    """W[0], ..., W[L-1] and the readout w, trained on P inputs with labels of a noisy linear teacher."""

    def __init__(self, D, L, alpha, nu, gamma0, eta, sigma, rng, kappa=1.0, share=0.0):
        P, N = round(alpha * D), round(nu * D)
        self.D, self.P, self.N, self.gamma0, self.eta = D, P, N, gamma0, eta
        self.widths = [D, *[N] * L]
        self.X, self.teacher = rng.standard_normal((P, D)), rng.standard_normal(D)
        self.X[:, : round(share * D)] *= np.sqrt(kappa)  # inputs of another variance
        self.noise = sigma * rng.standard_normal(P)
        self.W = [rng.standard_normal((self.widths[k + 1], self.widths[k])) for k in range(L)]
        self.w = rng.standard_normal(N)

    def backward(self):
        """g[1], ..., g[L]: the readout carried down through the layers."""
        g = {len(self.W): self.w}
        for k in range(len(self.W) - 1, 0, -1):
            g[k] = self.W[k].T @ g[k + 1] / np.sqrt(self.widths[k])
        return g

    def missing(self):
        """What the network has not learned of the teacher."""
        return self.teacher - np.sqrt(self.D) / (self.N * self.gamma0) * self.W[0].T @ self.backward()[1]

    def errors(self):
        return self.X @ self.missing() / np.sqrt(self.D) + self.noise

    def step(self, eta=None):
        eta = self.eta if eta is None else eta
        g, h = self.backward(), [np.sqrt(self.D) / self.P * self.X.T @ self.errors()]
        for k, weights in enumerate(self.W):
            h.append(weights @ h[k] / np.sqrt(self.widths[k]))
        rate = eta * self.gamma0
        self.W = [w + rate / np.sqrt(self.widths[k]) * np.outer(g[k + 1], h[k]) for k, w in enumerate(self.W)]
        self.w = self.w + rate * h[-1]

    def core(self):
        g = self.backward()
        below = np.eye(self.D)
        total = np.mean(g[1] ** 2) * below
        for k, weights in enumerate(self.W, 1):
            below = weights @ below / np.sqrt(self.N)
            total += (np.mean(g[k + 1] ** 2) if k < len(self.W) else 1.0) * below.T @ below
        return total

    def kernel(self):
        """The kernel of the samples."""
        return self.X @ self.core() @ self.X.T / self.D


def class_kernels(D, L, alpha, nu, gamma0, eta, sigma, T, strengths, gram, rng):
    """Of a network with an output per teacher: the kernel of the samples of each class, by its own backward fields."""
    P, N, C = round(alpha * D), round(nu * D), len(strengths)
    values, vectors = np.linalg.eigh(gram)
    root = vectors @ np.diag(np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    teachers = np.diag(strengths) @ root @ rng.standard_normal((C, D))
    X, noise = rng.standard_normal((P, D)), sigma * rng.standard_normal((P, C))
    widths = [D, *[N] * L]
    W = [rng.standard_normal((widths[k + 1], widths[k])) for k in range(L)]
    readout = rng.standard_normal((N, C))

    def backward():
        g = {L: readout}
        for k in range(L - 1, 0, -1):
            g[k] = W[k].T @ g[k + 1] / np.sqrt(N)
        return g

    for _ in range(T):
        g = backward()
        errors = X @ (teachers.T - np.sqrt(D) / (N * gamma0) * W[0].T @ g[1]) / np.sqrt(D) + noise
        h = [np.sqrt(D) / P * X.T @ errors]
        for k in range(L):
            h.append(W[k] @ h[k] / np.sqrt(widths[k]))
        W = [W[k] + eta * gamma0 / np.sqrt(widths[k]) * g[k + 1] @ h[k].T for k in range(L)]
        readout = readout + eta * gamma0 * h[L]
    g, found = backward(), []
    for c in range(C):
        below, core = X, np.mean(g[1][:, c] ** 2) * X @ X.T
        for k in range(1, L + 1):
            below = below @ W[k - 1].T / np.sqrt(N)
            core = core + (np.mean(g[k + 1][:, c] ** 2) if k < L else 1.0) * below @ below.T
        found.append(core / D)
    return found
