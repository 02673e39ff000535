"""Calibration of `sizes.LIGHT`: the size of a sampled pass above which optimising compilation pays."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from derive.errors import DeriveError
from numerics.bench.tools import BenchRow, Timing, built, time_in_turns
from numerics.runtime import sizes
from numerics.solver import Solver, solve

SETTING, STEPS = "wide_network", (5, 10)
SITES = (500, 8000)
"""Sites of a small and a large pass; the run time is linear in them."""


def light_passes(references: Path | None) -> Iterator[BenchRow]:
    """Size of a sampled pass above which optimising its program pays, measured and as assumed."""
    solver = built(SETTING)
    for steps in STEPS:
        values = _values(solver, {"T": steps})
        quick, thorough = (_timed(solver, values, light) for light in (np.inf, 0.0))
        saved = _compilation(thorough) - _compilation(quick)
        slower = _slope(quick) - _slope(thorough)
        if saved <= 0 or slower <= 0:
            raise DeriveError("one of the two programs is faster at every size, so LIGHT is undefined on this machine")
        per_site = solver.times(values) * solver.sampled_pass.footprint(solver.point(values))
        yield BenchRow(
            f"size above which optimisation pays, {SETTING} T={steps}",
            per_site * saved / slower / sizes.LIGHT,
            "of LIGHT",
            f"LIGHT = {sizes.LIGHT:g} numbers, of all sites and times, {per_site} a site; compiled quickly in "
            f"{_compilation(quick):.1f} s and run in {quick[-1].seconds:.2f} s at {SITES[-1]} sites, thoroughly in "
            f"{_compilation(thorough):.1f} s and {thorough[-1].seconds:.2f} s",
            _compilation(quick) + _compilation(thorough),
        )


def _compilation(timings: list[Timing]) -> float:
    """Return the compilation time of one program; several sizes may share a program."""
    return max(timing.compilation for timing in timings)


def _timed(solver: Solver, values: dict[str, Any], light: float) -> list[Timing]:
    """Return the CPU times of the training level at both numbers of sites. light: the size below which programs are
    compiled quickly.
    """
    before, sizes.LIGHT = sizes.LIGHT, light
    try:
        runs = [partial(solve, solver, values, samples=sites, layers=(), certify=False) for sites in SITES]
        return [time_in_turns(run, repeats=3)[0] for run in runs]
    finally:
        sizes.LIGHT = before


def _slope(timings: list[Timing]) -> float:
    """Return the seconds per site that a run takes."""
    return (timings[-1].seconds - timings[0].seconds) / (SITES[-1] - SITES[0])


def _values(solver: Solver, changes: dict[str, int]) -> dict[str, Any]:
    """Return the default values with some changed, and normally distributed random data."""
    values: dict[str, Any] = {q.name: q.default for q in solver.setting.parameters} | changes
    lengths = {**values, "times": solver.times(values)}
    rng = np.random.default_rng(0)
    return values | {d.name: rng.standard_normal([int(lengths[axis]) for axis in d.axes]) for d in solver.setting.data}
