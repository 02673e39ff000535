"""Recursions and kernels of models whose laws are nonlinear and whose fields are Gaussian, written by hand.

They use NumPy alone, Gauss-Legendre or Gauss-Hermite nodes of their own, and loops over pairs of times.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def normal_nodes(count: int, reach: float = 9.0) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes on [-reach, reach] with the Gaussian weight."""
    x, w = np.polynomial.legendre.leggauss(count)
    z = reach * x
    return z, reach * w * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)


def pair_mean(f: Callable, a: float, b: float, c: float, nodes: tuple[np.ndarray, np.ndarray]) -> float:
    """<f(u) f(v)> for <u u> = a, <v v> = b, <u v> = c."""
    z, w = nodes
    slope = c / np.sqrt(a)
    v = slope * z[:, None] + np.sqrt(max(b - slope**2, 0.0)) * z[None, :]
    return float((w * f(np.sqrt(a) * z)) @ (f(v) @ w))


def recurrent_network(g: float, dt: float, start: float, steps: int, count: int = 160) -> np.ndarray:
    """<x(t) x(s)> of x(t+1) = (1 - dt) x(t) + dt g J tanh(x(t)) / sqrt(N), x(0) = start * normal.

    x(t) = (1-dt)^t x(0) + dt sum_r (1-dt)^(t-1-r) eta(r), with <eta(t) eta(s)> = g^2 <tanh x(t) tanh x(s)>.
    """
    nodes = normal_nodes(count)
    keep = 1 - dt
    noise = np.zeros((steps, steps))
    x = np.zeros((steps + 1, steps + 1))
    x[0, 0] = start**2
    for t in range(steps):
        for s in range(t + 1):
            noise[t, s] = noise[s, t] = g**2 * pair_mean(np.tanh, x[t, t], x[s, s], x[t, s], nodes)
        weights = np.zeros((t + 2, t + 1))
        for n in range(t + 2):
            weights[n, :n] = dt * keep ** (n - 1 - np.arange(n))
        decay = keep ** np.arange(t + 2)
        x[: t + 2, : t + 2] = start**2 * np.outer(decay, decay) + weights @ noise[: t + 1, : t + 1] @ weights.T
    return x


def erf_kernel(covariance: np.ndarray) -> np.ndarray:
    """<erf(u) erf(v)>."""
    size = 1 + 2 * np.diag(covariance)
    return 2 / np.pi * np.arcsin(2 * covariance / np.sqrt(np.outer(size, size)))


def relu_kernel(covariance: np.ndarray) -> np.ndarray:
    """<max(u, 0) max(v, 0)>, the arc-cosine kernel of degree one."""
    size = np.sqrt(np.diag(covariance))
    cosine = np.clip(covariance / np.outer(size, size), -1, 1)
    angle = np.arccos(cosine)
    return np.outer(size, size) / (2 * np.pi) * (np.sin(angle) + (np.pi - angle) * cosine)


def trained_readout(kernel: np.ndarray, y: np.ndarray, eta: float, steps: int) -> np.ndarray:
    """Predictions of a readout trained on fixed features, from zero: p(t+1) = p(t) + eta/P K (y - p(t))."""
    found = [np.zeros(len(y))]
    for _ in range(steps):
        found.append(found[-1] + eta / len(y) * kernel @ (y - found[-1]))
    return np.array(found)


def online_perceptron(eta: float, alpha: float, noise: float, steps: int, count: int = 160) -> np.ndarray:
    """Loss, norm and overlap of s(t+1) = s(t) + eta/alpha X^T d / sqrt(D), d = e (1 - tanh(l)^2),
    e = tanh(y) + noise - tanh(l), on fresh data X with alpha D rows: l = X s / sqrt(D), y = X v / sqrt(D).

    With q = <s s>, m = <s v>, <v v> = 1: X^T d has a part along s and v, by the mean derivatives of d, and a random
    part of variance alpha <d d>.
    """
    z, w = normal_nodes(count)
    q, m = 1.0, 0.0
    found = []
    for _ in range(steps + 1):
        local = np.sqrt(q) * z[:, None]
        slope = m / np.sqrt(q)
        y = slope * z[:, None] + np.sqrt(1 - slope**2) * z[None, :]
        weight = w[:, None] * w[None, :]
        gate = 1 - np.tanh(local) ** 2
        error = np.tanh(y) - np.tanh(local)
        loss = np.sum(weight * error**2) + noise**2
        found.append((loss, q, m))
        by_l = np.sum(weight * (-(gate**2) - 2 * error * np.tanh(local) * gate))
        by_y = np.sum(weight * gate * (1 - np.tanh(y) ** 2))
        square = np.sum(weight * gate**2 * (error**2 + noise**2))
        keep, push = 1 + eta * by_l, eta * by_y
        q, m = keep**2 * q + 2 * keep * push * m + push**2 + eta**2 / alpha * square, keep * m + push
    return np.array(found)
