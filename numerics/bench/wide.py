"""Benchmarks of wide nonlinear networks: theory against trained networks, pathwise against Stein, scaling with
spikes."""

from __future__ import annotations

import importlib.util
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

from numerics.bench.tools import BenchRow, built, cpu_seconds, python, time_in_turns
from numerics.solver import Solver, solve

SETTING = "wide_network"
WIDTH, SPREAD_WIDTH, SPREAD_SEEDS = 4000, 500, 8
SAMPLES = 10_000
SMALL = ((250, 400), (500, 300))
"""Widths of small networks and their numbers, extrapolated in 1/width."""
Counts = tuple[tuple[int, int], ...]
ACCURACY, FINER, FINEST = 0.01, 0.003, 0.001
"""Relative errors of an outlier at which costs are compared."""
MOST_SAMPLES = 5_000_000
"""Most samples of a theory run."""
ITERATED, ITERATED_SAMPLES, SETTLED, ITERATIONS = "wide_network_iterated", 1000, 12, 8
"""The hand-written damped iteration: its file, samples, sweeps to convergence, and runs for its spread."""
FIFTY_SAMPLES = 10_000
"""Samples of the network of 50 points and 50 steps."""
MEASURED = f"""
import resource, sys, time
import derive
found = derive.load(sys.argv[1]).solve(P=50, T=50, samples={FIFTY_SAMPLES})
print(time.process_time())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9)
print(found.method.sampling.memory.sentence)
for layer in found.layers:
    pairs = zip(layer.outliers, layer.outlier_errors)
    print(f"layer {{layer.label}}:", ", ".join(f"{{z:.3f}} +- {{e:.3f}}" for z, e in pairs) or "no outlier")
"""


def _problem(steps: int, points: int = 6) -> tuple[Solver, dict[str, Any]]:
    """Return the built setting with data of its teacher."""
    solver = built(SETTING)
    values: dict[str, Any] = {q.name: q.default for q in solver.setting.parameters}
    values |= {"P": points, "B": points, "T": steps, "eta": 3.0 / steps, "gamma": 4.0}
    rng = np.random.default_rng(0)
    x = rng.standard_normal((points, values["D"]))
    signal = x[:, 0]
    times = steps + 1
    values["x"] = np.broadcast_to(x, (times, *x.shape))
    values["y"] = np.broadcast_to(signal + signal**2 / 2, (times, points))
    return solver, values


def _largest(solver: Solver, values: dict[str, Any], width: int, seed: int) -> float:
    """Return the largest eigenvalue of the last hidden layer of one trained network."""
    matrices, _, _ = solver.simulation.simulate(solver.point(values), size=width, rng=np.random.default_rng(seed))
    return float(eigsh(matrices[solver.matrices[-1].label], k=1, return_eigenvectors=False)[0])


def theory_and_network(references: Path | None) -> Iterator[BenchRow]:
    """One theory solve against as many networks of width 4000 as it takes to reach the same error."""
    solver, values = _problem(10)
    last = [solver.matrices[-1].label]
    run = partial(solve, solver, values, samples=SAMPLES, layers=last)
    (timing,) = time_in_turns(run, repeats=3)
    solution, theory, compilation = run(), timing.seconds, timing.compilation
    error = solution.outlier_errors[0] if solution.outlier_errors else math.nan
    network = cpu_seconds(lambda: _largest(solver, values, WIDTH, 0))
    tops = [_largest(solver, values, SPREAD_WIDTH, seed) for seed in range(SPREAD_SEEDS)]
    spread = statistics.stdev(tops) * math.sqrt(SPREAD_WIDTH / WIDTH)
    needed = max(1.0, (spread / error) ** 2)
    yield BenchRow(
        "networks of width 4000 over one theory solve, same error",
        needed * network / theory,
        "times",
        f"L = 3, P = 6, T = 10, last layer: outlier {solution.outliers[0]:.4f} +- {error:.4f} in {theory:.2f} s; one "
        f"network {network:.1f} s (largest eigenvalue by Lanczos) with spread {spread:.3f}, from width {SPREAD_WIDTH}, "
        f"so {needed:.0f} of them",
        compilation,
    )


@dataclass(frozen=True)
class _BenchRun:
    """An outlier and the last loss with their errors, and the CPU time they took."""

    outlier: float
    error: float
    loss: float
    loss_error: float
    seconds: float
    how: str
    compilation: float = 0.0

    @property
    def told(self) -> str:
        return (
            f"{self.how}: outlier {self.outlier:.4f} +- {self.error:.4f} ({self.error / self.outlier:.2%}), loss "
            f"{self.loss:.5f} +- {self.loss_error:.5f} ({self.loss_error / self.loss:.2%}) in {self.seconds:.1f} s"
        )


class _Networks:
    """Small networks of two widths, extrapolated in 1/width; existing ones are reused when more are trained."""

    def __init__(self, solver: Solver, values: dict[str, Any]) -> None:
        self.solver, self.values = solver, values
        self.found: dict[int, list[tuple[float, float]]] = {}
        """By width, of each network the largest eigenvalue and the last loss."""
        self.seconds = 0.0

    def _trained(self, width: int, seed: int) -> tuple[float, float]:
        run = self.solver.simulation.simulate
        matrices, _, observed = run(self.solver.point(self.values), size=width, rng=np.random.default_rng(seed))
        top = eigsh(matrices[self.solver.matrices[-1].label], k=1, return_eigenvectors=False)[0]
        return float(top), float(np.ravel(observed["loss"])[-1])

    def _train(self, counts: Counts) -> None:
        for width, count in counts:
            there = self.found.setdefault(width, [])
            there += [self._trained(width, seed) for seed in range(len(there), count)]

    def run(self, counts: Counts) -> _BenchRun:
        """Return the extrapolated estimates from the counted networks of each width, and their total CPU time."""
        self.seconds += cpu_seconds(partial(self._train, counts))
        (narrow, few), (wide, many) = counts
        share = wide / (wide - narrow)  # Richardson extrapolation in 1/width
        theirs, spreads = [], []
        for place in range(2):
            one, two = ([each[place] for each in self.found[width]] for width in (narrow, wide))
            theirs.append(share * statistics.mean(two) + (1 - share) * statistics.mean(one))
            off = share * statistics.stdev(two) / math.sqrt(many), (1 - share) * statistics.stdev(one) / math.sqrt(few)
            spreads.append(math.hypot(*off))
        how = f"{few} networks of width {narrow} and {many} of width {wide}"
        return _BenchRun(theirs[0], spreads[0], theirs[1], spreads[1], self.seconds, how)


def _of_theory(solver: Solver, values: dict[str, Any], accuracy: float, of_loss: float) -> _BenchRun:
    """Return the theory with enough samples to reach these relative errors of outlier and loss."""
    layers, samples = [solver.matrices[-1].label], SAMPLES
    found: list[Any] = []
    while True:
        run = partial(solve, solver, values, samples=samples, layers=layers)
        first = cpu_seconds(run)
        seconds = cpu_seconds(partial(_append, found, run))
        solution = found[-1]
        value, error = solution.outliers[0], solution.outlier_errors[0]
        loss, loss_error = solution.observables["loss"][-1], solution.errors["loss"][-1]
        more = max(error / (accuracy * value), loss_error / (of_loss * loss))
        if more <= 1 or samples > MOST_SAMPLES:
            how = f"theory with {samples} samples"
            return _BenchRun(value, error, loss, loss_error, seconds, how, max(0.0, first - seconds))
        samples = math.ceil(1.2 * samples * more**2 / 1000) * 1000


def _append(found: list[Any], run: Callable[[], Any]) -> None:
    found.append(run())


def _against_networks(accuracy: float, counts: Counts) -> BenchRow:
    """Measure both methods at this error of the outlier, where the loss of the theory is at least as accurate; nothing
    is rescaled.
    """
    solver, values = _problem(10)
    networks = _Networks(solver, values)
    theirs = networks.run(counts)
    while theirs.error > accuracy * theirs.outlier:
        more = 1.1 * (theirs.error / (accuracy * theirs.outlier)) ** 2
        counts = tuple((width, math.ceil(more * count)) for width, count in counts)
        theirs = networks.run(counts)
    ours = _of_theory(solver, values, accuracy, theirs.loss_error / theirs.loss)
    apart = (ours.outlier - theirs.outlier) / math.hypot(ours.error, theirs.error)
    return BenchRow(
        f"small networks over one theory solve, outlier to {accuracy:.1%}",
        theirs.seconds / ours.seconds,
        "times",
        f"L = 3, P = 6, T = 10, last layer, both measured and neither scaled: {ours.told}; {theirs.told}, "
        f"extrapolated in "
        f"1/width; outliers are {apart:+.1f} errors apart",
        ours.compilation,
    )


def small_networks(references: Path | None) -> Iterator[BenchRow]:
    """One theory solve against many small networks, extrapolated in 1/width."""
    few = tuple((width, math.ceil(count / 12)) for width, count in SMALL)
    yield _against_networks(ACCURACY, few)
    yield _against_networks(FINER, SMALL)


def more_small_networks(references: Path | None) -> Iterator[BenchRow]:
    """One theory solve against thousands of small networks, extrapolated in 1/width."""
    yield _against_networks(FINEST, tuple((width, 6 * count) for width, count in SMALL))


def damped_iteration(references: Path | None) -> Iterator[BenchRow]:
    """The loss of a wide network: one solve against a damped iteration of whole kernels, written by hand."""
    if references is None or not (references / f"{ITERATED}.py").is_file():
        return
    found = importlib.util.spec_from_file_location(ITERATED, references / f"{ITERATED}.py")
    assert found is not None and found.loader is not None, "the file is there"
    by_hand = importlib.util.module_from_spec(found)
    found.loader.exec_module(by_hand)
    solver, values = _problem(10)
    given = {"L": len(solver.matrices) + 1, **{name: values[name] for name in ("sigma", "gamma", "eta", "T")}}
    theirs: list[float] = []

    def iterate() -> None:
        for seed in range(ITERATIONS):
            losses = by_hand.damped_iteration(
                values["x"][0], values["y"][0], **given, samples=ITERATED_SAMPLES, sweeps=2 * SETTLED, seed=seed
            )
            theirs.append(float(np.mean(losses[SETTLED:, -1])))

    run = partial(solve, solver, values, samples=SAMPLES, layers=())
    (timing,) = time_in_turns(run, repeats=3)
    ours, compilation = run(), timing.compilation
    fast, slow = timing.seconds, cpu_seconds(iterate) / ITERATIONS
    loss, error = ours.observables["loss"][-1], (ours.errors or {})["loss"][-1]
    mean, spread = statistics.mean(theirs), statistics.stdev(theirs)
    yield BenchRow(
        "damped iteration over one theory solve, same error of the loss",
        slow * max(1.0, (spread / error) ** 2) / fast,
        "times",
        f"L = 3, P = 6, T = 10: {loss:.5f} +- {error:.5f} in {fast:.2f} s; {2 * SETTLED} sweeps with "
        f"{ITERATED_SAMPLES} samples, the mean of the last {SETTLED}: {mean:.5f} +- {spread:.5f} in {slow:.2f} s",
        compilation,
    )


def fifty_points(references: Path | None) -> Iterator[BenchRow]:
    """Time and memory of a network of 50 points and 50 steps, full batch."""
    found = python("-c", MEASURED, SETTING).strip().splitlines()
    seconds, peak, expected, told = float(found[0]), float(found[1]), found[2], "; ".join(found[3:])
    told = f"L = 3, D = 10, {FIFTY_SAMPLES} samples, compilation and start included; {told}"
    yield BenchRow("tanh network of 50 points and 50 steps", seconds, "s", told)
    said = f"at most, in a separate process; estimated before it started: {expected}"
    yield BenchRow("tanh network of 50 points and 50 steps: memory", peak, "GB", said)


def growth_with_spikes(references: Path | None) -> Iterator[BenchRow]:
    """Growth of the cost of a theory solve with the number of spikes S = P T."""
    seconds, compilation = dict[int, float](), 0.0
    for steps in (5, 10, 20, 40):
        solver, values = _problem(steps)
        (timing,) = time_in_turns(partial(solve, solver, values, samples=SAMPLES), repeats=1)
        seconds[6 * steps], compilation = timing.seconds, compilation + timing.compilation
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    listed = ", ".join(f"{time:.2f} s at {count}" for count, time in seconds.items())
    told = f"L = 3, two layers: {listed}"
    yield BenchRow("growth of a sampled solve with S = P T", float(slope), "exponent", told, compilation)
