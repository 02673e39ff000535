"""Random matrices with a diagonal in them, by hand, from the textbook equations of each; nothing of ours is used.

Silverstein: for M = X^T T X / n, X with c n rows and n columns of unit variance, T diagonal, the transform
m(z) = <1/(x - z)> of the n eigenvalues obeys z = -1/m + c <t / (1 + t m)>, and edges are where dz/dm = 0.
Pastur: for sigma GOE + diagonal, G = <1/(z - s - sigma^2 G)>; with w = z - sigma^2 G edges are where
sigma^2 <1/(w - s)^2> = 1. Separable: A X^T T X A / n. Profile: A GOE A.

Fields made by the same matrix, by conditioning on the one vector w = W x / |x| of independent normal numbers that they
are functions of: what is left of W is a Gaussian matrix that knows nothing of w. In W^T diag(T(w)) W / N the direction
x then has the entry <w^2 T> and is coupled by T w to the rest, a matrix of weighted rows with the resolvent G:
z = <w^2 T / (1 - T G / rows)> at an outlier, with w plus what is planted in place of w. For GOE + diag(f(w)) with
w = GOE x the same gives 1 + G^2 = G (theta + <w^2 / (z - f - G)>) beside a spike theta x x^T.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq


def _iterated(step, start, rounds=20000):
    value = start
    for _ in range(rounds):
        new = (value + step(value)) / 2
        if abs(new - value) < 1e-15 * abs(new):
            return new
        value = new
    raise AssertionError("the fixed point was not reached")


def weighted_rows(z: complex, rows: float, values: np.ndarray, weights: np.ndarray) -> complex:
    """<1/(z - x)> for W^T diag(s) W / N with N = rows * D, at a point of the upper half plane."""
    scaled = z * rows  # of X^T T X / n
    m = _iterated(lambda m: -1 / (scaled - rows * np.sum(weights * values / (1 + values * m))), -1 / scaled)
    return -m * rows


def weighted_rows_edges(rows: float, values: np.ndarray, weights: np.ndarray, gaps: bool = True) -> list[float]:
    """All edges of the same, for more rows than columns: zeros of dz/dm between the poles of z(m).

    Without gaps, as for a density, those outside of all poles only: the lowest and the highest.
    """

    def z(m: float) -> float:
        return -1 / m + rows * np.sum(weights * values / (1 + values * m))

    def slope(m: float) -> float:
        with np.errstate(divide="ignore"):  # minus infinity at a pole
            return 1 / m**2 - rows * np.sum(weights * values**2 / (1 + values * m) ** 2)

    poles = np.sort([-1 / t for t in values])
    found = []
    share = (1 - np.cos(np.pi * np.linspace(1e-4, 1 - 1e-4, 4001))) / 2
    between = [low + (high - low) * share for low, high in zip(poles, [*poles[1:], 0.0], strict=True)]
    beyond = np.geomspace(1e-6, 1e6, 8001)
    for m in (*(between if gaps else between[-1:]), beyond, poles[0] - beyond[::-1]):
        signs = np.array([slope(x) for x in m])
        for a, b, left, right in zip(m, m[1:], signs, signs[1:], strict=False):
            if left * right < 0:
                found.append(z(brentq(slope, a, b, xtol=1e-16)) / rows)
    return sorted(found)


def with_diagonal(z: complex, variance: float, values: np.ndarray, weights: np.ndarray) -> complex:
    """<1/(z - x)> for sqrt(variance) GOE + diag(s)."""
    return _iterated(lambda g: np.sum(weights / (z - values - variance * g)), 1 / z)


def with_diagonal_edges(variance: float, values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The outermost edges of the same."""

    def excess(w: float) -> float:
        return variance * np.sum(weights / (w - values) ** 2) - 1

    def place(w: float) -> float:
        return w + variance * np.sum(weights / (w - values))

    reach = 2 * np.sqrt(variance)
    near = 1e-9 * (1 + np.ptp(values))
    low = brentq(excess, np.min(values) - reach, np.min(values) - near, xtol=1e-15)
    high = brentq(excess, np.max(values) + near, np.max(values) + reach, xtol=1e-15)
    return place(low), place(high)


def with_diagonal_outliers(strength: float, variance: float, values, weights, seen) -> float | None:
    """Above the bulk, the eigenvalue that strength v v^T / D adds, <v^2 | s> = seen: strength <seen / (w - s)> = 1."""
    top = with_diagonal_edges(variance, values, weights)[1]

    def left(w: float) -> float:
        return strength * np.sum(weights * seen / (w - values)) - 1

    edge = brentq(
        lambda w: variance * np.sum(weights / (w - values) ** 2) - 1,
        np.max(values) + 1e-9,
        np.max(values) + 2 * np.sqrt(variance),
        xtol=1e-15,
    )
    if left(edge) <= 0:
        return None
    w = brentq(left, edge, edge + 10 * strength * np.max(seen) + 10, xtol=1e-15)
    found = w + variance * np.sum(weights / (w - values))
    assert found >= top
    return found


def separable(z: complex, rows: float, across, across_weights, values, weights) -> complex:
    """<1/(z - x)> for diag(a) W^T diag(s) W diag(a) / N."""

    def inner(q: complex) -> complex:
        r = np.sum(weights * values / (1 - values * q / rows))
        return np.sum(across_weights * across**2 / (z - across**2 * r))

    q = _iterated(inner, 1 / z)
    r = np.sum(weights * values / (1 - values * q / rows))
    return np.sum(across_weights / (z - across**2 * r))


def profile(z: complex, across, across_weights) -> complex:
    """<1/(z - x)> for diag(a) GOE diag(a)."""
    q = _iterated(lambda q: np.sum(across_weights * across**2 / (z - across**2 * q)), 1 / z)
    return np.sum(across_weights / (z - across**2 * q))


def profile_outlier(theta: float, across, across_weights, low: float, high: float) -> float:
    """Between low and high, the eigenvalue that theta v v^T / D adds to diag(a) GOE diag(a): theta G(z) = 1."""
    return brentq(lambda z: theta * profile(complex(z), across, across_weights).real - 1, low, high, xtol=1e-12)


def normal_numbers(nodes: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal numbers with weights."""
    places, shares = np.polynomial.legendre.leggauss(nodes)
    weighed = shares * np.exp(-((9 * places) ** 2) / 2)
    return 9 * places, weighed / np.sum(weighed)


def weighted_by_field(rows: float, factor: np.ndarray, seen: np.ndarray, weights: np.ndarray, low: float, high: float):
    """The outlier between low and high of K^T K / N, K = diag(sqrt(factor)) (W + planted), and the squared cosine of
    its vector with x; seen: squares of (W + planted) x / |x|."""

    def entry(z: float) -> float:
        g = weighted_rows(complex(z), rows, factor, weights).real
        return float(np.sum(weights * seen * factor / (1 - factor * g / rows)))

    z = brentq(lambda y: y - entry(y), low, high, xtol=1e-12)
    slope = (entry(z + 1e-4) - entry(z - 1e-4)) / 2e-4
    return z, 1 / (1 - slope)


def symmetric_with_field(theta: float, diagonal: np.ndarray, places: np.ndarray, weights: np.ndarray, low, high):
    """The outlier between low and high of GOE + diag(f(w)) + theta x x^T, w = GOE x; diagonal: f at the places."""

    def left(z: float) -> float:
        g = with_diagonal(complex(z), 1.0, diagonal, weights).real
        return 1 + g * g - g * (theta + float(np.sum(weights * places**2 / (z - diagonal - g))))

    return brentq(left, low, high, xtol=1e-12)


def square_density(x: float, values: np.ndarray, weights: np.ndarray) -> float:
    """The density of Q^T diag(s) Q with as many rows as columns: with y = 1/G, x = y <1/(1 - s/y)>, in logarithms of y.

    From far above the axis down to x, each point from the one before: Newton's method in log y.
    """
    y = 1j * 10.0
    for height in np.geomspace(10.0, 1e-9 * x, 400):
        for _ in range(50):
            inside = 1 / (1 - values / y)
            found, slope = np.sum(weights * inside) * y, np.sum(weights * inside * (1 - values / y * inside)) * y
            step = (found - (x + 1j * height)) / slope
            y = y * np.exp(-step)
            if abs(step) < 1e-14:
                break
    return float((-1 / y).imag / np.pi)
