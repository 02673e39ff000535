"""Speed of the deep linear network: forward pass, outlier path, theory against simulation, growth with time."""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from derive.errors import DeriveError
from numerics.bench.tools import Figure, timed, worked
from numerics.outliers.problem import a_matrices
from numerics.precision import in_float64
from numerics.runtime.point import Point, replaced
from numerics.simulation.samples import simulate
from numerics.solver import Solver, load_built, solve, spiked_problem

SETTING = "deep_linear"
VALUES = {"alpha": 2.0, "nu": 1.0, "gamma0": 1.0, "eta": 0.1, "sigma": 0.3, "C": 1}


def forward_pass(references: Path | None) -> list[Figure]:
    """Order parameters at T = 100, L = 2: one forward pass against damped fixed-point iteration."""
    by_hand = deep_linear_by_hand(references)
    if by_hand is None:
        return []
    values = {**VALUES, "T": 100}
    forward, _ = _forward(values)  # and compile once, outside the clock
    exact = np.asarray(forward()["test_loss"])
    fast = statistics.median(timed(forward) for _ in range(9))
    figures = []
    for weight in (0.5, 1.0):
        results: list[Any] = []

        def iterate(weight: float = weight, results: list[Any] = results) -> None:
            results[:] = [by_hand.solve(L=2, **values, method="fixed_point", weight=weight, tolerance=1e-10)]

        slow = statistics.median(timed(iterate) for _ in range(3))
        error = float(np.max(np.abs(results[0].test_loss - exact)))
        name = "damped by 1/2" if weight < 1 else "undamped"
        figures.append(
            Figure(
                f"forward pass over fixed-point iteration, {name}",
                slow / fast,
                "times",
                f"T = 100, L = 2: {fast:.4f} s against {slow:.2f} s ({results[0].iterations} sweeps of whole kernels, "
                f"losses equal to {error:.0e})",
            )
        )
    return figures


CLASSES = ((50, 1), (50, 2), (50, 4), (50, 8))
"""Steps and labels at which the forward pass is set against plain NumPy."""


def growing_arrays(references: Path | None) -> list[Figure]:
    """One forward pass with several classes, L = 2, against one by hand in NumPy whose arrays grow with time."""
    by_hand = deep_linear_by_hand(references)
    if by_hand is None:
        return []
    figures = []
    for steps, labels in CLASSES:
        values = {**VALUES, "T": steps, "C": labels}
        results: list[Any] = []

        def march(values: dict[str, Any] = values, results: list[Any] = results) -> None:
            results[:] = [by_hand.solve(L=2, **values)]

        ours, first = _forward(values)
        fast, slow = (
            statistics.median(x) for x in zip(*((worked(ours), worked(march)) for _ in range(3)), strict=True)
        )
        error = float(np.max(np.abs(results[0].test_loss - np.asarray(ours()["test_loss"]))))
        figures.append(
            Figure(
                f"forward pass over growing NumPy arrays, T = {steps}, C = {labels}",
                slow / fast,
                "times",
                f"{fast:.4f} s of CPU against {slow:.3f} s, losses equal to {error:.0e}; the first call "
                f"compiles and takes {first:.1f} s",
            )
        )
    return figures


EQUAL_LABELS, EQUAL_STEPS = 8, 50
"""Labels and steps at which equal labels are set against one."""


def equal_labels(references: Path | None) -> list[Figure]:
    """Forward pass and outliers of equal labels, L = 2, against those of one label, with and without their symmetry."""
    one, several = ({**VALUES, "T": EQUAL_STEPS, "C": labels} for labels in (1, EQUAL_LABELS))
    whole = _solver().with_all_labels
    figures = []
    for name, solver in (("", _solver()), (" without their symmetry", whole)):
        (alone, _), (together, _) = _forward(one, solver), _forward(several, solver)
        ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "forward pass": (together, alone),
            "training, bulk and outliers": (partial(solve, solver, several), partial(solve, solver, one)),
        }
        for what, (ours, theirs) in ways.items():
            for run in (ours, theirs):
                run()  # compiled once, outside the clock
            slow, fast = (
                statistics.median(x) for x in zip(*((worked(ours), worked(theirs)) for _ in range(3)), strict=True)
            )
            figures.append(
                Figure(
                    f"{what} of {EQUAL_LABELS} equal labels over one{name}, T = {EQUAL_STEPS}",
                    slow / fast,
                    "times",
                    f"L = 2: {slow:.4f} s of CPU against {fast:.4f} s, compiled before",
                )
            )
    return figures


@in_float64
def _forward(values: dict[str, Any], solver: Solver | None = None) -> tuple[Callable[[], dict[str, Any]], float]:
    """A call of the compiled forward pass, and how long the first one took."""
    solver = solver or _solver()
    p = solver.point(values)

    @in_float64
    def run() -> dict[str, Any]:
        found: dict[str, Any] = jax.block_until_ready(  # type: ignore[no-untyped-call]  # JAX gives it no types
            solver.forward_pass(p)
        )[1]
        return found

    return run, timed(run)


def outlier_path(references: Path | None) -> list[Figure]:
    """Outliers at all times up to T = 200: restricted eigenproblems against a scan of A(z) at each time."""
    solver, values = _solver(), {**VALUES, "gamma0": 3.0, "eta": 0.05, "T": 200}
    layer = "0"
    whole = solve(solver, values, layers=(layer,))
    found: list[Any] = []

    def follow() -> None:
        found[:] = [solve(solver, values, layers=(layer,), path=True)]

    both, without = timed(follow), timed(lambda: solve(solver, values, layers=(layer,)))
    fast = max(both - without, 1e-3)
    problem, points = spiked_problem(solver, whole, layer), 6

    @in_float64
    def at(time: int) -> float:
        """Seconds of one point of a scan at a time: A(z) and its smallest singular value."""
        strides = solver.training.strides(problem.p)
        early = {key: x[: strides[key][0] * time, : strides[key][1] * time] for key, x in problem.order.items()}
        then = replace(problem, p=replaced(problem.p, T=time), order=early)
        grid = np.linspace(whole.bulk_edges[-1][1] * 1.01, whole.bulk_edges[-1][1] * 1.5, points)
        a_matrices(then, grid)
        matrices: list[Any] = []
        made = timed(lambda: matrices.extend(a_matrices(then, grid)))
        return (made + timed(lambda: [np.linalg.svd(a, compute_uv=False)[-1] for a in matrices])) / points

    samples = {time: at(time) for time in (25, 50, 100, 200)}
    grid_points = 400
    scan = grid_points * float(np.trapezoid([0.0, *samples.values()], [0, *samples]))
    first = found[0].layers[0].bbp_time
    return [
        Figure(
            "outlier path over a scan at each time",
            scan / fast,
            "times",
            f"T = 200, layer 0, first outlier at time {first}: {fast:.2f} s against {scan:.0f} s for {grid_points} "
            f"points a time, from the cost of a point at times {', '.join(map(str, samples))}",
        )
    ]


def theory_and_simulation(references: Path | None) -> list[Figure]:
    """One theory solve at T = 100 against one simulation at D = 1000."""
    solver, values = _solver(), {**VALUES, "gamma0": 3.0, "eta": 0.05, "T": 100}
    solve(solver, values)  # compile once, outside the clock
    theory = statistics.median(timed(lambda: solve(solver, values)) for _ in range(3))
    sample = timed(lambda: simulate(solver, values, 1000, 1))
    return [
        Figure(
            "one simulation over one theory solve",
            sample / theory,
            "times",
            f"T = 100, L = 2, both layers: D = 1000, one seed, {sample:.2f} s; theory {theory:.2f} s",
        )
    ]


def growth(references: Path | None) -> list[Figure]:
    """Growth of the cost of a solve with T, up to T = 800."""
    solver = _solver()
    seconds: dict[int, float] = {}
    memory = 0.0
    for steps in (100, 200, 400, 800):
        p = solver.point({**VALUES, "T": steps})
        compiled, memory = _compiled(solver, p)
        seconds[steps] = min(timed(in_float64(partial(_run, compiled, p))) for _ in range(2))
    slope = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    last = math.log(seconds[800] / seconds[400]) / math.log(2)
    listed = ", ".join(f"{s:.2f} s at {t}" for t, s in seconds.items())
    return [
        Figure(
            "growth of a forward pass with T", float(slope), "exponent", f"L = 2: {listed}; last doubling {last:.2f}"
        ),
        Figure("memory of a forward pass at T = 800", memory / 1e6, "MB", "arguments, results and work space, L = 2"),
    ]


def _run(compiled: Callable[[Point], Any], p: Point) -> None:
    jax.block_until_ready(compiled(p))  # type: ignore[no-untyped-call]  # JAX gives it no types


@in_float64
def _compiled(solver: Solver, p: Point) -> tuple[Callable[[Point], Any], int]:
    """The forward pass ready to run, and the bytes it takes."""
    compiled = solver.forward_pass.lower(p).compile()
    used = compiled.memory_analysis()
    assert used is not None
    return compiled, used.temp_size_in_bytes + used.output_size_in_bytes + used.argument_size_in_bytes


def _solver() -> Solver:
    solver = load_built(SETTING)
    if solver is None:
        raise DeriveError(f"the setting {SETTING} has not been built; run derive build first")
    return solver


def deep_linear_by_hand(references: Path | None) -> types.ModuleType | None:
    """The equations of the network written by hand, with their iteration to a fixed point."""
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
