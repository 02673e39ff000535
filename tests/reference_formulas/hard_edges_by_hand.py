"""Polynomials of one Gaussian matrix whose bulk ends at a hard edge away from zero, with one planted direction.

The outlier of M + k u u^T / D is where the resolvent G of M is 1/k.
"""

from __future__ import annotations

import math


def semicircle(y: float) -> float:
    """The resolvent of a symmetric Gaussian matrix with spectrum in [-2, 2], outside of it."""
    return (y - math.copysign(math.sqrt(y * y - 4), y)) / 2


def square_plus_itself(z: float) -> float:
    """G(z) of M^2 + M above the bulk [-1/4, 6]: partial fractions in the roots of y^2 + y = z."""
    apart = math.sqrt(1 + 4 * z)
    return (semicircle((-1 + apart) / 2) - semicircle((-1 - apart) / 2)) / apart


def beside_identity(k: float) -> float:
    """The outlier of Q + Q^T + Q^T Q + k u u^T / D: with z + 1 for (1 + Q)^T (1 + Q), which has
    1/g = (z + 1)(1 - g) - 1/(1 - g), and g = 1/k. The bulk is [-1, 23/4]."""
    rest = 1 - 1 / k
    return (k + 1 / rest) / rest - 1
