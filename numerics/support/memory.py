"""Peak memory of a solution, estimated from shapes before anything is drawn."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import jax

from derive.errors import ParameterError
from numerics.modules import ProbedMatrix, Solver
from numerics.outliers.large import ROWS
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point
from numerics.support.precision import in_float64
from numerics.support.reports import ExpectedMemory
from numerics.training.ensemble import SMALL
from numerics.training.sampling import WORKING_COPIES, Sampling, plans_for
from numerics.training.shelf import IN_MEMORY

SHARE = 0.9
"""Fraction of the memory of the machine that a solution may take by default."""
ALONE = 3e8
"""Bytes of Python and its libraries."""
PROGRAMS = 1.2e8
"""Bytes of one more program of a forward pass, including its compilation."""


def memory_of_machine() -> float:
    """Return the memory in bytes; infinite if the system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


@in_float64
def expected_memory(
    solver: Solver, values: dict[str, Any], sampling: Sampling, labels: Sequence[str] | None, path: bool | None
) -> ExpectedMemory:
    """Return the peak memory of a sampled solution. labels: of the requested probed matrices, all if None; path:
    whether outliers at every time are needed, None if they are needed only for eigenproblems that are not large."""
    training, p = solver.sampled_pass, solver.point(values)
    steps = 1 if solver.setting.steps is None else int(values[solver.setting.steps])
    shapes = training.extents(p, steps)
    order = sum(8.0 * math.prod(shape) for shape in shapes.values())
    rows = max((max(shape) for shape in shapes.values()), default=1)
    plans = plans_for(training, p, sampling)
    plan = plans[min(1, len(plans) - 1)]  # the first one often has too little room, the second seldom
    sizes = training.shapes(p, plan.rank)
    normals = sum(map(math.prod, sizes.values()))
    sites = 8.0 * plan.sites * (WORKING_COPIES * training.footprint(p, plan.rank) + normals)
    widest = max((math.prod(sizes[name]) for group in training.groups for name in group), default=1)
    kept = 8.0 * sum(max(shape) * widest for shape in shapes.values())
    apart = 2.3 * order > SMALL  # with moments, of which there are somewhat more
    replicas = plan.replicas + 3
    shelf = min(IN_MEMORY, 3 * plan.replicas * kept + (2.3 * order if apart else 4 * replicas * order))
    beside = ALONE + (2 if plan.rank is None else 5) * PROGRAMS + shelf
    chosen = [m for m in solver.matrices if labels is None or m.label in labels]
    along = 0 if path is False else steps
    outliers = 0.0
    for matrix in chosen:
        begun = matrix.probe.begun(p)
        times = steps if solver.setting.steps is None else int(getattr(begun, solver.setting.steps))
        there = training.extents(p, times)
        outliers = max(outliers, _of_outliers(begun, matrix, there, along, replicas, path is None))
    return ExpectedMemory(
        beside + sites + 4 * kept, beside + (20 * 8.0 * rows**2 if apart else 6 * order), beside + outliers
    )


def _of_outliers(
    p: Point, matrix: ProbedMatrix, shapes: dict[OrderKey, tuple[int, ...]], steps: int, replicas: int, last: bool
) -> float:
    """Return the memory of the eigenproblems of a matrix. last: whether large ones are solved for the last time
    only."""
    if not (matrix.probe.unknowns and matrix.probe.reduced) or matrix.probe.measured:
        return 0.0
    struct: Any = jax.ShapeDtypeStruct
    given = {key: struct(shape, float) for key, shape in shapes.items()}
    most = 0.0
    for cycle in matrix.probe.cycles:
        try:
            made = jax.eval_shape(lambda order, cycle=cycle: cycle.factors(p, order), given)
        except (KeyError, TypeError):  # it needs what the training level has not told
            continue
        rows = made[0].shape[0]
        factors = sum(8.0 * math.prod(x.shape) for x in made)
        square = 8.0 * rows**2
        read = factors / 1.7  # order parameters are there once and factors hold some of them twice
        if rows > ROWS:  # those of the mean, of halves, and what replicas share of both
            most = max(most, 2.6 * read + (1.6 * factors if steps and not last else 0.0))
        else:
            whole = 8.0 * (2.5 * rows) ** 2
            course = min(steps, 64) / 3 * square + min(5e8, replicas * factors)
            most = max(most, read + factors + 6 * square + 3 * whole + course)
    return most


def check_expected(expected: ExpectedMemory, most: float | None) -> None:
    """Refuse a solution that would need more than `most` bytes, by default a fraction of the memory of the machine."""
    bound = SHARE * memory_of_machine() if most is None else most
    if expected.most <= bound:
        return
    less = "fewer steps, labels or samples"
    if expected.most == expected.outliers:
        less += ", or leave out spectra (layer=none) or their path (path=False)"
    raise ParameterError(
        f"this takes {expected.sentence}, but {bound / 1e9:.1f} GB are allowed; take {less}, or allow more "
        "(memory=GB, --memory GB)"
    )
