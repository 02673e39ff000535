"""What all closures of a forward pass share: numbers, data and coefficients at the current time."""

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
    """The operations of a forward pass at one point, with room for so many times.

    `state` holds by name what is carried through time, and `t` is the current time. Numbers with labels have one axis
    for them, which a closure turns as it needs.
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
        """Numbers along labels, turned as this closure has them."""

    @abstractmethod
    def record(self, key: str, value: Array) -> None:
        """Record a number of the current time."""

    # -- data

    def data(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        """Data along one axis of labels, at a time if they have one."""
        return self.oriented(self.table(array, lag, time))

    def table(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        """Data at a time, or without one; zero before the start."""
        if lag is None:
            return jnp.asarray(array)
        t = self.t if time is None else time
        return jnp.where(t >= lag, jnp.asarray(array)[t - lag], 0.0)

    def entries(self, array: Array, turned: int, lag: int | None = None, time: Array | None = None) -> Array:
        """The entries of a table along labels; turned: by columns."""
        found = self.table(array, lag, time)
        return self.oriented(found.T if turned else found)

    def root(self, array: Array, lag: int | None = None, time: Array | None = None) -> Array:
        """The symmetric square root of a table of covariances."""
        return root(self.table(array, lag, time))

    def selection(self, rows: tuple[int, ...], columns: tuple[int, ...], places: tuple[int, ...]) -> Array:
        """The table of zeros and ones that takes some labels to others."""
        return selection(rows, columns, places)

    # -- numbers

    def softmax(self, numbers: Array, size: int, behind: int) -> Array:
        """exp over its sum along one axis of labels."""
        return softmax(numbers, size, behind)

    def mean_of_labels(self, numbers: Array) -> Array:
        """The mean over all labels."""
        return jnp.mean(numbers)

    def keep(self, key: str, value: Array) -> None:
        """Keep a mean for sums over earlier times."""
        self.state[f"kept {key}"] = self.state[f"kept {key}"].at[self.t].set(jnp.reshape(value, ()))

    def kept(self, key: str) -> Array:
        """A mean at all times."""
        return self.state[f"kept {key}"]

    def coefficient(self, table: Array, time: Array, position: int) -> Array:
        """A coefficient of updated weights at a time."""
        return recurrences.coefficient(table, time, position)

    def coefficients(self, table: Array, time: Array, position: int) -> Array:
        """A coefficient of updated weights at a time, for all times at which something was added."""
        return recurrences.coefficients(table, time, position, self.times)
