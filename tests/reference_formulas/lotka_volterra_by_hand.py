"""The fixed point of random Lotka-Volterra dynamics by the cavity method, by hand.

N_i' = N_i (1 - N_i - mu <N> - sigma sum_j A_ij N_j), A_ij of variance 1/D and correlation gamma between A_ij and A_ji.
One site: N = max(0, 1 - mu M + sigma sqrt(q) z) / u with z standard normal and u = 1 - gamma sigma^2 chi, where
chi = <dN/dK> is the response to the carrying capacity (Bunin 2017, Galla 2018). With Delta = (1 - mu M)/(sigma sqrt(q))
and w_k = <max(0, z + Delta)^k> this closes: u = sigma sqrt(w2), chi u = w0, M = sqrt(q) w1/sqrt(w2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from scipy.optimize import brentq


class FixedPoint(NamedTuple):
    """Mean abundance, mean square, fraction of survivors."""

    M: float
    q: float
    survivors: float


def truncated_moments(delta: float) -> tuple[float, float, float]:
    """Means of max(0, z + delta)^k for k = 0, 1, 2."""
    density, below = math.exp(-(delta**2) / 2) / math.sqrt(2 * math.pi), (1 + math.erf(delta / math.sqrt(2))) / 2
    return below, density + delta * below, delta * density + (1 + delta**2) * below


def critical_sigma(gamma: float) -> float:
    """Where the fixed point loses its stability: half of the species survive, delta = 0."""
    return math.sqrt(2) / (1 + gamma)


def fixed_point(gamma: float, sigma: float, mu: float) -> FixedPoint:
    """The fixed point below the critical sigma."""

    def excess(delta: float) -> float:
        w0, _, w2 = truncated_moments(delta)
        return sigma * (w2 + gamma * w0) - math.sqrt(w2)

    delta = brentq(excess, 0.0, 50.0)
    w0, w1, w2 = truncated_moments(delta)
    root = 1 / (sigma * delta + mu * w1 / math.sqrt(w2))
    return FixedPoint(root * w1 / math.sqrt(w2), root**2, w0)
