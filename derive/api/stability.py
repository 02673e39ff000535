"""The largest stable rate of a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from numerics import stability
from numerics.stability import StableRate

if TYPE_CHECKING:
    from derive.api.theory import Theory
    from derive.problems import Problem

TOLERANCE = 1e-3
"""To which limits are found, relatively."""
KERNEL = "ntk"
"""The layer that is the curvature where a model has it and nothing else was said."""


def stable_rate(
    theory: Theory,
    problem: Problem,
    of: str,
    loss: str,
    curvature: str | None,
    tolerance: float,
    progress: Callable[[float, str], None] | None,
) -> StableRate:
    """See `Theory.stable_rate`."""
    solver = theory._solver(problem.model, progress)
    if curvature is None and KERNEL in (matrix.label for matrix in solver.matrices):
        curvature = KERNEL
    return stability.stable_rate(
        solver,
        problem.inputs,
        rate=of,
        loss=loss,
        layer=None if curvature == "none" else curvature,
        tolerance=tolerance,
        progress=progress,
    )
