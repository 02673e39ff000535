"""Squared cosines between outlying vectors and a direction, from the literature; nothing of ours is imported.

A direction that has the overlap rho with a planted one, and is independent otherwise, sees rho^2 of what the planted
one sees: what is orthogonal to the planted directions is turned at random.
"""

from __future__ import annotations


def spiked_wigner(theta: float, rho: float) -> tuple[float, float]:
    """Semicircle of radius 2 and a spike of strength theta > 1 (Baik, Ben Arous and Peche 2005; Peche 2006):
    the outlier and its squared cosine."""
    return theta + 1 / theta, rho**2 * (1 - 1 / theta**2)


def spiked_rectangle(theta: float, c: float, right: float, left: float) -> tuple[float, float, float]:
    """W of N x D independent standard entries plus sqrt(N) theta u v^T with unit vectors, c = D / N, theta^4 > c, in
    W^T W / N (Benaych-Georges and Nadakuditi 2012): the outlier and the squared cosines of its right and left singular
    vectors with directions that have the overlaps `right` with v and `left` with u."""
    x = theta**2
    z = (1 + x) * (c + x) / x
    return z, right**2 * (1 - c * (1 + x) / (x * (x + c))), left**2 * (1 - (c + x) / (x * (x + 1)))
