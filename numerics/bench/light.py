"""From which size on optimising the program of a sampled pass pays: the calibration of `sizes.LIGHT`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from numerics.bench.tools import Figure, Timing, built, time_in_turns
from numerics.runtime import sizes
from numerics.runtime.samples import SampledPass
from numerics.solver import Solver, solve

SETTINGS: dict[str, dict[str, int]] = {"wide_network": {"T": 5}, "coupled_spikes_tanh": {}}
SITES = (500, 8000)
"""Sites of a small and of a large pass: the time of a run is linear in them."""


def light_passes(references: Path | None) -> Iterator[Figure]:
    """Size of a sampled pass from which on optimising its program pays, beside the one that is assumed."""
    for name, changes in SETTINGS.items():
        solver = built(name)
        values = _values(solver, changes)
        quick, thorough = (_timed(solver, values, light) for light in (np.inf, 0.0))
        saved = (thorough[-1].compilation - quick[-1].compilation) + _at_zero(thorough) - _at_zero(quick)
        slower = _slope(quick) - _slope(thorough)
        assert isinstance(solver.training, SampledPass), "these settings are sampled"
        per_site = solver.times(values) * solver.training.footprint(solver.point(values))
        value = per_site * saved / slower if slower > 0 else float(sizes.LIGHT)
        yield Figure(
            f"size from which on optimising pays, {name}",
            value / sizes.LIGHT,
            "of LIGHT",
            f"LIGHT = {sizes.LIGHT:g} numbers, of all sites and times. Compiled quickly in {quick[-1].compilation:.1f} "
            f"s and run in {quick[-1].seconds:.2f} s at {SITES[-1]} sites of {per_site} numbers, thoroughly in "
            f"{thorough[-1].compilation:.1f} s and {thorough[-1].seconds:.2f} s",
            quick[-1].compilation + thorough[-1].compilation,
        )


def _timed(solver: Solver, values: dict[str, Any], light: float) -> list[Timing]:
    """CPU time of the training level with both numbers of sites, compiled quickly up to a size."""
    before, sizes.LIGHT = sizes.LIGHT, light
    try:
        runs = [partial(solve, solver, values, samples=sites, layers=(), certify=False) for sites in SITES]
        return [time_in_turns(run, repeats=3)[0] for run in runs]
    finally:
        sizes.LIGHT = before


def _slope(timings: list[Timing]) -> float:
    """Seconds of a run for each site."""
    return (timings[-1].seconds - timings[0].seconds) / (SITES[-1] - SITES[0])


def _at_zero(timings: list[Timing]) -> float:
    """Seconds of a run that do not depend on the number of sites."""
    return timings[0].seconds - _slope(timings) * SITES[0]


def _values(solver: Solver, changes: dict[str, int]) -> dict[str, Any]:
    """Default values with some of them changed, and normal numbers for the data."""
    values: dict[str, Any] = {q.name: q.default for q in solver.setting.parameters} | changes
    lengths = {**values, "times": solver.times(values)}
    rng = np.random.default_rng(0)
    return values | {d.name: rng.standard_normal([int(lengths[axis]) for axis in d.axes]) for d in solver.setting.data}
