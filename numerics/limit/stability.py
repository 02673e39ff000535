"""How large a rate may be: until the dynamics itself diverges, and until the sharpest direction of a kernel does.

The limit of linear training, on fixed or fresh data, comes from the step that it applies over and over, without running
one. Elsewhere whether the loss stays bounded as the number of steps grows is read off how its increments grow at late
times: far below the limit they shrink by a factor per step, far above they grow by one, whatever the loss has done
before (a loss that falls faster and faster leaves a saddle, and is bounded). The rate at which that factor passes 1
hardly depends on the number of steps; what is left is extrapolated from a half and a quarter of them, each searched by
itself.

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
from numerics.solver import Solution, Solver, solve_many

GROWTH = 100.0
"""A loss that exceeds so many times its initial value has diverged within the steps that were run."""
POINTS = 12
"""Rates tried side by side in each round."""
OVERSHOOT = 2.0
LARGEST_SIZE = 10_000
"""Simulations beyond this size are out of reach."""
RESOLVED = 1e-8
"""The relative size down to which directions of training are told apart."""
SETTLED = 0.05
"""The limit for many steps is given where its error is below this share; elsewhere that of the steps that were run."""
SHARES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Shares of the limit at which the noise of a finite size is estimated."""


@dataclass(frozen=True)
class Horizon:
    """The limit that so many steps give: by_growth where increments of the loss start to grow at late times, and
    within, where the loss exceeds GROWTH times its initial value before the last step."""

    steps: int
    by_growth: float
    within: float | None


@dataclass(frozen=True)
class StableRate:
    """The largest rate with a bounded loss, and the smallest at which a direction overshoots within the same steps.

    by_divergence is for any number of steps. Where training is linear it is exact, as `exact` says, and there are no
    horizons. Elsewhere it is extrapolated from the horizons, with an estimate of its error. Where late growth has not
    settled at these steps (training that still learns features, say), or contradicts the run itself, it is the limit
    within the steps that were run, and its error is what late growth would make of it.
    size is how large a simulation must be to follow the theory at SHARES[-2] of that limit, and noisy_above the rate
    beyond which it would have to be larger than LARGEST_SIZE (None where no rate below the limit needs that).
    by_curvature and at_start are None where no matrix stands for the curvature, the former also where the loss
    diverges before it overshoots; at_start uses the initial matrix.
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
    """Both limits for one set of values, to a relative tolerance; `values[rate]` is where the search starts.

    layer: whose largest eigenvalue, over the value of the parameter `over` if one is given, is the curvature.
    """
    tell = progress or (lambda fraction, text: None)
    _check(solver, rate, loss, layer, over)
    asked = _RateQuestion(solver, values, rate, loss)
    tell(0.0, "where the loss diverges")
    exact = _exact(solver, values, rate, loss)
    horizons: tuple[Horizon, ...] = ()
    if exact is not None:
        by_divergence, error = exact.rate, exact.error
    else:
        by_divergence, error, horizons = asked.extrapolated(tolerance)
    size, noisy_above = _noise(asked.run, values, rate, loss, by_divergence)
    by_curvature = at_start = None
    if layer is not None:
        tell(0.5, "where the sharpest direction overshoots")
        unit = 1.0 if over is None else float(values[over])
        by_curvature, at_start = asked.overshooting(layer, unit, tolerance)
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
    """Solutions of a model at several rates, and what their loss and curvature say."""

    solver: Solver
    values: dict[str, Any]
    rate: str
    loss: str

    def run(self, points: list[dict[str, Any]]) -> Iterator[Solution | NumericalError]:
        return solve_many(self.solver, points, layers=())

    def _steps(self) -> int:
        """How many steps are observed, at a rate at which training is bounded."""
        first = next(iter(self.run([{**self.values, self.rate: self.values[self.rate] / 64.0}])))
        if isinstance(first, NumericalError):
            raise first
        steps = len(first.observables[self.loss]) - 1
        if steps < 1:
            raise ParameterError(
                f"{self.loss} is observed at one time only; observe it along the training to ask for its growth"
            )
        return steps

    def _within(self, solution: Solution | NumericalError) -> bool:
        if isinstance(solution, NumericalError):
            return False
        series = np.asarray(solution.observables[self.loss])
        return bool(np.all(series <= GROWTH * max(series[0], 1e-300)))

    def _bounded(self, solution: Solution | NumericalError, steps: int) -> bool:
        if isinstance(solution, NumericalError):
            return False
        errors = (solution.observable_errors or {}).get(self.loss)
        noise = 0.0 if errors is None else 3 * float(np.max(errors))
        return late_growth(np.asarray(solution.observables[self.loss])[: steps + 1], noise) <= 0

    def extrapolated(self, tolerance: float) -> tuple[float, float, tuple[Horizon, ...]]:
        """The limit for many steps, its error, and the horizons that it is extrapolated from."""
        steps = self._steps()
        search = partial(_limit, self.run, self.values, self.rate)
        counts = [steps, *(n for n in (steps // 2, steps // 4) if n >= 2)]
        limits = [(n, search(partial(self._bounded, steps=n), tolerance / 4)) for n in counts]
        whole = search(self._within, tolerance)
        horizons = tuple(Horizon(n, limit, whole if n == steps else None) for n, limit in limits)
        return (*_given_limit(horizons, whole, tolerance), horizons)

    def overshooting(self, layer: str, unit: float, tolerance: float) -> tuple[float | None, float | None]:
        """The smallest rate at which the sharpest direction overshoots, if one is reached, and that at the start."""

        def sharpest(solution: Solution) -> float:
            """Rate times curvature at the sharpest step; the matrix after the last step drives no step any more."""
            top = max((solution.layers[0].largest_path or [math.inf, math.inf])[:-1])
            return float(solution.parameters[self.rate] * top / unit)

        def below(solution: Solution | NumericalError) -> bool:
            return isinstance(solution, Solution) and sharpest(solution) <= OVERSHOOT

        follow = partial(solve_many, self.solver, layers=(layer,), path=True)
        limit = _limit(follow, self.values, self.rate, below, tolerance)
        small, near = follow([{**self.values, self.rate: share * limit} for share in (1e-6, 1 - tolerance)])
        at_start = None
        if isinstance(small, Solution) and small.layers[0].largest_path:
            at_start = OVERSHOOT * unit / small.layers[0].largest_path[0]
        reached = isinstance(near, Solution) and sharpest(near) > 0.95 * OVERSHOOT
        return (limit if reached else None), at_start


def _exact(solver: Solver, values: dict[str, Any], rate: str, loss: str) -> CriticalRate | None:
    """The limit from the step that training applies over and over; None where it is not linear or changes with time."""
    of = solver.recursion
    if of is None or not dict(of.observed).get(loss):
        return None
    return critical_rate(of, lambda x: solver.point({**values, rate: x}), float(values[rate]), loss)


def _given_limit(horizons: tuple[Horizon, ...], whole: float, tolerance: float) -> tuple[float, float]:
    """The extrapolated limit with its error, or that of the run where late growth does not tell or contradicts it.

    At r times the limit a step of gradient descent multiplies the part of the loss along the sharpest direction by
    (2 r - 1)^2, with momentum by more. Late growth sees that part if it is RESOLVED of the loss at least, so that the
    loss exceeds GROWTH within n steps where 2 r - 1 > (GROWTH / RESOLVED)^(1 / 2n). Features that are learnt may halve
    the curvature on the way, which doubles r.
    """
    limit, error = _extrapolated(horizons, tolerance)
    excess = 1 + (GROWTH / RESOLVED) ** (1 / (2 * horizons[0].steps))
    if error is None or error > SETTLED * limit or whole > excess * limit:
        return whole, abs(whole - limit) + tolerance * whole
    return limit, error


def late_growth(series: np.ndarray, noise: float = 0.0) -> float:
    """Logarithm of the factor per step by which increments of a series grow at late times; -inf if it has settled.

    Increments of the second half are taken as a sum of powers of time, one per direction, and the largest power is
    found from how their Hankel matrix moves by one step (the matrix pencil method). Directions are told apart down to
    a relative size of RESOLVED, or to what rounding and `noise` leave; a series whose last increments are below
    rounding or `noise` has settled.
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
    # without the common factor no increment outweighs the others, however fast all of them grow
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
    """The powers that increments of a loss may keep: a loss cannot fall faster and faster for ever.

    Where features are learnt, the loss falls with growing increments as training leaves a saddle. That is a transient,
    whatever the rate: such a power grows, is positive and has negative weight. exp(common) multiplies all powers.
    """
    table = powers[None, :] ** np.arange(len(increments))[:, None]
    weights = np.linalg.lstsq(table, increments.astype(complex), rcond=None)[0]
    steady = (np.abs(powers.imag) <= 1e-6 * np.abs(powers)) & (powers.real > math.exp(-common))
    return np.asarray(powers[~(steady & (weights.real < 0))])


def _extrapolated(horizons: tuple[Horizon, ...], tolerance: float) -> tuple[float, float | None]:
    """The limit for many steps, and its error: the whole change over the last doubling of the steps.

    Where the changes over two doublings have the same sign and shrink, their ratio tells how they go on; elsewhere the
    longest run stands.
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
    run: Callable[[list[dict[str, Any]]], Iterator[Solution | NumericalError]],
    values: dict[str, Any],
    rate: str,
    loss: str,
    limit: float,
) -> tuple[float | None, float | None]:
    """How large a simulation must be to follow near the limit, and beyond which rate none can.

    At size D the moments of the data and of the matrices differ from their limits by about 1/sqrt(D), as if the rate
    were off by that share: the logarithm of the loss moves by its derivative by the logarithm of the rate, over
    sqrt(D). A loss that rises on its way carries corrections of 1/D up with it. Both are of order one below `size`.
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
    real = [q.name for q in solver.setting.parameters if not q.whole]
    if rate not in real:
        raise ParameterError(f"{solver.name} has no real parameter {rate!r} to raise; choose one of {', '.join(real)}")
    observed = [observable.name for observable in solver.setting.observables]
    if loss not in observed:
        names = ", ".join(observed)
        raise ParameterError(f"{solver.name} observes no {loss!r}; choose one of {names or 'none'}")
    labels = [m.label for m in solver.matrices]
    if layer is not None and layer not in labels:
        raise ParameterError(f"{solver.name} has no layer {layer!r}; its layers are {', '.join(labels)}")
    if over is not None and over not in (others := [name for name in real if name != rate]):
        raise ParameterError(
            f"curvature={layer}/{over}: {solver.name} has no other parameter {over!r}; choose one of "
            f"{', '.join(others)}"
        )


def _limit(
    solve_all: Callable[[list[dict[str, Any]]], Iterator[Solution | NumericalError]],
    values: dict[str, Any],
    rate: str,
    holds: Callable[[Solution | NumericalError], bool],
    tolerance: float,
    spread: float = 64.0,
) -> float:
    """The rate below which `holds` is true on a grid from below, refined around its first failure.

    The grid starts a factor `spread` below the given rate and ends one above it, and moves on if it has to.
    """

    def first_failure(rates: np.ndarray) -> int:
        for k, solution in enumerate(solve_all([{**values, rate: float(x)} for x in rates])):
            if not holds(solution):
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
