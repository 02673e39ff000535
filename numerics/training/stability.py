"""How large a rate may be: until the dynamics itself diverges, and until the sharpest direction of a kernel does.

A step of gradient descent with rate eta along a direction of curvature lambda overshoots when eta * lambda > 2. The
curvature is the largest eigenvalue of a probed matrix along the training, which itself depends on the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.solver import Solution, Solver, solve_many

GROWTH = 100.0
"""A loss that exceeds so many times its initial value has diverged."""
POINTS = 12
"""Rates tried side by side in each round."""
OVERSHOOT = 2.0


@dataclass(frozen=True)
class StableRate:
    """The largest rate with a bounded loss, and the smallest at which a direction overshoots within the same steps.

    by_curvature and at_start are None where no matrix stands for the curvature, the former also where the loss
    diverges before it overshoots; at_start uses the initial matrix.
    """

    by_divergence: float
    by_curvature: float | None
    at_start: float | None
    tolerance: float


def stable_rate(
    solver: Solver,
    values: dict,
    *,
    rate: str = "eta",
    loss: str = "train_loss",
    layer: str | None = None,
    tolerance: float = 1e-3,
    progress: Callable[[float, str], None] | None = None,
) -> StableRate:
    """Both limits for one set of values, to a relative tolerance; `values[rate]` is where the search starts."""
    tell = progress or (lambda fraction, text: None)
    _check(solver, rate, loss, layer)

    def bounded(solution: Solution | NumericalError) -> bool:
        if isinstance(solution, NumericalError):
            return False
        series = np.asarray(solution.observables[loss])
        return bool(np.all(series <= GROWTH * max(series[0], 1e-300)))

    def sharpest(solution: Solution) -> float:
        """Rate times curvature at the sharpest step; the matrix after the last step drives no step any more."""
        return solution.parameters[rate] * max((solution.layers[0].largest_path or [math.inf, math.inf])[:-1])

    def below(solution: Solution | NumericalError) -> bool:
        return isinstance(solution, Solution) and sharpest(solution) <= OVERSHOOT

    tell(0.0, "where the loss diverges")
    by_divergence = _limit(partial(solve_many, solver, layers=()), values, rate, bounded, tolerance)
    if layer is None:
        return StableRate(by_divergence, None, None, tolerance)
    tell(0.5, "where the sharpest direction overshoots")
    follow = partial(solve_many, solver, layers=(layer,), path=True)
    by_curvature = _limit(follow, values, rate, below, tolerance)
    small, near = follow([{**values, rate: share * by_curvature} for share in (1e-6, 1 - tolerance)])
    at_start = None
    if isinstance(small, Solution) and small.layers[0].largest_path:
        at_start = OVERSHOOT / small.layers[0].largest_path[0]
    tell(1.0, "done")
    reached = isinstance(near, Solution) and sharpest(near) > 0.95 * OVERSHOOT
    return StableRate(by_divergence, by_curvature if reached else None, at_start, tolerance)


def _check(solver: Solver, rate: str, loss: str, layer: str | None) -> None:
    real = [q.name for q in solver.setting.parameters if not q.whole]
    if rate not in real:
        raise ParameterError(f"{solver.name} has no real parameter {rate!r} to raise; choose one of {', '.join(real)}")
    if loss not in solver.setting.observables:
        names = ", ".join(solver.setting.observables)
        raise ParameterError(f"{solver.name} observes no {loss!r}; choose one of {names or 'none'}")
    labels = [m.label for m in solver.matrices]
    if layer is not None and layer not in labels:
        raise ParameterError(f"{solver.name} has no layer {layer!r}; its layers are {', '.join(labels)}")


def _limit(
    solve_all: Callable[[list[dict]], Iterator[Solution | NumericalError]],
    values: dict,
    rate: str,
    holds: Callable[[Solution | NumericalError], bool],
    tolerance: float,
) -> float:
    """The rate below which `holds` is true on a grid from far below, refined around its first failure."""

    def first_failure(rates: np.ndarray) -> int:
        for k, solution in enumerate(solve_all([{**values, rate: float(x)} for x in rates])):
            if not holds(solution):
                return k
        return len(rates)

    low, high = values[rate] / 64.0, values[rate] * 64.0
    for _ in range(8):
        rates = np.geomspace(low, high, POINTS)
        k = first_failure(rates)
        if k == 0:
            low, high = low / 4096.0, low
        elif k == POINTS:
            low, high = high, high * 4096.0
        else:
            low, high = float(rates[k - 1]), float(rates[k])
            break
    else:
        raise NumericalError(
            f"no limit for {rate} was found between {low:.3g} and {high:.3g}; start from another {rate}"
        )
    while high / low - 1 > tolerance:
        rates = np.geomspace(low, high, POINTS)
        k = min(max(first_failure(rates), 1), POINTS - 1)
        low, high = float(rates[k - 1]), float(rates[k])
    return math.sqrt(low * high)
