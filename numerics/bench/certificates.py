"""Benchmark of certificates relative to their solutions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from numerics.bench.tools import BenchRow, built, cpu_seconds
from numerics.solver import Solver, solve

REPEATS, MOST_REPEATS, ENOUGH = 9, 41, 1.0
"""Minimum and maximum number of timed pairs of solutions; within these bounds, solutions take ENOUGH CPU
seconds in total."""
SAMPLES = 2000
"""Sites of sampled solutions; the time of a certificate does not depend on them."""
SETTINGS: dict[str, tuple[dict[str, int], ...]] = {
    "spiked_wigner": ({},),
    "anti_hebbian": ({}, {"T": 3}, {"T": 40}),
    "coupled_spikes": ({},),
    "coupled_spikes_tanh": ({},),
    "wide_network": ({"T": 3},),
    "deep_linear": ({}, {"T": 3}, {"T": 40}),
    "structured_regression": ({}, {"T": 3}, {"T": 40}),
    "extensive_two_layer": ({},),
    "extensive_multilayer": ({},),
}
"""Settings with changes of the default parameters."""


def certificates(references: Path | None) -> Iterator[BenchRow]:
    """Certificates: their cost relative to a solution, at new parameters."""
    yield from (_figure(name, changes) for name, cases in SETTINGS.items() for changes in cases)


def _figure(name: str, changes: dict[str, int]) -> BenchRow:
    """Return the median cost of a certificate, over pairs of solutions with and without it in alternating order."""
    solver = built(name)
    values = _values(solver, changes)
    moving = next(q.name for q in solver.setting.parameters if not q.whole)
    plain, extra = [], []
    for k in range(MOST_REPEATS + 1):  # the first compiles
        new = {**values, moving: values[moving] * (1 + 1e-3 * k)}
        plain.append(_solved(solver, new, False))
        pair = {certify: _solved(solver, new, certify) for certify in ((False, None) if k % 2 else (None, False))}
        extra.append(pair[None] - pair[False])
        if k >= REPEATS and sum(plain[1:]) > ENOUGH:
            break
    solution = statistics.median(plain[1:])
    low, middle, high = (cost / solution for cost in statistics.quantiles(extra[1:], n=4))
    detail = (
        f"{1e3 * middle * solution:.1f} ms beside {1e3 * solution:.1f} ms; "
        f"quartiles {low:.2f} and {high:.2f} of {len(extra) - 1} pairs"
    )
    shown = "".join(f" {key}={value}" for key, value in changes.items())
    return BenchRow(f"certificate of {name}{shown}", middle, "of a solution", detail, max(0.0, plain[0] - solution))


def _values(solver: Solver, changes: dict[str, int]) -> dict[str, Any]:
    """Return the default values with some changed, and normally distributed random data."""
    values: dict[str, Any] = {q.name: q.default for q in solver.setting.parameters} | changes
    sizes = {**values, "times": solver.times(values)}
    rng = np.random.default_rng(0)
    return values | {d.name: rng.standard_normal([int(sizes[axis]) for axis in d.axes]) for d in solver.setting.data}


def _solved(solver: Solver, values: dict[str, Any], certify: bool | None) -> float:
    """Return the CPU seconds of a solution, with or without its certificate."""
    return cpu_seconds(lambda: solve(solver, values, samples=SAMPLES, overlaps=True, certify=certify))
