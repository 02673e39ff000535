"""Figures of a solution, of samples, and of both: spectra, paths of outliers, observables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from numerics.plots.report import draw_observables, observables_size
from numerics.plots.solutions import (
    BLUE,
    GREY,
    NO_NAMES,
    ORANGE,
    WIDE,
    Names,
    bulk_curve,
    comparison_size,
    draw_comparison,
    eigenvalue_of,
    name_of_layer,
    wrapped,
)
from numerics.support.labelled import single_series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from numerics.simulation.samples import Samples
    from numerics.solution import Layer, Prediction

ACROSS = 3
"""Panels per row."""
MOST_NAMED = 3
"""Outliers that a legend names."""


def panels(count: int, title: str) -> tuple[Figure, list[Axes]]:
    """Return a figure with `count` panels, and its axes."""
    from matplotlib.figure import Figure

    across = max(1, min(ACROSS, count))
    down = max(1, math.ceil(count / across))
    figure = Figure(figsize=(3.6 * across + 0.6, 2.8 * down + 0.4), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).ravel())
    for spare in axes[count:]:
        spare.set_axis_off()
    figure.suptitle(wrapped(title, 34 * across), fontsize=10)
    return figure, axes[:count]


def draw_solution(solution: Prediction, title: str, matrices: Names = NO_NAMES) -> Figure:
    """Plot, per layer, the law of the bulk with the outliers and their path, if computed; then the observables."""
    series = single_series(solution.observables)
    followed = [layer for layer in solution.layers if layer.outlier_path is not None and len(layer.outlier_path) > 1]
    figure, axes = panels(len(solution.layers) + len(followed) + len(series), title)
    places = iter(axes)
    for layer in solution.layers:
        _draw_law(next(places), layer, eigenvalue_of(layer.label, matrices))
    for layer in followed:
        _draw_path(next(places), layer, eigenvalue_of(layer.label, matrices))
    spreads = single_series(solution.errors or {})
    for name, values in series.items():
        _draw_series(next(places), name, values, spreads.get(name))
    return figure


def draw_simulation(simulation: Samples, title: str, matrices: Names = NO_NAMES) -> Figure:
    """Plot, per layer, a histogram of the eigenvalues of all seeds; then the means of the observables with their
    errors."""
    means = {name: values.mean(axis=0) for name, values in simulation.observables.items()}
    series = single_series(means)
    figure, axes = panels(len(simulation.layers) + len(series), title)
    places = iter(axes)
    for layer in simulation.layers:
        panel = next(places)
        panel.hist(np.concatenate(layer.all_eigenvalues("a histogram")), bins=60, density=True, color=GREY)
        _label(panel, _of("spectrum", layer.label), eigenvalue_of(layer.label, matrices), "density")
    spreads = single_series({name: simulation.stderr(name) for name in means})
    for name, values in series.items():
        _draw_series(next(places), name, values, spreads[name])
    return figure


def draw_both(solution: Prediction, simulation: Samples, title: str, matrices: Names = NO_NAMES) -> Figure:
    """Plot theory against simulation: the spectra of probed matrices, and below them the observables."""
    from matplotlib.figure import Figure

    if not solution.layers:
        figure: Figure = draw_observables(solution, simulation)
        figure.suptitle(wrapped(title, 92), fontsize=10)
        return figure
    if not solution.observables:
        figure = draw_comparison(solution, simulation, title, matrices=matrices)
        return figure
    spectra, observed = (comparison_size(solution), observables_size(solution))
    figure = Figure(figsize=(max(spectra[0], observed[0]), spectra[1] + observed[1]), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=(spectra[1], observed[1]))
    draw_comparison(solution, simulation, title, parts[0], matrices)
    draw_observables(solution, simulation, figure=parts[1])
    return figure


def _draw_law(panel: Axes, layer: Layer, axis: str) -> None:
    """Plot the density of the bulk, and the outliers as diamonds on the axis.

    If they are so far away that the bulk would shrink to a line, the axis ends next to the bulk, and a legend lists
    them.
    """
    top = 0.0
    for low, high in layer.bulk_edges:
        x, y = bulk_curve(low, high, layer.law.density)
        panel.fill_between(x, y, color=GREY)
        panel.plot(x, y, color=BLUE)
        top = max(top, float(np.max(y[20:-20])))
    outliers, edges = np.asarray(layer.outliers, float), np.asarray(layer.bulk_edges, float)
    near = np.ones(len(outliers), bool)
    if edges.size:
        low, high = edges.min(), edges.max()
        near = (outliers < high + WIDE * (high - low)) & (outliers > low - WIDE * (high - low))
    if near.any():
        panel.plot(outliers[near], np.zeros(near.sum()), "D", color=ORANGE, clip_on=False, label="outliers")
    if not near.all():
        named = ", ".join(f"{z:.4g}" for z in outliers[~near][:MOST_NAMED]) + (
            " ..." if sum(~near) > MOST_NAMED else ""
        )
        panel.plot([], [], linestyle="", marker=">", color=ORANGE, label=f"off this axis: {named}")
    if len(outliers):
        panel.legend(frameon=False, fontsize=8)
    panel.set_ylim(0.0, 1.15 * top or 1.0)
    _label(panel, _of("spectrum", layer.label), axis, "density")


def _draw_path(panel: Axes, layer: Layer, axis: str) -> None:
    """Plot the outliers during training over the bulk as a band."""
    path = layer.outlier_path or ()
    draw_bulk_path(panel, layer, len(path))
    for time, now in enumerate(path):
        panel.plot([time] * len(now), now, "o", color=BLUE, markersize=3)
    panel.set_xlim(-0.5, len(path) - 0.5)
    low, high = panel.get_ylim()
    panel.set_ylim(low, high + 0.15 * (high - low))  # room for the legend above the outliers
    _label(panel, _of("outliers", layer.label), "time", axis)


def draw_bulk_path(panel: Axes, layer: Layer, times: int) -> None:
    """Plot the bulk of each time as a band with steps half-way between two times."""
    label = "bulk, the same at all times" if layer.bulk_path is None else "bulk at each time"
    bars = [(time, low, high) for time in range(times) for low, high in layer.bulk_at(time)]
    if bars:
        when, lows, highs = np.array(bars).T
        panel.bar(when, highs - lows, 1.0, lows, color=GREY, linewidth=0, label=label)
        panel.use_sticky_edges = False
        panel.legend(frameon=False, fontsize=8, loc="upper left")


def _draw_series(panel: Axes, name: str, values: Any, errors: Any) -> None:
    y = np.atleast_1d(np.asarray(values, float))
    times = np.arange(len(y))
    if errors is None:
        panel.plot(times, y, "-" if len(y) > 1 else "D", color=BLUE)
    else:
        panel.errorbar(times, y, np.asarray(errors, float), color=BLUE, capsize=2, marker="o", markersize=3)
    _label(panel, name.replace("_", " "), "time", "")


def _label(panel: Axes, title: str, x: str, y: str) -> None:
    from matplotlib.ticker import MaxNLocator

    panel.set_title(title, fontsize=10)
    panel.set_xlabel(x)
    if x == "time":
        panel.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    panel.set_ylabel(y)
    panel.spines[["top", "right"]].set_visible(False)


def _of(what: str, label: str) -> str:
    return f"{what} of {name_of_layer(label)}" if label else what
