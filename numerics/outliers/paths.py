"""Outliers at every training time: what the spikes added so far have pulled out of the bulk."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import jax
import numpy as np

from numerics.bulk.branch import whole_numbers
from numerics.bulk.support import Branch, atoms_of, support
from numerics.outliers.finding import find_outliers, physical, real_among, ring_outliers
from numerics.outliers.linear import ALL_EIGENVALUES

CHUNK = 16
"""Times whose eigenproblems are in memory together."""


def outlier_path(
    solver, probe, order: dict, arguments: tuple, branch: Branch, edges: list, tell: Callable[[float, str], None]
) -> list[tuple[list[float], float]]:
    """For each time 0, 1, ..., T the outliers, descending, and the upper edge of the bulk.

    The matrix at time t holds the spikes of the times before t, and the order parameters of those do not depend on
    what comes later. `edges` are the intervals of the bulk and its atoms.
    """
    steps = [name for name, _, _ in solver.front.PARAMETERS].index(solver.front.STEPS)
    strides = solver.training.strides(*arguments)
    if probe.module.STEADY:
        return _by_restriction(probe.module, strides, order, arguments, branch, edges, arguments[steps], tell)
    return _one_by_one(probe, strides, order, arguments, steps, tell)


def _by_restriction(module, strides, order, arguments, branch, edges, steps, tell) -> list[tuple[list[float], float]]:
    """Spikes of later times set to zero in the eigenproblem of the last time, which keeps its shape."""
    whole = whole_numbers(arguments)
    used = {name: x for name, x in order.items() if name in strides}

    def restricted(number: int, time: int) -> np.ndarray:
        early = {name: np.where(_before(x.shape, strides[name], time), x, 0.0) for name, x in used.items()}
        matrix = np.asarray(_compiled(module, number, whole)(early, *arguments))
        alive = np.any(matrix != 0, axis=0) | np.any(matrix != 0, axis=1)
        return matrix[np.ix_(alive, alive)]

    path: list[list[float]] = [[] for _ in range(steps + 1)]
    for number in range(module.CYCLES):

        def points(values, number=number) -> list[list[float]]:
            return physical(module, number, values, arguments, branch, edges)

        listed: list[tuple[int, float]] = []
        with ThreadPoolExecutor(max_workers=2) as pool:  # eigenvalues are found outside the interpreter's lock
            for start in range(1, steps + 1, CHUNK):
                times = range(start, min(start + CHUNK, steps + 1))
                tell(start / steps, f"outliers at time {start} of {steps}")
                matrices = [restricted(number, time) for time in times]
                large = [len(matrix) > ALL_EIGENVALUES for matrix in matrices]
                found = pool.map(_all_real, [m for m, is_large in zip(matrices, large, strict=True) if not is_large])
                small = [time for time, is_large in zip(times, large, strict=True) if not is_large]
                listed += [(time, s) for time, values in zip(small, found, strict=True) for s in values]
                for time, matrix, is_large in zip(times, matrices, large, strict=True):
                    if is_large:
                        path[time] += [z for z, _ in ring_outliers(matrix, points)]
        for (time, _), zs in zip(listed, points([s for _, s in listed]), strict=True):
            path[time] += zs
    top = max((high for _, high in edges), default=float("nan"))
    return [(sorted(found, reverse=True), top) for found in path]


def _one_by_one(probe, strides, order, arguments, steps, tell) -> list[tuple[list[float], float]]:
    """The whole problem at each time, where coefficients or the bulk itself depend on the number of steps."""
    path = []
    for time in range(arguments[steps] + 1):
        tell(time / (arguments[steps] + 1), f"outliers at time {time} of {arguments[steps]}")
        then = (*arguments[:steps], time, *arguments[steps + 1 :])
        branch = Branch(probe.bulk, then)
        edges = support(branch)
        excluded = [*edges, *((atom["at"], atom["at"]) for atom in atoms_of(branch, edges))]
        found = []
        if time:
            early = {name: x[_slices(x.shape, strides[name], time)] for name, x in order.items() if name in strides}
            found = [o.z for o in find_outliers(probe.module, early, then, branch, excluded)]
        path.append((found, max((high for _, high in edges), default=float("nan"))))
    return path


def _all_real(matrix: np.ndarray) -> np.ndarray:
    return real_among(matrix, np.linalg.eigvals(matrix))


@lru_cache(maxsize=64)
def _compiled(module, number: int, whole: tuple[int, ...]):
    return jax.jit(getattr(module, f"pencil_{number}"), static_argnums=tuple(1 + i for i in whole))


def _slices(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> tuple[slice, ...]:
    return tuple(
        slice(min(length, step * time) if step else length) for length, step in zip(shape, stride, strict=True)
    )


def _before(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> np.ndarray:
    """Which entries of an order parameter belong to times before `time`."""
    inside = np.zeros(shape, bool)
    inside[_slices(shape, stride, time)] = True
    return inside
