"""The past of a field: its rows at all times, one piece per stage of the forward pass.

Rows get longer from stage to stage, because each noise has more times. Rows of earlier stages keep their length, so the
past is a block lower-triangular matrix whose zeros are neither stored nor multiplied.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .exact import Axis, InGroups, lengthened, overlaps

Array = Any


class PastPiece(NamedTuple):
    """Rows of one stage, with the lengths of their parts."""

    rows: Array
    parts: Axis


class TriangularPast(NamedTuple):
    """The rows of a field in order of time; the last piece has the current row length."""

    pieces: tuple[PastPiece, ...]

    def whole(self) -> Array:
        """Return all rows as one array."""
        if len(self.pieces) == 1:
            return self.pieces[0].rows
        return jnp.concatenate([self._widened(piece, piece.rows) for piece in self.pieces])

    def combine(self, kernel: Array) -> Array:
        """Return a kernel times the rows of all times."""
        products, start = [], 0
        for piece in self.pieces:
            stop = start + len(piece.rows)
            products.append(self._widened(piece, kernel[:, start:stop] @ piece.rows))
            start = stop
        return reduce(add, products)

    def weigh(self, weights: Array, labels: int) -> Array:
        """Return the sum over times of weight * rows, label by label."""
        sums, start = [], 0
        for piece in self.pieces:
            times, size = len(piece.rows) // labels, piece.rows.shape[1]
            summed = weights[start : start + times] @ piece.rows.reshape(times, labels * size)
            sums.append(self._widened(piece, summed.reshape(labels, size)))
            start += times
        return reduce(add, sums)

    def overlap(self, seen: Array) -> Array:
        """Return the means of products of a field, given by its dual rows `seen`, with this field at all times."""
        parts = [overlaps(self._narrowed(piece, seen), piece.rows) for piece in self.pieces]
        return parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=1)

    def _widened(self, piece: PastPiece, rows: Array) -> Array:
        """Pad rows of a piece to the current variables."""
        return lengthened(rows, 1, piece.parts, self.pieces[-1].parts)

    def _narrowed(self, piece: PastPiece, rows: Array) -> Array:
        """Restrict current rows to the variables of a piece."""
        long = self.pieces[-1].parts
        if piece.parts == long:
            return rows
        assert not isinstance(piece.parts, InGroups) and not isinstance(long, InGroups)
        kept, start = [], 0
        for short, length in zip(piece.parts, long, strict=True):
            kept.append(jax.lax.slice_in_dim(rows, start, start + short, axis=1))
            start += length
        return jnp.concatenate(kept, axis=1)
