"""The largest stable learning rate: the rates above which training diverges, and above which the sharpest direction of
a kernel overshoots.

For linear training, on fixed or fresh data, the limit follows from its linear recursion without running it. Otherwise
the growth rate of late increments of the loss decides: below the limit they shrink by a factor per step, above they
grow. (A loss that falls with growing increments leaves a saddle and is bounded.) The rate at which the factor is 1
depends weakly on the number of steps and is extrapolated from a half and a quarter of them, each searched
independently.

A step of gradient descent with rate eta along a direction of curvature lambda overshoots when eta * lambda > 2. The
curvature is the largest eigenvalue of a probed matrix along the training, which itself depends on the rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from derive.errors import NumericalError, ParameterError
from numerics.limit.critical import CriticalRate, critical_rate
from numerics.solution import Prediction
from numerics.solver import Solver, solve_many

GROWTH = 100.0
"""Ratio of the loss to its initial value above which a run has diverged."""
POINTS = 12
"""Rates that are solved together in each round."""
OVERSHOOT = 2.0
"""Value of rate times curvature at which gradient descent overshoots."""
LARGEST_SIZE = 10_000
"""Largest feasible simulation size."""
RESOLVED = 1e-8
"""Relative singular value down to which modes of training are separated."""
SETTLED = 0.05
"""Relative error below which the extrapolated limit is returned; otherwise that of the steps that were run is
returned."""
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Fractions of the limit at which finite-size noise is estimated."""


@dataclass(frozen=True)
class Horizon:
    """The limit from runs of a number of steps. by_growth: the rate at which late increments of the loss start to grow.
    within: the rate at which the loss exceeds GROWTH times its initial value before the last step.
    """

    steps: int
    by_growth: float
    within: float | None


@dataclass(frozen=True)
class StableRate:
    """The largest rate with a bounded loss, and the smallest at which a direction overshoots within the same steps.

    Attributes:
        by_divergence: limit for any number of steps. It is exact for linear training. Otherwise it is extrapolated; if
            late growth has not converged or contradicts the run, it is the limit within the steps that were run.
        by_curvature: smallest rate at which a direction overshoots; None without a curvature matrix, or if the loss
            diverges first.
        at_start: the same limit from the initial matrix.
        tolerance: relative tolerance of the search.
        by_divergence_error: error of by_divergence.
        horizons: limits by number of steps; empty if the limit is exact.
        size: simulation size needed at SHARES[-2] of the limit.
        noisy_above: rate above which this size exceeds LARGEST_SIZE; None if there is no such rate.
        exact: the exact result for linear training.
    """

    by_divergence: float
    by_curvature: float | None
    at_start: float | None
    tolerance: float
    by_divergence_error: float
    horizons: tuple[Horizon, ...]
    size: float | None
    noisy_above: float | None
    exact: CriticalRate | None = None


def stable_rate(
    solver: Solver,
    values: dict[str, Any],
    *,
    rate: str = "eta",
    loss: str = "train_loss",
    layer: str | None = None,
    over: str | None = None,
    tolerance: float = 1e-3,
    progress: Callable[[float, str], None] | None = None,
) -> StableRate:
    """Return both limits for one set of values, to a relative tolerance.

    Args:
        solver: the generated solver.
        values: parameter values; `values[rate]` is the start of the search.
        rate: name of the learning rate.
        loss: name of the loss.
        layer: probed matrix whose largest eigenvalue is the curvature.
        over: parameter by which the curvature is divided.
        tolerance: relative tolerance.
        progress: called with a fraction and a text.
    """
    tell = progress or (lambda fraction, text: None)
    _check(solver, rate, loss, layer, over)
    question = _RateQuestion(solver, values, rate, loss)
    tell(0.0, "where the loss diverges")
    exact = _exact(solver, values, rate, loss)
    horizons: tuple[Horizon, ...] = ()
    if exact is not None:
        by_divergence, error = exact.rate, exact.error
    else:
        by_divergence, error, horizons = question.extrapolated(tolerance)
    size, noisy_above = _noise(question.run, values, rate, loss, by_divergence)
    by_curvature = at_start = None
    if layer is not None:
        tell(0.5, "where the sharpest direction overshoots")
        unit = 1.0 if over is None else float(values[over])
        by_curvature, at_start = question.overshooting(layer, unit, tolerance)
        tell(1.0, "done")
    return StableRate(
        by_divergence=by_divergence,
        by_curvature=by_curvature,
        at_start=at_start,
        tolerance=tolerance,
        by_divergence_error=error,
        horizons=horizons,
        size=size,
        noisy_above=noisy_above,
        exact=exact,
    )


@dataclass(frozen=True)
class _RateQuestion:
    """Solutions of a model at several rates, with tests of their loss and curvature."""

    solver: Solver
    values: dict[str, Any]
    rate: str
    loss: str

    def run(self, points: list[dict[str, Any]]) -> Iterator[Prediction | NumericalError]:
        """Yield solutions without spectra."""
        return solve_many(self.solver, points, layers=())

    def _steps(self) -> int:
        """Return the number of observed steps, at a rate at which training is bounded."""
        first = next(iter(self.run([{**self.values, self.rate: self.values[self.rate] / 64.0}])))
        if isinstance(first, NumericalError):
            raise first
        steps = len(first.observables[self.loss]) - 1
        if steps < 1:
            raise ParameterError(
                f"{self.loss} is observed at one time only; observe it during training to measure its growth"
            )
        return steps

    def _within(self, solution: Prediction) -> bool:
        """Whether the loss remains within GROWTH times its initial value."""
        series = np.asarray(solution.observables[self.loss])
        return bool(np.all(series <= GROWTH * max(series[0], 1e-300)))

    def _bounded(self, solution: Prediction, steps: int) -> bool:
        """Whether late increments of the loss shrink."""
        errors = (solution.errors or {}).get(self.loss)
        noise = 0.0 if errors is None else 3 * float(np.max(errors))
        return late_growth(np.asarray(solution.observables[self.loss])[: steps + 1], noise) <= 0

    def extrapolated(self, tolerance: float) -> tuple[float, float, tuple[Horizon, ...]]:
        """Return the limit for many steps, its error, and the horizons from which it is extrapolated."""
        steps = self._steps()
        search = partial(_limit, self.run, self.values, self.rate)
        counts = [steps, *(n for n in (steps // 2, steps // 4) if n >= 2)]
        limits = [(n, search(partial(self._bounded, steps=n), tolerance / 4)) for n in counts]
        whole = search(self._within, tolerance)
        horizons = tuple(Horizon(n, limit, whole if n == steps else None) for n, limit in limits)
        return (*_given_limit(horizons, whole, tolerance), horizons)

    def overshooting(self, layer: str, unit: float, tolerance: float) -> tuple[float | None, float | None]:
        """Return the smallest rate at which the sharpest direction overshoots (None if there is none), and the same
        limit from the initial matrix.
        """

        def sharpest(solution: Prediction) -> float:
            """Return the largest rate times curvature; the matrix after the last step drives no step and is
            excluded."""
            path = solution.layers[0].largest_path
            top = math.inf if path is None else max(path[:-1])
            return float(solution.inputs[self.rate] * top / unit)

        follow = partial(solve_many, self.solver, layers=(layer,), path=True)
        limit = _limit(follow, self.values, self.rate, lambda solution: sharpest(solution) <= OVERSHOOT, tolerance)
        small, near = follow([{**self.values, self.rate: share * limit} for share in (1e-6, 1 - tolerance)])
        at_start = None
        if isinstance(small, Prediction) and small.layers[0].largest_path is not None:
            at_start = OVERSHOOT * unit / small.layers[0].largest_path[0]
        reached = isinstance(near, Prediction) and sharpest(near) > 0.95 * OVERSHOOT
        return (limit if reached else None), at_start


def _exact(solver: Solver, values: dict[str, Any], rate: str, loss: str) -> CriticalRate | None:
    """Return the limit from the linear recursion; None if training is not linear or depends on time."""
    of = solver.recursion
    if of is None or not dict(of.observed).get(loss):
        return None
    return critical_rate(of, lambda x: solver.point({**values, rate: x}), float(values[rate]), loss)


def _given_limit(horizons: tuple[Horizon, ...], whole: float, tolerance: float) -> tuple[float, float]:
    """Return the extrapolated limit with its error, or the limit within the run if late growth is undecided or
    contradicts it.

    At r times the limit, a step multiplies the loss along the sharpest direction by (2 r - 1)^2, or by more with
    momentum. Late growth detects that part once it is a fraction RESOLVED of the loss, so that the loss exceeds GROWTH
    within n steps if 2 r - 1 > (GROWTH / RESOLVED)^(1 / 2n). In the meantime feature learning may halve the curvature,
    which doubles r.
    """
    limit, error = _extrapolated(horizons, tolerance)
    excess = 1 + (GROWTH / RESOLVED) ** (1 / (2 * horizons[0].steps))
    if error is None or error > SETTLED * limit or whole > excess * limit:
        return whole, abs(whole - limit) + tolerance * whole
    return limit, error


def late_growth(series: np.ndarray, noise: float = 0.0) -> float:
    """Return the logarithmic growth rate per step of late increments of a series; -inf if the series has converged.

    Increments of the second half are fitted by a sum of exponentials (matrix pencil method on their Hankel matrix); the
    largest modulus determines the rate. Modes are separated down to a relative size RESOLVED, or to the level of
    rounding and `noise`. A series whose last increments are below that level has converged.
    """
    increments = np.diff(series)
    sizes = np.abs(increments)
    if np.all(sizes[-2:] <= np.maximum(1e-13 * np.abs(series[-1]), noise)):
        return -math.inf
    if len(increments) < 2:
        return math.log(max(float(series[-1]), 1e-300) / max(float(series[0]), 1e-300))
    first = len(increments) // 2 if len(increments) > 4 else 0
    times = np.arange(len(increments) - first)
    logs = np.log(np.maximum(sizes[first:], 1e-300))
    common = float(np.polyfit(times, logs, 1)[0])
    # the common growth is divided out, so that late increments do not dominate the fit
    scaled = np.sign(increments[first:]) * np.exp(logs - np.max(logs - common * times) - common * times)
    pairs = np.maximum(sizes[first:][1:], sizes[first:][:-1])  # an oscillation passes through small increments
    rounding = 1e-15 * float(np.max(np.abs(series[first:])))
    smallest = RESOLVED + 10 * (noise + rounding) / float(np.min(pairs))
    columns = len(scaled) // 2
    hankel = np.array([scaled[i : i + columns + 1] for i in range(len(scaled) - columns)])
    _, values, vh = np.linalg.svd(hankel)
    rank = min(max(1, int(np.sum(values > smallest * values[0]))), columns)
    span = vh[:rank].T
    shift = np.linalg.lstsq(span[:-1], span[1:], rcond=None)[0]
    powers = _that_can_last(np.linalg.eigvals(shift), scaled, common)
    return common + math.log(max(float(np.max(np.abs(powers))), 1e-300)) if len(powers) else -math.inf


def _that_can_last(powers: np.ndarray, increments: np.ndarray, common: float) -> np.ndarray:
    """Return the exponentials that may persist in the increments of a loss.

    A growing positive exponential with negative weight is a transient: the loss accelerates downwards as training
    leaves a saddle. exp(common) multiplies all exponentials.
    """
    table = powers[None, :] ** np.arange(len(increments))[:, None]
    weights = np.linalg.lstsq(table, increments.astype(complex), rcond=None)[0]
    steady = (np.abs(powers.imag) <= 1e-6 * np.abs(powers)) & (powers.real > math.exp(-common))
    return np.asarray(powers[~(steady & (weights.real < 0))])


def _extrapolated(horizons: tuple[Horizon, ...], tolerance: float) -> tuple[float, float | None]:
    """Return the limit for many steps (Aitken extrapolation), and its error: the change over the last doubling of the
    steps.

    If the changes over two doublings do not shrink with the same sign, the longest run is used.
    """
    limits = [h.by_growth for h in horizons]
    if len(limits) == 1:
        return limits[0], None
    change, limit = limits[0] - limits[1], limits[0]
    if len(limits) == 3 and limits[1] != limits[2]:
        ratio = change / (limits[1] - limits[2])
        if 0 < ratio <= 0.6:
            limit += change * ratio / (1 - ratio)
    return limit, abs(change) + tolerance * limit


def _noise(
    run: Callable[[list[dict[str, Any]]], Iterator[Prediction | NumericalError]],
    values: dict[str, Any],
    rate: str,
    loss: str,
    limit: float,
) -> tuple[float | None, float | None]:
    """Return the simulation size needed near the limit, and the rate above which no feasible size suffices.

    At size D, moments of data and matrices fluctuate by about 1/sqrt(D), as if the rate had that relative error: the
    logarithm of the loss moves by its derivative with respect to the log rate over sqrt(D). A rising loss also
    amplifies corrections of order 1/D. Both effects are of order one at `size`.
    """
    step = 1e-4
    rates = [share * limit * factor for share in SHARES for factor in (1.0, 1.0 + step)]
    solved = list(run([{**values, rate: r} for r in rates]))
    sizes: list[float] = []
    for here, near in zip(solved[::2], solved[1::2], strict=True):
        if isinstance(here, NumericalError) or isinstance(near, NumericalError):
            sizes.append(math.inf)
            continue
        one, other = (np.maximum(np.asarray(s.observables[loss]), 1e-300) for s in (here, near))
        sensitivity = float(np.max(np.abs(np.log(other / one)))) / step
        sizes.append(max(1.0, sensitivity**2, float(np.max(one) / one[0])))
    beyond = next((share for share, size in zip(SHARES, sizes, strict=True) if size > LARGEST_SIZE), None)
    size = sizes[-2]
    return (size if math.isfinite(size) else None), (None if beyond is None else beyond * limit)


def _check(solver: Solver, rate: str, loss: str, layer: str | None, over: str | None) -> None:
    """Raise if the rate, the loss, the layer or the parameter `over` does not exist."""
    real = [q.name for q in solver.setting.parameters if not q.whole]
    if rate not in real:
        raise ParameterError(
            f"{solver.name} has no real parameter {rate!r} to raise; name one with --of: {', '.join(real)}"
        )
    observed = [observable.name for observable in solver.setting.observables]
    if loss not in observed:
        names = ", ".join(observed)
        raise ParameterError(f"{solver.name} observes no {loss!r}; name one with --loss: {names or 'none'}")
    labels = [m.label for m in solver.matrices]
    if layer is not None and layer not in labels:
        raise ParameterError(f"{solver.name} has no layer {layer!r}; its layers are {', '.join(labels)}")
    if over is not None and over not in (others := [name for name in real if name != rate]):
        raise ParameterError(
            f"curvature={layer}/{over}: {solver.name} has no other parameter {over!r}; choose one of "
            f"{', '.join(others)}"
        )


def _limit(
    solve_all: Callable[[list[dict[str, Any]]], Iterator[Prediction | NumericalError]],
    values: dict[str, Any],
    rate: str,
    holds: Callable[[Prediction], bool],
    tolerance: float,
    spread: float = 64.0,
) -> float:
    """Return the rate at which the solution fails or `holds` is first false on a geometric grid, refined to the
    tolerance.

    The grid extends by a factor `spread` to either side of the given rate and is moved if necessary.
    """

    def first_failure(rates: np.ndarray) -> int:
        for k, solution in enumerate(solve_all([{**values, rate: float(x)} for x in rates])):
            if isinstance(solution, NumericalError) or not holds(solution):
                return k
        return len(rates)

    low, high = values[rate] / spread, values[rate] * spread
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
