"""Runtime of finite-size simulations: random draws, pasts of fields, data, means and products of vectors.

A vector has two axes, sites x labels; without labels it has one column. Means over sites and data along labels are
rows, so that sums and products broadcast. Arrays are NumPy's or JAX's, and `xp` is numpy or jax.numpy; zeros are NumPy
arrays, which combine with both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .traits import FINE, discrete, rule, stretched

Array = Any


def whole_sizes(sizes: dict[str, float]) -> tuple[int, ...]:
    """Round sizes to whole numbers, at least one."""
    return tuple(max(1, round(size)) for size in sizes.values())


# -- draws


def gaussian(rng: np.random.Generator, xp: Any, rows: int, columns: int) -> Array:
    """Draw a matrix of independent standard normal entries."""
    return xp.asarray(rng.standard_normal((rows, columns)))


def goe(rng: np.random.Generator, xp: Any, size: int, variance: float) -> Array:
    """Draw a symmetric Gaussian matrix (GOE) with this off-diagonal variance, and twice that on the diagonal."""
    entries = rng.standard_normal((size, size))
    return xp.asarray(np.sqrt(variance / 2) * (entries + entries.T))


def normal(rng: np.random.Generator, xp: Any, size: int, labels: int | None = None) -> Array:
    """Draw a vector of independent standard normal entries, sites x labels."""
    if labels is None:
        return xp.asarray(rng.standard_normal(size))[:, None]
    return xp.asarray(rng.standard_normal((size, labels)))


def drawn_from(rng: np.random.Generator, xp: Any, law: tuple[Any, ...], size: int, labels: int | None = None) -> Array:
    """Draw a vector of independent entries from a law, sites x labels."""
    return xp.asarray(_drawn(rng, law, (size, 1 if labels is None else labels)))


def _drawn(rng: np.random.Generator, law: tuple[Any, ...], shape: tuple[int, int]) -> np.ndarray:
    """Draw independent entries from a law, or from a mixture of laws."""
    kind, *numbers = law
    if kind == "uniform":
        return rng.uniform(numbers[0], numbers[1], shape)
    if kind == "exponential":
        return rng.exponential(numbers[0], shape)
    if kind == "half_normal":
        return np.abs(rng.normal(0.0, numbers[0], shape))
    if kind == "log_normal":
        return rng.lognormal(numbers[0], numbers[1], shape)
    if kind == "normal_law":
        return rng.normal(numbers[0], numbers[1], shape)
    shares, parts = np.array(numbers[0], float), numbers[1]
    chosen = rng.choice(len(parts), shape, p=shares / shares.sum())
    each = [np.full(shape, part, float) if kind == "discrete" else _drawn(rng, part, shape) for part in parts]
    mixture: np.ndarray = np.select([chosen == k for k in range(len(parts))], each)
    return mixture


def trait_of_values(rng: np.random.Generator, xp: Any, size: int, values: Any, weights: Any) -> Array:
    """Draw one value per site by stratified sampling: the number of sites with each value follows from its weight (up
    to one site), in random order.
    """
    law = discrete(values, weights, np)
    bounds = np.cumsum(law.weights)
    chosen = np.searchsorted(bounds / bounds[-1], _spread(rng, size), side="right")
    return xp.asarray(law.values[np.minimum(chosen, len(bounds) - 1)])[:, None]


def trait_of_density(rng: np.random.Generator, xp: Any, size: int, density: Any, low: Any, high: Any) -> Array:
    """Draw one value per site by stratified sampling: equally spaced quantiles of a density, in random order."""
    places, _, shares = rule(density, low, high, FINE, np)
    below = np.concatenate([[0.0], np.cumsum((shares[1:] + shares[:-1]) / 2)])
    quantiles = np.interp(_spread(rng, size) * below[-1], below, places)
    return xp.asarray(stretched(quantiles, low, high, np)[0])[:, None]


def _spread(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return equally spaced numbers in (0, 1) with a common random shift, in random order. Each of them is uniformly
    distributed, so that means are unbiased.
    """
    return (rng.permutation(size) + rng.random()) / size


# -- vectors and data in time


def filled(value: Array, size: int, labels: int = 1) -> Array:
    """Broadcast a number or a row to a vector of the full shape, in floating point."""
    if getattr(value, "shape", None) == (size, labels) and value.dtype.kind == "f":
        return value
    return np.zeros((size, labels)) + value


class Past:
    """A field at all times so far; zero before the start. kicks: the impulses in the field's equation, one per time."""

    def __init__(self, size: int, labels: int = 1, kicks: Array | None = None):
        self._shape = (size, labels)
        self._values: list[Array] = []
        self._kicks = kicks

    def append(self, value: Array) -> None:
        """Append the value of the next time, with its impulse."""
        kicked = value if self._kicks is None else value + self._kicks[len(self._values)]
        self._values.append(filled(kicked, *self._shape))

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, time: int) -> Array:
        return self._values[time] if time >= 0 else np.zeros(self._shape)


def kicked(value: Array, kicks: Array | None) -> Array:
    """Return a vector without time plus the impulse in its equation."""
    return value if kicks is None else value + kicks[0]


def given(data: Array, time: int | None = None) -> Array:
    """Return data at a time, or without one, with two axes; one number per label is a row. Zero before the start."""
    if time is not None:
        data = data[time] if time >= 0 else np.zeros(data.shape[1:])
    return data if data.ndim == 2 else data[None, :]


def by_pair(table: Array, turned: int) -> Array:
    """Return the entries of a table as one row. turned: column by column."""
    return (table.T if turned else table).reshape(1, -1)


def root(table: Array) -> Array:
    """Return the symmetric square root of a covariance matrix."""
    left, values, right = np.linalg.svd(np.asarray(table))
    return left * np.sqrt(values) @ right


# -- means and sums


def mean(vector: Array) -> Array:
    """Return the mean over sites, a row with one entry per label; the mean of a number is that number."""
    return vector.mean(axis=0, keepdims=True) if np.ndim(vector) else vector


def average(vector: Array) -> Array:
    """Return the mean over sites and labels as a number."""
    return vector.mean() if np.ndim(vector) else vector


def total(vector: Array) -> Array:
    """Return the sum over labels as a column."""
    return vector.sum(axis=1, keepdims=True)


def total_number(row: Array) -> Array:
    """Return the sum over the labels of a row as a number."""
    return row.sum()


def by_label(row: Array, *sizes: int) -> Array:
    """Return a row as one number per label, reshaped to the sizes of several axes if given."""
    return row[0].reshape(sizes) if sizes else row[0]


# -- axes of labels


def repeated(xp: Any, vector: Array, own: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """Return a vector repeated along axes of labels that it lacks, where its own sizes are one."""
    return xp.broadcast_to(vector.reshape(-1, *own), (len(vector), *sizes)).reshape(len(vector), -1)


def in_order(vector: Array, sizes: tuple[int, ...], order: tuple[int, ...]) -> Array:
    """Return a vector with its axes of labels permuted."""
    return vector.reshape(-1, *sizes).transpose(0, *(1 + place for place in order)).reshape(len(vector), -1)


def mixed_along(
    xp: Any, vector: Array, table: Array, sizes: tuple[int, ...], place: int, order: tuple[int, ...]
) -> Array:
    """Return a table times a vector along one axis of its labels; the rows of the table become the last axis."""
    mixed = xp.tensordot(vector.reshape(-1, *sizes), table, axes=((1 + place,), (1,)))
    return mixed.transpose(0, *(1 + k for k in order)).reshape(len(vector), -1)


def total_along(vector: Array, size: int, behind: int) -> Array:
    """Return the sum over an axis of `size` labels, with `behind` labels along later axes."""
    return vector.reshape(len(vector), -1, size, behind).sum(axis=2).reshape(len(vector), -1)


def softmax(xp: Any, row: Array, size: int, behind: int) -> Array:
    """Return exp divided by its sum along an axis of labels, as in `total_along`."""
    values = row.reshape(len(row), -1, size, behind)
    grown = xp.exp(values - values.max(axis=2, keepdims=True))
    return (grown / grown.sum(axis=2, keepdims=True)).reshape(row.shape)


# -- diagonal matrices


def diagonal_matrix(entries: Array) -> Array:
    """Return the diagonal matrix of a vector."""
    return entries * np.eye(len(entries))


def scaled_rows(entries: Array, matrix: Array) -> Array:
    """Return diag(vector) times a matrix, by scaling its rows."""
    return entries * matrix


def scaled_columns(matrix: Array, entries: Array) -> Array:
    """Return a matrix times diag(vector), by scaling its columns."""
    return matrix * entries.T


# -- matrices of low rank


def outer(left: Array, right: Array) -> Array:
    """Return left right^T, summed over labels."""
    return left @ right.T


def project(left: Array, right: Array, vector: Array) -> Array:
    """Return (left right^T) times a vector without forming the matrix."""
    return left @ (right.T @ vector)


def columns(xp: Any, size: int, *vectors: Array | Iterable[Array]) -> Array:
    """Return the columns of all vectors, and of series of vectors, as one matrix."""
    parts: list[Array] = []
    for each in vectors:
        parts += [each] if hasattr(each, "ndim") else list(each)
    return xp.concatenate(parts, axis=1) if parts else xp.zeros((size, 0))
