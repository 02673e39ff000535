"""Results as pandas tables; pandas is imported on first use, because most commands never need it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.support.extras import optional

if TYPE_CHECKING:
    import pandas

Result = Any
"""A Solution, Simulation or Sweep, whose modules import this one."""


def columns_of(name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """Return an array over time and labels as one column per label: name, or name[0], name[1], ..."""
    if values.ndim == 1:
        return {name: values}
    flat = values.reshape(len(values), -1)
    labels = itertools.product(*(range(n) for n in values.shape[1:]))
    return {f"{name}[{','.join(map(str, label))}]": flat[:, k] for k, label in enumerate(labels)}


def frame_of_solution(solution: Result) -> pandas.DataFrame:
    pandas = optional("pandas")

    columns: dict[str, np.ndarray] = {}
    for name, series in solution.observables.items():
        columns |= columns_of(name, series)
        if solution.errors is not None:
            columns |= columns_of(f"{name}_error", solution.errors[name])
    for layer in solution.layers:
        if layer.largest_path is not None:
            columns[f"largest_{layer.label}" if layer.label else "largest"] = layer.largest_path
    frame = pandas.DataFrame({name: pandas.Series(values) for name, values in columns.items()})
    frame.index.name = "time"
    return frame


def frame_of_simulation(simulation: Result) -> pandas.DataFrame:
    pandas = optional("pandas")

    parts = []
    for seed in range(simulation.seeds):
        columns: dict[str, np.ndarray] = {}
        for name, values in simulation.observables.items():
            columns |= columns_of(name, values[seed])
        frame = pandas.DataFrame({name: pandas.Series(values) for name, values in columns.items()})
        frame.index.name = "time"
        parts.append(frame)
    return pandas.concat(parts, keys=range(simulation.seeds), names=["seed"])


def frame_of_sweep(sweep: Result) -> pandas.DataFrame:
    pandas = optional("pandas")

    return pandas.DataFrame(sweep.rows())
