"""Figures of a quantity along a grid of parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import ParameterError
from numerics.plots.solutions import BLUE, ORANGE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_sweep(
    axes: Mapping[str, Sequence[Any]], rows: Sequence[Mapping[str, Any]], quantity: str | None, title: str
) -> Figure:
    """Plot curves along one axis, or a heat map along two.

    quantity: a column of the rows; by default the largest eigenvalue, or else the first observable. Points that
    diverged are omitted. Curves have error bars, and compared quantities show the simulation too.
    """
    from matplotlib.figure import Figure

    columns = dict.fromkeys(key for row in rows for key, value in row.items() if isinstance(value, float))
    names = [key for key in columns if key not in axes]
    if quantity is None:
        wanted = ("outlier 1", "largest eigenvalue", "largest")
        candidates = (key for word in wanted for key in names if key.startswith(word) and "difference" not in key)
        quantity = next(candidates, names[0] if names else None)
    if quantity not in names:
        raise ParameterError(f"there is no {quantity!r} to draw; there are {', '.join(names) or 'no numbers'}")
    shape = tuple(len(values) for values in axes.values())
    if len(shape) not in (1, 2):
        raise ParameterError(f"a picture has one or two axes; this sweep has {len(shape)}")
    values = np.array([row.get(quantity, math.nan) for row in rows], float).reshape(shape)
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    panel = figure.subplots()
    (first, along), *rest = axes.items()
    if not rest:
        places = _places(along)
        spread = _column(rows, f"{quantity}_error")
        panel.errorbar(places, values, None if spread is None else spread, fmt="o-", color=BLUE, markersize=4)
        simulated = _column(rows, f"{quantity} (simulation)")
        if simulated is not None:
            panel.errorbar(places, simulated, _column(rows, f"{quantity} (error)"), fmt="s", color=ORANGE, markersize=4)
        panel.set_ylabel(quantity.replace("_", " "))
        _ticks(panel.xaxis, along)
    else:
        second, down = rest[0]
        mesh = panel.pcolormesh(_places(down), _places(along), values, shading="nearest")
        figure.colorbar(mesh, label=quantity.replace("_", " "))
        panel.set_ylabel(first)
        _ticks(panel.xaxis, down)
        _ticks(panel.yaxis, along)
        first = second
    panel.set_xlabel(first)
    panel.set_title(title, fontsize=10)
    return figure


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> np.ndarray | None:
    """Return a column of numbers; None if no row has it."""
    if not any(name in row for row in rows):
        return None
    return np.array([row.get(name, math.nan) for row in rows], float)


def _places(values: Sequence[Any]) -> np.ndarray:
    """Return axis positions of values: numbers as they are, words by index."""
    if all(isinstance(value, (int, float)) for value in values):
        return np.array(values, float)
    return np.arange(len(values), dtype=float)


def _ticks(axis: Any, values: Sequence[Any]) -> None:
    if not all(isinstance(value, (int, float)) for value in values):
        axis.set_ticks(range(len(values)), [str(value) for value in values])
