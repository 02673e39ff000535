"""Permutation symmetry of labels: vectors in an orthonormal basis of irreducible representations.

A vector over C equivalent labels splits into the sum over labels, divided by sqrt(C), and C - 1 differences.
Permutations mix the differences among themselves (Schur's lemma), so that one difference represents all, and a vector
has two rows instead of C. If signs may also change label by label, sum and differences are equivalent, and one row
suffices. A matrix a delta_cd + b is diagonal in this basis, with eigenvalues a + C b (once) and a (C - 1 times).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp

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

    def expand(self, table: Array, left: bool, right: bool) -> Array:
        """Return a table of times x labels x times x labels from times x components x times x components."""
        n = self.labels
        if left and right:
            delta = jnp.eye(n)[:, None, :]
            each = table[:, -1:, :, -1:] * delta
            return each if self.components == 1 else each + (table[:, :1, :, :1] - table[:, 1:, :, 1:]) / n
        if not (left or right):
            return table
        shape = (len(table), n if left else 1, table.shape[2], n if right else 1)
        if self.components == 1:
            return jnp.zeros(shape)
        return jnp.broadcast_to(table[:, :1, :, :1] / jnp.sqrt(float(n)), shape)


def components_at(training: Training, p: Point) -> LabelComponents | None:
    """Return the components of the labels of a training level; None if they are not fewer than the labels."""
    alike = training.alike
    if alike is None or size_of(p, alike.axes) <= alike.components:
        return None
    return LabelComponents(size_of(p, alike.axes), alike.components)
