"""Declared directions of one sample: squared cosines between them and the vectors of its probed matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from numerics.modules import ProbedMatrix
from numerics.outliers.alignments import times_of
from numerics.runtime.interface import Direction
from numerics.runtime.point import Point

Named = tuple[str, str]
"""An alignment by its name and the side of its vectors."""


class Aligning:
    """The directions that probed matrices are asked about, as far as one sample has them."""

    def __init__(
        self, matrices: Sequence[ProbedMatrix], p: Point, steps: str | None, convert: Callable[[Any], Any]
    ) -> None:
        self.asked: dict[str, tuple[Direction, ...]] = {m.label: m.probe.directions for m in matrices}
        self.p, self.steps, self.convert = p, steps, convert
        self.vectors: dict[tuple[str, Named], np.ndarray] = {}

    def __bool__(self) -> bool:
        return any(self.asked.values())

    def take(self, fields: Mapping[str, Any]) -> None:
        """Keep the directions of a sample as unit vectors, times x sites x labels; zero where they are zero."""
        for label, directions in self.asked.items():
            for one in directions:
                times = times_of(one, self.p, self.steps)
                field = fields[one.field]
                series = [field] if times is None else [field[time] for time in times]
                made = np.stack([np.asarray(self.convert(part)) for part in series])
                lengths = np.linalg.norm(made, axis=1, keepdims=True)
                self.vectors[label, (one.name, one.side)] = np.divide(
                    made, lengths, where=lengths > 0, out=np.zeros_like(made)
                )

    def squared(self, label: str, found: Mapping[str, np.ndarray]) -> dict[Named, np.ndarray]:
        """For each direction of a matrix its squared cosines with vectors of that side, vectors x times x labels."""
        table = {}
        for one in self.asked[label]:
            named = (one.name, one.side)
            cosines = np.einsum("tic,ik->ktc", self.vectors[label, named], found[one.side])
            table[named] = cosines**2
        return table
