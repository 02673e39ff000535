"""The bulk of one gradient step with extensively many outputs, as fitted to a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numerics.bulk.law import SpectralLaw


@dataclass(frozen=True)
class ExtensiveFit:
    """The fitted law: entries of deviation `scale` before the step, outputs over columns, strength of the step.

    `edges` are those of the singular values of W / sqrt(columns), from the lowest of all intervals to the highest;
    `beyond` is how many singular values lie above and were set aside; `distance` is Kolmogorov's and Smirnov's.
    """

    scale: float
    chi: float
    gamma: float
    edges: tuple[float, float]
    beyond: int
    few_beyond: bool
    distance: float
    distance_allowed: float
    unit: float
    """What takes squared singular values of W / sqrt(columns) to eigenvalues of the law."""
    law: SpectralLaw

    @property
    def fits(self) -> bool:
        """Whether the law holds to within what noise allows; others that are as flexible may hold as well."""
        return self.few_beyond and self.distance <= self.distance_allowed

    def density(self, singular: np.ndarray) -> np.ndarray:
        """Of the singular values of W / sqrt(columns); zeros that only the shape makes are not counted."""
        there = 1.0 - sum(weight for _, weight in self.law.atoms)
        found: np.ndarray = self.law.density(singular**2 * self.unit) * 2.0 * singular * self.unit / there
        return found
