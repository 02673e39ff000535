"""Linear regression on inputs with a spectrum, solved by hand in two ways that share nothing with the engine.

Online: the samples of each step are new, so that weights of one variance obey a linear recursion with noise, and the
loss is a sum over the spectrum. Full batch: the weights are a polynomial of the sample covariance S, and its traces
with the population covariance follow from deterministic equivalents of the resolvent,

    -z (S - z)^-1  ->  K(z) = k (Lambda + k)^-1,    k = -z + (k / alpha) <lam / (lam + k)>,
    A(z1) Lambda A(z2)  ->  K1 Lambda K2 / (1 - <lam^2 / ((lam + k1) (lam + k2))> / alpha),   A = -z (S - z)^-1,

integrated around the spectrum of S. Averages <...> are over the spectrum with its weights.
"""

from __future__ import annotations

import numpy as np


def power_law(decay: float, cut: float, nodes: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Variances and weights of the density lam^(-1 - 1/decay) between cut and 1: Gauss and Legendre in log(lam)."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    log = np.log(cut) * (1 - x) / 2
    weights = w * np.exp(-log / decay)
    return np.exp(log), weights / weights.sum()


def online_test_loss(lam, weights, teacher, alpha, eta, sigma, ridge, mu, steps) -> np.ndarray:
    """Test losses at times 0 ... steps. teacher: mean squares of the teacher's weights."""
    count = len(lam)
    moments = np.zeros((count, 3, 3))  # of w(t), w(t - 1) and the teacher
    moments[:, 2, 2] = teacher
    step = np.zeros((count, 3, 3))
    step[:, 0, 0], step[:, 0, 1], step[:, 0, 2] = 1 + mu - eta * (lam + ridge), -mu, eta * lam
    step[:, 1, 0] = step[:, 2, 2] = 1
    found = []
    for _ in range(steps + 1):
        squares = moments[:, 2, 2] - 2 * moments[:, 0, 2] + moments[:, 0, 0]
        found.append(weights @ (lam * squares) + sigma**2)
        moments = step @ moments @ step.transpose(0, 2, 1)
        moments[:, 0, 0] += eta**2 * lam * found[-1] / alpha
    return np.array(found)


def full_batch_losses(lam, weights, teacher, alpha, eta, sigma, ridge, mu, steps, nodes=240):
    """Train and test losses after so many steps."""
    top = 1.05 * lam.max() * (1 + alpha**-0.5) ** 2
    away = 0.7 * top * np.exp(2j * np.pi * (np.arange(nodes) + 0.5) / nodes)
    z, dz = top / 2 + away, away / nodes  # over 2 pi i
    k = _equivalent(top / 2, away, lam, weights, alpha)
    q, before = np.zeros(nodes, complex), np.zeros(nodes, complex)
    for _ in range(steps):
        q, before = q + mu * (q - before) + eta * (1 - (z + ridge) * q), q
    f = 1 - z * q  # what remains of the teacher

    one = k / (lam[:, None] + k)  # K(z) on each variance
    seen = weights * teacher * lam
    both = (weights * lam**2) @ (one[:, :, None] * one[:, None, :] / (k[:, None] * k[None, :])).reshape(len(lam), -1)
    bias = (seen @ (one[:, :, None] * one[:, None, :]).reshape(len(lam), -1)) / (1 - both / alpha)
    rest = f * dz / z
    learned = rest @ bias.reshape(nodes, nodes) @ rest
    variance = sigma**2 / alpha * np.sum(((weights * lam) @ one) * q**2 * dz)
    test = learned + variance + sigma**2
    train = np.sum(((weights * teacher) @ one) * f**2 * dz)
    train += sigma**2 * (1 + np.sum((weights @ one) * (f**2 - 1) / z * dz) / alpha)
    return train.real, test.real


def planted_outlier(lam, weights, alpha, spike, low, high) -> float:
    """An outlier of X^T X / P for rows of covariance Lambda + spike * u u^T, u a random unit vector: that covariance
    has an eigenvalue l between low and high, neighbours in the spectrum, with spike <1/(l - lam)> = 1, and that of the
    samples is 1 + <lam / (l - lam)> / alpha times as large."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if spike * np.sum(weights / (middle - lam)) > 1 else (low, middle)
    return float(high * (1 + np.sum(weights * lam / (high - lam)) / alpha))


def _equivalent(middle: float, away: np.ndarray, lam: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """k(middle + away): from far away, where it is -z, along a ray to each point."""
    k = -1e3 * away
    for stretch in np.geomspace(1e3, 1, 60):
        z = middle + stretch * away
        for _ in range(8):
            inside = weights @ (lam[:, None] / (lam[:, None] + k))
            slope = -weights @ (lam[:, None] / (lam[:, None] + k) ** 2)
            value = k + z - k * inside / alpha
            k = k - value / (1 - (inside + k * slope) / alpha)
    return k
