"""Pictures of theory against simulation, readable in print and without colour."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from derive.errors import DeriveError
from numerics.compare import bulk_intervals, match, without_null_space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numerics.simulation import SimulatedLayer, Simulation
    from numerics.solver import Layer, Solution

GREY, BLUE, ORANGE = "0.80", "#0072B2", "#D55E00"
WIDE = 6.0
"""Above this many bulk widths the density gets an axis of its own, or it would shrink to a line."""


def save_comparison(path: Path, solution: Solution, simulation: Simulation, title: str) -> None:
    """Write the picture; the file type follows the name."""
    figure = draw_comparison(solution, simulation, title)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise DeriveError(f"cannot write {path} ({error.strerror}); choose another file for --plot") from None


def draw_comparison(solution: Solution, simulation: Simulation, title: str) -> Figure:
    """One column a layer. Above: histogram of all seeds with the bulk law. Below: outliers of theory and simulation."""
    from matplotlib.figure import Figure

    count = len(solution.layers)
    figure = Figure(figsize=(7.2 if count == 1 else 2.4 + 4.2 * count, 4.8), layout="constrained")
    axes = figure.subplots(2, count, height_ratios=(4, 1), squeeze=False)
    for column, layer in enumerate(solution.layers):
        top, strip = axes[:, column]
        _draw_layer(top, strip, solution, layer, simulation.layer(layer.label))
        if layer.label:
            top.set_title(f"layer {layer.label}", fontsize=10)
        if column:
            top.set_ylabel("")
            strip.set_yticklabels([])
    top, strip = max(axes.T, key=lambda pair: len(pair[1].get_legend_handles_labels()[0]))
    handles = [*top.get_legend_handles_labels()[0], *strip.get_legend_handles_labels()[0]]
    labels = [*top.get_legend_handles_labels()[1], *strip.get_legend_handles_labels()[1]]
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=2,
        frameon=False,
        fontsize=9,
        title=textwrap.fill(title, 92),
        title_fontsize=10,
    )
    return figure


def _draw_layer(top: Axes, strip: Axes, solution: Solution, layer: Layer, simulated: SimulatedLayer) -> None:
    matches = match(layer, simulated.eigenvalues)
    intervals = bulk_intervals(layer.bulk_edges)
    eigenvalues = np.concatenate([np.asarray(e) for e in simulated.eigenvalues])
    nonzero = layer.shift + without_null_space(eigenvalues - layer.shift)
    theory = [value for _, value, _, _ in matches.outliers]
    drawn = [float(draws.mean()) for _, _, _, draws in matches.outliers]
    low, high = (intervals[0][0], intervals[-1][1]) if intervals else (float(nonzero.min()), float(nonzero.max()))
    width = high - low
    span = (min([low, *theory, *drawn, *nonzero]), max([high, *theory, *drawn, *nonzero]))
    wide = span[1] - span[0] > WIDE * width

    view = (low - 0.15 * width, high + 0.15 * width) if wide else span
    _draw_density(top, lambda x: solution.density(x, layer.label), nonzero, len(eigenvalues), intervals, view)
    _draw_outliers(strip, matches.outliers, intervals, span[1] - span[0])
    if wide:
        top.set_xlim(*view)
        top.set_xlabel("eigenvalue, bulk only")
        _pad(strip, span)
    else:
        _pad(strip, span)
        top.set_xlim(strip.get_xlim())
        top.tick_params(labelbottom=False)
    strip.set_xlabel("eigenvalue")


def _pad(axes: Axes, span: tuple[float, float]) -> None:
    margin = 0.05 * (span[1] - span[0])
    axes.set_xlim(span[0] - margin, span[1] + margin)


def _draw_density(
    axes: Axes,
    density_at: Callable[[np.ndarray], np.ndarray],
    nonzero: np.ndarray,
    total: int,
    intervals: list[tuple[float, float]],
    view: tuple[float, float],
) -> None:
    low, high = (intervals[0][0], intervals[-1][1]) if intervals else view
    bins = int(np.clip(0.7 * np.sqrt(total), 20, 80))
    step = (high - low) / bins
    edges = np.arange(
        low - step * np.ceil(max(low - view[0], 0) / step + 1),
        high + step * (np.ceil(max(view[1] - high, 0) / step) + 1.5),
        step,
    )
    counts, edges = np.histogram(nonzero, bins=edges)
    density = counts / (total * step)
    axes.stairs(
        density,
        edges,
        fill=True,
        color=GREY,
        label="simulation, all seeds" + (", without zeros" if len(nonzero) < total else ""),
    )
    axes.stairs(density, edges, color="0.45", linewidth=0.6)
    highest = 0.0
    for number, (left, right) in enumerate(intervals):
        # points crowd at the edges, where the density rises like a root
        angle = np.linspace(0.0, np.pi, 402)[1:-1]
        x = 0.5 * (left + right) - 0.5 * (right - left) * np.cos(angle)
        y = np.asarray(density_at(x), dtype=float)
        axes.plot(x, y, color=BLUE, linewidth=1.8, label="theory, bulk law" if number == 0 else None)
        highest = max(highest, float(np.nanmax(y[10:-10])))
    axes.set_ylim(0.0, 1.12 * max(density.max(initial=0.0), min(highest, 1.5 * density.max(initial=0.0))) or 1.0)
    axes.set_ylabel("density of eigenvalues")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_outliers(axes: Axes, outliers: tuple, intervals: list[tuple[float, float]], shown: float) -> None:
    for left, right in intervals:
        axes.axvspan(left, right, color=GREY, linewidth=0)
    if intervals:
        left, right = max(intervals, key=lambda pair: pair[1] - pair[0])
        if right - left > 0.08 * shown:
            axes.annotate("bulk", ((left + right) / 2, 0.5), ha="center", va="center", fontsize=9, color="0.2")
    for number, (_, value, error, draws) in enumerate(outliers):
        first = number == 0
        axes.errorbar(
            [value],
            [1.0],
            xerr=None if error is None else [error],
            fmt="D",
            markersize=7,
            color=BLUE,
            markerfacecolor="white",
            markeredgewidth=1.6,
            capsize=3,
            label="theory, outliers" if first else None,
        )
        axes.plot(
            draws,
            np.zeros_like(draws),
            "|",
            markersize=11,
            color=ORANGE,
            label="simulation, outlier of each seed" if first else None,
        )
    axes.set_ylim(-0.6, 1.6)
    axes.set_yticks([0.0, 1.0], ["simulation", "theory"])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
