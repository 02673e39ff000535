"""Eigenvalues to which outliers may belong, of the cycles of A(z) at many points of a sweep and at all times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from derive.errors import NumericalError
from numerics.outliers.complete import MARGIN
from numerics.outliers.finding import Eigenvalues, check_size, cycle_factors, every, leading, smallest_image
from numerics.outliers.linear import ALL_EIGENVALUES
from numerics.outliers.problem import SpikedProblem
from numerics.outliers.radii import are_within
from numerics.outliers.restriction import Restriction, Steps
from numerics.runtime.interface import Cycle

MOST_TIMES = 64
"""Times up to which the matrices of all times are held in memory together."""
STACKED = 4e5
"""Entries of the matrices that are multiplied together, so that they stay in the cache."""

Early = Sequence[Mapping[int, Eigenvalues | None]]
"""For each cycle, by time, the eigenvalues of its matrix; None if no outlier belongs to any of them."""


@dataclass(frozen=True)
class SolvedCycles:
    """The eigenvalues of each cycle at the last time (none if no outlier belongs to any of them), and at all times if
    these are solved together.
    """

    last: list[Eigenvalues]
    early: Early | None


def solve_cycles(problems: Sequence[SpikedProblem], steps: Steps | None) -> list[SolvedCycles | None]:
    """Return the eigenvalues of the cycles of problems that differ only in parameters and order parameters; None for a
    problem whose entries are too large to be squared. steps: given if outliers are needed at all times.
    """
    try:
        return _solved(problems, steps)
    except NumericalError:
        return [None] if len(problems) == 1 else [one for each in problems for one in solve_cycles([each], steps)]


def _solved(problems: Sequence[SpikedProblem], steps: Steps | None) -> list[SolvedCycles | None]:
    last: list[list[Eigenvalues]] = [[] for _ in problems]
    early: list[list[Mapping[int, Eigenvalues | None]]] = [[] for _ in problems]
    for cycle in problems[0].probe.cycles:
        factors = [cycle_factors(problem, cycle) for problem in problems]
        radii = np.array([_radius(problem, cycle) for problem in problems])
        restriction = None if steps is None else _restriction(problems[0], cycle, steps)
        size = max(1, int(STACKED / len(factors[0][0]) ** 2))
        for start in range(0, len(problems), size):
            some = slice(start, start + size)
            whole = [np.stack(rows) for rows in zip(*factors[some], strict=True)]
            matrices = reduce(np.matmul, whole)
            for one, matrix, values in zip(
                last[some], matrices, _outlying(matrices, radii[some], leading), strict=True
            ):
                one.append(values or Eigenvalues(matrix, np.zeros(0), np.zeros(0)))
            if restriction is not None:
                by_time = _at_all_times(restriction, problems[some], whole, radii[some])
                for so_far, at_times in zip(early[some], zip(*by_time, strict=True), strict=True):
                    so_far.append(dict(enumerate(at_times, start=1)))
    complete = len(early[0]) == len(last[0])
    return [SolvedCycles(one, so_far if complete else None) for one, so_far in zip(last, early, strict=True)]


def _radius(problem: SpikedProblem, cycle: Cycle) -> float:
    """Return a number below the modulus of every eigenvalue to which an outlier belongs; 0 if none is known."""
    try:
        return (1 - 2 * MARGIN) * smallest_image(problem, cycle)
    except NumericalError:
        return 0.0


def _restriction(problem: SpikedProblem, cycle: Cycle, steps: Steps) -> Restriction | None:
    """Return the eigenproblems of all times if solving them together is cheaper than one by one."""
    if not problem.probe.steady or problem.probe.measured or steps.count > MOST_TIMES:
        return None
    restriction = Restriction(problem, cycle, steps)
    return restriction if max(map(max, restriction.sizes)) <= ALL_EIGENVALUES else None


def _at_all_times(
    restriction: Restriction, problems: Sequence[SpikedProblem], whole: Sequence[np.ndarray], radii: np.ndarray
) -> Iterator[list[Eigenvalues | None]]:
    """Yield the eigenvalues of each problem at each time; whole: the factors of the last time, one row per problem."""
    ordered = restriction.ordered(whole)
    for time in range(1, len(restriction.sizes)):
        if restriction.nested:
            matrices = reduce(np.matmul, restriction.blocks(ordered, time))
        else:
            matrices = np.stack([reduce(np.matmul, restriction.early(one.p, one.order, time)) for one in problems])
        yield _outlying(matrices, radii, every)


def _outlying(
    matrices: np.ndarray, radii: np.ndarray, solve: Callable[[np.ndarray], Eigenvalues]
) -> list[Eigenvalues | None]:
    """Return the eigenvalues of each matrix; None if all of them are proved to lie within its radius."""
    within = np.zeros(len(matrices), bool)
    if len(matrices[0]) <= ALL_EIGENVALUES:
        within = are_within(matrices, radii)
    check_size(matrices[~within])
    return [None if proved else solve(matrix) for matrix, proved in zip(matrices, within, strict=True)]
