"""Benchmarks of the deep linear network: forward pass, outlier path, theory against simulation, scaling with time."""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial, reduce
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy.sparse.linalg

from numerics.bench.tools import BenchRow, built, cpu_seconds, time_in_turns
from numerics.outliers.restriction import Restriction, Steps
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point
from numerics.solution import Prediction
from numerics.solver import Solver, solve, spiked_problem
from numerics.support.precision import in_float64

SETTING = "deep_linear"
VALUES = {"alpha": 2.0, "nu": 1.0, "gamma0": 1.0, "eta": 0.1, "sigma": 0.3, "C": 1}


def forward_pass(references: Path | None) -> Iterator[BenchRow]:
    """Order parameters at T = 100, L = 2: one forward pass against damped fixed-point iteration."""
    by_hand = deep_linear_by_hand(references)
    if by_hand is None:
        return
    values = {**VALUES, "T": 100}
    forward = _forward(values)
    compilation = time_in_turns(forward, repeats=1)[0].compilation
    exact = np.asarray(forward()["test_loss"])
    for name, weight in (("damped by 1/2", 0.5), ("undamped", 1.0)):
        iterate = partial(by_hand.solve, L=2, **values, method="fixed_point", weight=weight, tolerance=1e-10)
        iterated = iterate()
        fast, slow = time_in_turns(forward, iterate, repeats=3)
        error = float(np.max(np.abs(iterated.test_loss - exact)))
        yield BenchRow(
            f"fixed-point iteration over forward pass, {name}",
            slow.seconds / fast.seconds,
            "times",
            f"T = 100, L = 2: {fast.seconds:.4f} s against {slow.seconds:.2f} s ({iterated.iterations} sweeps of whole "
            f"kernels), losses equal to {error:.0e}",
            compilation,
        )


CLASSES = ((50, 1), (50, 2), (50, 4), (50, 8))
"""Steps and labels at which the forward pass is compared with plain NumPy."""


def growing_arrays(references: Path | None) -> Iterator[BenchRow]:
    """One forward pass with several classes, L = 2, against one by hand in NumPy whose arrays grow with time."""
    by_hand = deep_linear_by_hand(references)
    if by_hand is None:
        return
    for steps, labels in CLASSES:
        values = {**VALUES, "T": steps, "C": labels}
        march, ours = partial(by_hand.solve, L=2, **values), _forward(values)
        fast, slow = time_in_turns(ours, march, repeats=3)
        error = float(np.max(np.abs(march().test_loss - np.asarray(ours()["test_loss"]))))
        yield BenchRow(
            f"growing NumPy arrays over forward pass, T = {steps}, C = {labels}",
            slow.seconds / fast.seconds,
            "times",
            f"{fast.seconds:.4f} s against {slow.seconds:.3f} s, losses equal to {error:.0e}",
            fast.compilation,
        )


EQUAL_LABELS, EQUAL_STEPS = 8, 50
"""Labels and steps at which equal labels are compared with one."""


def equal_labels(references: Path | None) -> Iterator[BenchRow]:
    """Forward pass and outliers of equal labels, L = 2, against those of one label, with and without their symmetry."""
    one, several = ({**VALUES, "T": EQUAL_STEPS, "C": labels} for labels in (1, EQUAL_LABELS))
    for name, solver in (("", built(SETTING)), (" without their symmetry", built(SETTING).with_all_labels)):
        ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "forward pass": (_forward(several, solver), _forward(one, solver)),
            "forward pass with every entry of order parameters": (_entries(several, solver), _entries(one, solver)),
            "training, bulk and outliers": (partial(solve, solver, several), partial(solve, solver, one)),
        }
        for what, (together, alone) in ways.items():
            slow, fast = time_in_turns(together, alone, repeats=3)
            yield BenchRow(
                f"{what} of {EQUAL_LABELS} equal labels over one{name}, T = {EQUAL_STEPS}",
                slow.seconds / fast.seconds,
                "times",
                f"L = 2: {slow.seconds:.4f} s against {fast.seconds:.4f} s",
                slow.compilation,
            )


@in_float64
def _forward(values: dict[str, Any], solver: Solver | None = None) -> Callable[[], dict[str, Any]]:
    """Return a function that runs the forward pass; its first call compiles."""
    solver = solver or built(SETTING)
    p = solver.point(values)

    @in_float64
    def run() -> dict[str, Any]:
        results: dict[str, Any] = jax.block_until_ready(  # type: ignore[no-untyped-call]  # JAX gives it no types
            solver.forward_pass(p)
        )[1]
        return results

    return run


@in_float64
def _entries(values: dict[str, Any], solver: Solver) -> Callable[[], dict[OrderKey, np.ndarray]]:
    """Return a function that runs the forward pass and reads all order parameters, which expands them to all labels."""
    p = solver.point(values)

    @in_float64
    def run() -> dict[OrderKey, np.ndarray]:
        return dict(jax.tree.map(np.asarray, solver.forward_pass(p)[0]))

    return run


PATHS: tuple[tuple[str, str | None, dict[str, Any]], ...] = (
    ("deep_linear", "0", {**VALUES, "gamma0": 3.0, "eta": 0.05, "T": 200}),
    ("deep_linear", "1", {**VALUES, "gamma0": 6.0, "eta": 0.05, "T": 200}),
    ("anti_hebbian", None, {"gamma0": 4.0, "dt": 0.1, "T": 200}),
)
"""Settings, layers and values whose outliers are computed at all times."""


def outlier_path(references: Path | None) -> Iterator[BenchRow]:
    """Outliers at all times up to T = 200, complete, against Arnoldi's method and all eigenvalues at each time."""
    for setting, layer, values in PATHS:
        solver = built(setting)
        chosen = None if layer is None else (layer,)
        follow, without = (partial(solve, solver, values, layers=chosen, path=path) for path in (True, False))
        found: list[Prediction] = []
        first = cpu_seconds(lambda found=found, follow=follow: found.append(follow()))  # type: ignore[misc]
        matrices = _matrices(solver, without(), layer, values["T"])
        counts = [len(zs) for zs in found[0].layers[0].outlier_path or ()]
        arnoldi = partial(_by_arnoldi, matrices, counts)
        every = partial(_all_eigenvalues, matrices)
        ways = time_in_turns(follow, without, arnoldi, every, repeats=3)
        both, bare, krylov, dense = (way.seconds for way in ways)
        ours = both - bare
        here = f"{setting}{'' if layer is None else f', layer {layer}'}"
        yield BenchRow(
            f"outliers at all times over Arnoldi's method, {here}",
            ours / krylov,
            "of its time",
            f"{sum(counts)} outliers at {len(counts) - 1} times, {ours:.2f} s; Arnoldi's method, given their number "
            f"and started from the previous time, {krylov:.2f} s; all eigenvalues {dense:.2f} s. At the last "
            f"time both are equal to {_apart(arnoldi(), every()):.0e}",
            max(0.0, first - both),
        )


@in_float64
def _matrices(solver: Solver, solution: Prediction, layer: str | None, count: int) -> list[tuple[np.ndarray, ...]]:
    """Return the factors of the outlier eigenproblem at every time."""
    problem = spiked_problem(solver, solution, layer)
    order = problem.order
    strides: Any = solver.training.strides(problem.p)
    restriction = Restriction(problem, problem.probe.cycles[0], Steps("T", count, strides))
    whole = restriction.of(order)
    return [restriction.at(time, order, whole) for time in range(1, count + 1)]


def _by_arnoldi(matrices: list[tuple[np.ndarray, ...]], counts: list[int]) -> np.ndarray:
    """Return the largest eigenvalues at the last time by Arnoldi's method, after those of all earlier times."""
    eigenvalues, before = np.zeros(0, complex), np.zeros(0)
    for factors, outliers in zip(matrices, counts[1:], strict=True):
        rows, wanted = len(factors[0]), outliers + 2
        if rows < 3 * wanted + 10:
            eigenvalues = np.linalg.eigvals(reduce(np.matmul, factors))
            continue
        start = np.concatenate([before, np.ones(rows - len(before))])
        apply = partial(_applied, factors)
        operator = scipy.sparse.linalg.LinearOperator((rows, rows), matvec=apply, dtype=float)
        eigenvalues, vectors = scipy.sparse.linalg.eigs(operator, k=wanted, which="LM", v0=start)
        before = np.sum(vectors.real, axis=1)
    return eigenvalues


def _applied(factors: tuple[np.ndarray, ...], x: np.ndarray) -> np.ndarray:
    for factor in reversed(factors):
        x = factor @ x
    return x


def _all_eigenvalues(matrices: list[tuple[np.ndarray, ...]]) -> np.ndarray:
    """Return all eigenvalues at the last time, after those of all earlier times."""
    eigenvalues = np.zeros(0)
    for factors in matrices:
        eigenvalues = np.linalg.eigvals(reduce(np.matmul, factors))
    return eigenvalues


def _apart(few: np.ndarray, every: np.ndarray) -> float:
    """Return the largest relative distance of a few eigenvalues to the nearest of all eigenvalues."""
    return max(float(np.min(np.abs(every - z)) / abs(z)) for z in few)


ACCURACY, SIZE, SEEDS = 0.01, 500, 4
"""The relative error of the test loss at which theory and simulation are compared; dimension and number of runs."""


def theory_and_simulation(references: Path | None) -> Iterator[BenchRow]:
    """The test loss at T = 100 to one percent: one theory solve against simulations at D = 500."""
    solver, values = built(SETTING), {**VALUES, "gamma0": 3.0, "eta": 0.05, "T": 100}
    run = partial(solve, solver, values, layers=())
    (theory,) = time_in_turns(run, repeats=3)
    losses: list[float] = []

    def simulated() -> None:
        for seed in range(SEEDS):
            losses.append(float(np.ravel(_simulated(solver, values, seed)["test_loss"])[-1]))

    one = cpu_seconds(simulated) / SEEDS
    loss = float(run().observables["test_loss"][-1])
    needed = max(1.0, float(np.var(losses, ddof=1)) / (ACCURACY * loss) ** 2)
    yield BenchRow(
        f"simulations over one theory solve, test loss to {ACCURACY:.0%}",
        needed * one / theory.seconds,
        "times",
        f"T = 100, L = 2: theory {loss:.6f} in {theory.seconds:.3f} s, exact; one run at D = {SIZE} {one:.2f} s, "
        f"{np.mean(losses):.4f} with spread {np.std(losses, ddof=1):.4f}, so {needed:.0f} of them; their bias is not "
        "counted",
        theory.compilation,
    )


def _simulated(solver: Solver, values: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the observables of one run of the declared equations."""
    observables: dict[str, Any] = solver.simulation.simulate(
        solver.point(values), size=SIZE, rng=np.random.default_rng(seed)
    )[2]
    return observables


def growth(references: Path | None) -> Iterator[BenchRow]:
    """Growth of the cost of a solve with T, up to T = 800."""
    solver = built(SETTING)
    seconds, memory, compilation = dict[int, float](), 0.0, 0.0
    for steps in (100, 200, 400, 800):
        p = solver.point({**VALUES, "T": steps})
        made: list[tuple[Callable[[Point], Any], int]] = []
        compilation += cpu_seconds(lambda p=p, made=made: made.append(_compiled(solver, p)))  # type: ignore[misc]
        ((compiled, memory),) = made
        (timing,) = time_in_turns(in_float64(partial(_run, compiled, p)), repeats=2)
        seconds[steps] = timing.seconds
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    last = math.log(seconds[800] / seconds[400]) / math.log(2)
    listed = ", ".join(f"{s:.2f} s at {t}" for t, s in seconds.items())
    detail = f"L = 2: {listed}; last doubling {last:.2f}"
    yield BenchRow("growth of a forward pass with T", float(slope), "exponent", detail, compilation)
    detail = "arguments, results and work space, L = 2"
    yield BenchRow("memory of a forward pass at T = 800", memory / 1e6, "MB", detail)


def _run(compiled: Callable[[Point], Any], p: Point) -> None:
    jax.block_until_ready(compiled(p))  # type: ignore[no-untyped-call]  # JAX gives it no types


@in_float64
def _compiled(solver: Solver, p: Point) -> tuple[Callable[[Point], Any], int]:
    """Return the compiled forward pass, and its memory in bytes."""
    compiled = solver.forward_pass.lower(p).compile()
    used = compiled.memory_analysis()
    assert used is not None
    return compiled, used.temp_size_in_bytes + used.output_size_in_bytes + used.argument_size_in_bytes


def deep_linear_by_hand(references: Path | None) -> types.ModuleType | None:
    """Return the hand-written equations of the network, with their fixed-point iteration."""
    path = None if references is None else references / "deep_linear_by_hand.py"
    if path is None or not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("deep_linear_by_hand", path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module
