"""Labels that are alike: vectors with labels in an orthonormal basis of irreducible representations of permutations.

The labels of a vector are the sum over labels, divided by the root of their number, and differences. Permutations mix
differences with each other only, so one difference stands for all, and a vector has two rows in place of C. Where signs
may be changed label by label as well, sum and differences are alike too, and one row is enough. A table between two
vectors with labels is diagonal in this basis: a delta_cd + b has the values a + C b, once, and a, C - 1 times.
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
    """The components of `labels` labels: the one that stands for all, or the sum and one difference."""

    labels: int
    components: int

    def spread(self, rows: Array) -> Array:
        """Rows of a vector without labels as those of one with the same vector at every label."""
        if self.components == 1:
            raise ValueError("a vector without labels is odd under no change of sign")
        return jnp.concatenate([jnp.sqrt(float(self.labels)) * rows, jnp.zeros_like(rows)])

    def total(self, rows: Array) -> Array:
        """The sum of a vector over its labels."""
        if self.components == 1:
            raise ValueError("a sum over labels is odd under no change of sign")
        return jnp.sqrt(float(self.labels)) * rows[:1]

    def mean(self, column: Array, left: bool, right: bool) -> Array:
        """Means of products of two vectors, component by component, as those of every label. left, right: which of the
        two has labels."""
        if not (left or right):
            return column
        if left and right:
            each = column if self.components == 1 else (column[:1] + (self.labels - 1) * column[1:]) / self.labels
        else:
            each = column[:1] / jnp.sqrt(float(self.labels)) if self.components == 2 else jnp.zeros_like(column)
        return jnp.broadcast_to(each, (self.labels, 1))

    def expand(self, table: Array, left: bool, right: bool) -> Array:
        """A table of times x components x times x components with all labels in place of components."""
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
    """The components of the labels of a training level; None where there are no fewer than labels."""
    alike = training.alike
    if alike is None or size_of(p, alike.axes) <= alike.components:
        return None
    return LabelComponents(size_of(p, alike.axes), alike.components)
