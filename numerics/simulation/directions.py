"""Squared cosines between declared directions and eigenvectors of the probed matrices, for one sample."""

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
    """The requested directions of the probed matrices, for one sample."""

    def __init__(
        self, matrices: Sequence[ProbedMatrix], p: Point, steps: str | None, convert: Callable[[Any], Any]
    ) -> None:
        self.asked: dict[str, tuple[Direction, ...]] = {m.label: m.probe.directions for m in matrices}
        probed = [m for m in matrices if m.probe.directions]
        self.points = {m.label: m.probe.begun(p) for m in probed}
        self.steps, self.convert = steps, convert
        self.vectors: dict[tuple[str, Named], np.ndarray] = {}
        self.kept: dict[tuple[str, int], dict[str, np.ndarray]] = {}

    def __bool__(self) -> bool:
        return any(self.asked.values())

    def take(self, fields: Mapping[str, Any]) -> None:
        """Store the directions of a sample as unit vectors, times x sites x labels; zero directions stay zero."""
        for label, directions in self.asked.items():
            for one in directions:
                times = times_of(one, self.points[label], self.steps)
                field = fields[one.field]
                series = [field] if times is None else [field[time] for time in times]
                stacked = np.stack([np.asarray(self.convert(part)) for part in series])
                lengths = np.linalg.norm(stacked, axis=1, keepdims=True)
                self.vectors[label, (one.name, one.side)] = np.divide(
                    stacked, lengths, where=lengths > 0, out=np.zeros_like(stacked)
                )

    def keep(self, label: str, time: int, found: Mapping[str, np.ndarray]) -> None:
        """Store eigenvectors of a matrix at an earlier time by side, because directions may come later."""
        self.kept[label, time] = {one.side: found[one.side] for one in self.asked[label]}

    def early(self) -> dict[tuple[str, int], dict[Named, np.ndarray]]:
        """Return `squared` for the stored vectors, by label and time."""
        return {(label, time): self.squared(label, found) for (label, time), found in self.kept.items()}

    def squared(self, label: str, found: Mapping[str, np.ndarray]) -> dict[Named, np.ndarray]:
        """Return each direction's squared cosines with vectors of its side, vectors x times x labels."""
        table = {}
        for one in self.asked[label]:
            named = (one.name, one.side)
            cosines = np.einsum("tic,ik->ktc", self.vectors[label, named], found[one.side])
            table[named] = cosines**2
        return table
