"""Resolvents, ridge risks and interpolators by hand, from textbook equations; nothing of ours is used.

S = L^(1/2) X^T X L^(1/2) / P with P = alpha D rows of standard normal entries and a population covariance L with
eigenvalues lam. With k = -z + (k / alpha) <lam / (lam + k)> the deterministic equivalents of R = 1 / (z - S) are

    z R  ->  k / (L + k),      z^2 R B R  ->  K B K + K L K <B K^2>' ...,   here with B = L:
    z^2 R L R  ->  K L K / (1 - <lam^2 / (lam + k)^2> / alpha),   K = k / (L + k).

Ridge regression on y = x . beta + sigma noise with beta of unit variance and w = (S + ridge)^-1 X^T y / P then has the
excess risk ridge^2 tr R L R + (sigma^2 / alpha) (- tr R L - ridge tr R L R) at z = -ridge, traces over D.
"""

from __future__ import annotations

import numpy as np


def marchenko_pastur(z: np.ndarray, alpha: float) -> np.ndarray:
    """<1/(z - x)> of X^T X / N with N = alpha D, off the real axis or outside the support."""
    z = np.asarray(z, complex)
    c = 1 / alpha
    root = np.sqrt(z - (1 - np.sqrt(c)) ** 2) * np.sqrt(z - (1 + np.sqrt(c)) ** 2)
    return (z - 1 + c - root) / (2 * c * z)


def equivalents(z: complex, alpha: float, lam: np.ndarray, weights: np.ndarray) -> dict[str, complex]:
    """tr R, tr R L, tr R L R and tr R L R L over D, by plain iteration; z below the spectrum or off the axis."""
    k = -z + 0j
    for _ in range(100_000):
        new = -z + k / alpha * np.sum(weights * lam / (lam + k))
        if abs(new - k) < 1e-15 * abs(new):
            break
        k = (k + new) / 2
    else:
        raise AssertionError("the fixed point was not reached")
    shrunk = k / (lam + k)
    both = 1 - np.sum(weights * lam**2 / (lam + k) ** 2) / alpha
    return {
        "G": np.sum(weights * shrunk) / z,
        "A": np.sum(weights * lam * shrunk) / z,
        "A R": np.sum(weights * lam * shrunk**2) / both / z**2,
        "A R A": np.sum(weights * lam**2 * shrunk**2) / both / z**2,
    }


def ridge_test_loss(alpha: float, ridge: float, sigma: float, lam: np.ndarray, weights: np.ndarray) -> float:
    """Risk on new samples, their noise included."""
    found = equivalents(-ridge, alpha, lam, weights)
    beside, between = found["A"].real, found["A R"].real
    return ridge**2 * between + sigma**2 / alpha * (-beside - ridge * between) + sigma**2


def interpolator_test_loss(alpha: float, sigma: float) -> float:
    """The same without a ridge on isotropic inputs: least squares, or the interpolator of smallest norm."""
    if alpha > 1:
        return sigma**2 / (alpha - 1) + sigma**2
    return 1 - alpha + sigma**2 * alpha / (1 - alpha) + sigma**2


def few_features_test_loss(alpha: float, nu: float, sigma: float) -> float:
    """Least squares on nu D < alpha D random directions of the inputs: what they do not see of the teacher is noise."""
    return (sigma**2 + 1 - nu) * alpha / (alpha - nu)
