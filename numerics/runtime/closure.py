"""Base class of the closures: numbers, data and coefficients at the current time of a forward pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import jax.numpy as jnp

from . import coefficients as recurrences
from .exact import root, selection, softmax
from .point import Point
from .program import Training, size_of

Array = Any


class Closure(ABC):
    """Operations of a forward pass at one point, for a number of times.

    `state` is the loop state by name, and `t` the current time. Numbers with labels are a row or a column, as the
    closure requires.
    """

    t: Array
    state: dict[str, Any]

    def __init__(self, training: Training, p: Point, times: int):
        self.training, self.p, self.times = training, p, times
        self.vectors = {vector.name: vector for vector in training.vectors}
        self.products = {product.name: product for product in training.products}
        self.labels = {vector.name: size_of(p, vector.axes) for vector in training.vectors}
        self.recorded = {one.key: one for one in (*training.observables, *training.means)}
        self.tables: tuple[Array, ...] = ()

    @abstractmethod
    def oriented(self, numbers: Array) -> Array:
        """Return numbers along labels, as a row or a column."""

    @abstractmethod
    def record(self, key: str, value: Array) -> None:
        """Record a number at the current time."""

    # -- data

    def data(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        """Return data along one axis of labels, at a time if they depend on time."""
        return self.oriented(self.table(array, lag, time))

    def table(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        """Return data at a time, or without one; zero before the start."""
        if lag is None:
            return jnp.asarray(array)
        t = self.t if time is None else time
        return jnp.where(t >= lag, jnp.asarray(array)[t - lag], 0.0)

    def entries(self, array: Array, turned: int, lag: int | None = None, time: Array | None = None) -> Array:
        """Return the entries of a table along labels. turned: column by column."""
        entries = self.table(array, lag, time)
        return self.oriented(entries.T if turned else entries)

    def root(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        """Return the symmetric square root of a covariance matrix."""
        return root(self.table(array, lag, time))

    def selection(self, rows: tuple[int, ...], columns: tuple[int, ...], places: tuple[int, ...]) -> Array:
        """Return the 0-1 matrix that maps labels to other labels."""
        return selection(rows, columns, places)

    # -- numbers

    def softmax(self, numbers: Array, size: int, behind: int) -> Array:
        """Return exp divided by its sum along one axis of labels."""
        return softmax(numbers, size, behind)

    def mean_of_labels(self, numbers: Array) -> Array:
        """Return the mean over all labels."""
        return jnp.mean(numbers)

    def keep(self, key: str, value: Array) -> None:
        """Store a mean for sums over earlier times."""
        self.state[f"kept {key}"] = self.state[f"kept {key}"].at[self.t].set(jnp.reshape(value, ()))

    def kept(self, key: str) -> Array:
        """Return a stored mean at all times."""
        return self.state[f"kept {key}"]

    def coefficient(self, table: Array, time: Array, position: int) -> Array:
        """Return the coefficient of an initial matrix in updated weights at a time."""
        return recurrences.coefficient(table, time, position)

    def coefficients(self, table: Array, time: Array, position: int) -> Array:
        """Return the coefficients of all earlier updates in updated weights at a time."""
        return recurrences.coefficients(table, time, position, self.times)
