"""Figures of a comparison for a report: the spectrum, and observables during training."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from numerics.plots.solutions import BLUE, ORANGE, draw_comparison
from numerics.support.labelled import single_draws, single_series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from numerics.simulation.samples import Samples
    from numerics.solution import Prediction

ACROSS = 2
"""Panels per row."""
NARROW = 4.2
"""Width of a figure for a small screen, in inches."""


def observables_size(solution: Prediction, across: int = ACROSS) -> tuple[float, float]:
    """Return width and height of a figure with one panel per observable, in inches."""
    return 7.2, 0.5 + 2.6 * math.ceil(len(single_series(solution.observables)) / across)


def draw_observables(solution: Prediction, simulation: Samples, across: int = ACROSS, figure: Any = None) -> Any:
    """Plot the theory as a line and the mean of the seeds with standard errors, one panel per observable.

    figure: a part of a figure to draw in; a new figure if None.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    series = single_series(solution.observables)
    names = list(series)
    across = min(across, len(names))
    down = math.ceil(len(names) / across)
    figure = figure or Figure(figsize=observables_size(solution, across), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for panel, name in zip(panels, names, strict=False):
        theory = np.atleast_1d(np.asarray(series[name], dtype=float))
        draws = np.asarray(single_draws(name, simulation.observables), dtype=float).reshape(-1, len(theory))
        times = np.arange(len(theory))
        shown = times[:: max(1, len(times) // 20)]
        error = draws.std(axis=0, ddof=1) / math.sqrt(len(draws))
        panel.plot(times, theory, "-" if len(times) > 1 else "D", color=BLUE, linewidth=1.8, label="theory")
        panel.errorbar(
            shown,
            draws.mean(axis=0)[shown],
            yerr=error[shown],
            fmt="o",
            markersize=4,
            markerfacecolor="white",
            color=ORANGE,
            capsize=2,
            linewidth=1.0,
            label="simulation, mean and standard error",
        )
        panel.set_title(name.replace("_", " "), fontsize=10)
        panel.set_xlabel("time")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def draw_spectrum(solution: Prediction, simulation: Samples, label: str) -> Figure:
    """Plot the spectrum of one layer."""
    return draw_comparison(replace(solution, layers=(solution.layer(label),)), simulation, "")


def narrowed(figure: Figure) -> Figure:
    """Return the figure for a small screen: narrower, with its legend in one column."""
    width, height = figure.get_size_inches()
    (legend,) = figure.legends
    legend.remove()
    known = [pair for axes in figure.axes for pair in zip(*axes.get_legend_handles_labels(), strict=True)]
    entries = {label: handle for handle, label in known}
    figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=1, frameon=False, fontsize=9)
    figure.set_size_inches(min(width, NARROW), height + 0.3)
    return figure


def picture(figure: Figure, kind: str) -> bytes:
    """Return the figure as "svg" or "pdf" without a date, so that the same figure gives the same bytes."""
    import matplotlib

    file = io.BytesIO()
    stamp = {"svg": "Date", "pdf": "CreationDate"}[kind]
    with matplotlib.rc_context({"svg.hashsalt": "two-level-dmft"}):
        figure.savefig(file, format=kind, metadata={stamp: None})
    return file.getvalue()
