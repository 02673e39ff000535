"""Networks whose sites have gains, thresholds and leaks of their own, iterated by hand.

The matrix has independent entries of variance 1/D in both directions, so that its fields are Gaussian with the
covariance of what it is applied to, and answer to nothing. Sites are groups with weights; averages over a pair of
Gaussian values are sums over a fine grid, which converge exponentially.
"""

from __future__ import annotations

import numpy as np

GRID = np.linspace(-8.5, 8.5, 240)


def pair_mean(first, second, variances, covariance) -> float:
    """The mean of first(a) second(b) over Gaussian values of mean zero."""
    z, w = GRID, np.exp(-(GRID**2) / 2)
    w = w / w.sum()
    scale = np.sqrt(max(variances[0], 1e-300))
    slope = covariance / scale
    rest = np.sqrt(max(variances[1] - slope**2, 0.0))
    a = scale * z
    b = slope * z[:, None] + rest * z[None, :]
    return float(np.sum(w[:, None] * w[None, :] * first(a)[:, None] * second(b)))


def summed(rate: float, factor: float, time: int, count: int) -> np.ndarray:
    """How much a value at a time holds of what was added at each earlier one."""
    return np.array([factor * rate ** (time - 1 - u) if u < time else 0.0 for u in range(count)])


def driven(groups, gain: float, steps: int):
    """x(0) = threshold + normal / 2, h = J x, x(t + 1) = x(t) / 4 + lam tanh(gain h(t) + threshold).

    groups: (weight, lam, threshold). Returns the means of x, of lam x and of x^2 at times 0 ... steps.
    """
    count = steps + 1
    fields = np.zeros((count, count))  # covariance of h
    mean = np.zeros((len(groups), count))  # of tanh, in each group
    pairs = np.zeros((len(groups), count, count))
    firsts, weighed = np.zeros(count), np.zeros(count)
    for t in range(count):
        for s in range(t + 1):
            total = 0.0
            for k, (weight, lam, threshold) in enumerate(groups):
                a, b = (summed(0.25, lam, time, count) for time in (t, s))
                start = 0.25 ** (t + s) * (threshold**2 + 0.25)
                cross = 0.25**t * threshold * np.dot(b, mean[k]) + 0.25**s * threshold * np.dot(a, mean[k])
                total += weight * (start + cross + np.dot(a, pairs[k] @ b))
            fields[t, s] = fields[s, t] = total
        for k, (weight, lam, threshold) in enumerate(groups):
            one = 0.25**t * threshold + np.dot(summed(0.25, lam, t, count), mean[k])
            firsts[t] += weight * one
            weighed[t] += weight * lam * one

            def law(h, threshold=threshold):
                return np.tanh(gain * h + threshold)

            mean[k, t] = pair_mean(law, np.ones_like, (fields[t, t], 1.0), 0.0)
            for s in range(t + 1):
                found = pair_mean(law, law, (fields[t, t], fields[s, s]), fields[t, s])
                pairs[k, t, s] = pairs[k, s, t] = found
    return firsts, weighed, np.diagonal(fields).copy()


def leaky(groups, steps: int):
    """v(0) = normal, v(t + 1) = (1 - leak) v(t) + leak h(t), h = 2 J tanh(v). groups: (weight, leak).

    Given its leak a site is Gaussian. Returns the means of v^2 and of leak v^2 at times 0 ... steps.
    """
    count = steps + 1
    noise = np.zeros((count, count))  # covariance of h
    own = np.zeros((len(groups), count, count))  # of v, in each group
    for t in range(count):
        for k, (_, leak) in enumerate(groups):
            for s in range(t + 1):
                a, b = (summed(1 - leak, leak, time, count) for time in (t, s))
                own[k, t, s] = own[k, s, t] = (1 - leak) ** (t + s) + np.dot(a, noise @ b)
        for s in range(t + 1):
            noise[t, s] = noise[s, t] = 4 * sum(
                weight * pair_mean(np.tanh, np.tanh, (own[k, t, t], own[k, s, s]), own[k, t, s])
                for k, (weight, _) in enumerate(groups)
            )
    squares = np.array([np.diagonal(x) for x in own])
    weights, leaks = np.array(groups).T
    return weights @ squares, (weights * leaks) @ squares
