"""The fitted bulk law of one gradient step with extensively many outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numerics.bulk.law import SpectralLaw


@dataclass(frozen=True)
class ExtensiveFit:
    """The fitted law: standard deviation `scale` of entries before the step, ratio of outputs to columns, and strength
    of the step.

    `edges` bound the singular values of W / sqrt(columns) over all intervals; `beyond` counts singular values above,
    which were set aside; `distance` is the Kolmogorov-Smirnov distance.
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
    """Factor from squared singular values of W / sqrt(columns) to eigenvalues of the law."""
    law: SpectralLaw

    @property
    def fits(self) -> bool:
        """Whether the law holds within noise; other laws with as many parameters may hold as well."""
        return self.few_beyond and self.distance <= self.distance_allowed

    def density(self, singular: np.ndarray) -> np.ndarray:
        """Return the density of the singular values of W / sqrt(columns), without the null space of the shape."""
        there = 1.0 - sum(weight for _, weight in self.law.atoms)
        return self.law.density(singular**2 * self.unit) * 2.0 * singular * self.unit / there
