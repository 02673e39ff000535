"""Permutation symmetry of labels: vectors in an orthonormal basis of irreducible representations.

A vector over C equivalent labels splits into the sum over labels, divided by sqrt(C), and C - 1 differences.
Permutations mix the differences among themselves (Schur's lemma), so that one difference represents all, and a vector
has two rows instead of C. If signs may also change label by label, sum and differences are equivalent, and one row
suffices. A matrix a delta_cd + b is diagonal in this basis, with eigenvalues a + C b (once) and a (C - 1 times).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .arrays import module_of
from .keys import OrderKey
from .point import Point
from .program import Training, size_of

Array = Any


@dataclass(frozen=True)
class LabelComponents:
    """Irreducible components of `labels` equivalent labels: sum and difference, or a single one."""

    labels: int
    components: int

    def spread(self, rows: Array) -> Array:
        """Return the components of a vector that is equal at every label, from its rows without labels."""
        if self.components == 1:
            raise ValueError("with sign symmetry every vector must have labels")
        return jnp.concatenate([jnp.sqrt(float(self.labels)) * rows, jnp.zeros_like(rows)])

    def total(self, rows: Array) -> Array:
        """Return the sum of a vector over its labels."""
        if self.components == 1:
            raise ValueError("with sign symmetry there is no sum over labels")
        return jnp.sqrt(float(self.labels)) * rows[:1]

    def mean(self, column: Array, left: bool, right: bool) -> Array:
        """Return means of products of two vectors at every label from those of components. left, right: whether each
        vector has labels."""
        if not (left or right):
            return column
        if left and right:
            each = column if self.components == 1 else (column[:1] + (self.labels - 1) * column[1:]) / self.labels
        else:
            each = column[:1] / jnp.sqrt(float(self.labels)) if self.components == 2 else jnp.zeros_like(column)
        return jnp.broadcast_to(each, (self.labels, 1))

    def of_one_label(self, table: Array, left: bool, right: bool) -> Array:
        """Return the entries of any label with itself: times x times from times x components x times x components."""
        if left and right:
            difference = table[:, -1, :, -1]
            return difference if self.components == 1 else difference + self._common(table)
        one = table[:, 0, :, 0]
        if not (left or right):
            return one
        return module_of(one).zeros_like(one) if self.components == 1 else one / math.sqrt(self.labels)

    def expand(self, table: Array, left: bool, right: bool) -> Array:
        """Return a table of times x labels x times x labels from times x components x times x components."""
        n = self.labels
        if left and right:
            each = _repeated(table[:, -1, :, -1], n)
            return each if self.components == 1 else each + self._common(table)[:, None, :, None]
        one = self.of_one_label(table, left, right)
        shape = (len(table), n if left else 1, table.shape[2], n if right else 1)
        return module_of(table).broadcast_to(one[:, None, :, None], shape)

    def _common(self, table: Array) -> Array:
        """Return b of a table a delta_cd + b."""
        return (table[:, 0, :, 0] - table[:, 1, :, 1]) / self.labels


def _repeated(table: Array, labels: int) -> Array:
    """Return times x labels x times x labels with a table for each label with itself, and zeros."""
    if module_of(table) is jnp:
        return table[:, None, :, None] * jnp.eye(labels)[:, None, :]
    each = np.zeros((len(table), labels, table.shape[1], labels))  # faster than products with zeros
    for label in range(labels):
        each[:, label, :, label] = table
    return each


class ComponentTable:
    """A two-time function of vectors with equivalent labels, by components. A pytree.

    stored: (times of a x components of a) x (times of b x components of b). left, right: whether a and b have labels.
    Numbers scale it, as they would scale the expanded table.
    """

    __array_ufunc__ = None  # NumPy's numbers leave products to this class

    def __init__(self, stored: Array, components: LabelComponents, left: bool, right: bool):
        self.stored, self.components, self.left, self.right = stored, components, left, right

    def __mul__(self, factor: Array) -> ComponentTable:
        return ComponentTable(factor * self.stored, self.components, self.left, self.right)

    __rmul__ = __mul__

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the expanded table."""
        rows, columns = (length // own * labels for length, own, labels in self._sizes)
        return rows, columns

    @property
    def _sizes(self) -> tuple[tuple[int, int, int], ...]:
        """For each axis its stored length, its components and its labels."""
        many = self.components.components, self.components.labels
        sides = zip(self.stored.shape, (self.left, self.right), strict=True)
        return tuple((length, *(many if has_labels else (1, 1))) for length, has_labels in sides)

    def _read(self, what: Callable[..., Array]) -> Array:
        (rows, a, _), (columns, b, _) = self._sizes
        return what(self.stored.reshape(rows // a, a, columns // b, b), self.left, self.right)

    def expand(self) -> Array:
        """Return (times x labels) x (times x labels)."""
        return self._read(self.components.expand).reshape(self.shape)

    def of_one_label(self) -> Array:
        """Return the entries of any label with itself, times x times."""
        return self._read(self.components.of_one_label)

    def eigenvalues(self) -> tuple[Array, Array]:
        """Return a + C b and a for a table a delta_cd + b over C labels: on the sum over labels, on a difference."""
        of = self.components.components
        return self.stored[::of, ::of], self.stored[of - 1 :: of, of - 1 :: of]


jax.tree_util.register_pytree_node(
    ComponentTable,
    lambda one: ((one.stored,), (one.components, one.left, one.right)),
    lambda how, leaves: ComponentTable(leaves[0], *how),
)


class OrderByComponents(Mapping[OrderKey, Array]):
    """Order parameters over equivalent labels, stored by components; reading one expands it to all labels. A pytree.

    The expanded table has C x C times as many entries, so that expanding all of them can take longer than the forward
    pass that computed them.
    """

    def __init__(self, tables: Mapping[OrderKey, Array | ComponentTable]):
        self.tables = dict(tables)
        self._read: dict[OrderKey, np.ndarray] = {}

    def __getitem__(self, key: OrderKey) -> Array:
        table = self.tables[key]
        if not isinstance(table, ComponentTable):
            return table
        if module_of(table.stored) is jnp:
            return table.expand()
        if key not in self._read:
            self._read[key] = table.expand()
            self._read[key].setflags(write=False)
        return self._read[key]

    def __iter__(self) -> Iterator[OrderKey]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def entries(self) -> int:
        """The number of entries of all order parameters, expanded."""
        return sum(math.prod(table.shape) for table in self.tables.values())


jax.tree_util.register_pytree_node(
    OrderByComponents, lambda order: ((order.tables,), None), lambda _, leaves: OrderByComponents(leaves[0])
)


def tables_of(order: Mapping[OrderKey, Array]) -> Mapping[OrderKey, Array | ComponentTable]:
    """Return order parameters as they are stored."""
    return order.tables if isinstance(order, OrderByComponents) else order


def of_one_label(order: Mapping[OrderKey, Array]) -> Mapping[OrderKey, Array]:
    """Return order parameters of one label with itself if labels are equivalent, otherwise all of them unchanged.

    All diagonal entries are among them, and they are finite if and only if all are.
    """
    return {key: x.of_one_label() if isinstance(x, ComponentTable) else x for key, x in tables_of(order).items()}


def components_at(training: Training, p: Point) -> LabelComponents | None:
    """Return the components of the labels of a training level; None if they are not fewer than the labels."""
    alike = training.alike
    if alike is None or size_of(p, alike.axes) <= alike.components:
        return None
    return LabelComponents(size_of(p, alike.axes), alike.components)
