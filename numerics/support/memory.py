"""Estimated peak memory of a sampled solution, from shapes alone."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from derive.errors import ParameterError
from numerics.modules import ProbedMatrix, Solver
from numerics.outliers.large import ROWS
from numerics.runtime.interface import Key
from numerics.runtime.point import Point
from numerics.runtime.samples import SampledPass
from numerics.support.precision import in_float64
from numerics.training.ensemble import SMALL
from numerics.training.sampling import WORKING_COPIES, Sampling, plans_for
from numerics.training.shelf import IN_MEMORY

SHARE = 0.9
"""Fraction of the machine's memory that a solution may take by default."""
ALONE = 3e8
"""Bytes of Python and its libraries."""
PROGRAMS = 1.2e8
"""Bytes of one further compiled forward pass, compiler included."""


@dataclass(frozen=True)
class ExpectedMemory:
    """Peak memory in bytes while sampling, while computing order parameters, and while solving eigenproblems."""

    passes: float
    moments: float
    outliers: float

    @property
    def most(self) -> float:
        """Peak memory in bytes."""
        return max(self.passes, self.moments, self.outliers)

    @property
    def told(self) -> str:
        """The estimate as text."""
        stages = {"sampling": self.passes, "order parameters": self.moments, "outliers": self.outliers}
        return f"about {self.most / 1e9:.1f} GB at most, for {max(stages, key=lambda name: stages[name])}"


def memory_of_machine() -> float:
    """Return the physical memory in bytes; infinite where the system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


@in_float64
def expected_memory(
    solver: Solver, values: dict[str, Any], sampling: Sampling, labels: Sequence[str] | None, path: bool | None
) -> ExpectedMemory:
    """Return the estimated peak memory of a sampled solution.

    Args:
        solver: the generated solver.
        values: parameter values and data.
        sampling: options of the sampled pass.
        labels: requested probed matrices; None for all.
        path: whether outliers at every time are requested; None for those of small eigenproblems.
    """
    training, p = solver.training, solver.point(values)
    assert isinstance(training, SampledPass), "an exact pass draws nothing"
    steps = 1 if solver.setting.steps is None else int(values[solver.setting.steps])
    shapes = {key: tuple(max(1, x * steps) for x in axes) for key, axes in training.strides(p).items()}
    order = sum(8.0 * math.prod(shape) for shape in shapes.values())
    rows = max((max(shape) for shape in shapes.values()), default=1)
    plans = plans_for(training, p, sampling)
    plan = plans[min(1, len(plans) - 1)]  # the first rank is often too small, the second seldom
    sizes = training.shapes(p, plan.rank)
    normals = sum(map(math.prod, sizes.values()))
    sites = 8.0 * plan.sites * (WORKING_COPIES * training.footprint(p, plan.rank) + normals)
    widest = max((math.prod(sizes[name]) for group in training.groups for name in group), default=1)
    kept = 8.0 * sum(max(shape) * widest for shape in shapes.values())
    apart = 2.3 * order > SMALL  # moments included, of which there are somewhat more
    replicas = plan.replicas + 3
    shelf = min(IN_MEMORY, 3 * plan.replicas * kept + (2.3 * order if apart else 4 * replicas * order))
    beside = ALONE + (2 if plan.rank is None else 5) * PROGRAMS + shelf
    chosen = [m for m in solver.matrices if labels is None or m.label in labels]
    outliers = max(
        (_of_outliers(p, m, shapes, 0 if path is False else steps, replicas, path is None) for m in chosen), default=0.0
    )
    return ExpectedMemory(
        beside + sites + 4 * kept, beside + (20 * 8.0 * rows**2 if apart else 6 * order), beside + outliers
    )


def _of_outliers(
    p: Point, matrix: ProbedMatrix, shapes: dict[Key, tuple[int, ...]], steps: int, replicas: int, last: bool
) -> float:
    """Return the bytes of the eigenproblems of a matrix. last: whether large ones are solved for the last time only."""
    p = matrix.probe.begun(p)
    if not (matrix.probe.unknowns and matrix.probe.reduced) or matrix.probe.measured:
        return 0.0
    struct: Any = jax.ShapeDtypeStruct
    order_shapes = {key: struct(shape, float) for key, shape in shapes.items()}
    most = 0.0
    for ring in matrix.probe.rings:
        try:
            factor_shapes = jax.eval_shape(lambda order, ring=ring: ring.factors(p, order), order_shapes)
        except (KeyError, TypeError):  # it needs order parameters without known shapes
            continue
        rows = factor_shapes[0].shape[0]
        factors = sum(8.0 * math.prod(x.shape) for x in factor_shapes)
        square = 8.0 * rows**2
        read = factors / 1.7  # factors contain some order parameters twice
        if rows > ROWS:  # of the mean, of halves, and the part that replicates share
            most = max(most, 2.6 * read + (1.6 * factors if steps and not last else 0.0))
        else:
            whole = 8.0 * (2.5 * rows) ** 2
            course = min(steps, 64) / 3 * square + min(5e8, replicas * factors)
            most = max(most, read + factors + 6 * square + 3 * whole + course)
    return most


def check_expected(expected: ExpectedMemory, most: float | None) -> None:
    """Raise if the estimate exceeds `most` bytes, by default a fraction of the machine's memory."""
    bound = SHARE * memory_of_machine() if most is None else most
    if expected.most <= bound:
        return
    less = "fewer steps, labels or samples"
    if expected.most == expected.outliers:
        less += ", or leave out spectra (layer=none) or their path (path=False)"
    raise ParameterError(
        f"this takes {expected.told}, and {bound / 1e9:.1f} GB are allowed; take {less}, or allow more "
        "(memory=GB, --memory GB)"
    )
