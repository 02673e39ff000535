"""A proof that no eigenvalue of a matrix is as large as a radius, for many matrices at once.

If |M^k| < r^k in some norm, every eigenvalue has modulus below r. The computed product of n x n matrices differs from
the exact one by at most gamma |A| |B| in Frobenius norm, with gamma = n u / (1 - n u) and the unit roundoff u, in
whatever order sums are taken (Higham, Accuracy and Stability of Numerical Algorithms, 3.5). The errors of repeated
squaring follow from it.
"""

from __future__ import annotations

import numpy as np

from numerics.outliers.linear import RESOLVED
from numerics.outliers.powers import gamma

SQUARINGS = 4
"""Powers up to M^(2^SQUARINGS) are tried."""


def are_within(matrices: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Return for each matrix whether all its eigenvalues are proved to have a modulus below its radius.

    Matrices with a norm beyond 1 / RESOLVED radii are left to multiple precision.
    """
    rows = matrices.shape[1]
    within, open_ = np.zeros(len(matrices), bool), np.flatnonzero(radii > 0)
    powers = matrices[open_] / radii[open_, None, None]
    norms = _norms(powers)
    error = gamma(1) * norms  # of the division
    for squarings in range(SQUARINGS + 1):
        if squarings:
            powers = powers @ powers
            error = 2 * norms * error + error**2 + gamma(rows) * norms**2
            norms = _norms(powers)
        within[open_] = norms + error < 1
        undecided = ~within[open_] & (norms < 1 / RESOLVED)
        if squarings == SQUARINGS or not undecided.any():
            return within
        open_, powers, norms, error = open_[undecided], powers[undecided], norms[undecided], error[undecided]
    return within


def _norms(matrices: np.ndarray) -> np.ndarray:
    """Return upper bounds on the Frobenius norms of computed matrices, with the rounding of the norms."""
    norms: np.ndarray = np.sqrt(np.einsum("kij,kij->k", matrices, matrices))
    return norms * (1 + gamma(matrices.shape[1] * matrices.shape[2] + 4))
