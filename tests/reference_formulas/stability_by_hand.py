"""Largest stable rates of linear training, by hand.

A mode of curvature x with momentum mu obeys w(t+1) = (1 + mu - eta x) w(t) - mu w(t-1): it is stable up to
eta x = 2 (1 + mu). On fixed data the largest curvature is an edge or an outlier of the sample covariance, plus the
ridge. On fresh batches the variance of a mode is that of an autoregressive process of second order, driven by noise of
variance eta^2 lam C / alpha, where C is the mean of lam times the variance.

A step on a mini-batch of a fixed set multiplies the error on each sample by a random weight of mean one and variance
spread: (1 - beta)/beta where a share beta of the samples is taken without replacement, 1/beta with replacement. Modes
of the sample covariance, of eigenvalue x, then add eta^2 x^2 spread / alpha times the variance of a mode to each other.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, minimize_scalar


def heavy_ball(curvature: float, mu: float = 0.0) -> float:
    return 2 * (1 + mu) / curvature


def upper_edge(alpha: float, lam: np.ndarray, weights: np.ndarray) -> float:
    """Of X^T X / P, P = alpha D rows of covariance diag(lam): z(m) = 1/m + (1/alpha) <lam / (1 - lam m)> at z' = 0."""
    top = 1 / np.max(lam[weights > 0])

    def slope(m: float) -> float:
        return float(-1 / m**2 + np.sum(weights * lam**2 / (1 - lam * m) ** 2) / alpha)

    m = brentq(slope, 1e-12 * top, (1 - 1e-12) * top, xtol=1e-16, rtol=1e-15)
    return float(1 / m + np.sum(weights * lam / (1 - lam * m)) / alpha)


def spiked_edge(alpha: float, spike: float) -> float:
    """The largest eigenvalue with one direction of variance 1 + spike: outside of the bulk for spike > alpha^(-1/2)."""
    if spike**2 * alpha <= 1:
        return float((1 + alpha**-0.5) ** 2)
    return (1 + spike) * (1 + 1 / (alpha * spike))


def random_features_edge(alpha: float, nu: float) -> float:
    """Of W Z^T Z W^T / (D P), P = alpha D, N = nu D. S-transforms: z(x) = (1 + x)(1 + x/alpha)(nu + x)/x at z' = 0."""
    roots = np.roots([2 / alpha, 1 / alpha * (1 + nu) + 1, 0, -nu])
    x = max(r.real for r in roots if abs(r.imag) < 1e-9)
    return float((1 + x) * (1 + x / alpha) * (nu + x) / x)


def fresh_batches(alpha: float, lam: np.ndarray, weights: np.ndarray, ridge: float = 0.0, mu: float = 0.0) -> float:
    """Where the variances that modes add to each other reach one."""

    def excess(eta: float) -> float:
        a = 1 + mu - eta * (lam + ridge)
        variance = (1 + mu) / ((1 - mu) * ((1 + mu) ** 2 - a**2))
        return float(np.sum(weights * lam**2 * eta**2 / alpha * variance) - 1)

    highest = 2 * (1 + mu) / (np.max(lam) + ridge)
    return float(brentq(excess, 1e-9 * highest, (1 - 1e-13) * highest, xtol=1e-16, rtol=1e-15))


def power_law(decay: float, cut: float) -> tuple[np.ndarray, np.ndarray]:
    """Variances between cut and 1 with the density lam^(-1 - 1/decay), and their weights: more and more of them next to
    one, where a mode that overshoots first makes the average diverge."""
    nodes, shares = np.polynomial.legendre.leggauss(40)
    ends = np.concatenate(
        [[cut], np.geomspace(cut, 1.0, 5)[1:-1], 1 - (1 - cut**0.25) * 10.0 ** -np.arange(1, 13), [1.0]]
    )
    half = np.diff(ends)[:, None] / 2
    lam = (ends[:-1, None] + half * (1 + nodes)).ravel()
    weights = (half * shares).ravel() * lam ** (-1 - 1 / decay)
    return lam, weights / weights.sum()


def mini_batches(
    alpha: float, lam: np.ndarray, weights: np.ndarray, spread: float, ridge: float = 0.0, mu: float = 0.0
) -> float:
    """Where they reach one, or the rate at which the mean overshoots, if that is smaller.

    x^2 / ((x + ridge)(K - x)) with K = 2 (1 + mu)/eta - ridge is averaged over x by resolvents at K and at -ridge.
    """
    edge = upper_edge(alpha, lam, weights)
    last = heavy_ball(edge + ridge, mu)

    def of_m(m: float) -> float:
        return float(1 / m + np.sum(weights * lam / (1 - lam * m)) / alpha)

    def resolvent(z: float, m: float) -> float:
        return (1 + alpha * (z * m - 1)) / z

    at_ridge = 0.0
    if ridge:
        m = brentq(lambda m: of_m(m) + ridge, -1 / ridge, -1e-9 / (ridge + edge), xtol=1e-16, rtol=1e-15)
        at_ridge = ridge**2 * resolvent(-ridge, m)

    def excess(m: float) -> float:
        z = of_m(m)
        mean = z**2 / (z + ridge) * resolvent(z, m) - at_ridge / (z + ridge) - 1
        return spread / alpha * (1 + mu) / (1 - mu) * mean - 1

    top = 1 / np.max(lam[weights > 0])
    at_edge = minimize_scalar(of_m, bounds=(1e-12 * top, (1 - 1e-12) * top), method="bounded", options={"xatol": 1e-14})
    if excess(at_edge.x) < 0:
        return last
    m = brentq(excess, 1e-12 * top, at_edge.x, xtol=1e-17, rtol=1e-15)
    return min(last, heavy_ball(of_m(m) + ridge, mu))


def mini_batches_in_closed_form(alpha: float, spread: float) -> float:
    """Of isotropic inputs, without momentum and ridge."""
    if spread**2 <= alpha:
        return heavy_ball((1 + alpha**-0.5) ** 2)
    return 2 * alpha * spread / ((spread + alpha) * (spread + 1))


def covariance_radius(x: np.ndarray, eta: float, spread: float) -> float:
    """Of mini-batches at finite size: the spectral radius of sum_t (eta/P)^2 spread (X (1 - eta X^T X / P)^t X^T)_ij^2,
    which maps mean squares of the errors on samples to those that their noise adds at all later times."""
    step, total = np.eye(x.shape[1]) - eta * x.T @ x / len(x), np.zeros((len(x), len(x)))
    answer = x.T.copy()
    for _ in range(100_000):
        added = (eta / len(x) * (x @ answer)) ** 2
        total += added
        if np.max(added) <= 1e-13 * np.max(total):
            break
        answer = step @ answer
    return float(spread * np.max(np.abs(np.linalg.eigvals(total))))


def fresh_batches_of_random_features(alpha: float, nu: float) -> float:
    """A mode of W^T W / D with eigenvalue k adds eta k / (alpha (2 - eta k)), until its mean overshoots at eta k = 2; k
    has the law of Marchenko and Pastur."""
    low, high = (1 - nu**0.5) ** 2, (1 + nu**0.5) ** 2

    angles = np.pi * (np.arange(20_000) + 0.5) / 20_000
    k = (low + high) / 2 + (high - low) / 2 * np.cos(angles)
    density = (high - low) ** 2 / 4 * np.sin(angles) ** 2 / (2 * np.pi * k)

    def excess(eta: float) -> float:
        return float(np.pi * np.mean(density * eta * k / (alpha * (2 - eta * k)))) - 1

    last = 2 / high
    return last if excess((1 - 1e-12) * last) < 0 else float(brentq(excess, 1e-6, (1 - 1e-12) * last, rtol=1e-14))


def asymmetric_network(a: float, b: float) -> float:
    """x(t+1) = a x(t) + b x(t-1) + g J x(t): eigenvalues obey |l - a - b/l| = g on the boundary of their region."""
    angles = np.linspace(0, np.pi, 2001)

    def distance(angle: float) -> float:
        return float(np.abs(np.exp(1j * angle) - a - b * np.exp(-1j * angle)))

    best = int(np.argmin([distance(x) for x in angles]))
    span = (angles[max(best - 1, 0)], angles[min(best + 1, 2000)])
    inside = minimize_scalar(distance, bounds=span, method="bounded", options={"xatol": 1e-10}).fun
    return float(min(inside, distance(0.0), distance(np.pi)))
