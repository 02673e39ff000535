"""The largest stable rate of a problem."""

from __future__ import annotations

from collections.abc import Callable

from derive.problems import Problem
from numerics import stability
from numerics.modules import Solver
from numerics.stability import StableRate

TOLERANCE = 1e-3
"""To which limits are found, relatively."""
KERNEL = "ntk"
"""The layer that is the curvature where a model has it and nothing else was said."""


def stable_rate(
    solver: Solver,
    problem: Problem,
    of: str,
    loss: str,
    curvature: str | None,
    tolerance: float,
    progress: Callable[[float, str], None] | None,
) -> StableRate:
    """See `Theory.stable_rate`."""
    if curvature is None and KERNEL in (matrix.label for matrix in solver.matrices):
        curvature = KERNEL
    layer, _, over = (curvature or "none").partition("/")
    return stability.stable_rate(
        solver,
        problem.inputs,
        rate=of,
        loss=loss,
        layer=None if layer == "none" else layer,
        over=over or None,
        tolerance=tolerance,
        progress=progress,
    )
