"""Outliers at every training time: what the spikes added so far have pulled out of the bulk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from numerics.bulk.branch import Branch
from numerics.bulk.support import atoms_of, support
from numerics.outliers.finding import (
    SpikedProblem,
    compiled_pencil,
    find_outliers,
    physical,
    real_among,
    ring_outliers,
)
from numerics.outliers.linear import ALL_EIGENVALUES
from numerics.runtime.interface import Key, Ring, Strides
from numerics.runtime.point import replaced

CHUNK = 16
"""Times whose eigenproblems are in memory together."""


@dataclass(frozen=True)
class Steps:
    """How a problem depends on time: its number of steps, under the name of that parameter, and the entries per time
    step along each axis of the order parameters."""

    name: str
    count: int
    strides: Mapping[Key, Strides]


Path = list[tuple[list[float], float]]
"""For each time 0, 1, ..., T the outliers, descending, and the upper edge of the bulk."""


def outlier_path(problem: SpikedProblem, steps: Steps, tell: Callable[[float, str], None]) -> Path:
    """Outliers at every time.

    The matrix at time t holds the spikes of the times before t, and the order parameters of those do not depend on
    what comes later.
    """
    return _by_restriction(problem, steps, tell) if problem.probe.steady else _one_by_one(problem, steps, tell)


def _by_restriction(problem: SpikedProblem, steps: Steps, tell: Callable[[float, str], None]) -> Path:
    """Spikes of later times set to zero in the eigenproblem of the last time, which keeps its shape."""

    def restricted(ring: Ring, time: int) -> np.ndarray:
        early = {
            key: np.where(_before(x.shape, steps.strides[key], time), x, 0.0) if key in steps.strides else x
            for key, x in problem.order.items()
        }
        matrix = np.asarray(compiled_pencil(ring)(problem.p, early))
        alive = np.any(matrix != 0, axis=0) | np.any(matrix != 0, axis=1)
        return matrix[np.ix_(alive, alive)]

    path: list[list[float]] = [[] for _ in range(steps.count + 1)]
    for ring in problem.probe.rings:
        points = partial(physical, problem, ring)
        listed: list[tuple[int, float]] = []
        with ThreadPoolExecutor(max_workers=2) as pool:  # eigenvalues are found outside the interpreter's lock
            for start in range(1, steps.count + 1, CHUNK):
                times = range(start, min(start + CHUNK, steps.count + 1))
                tell(start / steps.count, f"outliers at time {start} of {steps.count}")
                matrices = [restricted(ring, time) for time in times]
                large = [len(matrix) > ALL_EIGENVALUES for matrix in matrices]
                found = pool.map(_all_real, [m for m, is_large in zip(matrices, large, strict=True) if not is_large])
                small = [time for time, is_large in zip(times, large, strict=True) if not is_large]
                listed += [(time, s) for time, values in zip(small, found, strict=True) for s in values]
                for time, matrix, is_large in zip(times, matrices, large, strict=True):
                    if is_large:
                        path[time] += [z for z, _ in ring_outliers(matrix, points)]
        for (time, _), zs in zip(listed, points([s for _, s in listed]), strict=True):
            path[time] += zs
    top = max((high for _, high in problem.excluded), default=float("nan"))
    return [(sorted(found, reverse=True), top) for found in path]


def _one_by_one(problem: SpikedProblem, steps: Steps, tell: Callable[[float, str], None]) -> Path:
    """The whole problem at each time, where coefficients or the bulk itself depend on the number of steps."""
    path = []
    for time in range(steps.count + 1):
        tell(time / (steps.count + 1), f"outliers at time {time} of {steps.count}")
        then = replaced(problem.p, **{steps.name: time})
        branch = Branch(problem.branch.law, then)
        edges = support(branch)
        excluded = (*edges, *((atom["at"], atom["at"]) for atom in atoms_of(branch, edges)))
        found = []
        if time:
            early = {
                key: x[_slices(x.shape, steps.strides[key], time)]
                if key in steps.strides
                else (x if key[0] == "F" else x[:time])
                for key, x in problem.order.items()
            }
            at_time = SpikedProblem(problem.probe, then, early, branch, excluded)
            found = [o.z for o in find_outliers(at_time)]
        path.append((found, max((high for _, high in edges), default=float("nan"))))
    return path


def _all_real(matrix: np.ndarray) -> np.ndarray:
    return real_among(matrix, np.linalg.eigvals(matrix))


def _slices(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> tuple[slice, ...]:
    return tuple(
        slice(min(length, step * time) if step else length) for length, step in zip(shape, stride, strict=True)
    )


def _before(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> np.ndarray:
    """Which entries of an order parameter belong to times before `time`."""
    inside = np.zeros(shape, bool)
    inside[_slices(shape, stride, time)] = True
    return inside
