"""Interpolated first guesses for responses inside the bulk.

Following a large system from infinity takes several Newton iterations per point. Inside the bulk the responses are
smooth up to square roots at the edges, so most points of a density start from interpolation instead. A guess is used
only if Newton's method contracts at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NEAREST = 8
"""Interpolation nodes per guess."""


@dataclass
class Neighbours:
    """Real points inside the bulk, ascending, and the responses there, one row per point."""

    places: np.ndarray = field(default_factory=lambda: np.zeros(0))
    responses: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), complex))

    def add(self, places: np.ndarray, responses: np.ndarray) -> None:
        """Insert points with their responses."""
        if not places.size:
            return
        rows = np.concatenate([self.responses, responses]) if self.places.size else responses
        self.places, order = np.unique(np.concatenate([self.places, places]), return_index=True)
        self.responses = rows[order]

    def between(self, x: np.ndarray) -> np.ndarray:
        """Return which points have stored points on either side."""
        if self.places.size < NEAREST:
            return np.zeros(x.shape, bool)
        return (x >= self.places[0]) & (x <= self.places[-1])

    def guesses(self, x: np.ndarray) -> np.ndarray:
        """Return interpolated responses, in an angle in which square roots at both ends are smooth."""
        known_angles, wanted = self._angle(self.places), self._angle(x)
        first = np.clip(np.searchsorted(known_angles, wanted) - NEAREST // 2, 0, known_angles.size - NEAREST)
        rows = first[:, None] + np.arange(NEAREST)
        nodes = known_angles[rows]
        own = np.eye(NEAREST, dtype=bool)
        apart = np.where(own, 1.0, nodes[:, :, None] - nodes[:, None, :])
        away = np.where(own, 1.0, (wanted[:, None] - nodes)[:, None, :])
        with np.errstate(all="ignore"):
            found: np.ndarray = np.einsum("nj,njk->nk", np.prod(away / apart, axis=2), self.responses[rows])
        return found

    def _angle(self, x: np.ndarray) -> np.ndarray:
        low, high = self.places[0], self.places[-1]
        return np.arctan2(np.sqrt(x - low), np.sqrt(high - x))
