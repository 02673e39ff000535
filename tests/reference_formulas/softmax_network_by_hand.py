"""A linear network with C outputs and cross-entropy at infinite width, by hand: an independent reference in NumPy.

The vectors V_d (one per input) and w_c (one per class) have N sites each and independent standard normal entries at
the start. A step replaces them by linear combinations of each other, V += k x^T E w and w += k E^T x V, k = eta/(P
sqrt(D)), whose coefficients depend on their scalar products alone, E = onehot - softmax(x <V w^T> / sqrt(D)). So the
Gram matrix S of all D + C vectors obeys S -> A S A^T, with A made of S, and starts from the identity.
"""

from __future__ import annotations

import numpy as np


def probabilities(x: np.ndarray, S: np.ndarray) -> np.ndarray:
    """For each sample and class, from the Gram matrix."""
    inputs = x.shape[1]
    outputs = x @ S[:inputs, inputs:] / np.sqrt(inputs)
    grown = np.exp(outputs)
    return grown / grown.sum(axis=1)[:, None]


def grams(x: np.ndarray, onehot: np.ndarray, eta: float, T: int) -> list[np.ndarray]:
    """The Gram matrix at t = 0, ..., T."""
    samples, inputs = x.shape
    found = [np.eye(inputs + onehot.shape[1])]
    for _ in range(T):
        error = onehot - probabilities(x, found[-1])
        A = np.eye(len(found[-1]))
        A[:inputs, inputs:] = eta / (samples * np.sqrt(inputs)) * x.T @ error
        A[inputs:, :inputs] = A[:inputs, inputs:].T
        found.append(A @ found[-1] @ A.T)
    return found
