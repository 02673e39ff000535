"""Figures of theory against simulation, readable in print and without colour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from numerics.simulation.compare import OutlierMatch, at_atom, bulk_intervals, match, without_null_space

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from numerics.simulation.samples import Samples, SimulatedLayer
    from numerics.solution import Layer, Prediction

GREY, BLUE, ORANGE = "0.80", "#0072B2", "#D55E00"
Interval = tuple[float, float]
NARROW, LOW, MOST_GROUPS = 0.1, 0.1, 4
"""Relative width, and relative height, below which an interval gets its own axes; most axes."""
FAR = 30.0
"""Ratio of the distances of two outliers from the bulk above which they are drawn on a logarithmic axis."""
LONGEST_MATRIX = 60
"""Characters of LaTeX up to which the probed matrix is printed on an axis."""
Names = Mapping[str, str]
NO_NAMES: Names = MappingProxyType({})
WIDE = 6.0
"""Range of the plot, in widths of the bulk, above which the density gets its own axes."""


def comparison_size(solution: Prediction) -> tuple[float, float]:
    """Return width and height of a figure with one column per layer, in inches."""
    count = len(solution.layers)
    return 7.2 if count == 1 else 2.4 + 4.2 * count, 4.8


def draw_comparison(
    solution: Prediction, simulation: Samples, title: str, figure: Any = None, matrices: Names = NO_NAMES
) -> Any:
    """Plot one column per layer: above, the histogram of all seeds with the bulk law; below, the outliers of both.

    figure: a part of a figure to draw in; a new figure if None. matrices: LaTeX of probed matrices by layer.
    """
    from matplotlib.figure import Figure

    count = len(solution.layers)
    figure = figure or Figure(figsize=comparison_size(solution), layout="constrained")
    axes = figure.subplots(2, count, height_ratios=(4, 1), squeeze=False)
    for column, layer in enumerate(solution.layers):
        top, strip = axes[:, column]
        axis = eigenvalue_of(layer.label, matrices)
        _draw_layer(top, strip, solution, layer, simulation.layer(layer.label), axis)
        if layer.label:
            top.set_title(name_of_layer(layer.label), fontsize=10)
        if column:
            top.set_ylabel("")
            strip.set_yticklabels([])
    top, strip = max(axes.T, key=lambda pair: len(pair[1].get_legend_handles_labels()[0]))
    shown = [*(top.child_axes[:1] or [top]), strip]
    handles, labels = ([x for one in shown for x in one.get_legend_handles_labels()[k]] for k in range(2))
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=2,
        frameon=False,
        fontsize=9,
        title=wrapped(title, 92),
        title_fontsize=10,
    )
    return figure


def name_of_layer(label: str) -> str:
    """Return the name of a layer; a number is preceded by the word layer."""
    return f"layer {label}" if label.isdigit() else label


def eigenvalue_of(label: str, matrices: Names = NO_NAMES) -> str:
    """Return the label of an axis of eigenvalues: those of the probed matrix, as a formula if it is short."""
    tex = matrices.get(label, "")
    if tex and len(tex) <= LONGEST_MATRIX and can_be_drawn(tex):
        return f"eigenvalue of ${tex}$"
    return f"eigenvalue of {name_of_layer(label) if label else 'the probed matrix'}"


def can_be_drawn(tex: str) -> bool:
    """Return whether Matplotlib draws a formula."""
    from matplotlib.mathtext import MathTextParser

    try:
        MathTextParser("path").parse(f"${tex}$")
    except ValueError:
        return False
    return True


def wrapped(title: str, width: int) -> str:
    """Return a title broken into lines after commas or, without any, between words; formulas are not broken."""
    parts = [f"{part}," for part in title.split(", ")] if ", " in title else title.split(" ")
    parts[-1] = parts[-1].removesuffix(",") if ", " in title else parts[-1]
    lines = [""]
    for part in parts:
        length = sum(character not in "$\\{}_" for character in f"{lines[-1]} {part}")
        lines = [*lines, part] if lines[-1] and length > width else [*lines[:-1], f"{lines[-1]} {part}".strip()]
    return "\n".join(lines)


def _draw_layer(
    top: Axes, strip: Axes, solution: Prediction, layer: Layer, simulated: SimulatedLayer, axis: str
) -> None:
    spectra = simulated.all_eigenvalues("a histogram")
    matches = match(layer, spectra)
    intervals = bulk_intervals(layer.law.edges)
    eigenvalues = np.concatenate([np.asarray(e) for e in spectra])
    nonzero = layer.shift + without_null_space(eigenvalues - layer.shift)
    for at, _ in layer.atoms:
        nonzero = nonzero[~at_atom(nonzero, at)]
    theory = [one.theory for one in matches.outliers]
    drawn = [float(one.draws.mean()) for one in matches.outliers]
    low, high = (intervals[0][0], intervals[-1][1]) if intervals else (float(nonzero.min()), float(nonzero.max()))
    width = high - low
    span = (min([low, *theory, *drawn, *nonzero]), max([high, *theory, *drawn, *nonzero]))
    wide = span[1] - span[0] > WIDE * width

    view = (low - 0.15 * width, high + 0.15 * width) if wide else span

    def density_at(x: np.ndarray) -> np.ndarray:
        return np.asarray(solution.density(x, layer.label), dtype=float)

    groups, atoms = interval_groups(intervals, density_at), len(nonzero) < len(eigenvalues)
    last = top
    if len(groups) > 1:
        last = _draw_side_by_side(top, density_at, nonzero, len(eigenvalues), groups, atoms)
    else:
        _draw_density(top, density_at, nonzero, len(eigenvalues), intervals, view, atoms)
    _write_atoms(last, layer, simulated)
    _draw_outliers(strip, matches.outliers, intervals, span[1] - span[0])
    _pad(strip, span)
    if intervals and are_spread([*theory, *drawn], (low, high)):
        _stretch(strip, span, (low, high))
    if len(groups) == 1 and wide:
        top.set_xlim(*view)
        top.set_xlabel(f"{axis}, bulk only")
    elif len(groups) == 1:
        top.set_xlim(strip.get_xlim())
        top.tick_params(labelbottom=False)
    strip.set_xlabel(axis)


def are_spread(outliers: list[float], bulk: Interval) -> bool:
    """Return whether some outliers are so far from the bulk that the others would merge on a linear axis."""
    away = sorted(abs(z - (bulk[0] + bulk[1]) / 2) for z in outliers)
    return len(away) > 1 and away[-1] > FAR * away[0]


def _stretch(axes: Axes, span: Interval, bulk: Interval) -> None:
    """Make an axis of eigenvalues linear in the bulk and logarithmic beyond it."""
    linear = max(abs(bulk[0]), abs(bulk[1]))
    axes.set_xscale("symlog", linthresh=linear, linscale=1.0)
    left = span[0] - 0.15 * linear if abs(span[0]) <= linear else 1.5 * span[0]
    axes.set_xlim(left, 1.5 * span[1] if span[1] > linear else span[1] + 0.15 * linear)


def interval_groups(intervals: list[Interval], density_at: Callable[..., Any]) -> list[list[Interval]]:
    """Return the intervals of the bulk grouped by axes: all together, unless one would be too narrow or too low to see.

    Otherwise they are split at their widest gaps, relative to the neighbouring intervals, into at most four groups.
    """
    if len(intervals) < 2:
        return [intervals]
    widths = [high - low for low, high in intervals]
    heights = [float(np.max(density_at(np.linspace(low, high, 11)[1:-1]))) for low, high in intervals]
    if min(widths) > NARROW * (intervals[-1][1] - intervals[0][0]) and min(heights) > LOW * max(heights):
        return [intervals]
    gaps = [
        (right[0] - left[1]) / min(a, b)
        for left, right, a, b in zip(intervals[:-1], intervals[1:], widths[:-1], widths[1:], strict=True)
    ]
    cuts = sorted(np.argsort(gaps)[::-1][: MOST_GROUPS - 1] + 1)
    return [intervals[a:b] for a, b in zip([0, *cuts], [*cuts, len(intervals)], strict=True)]


def _draw_side_by_side(
    axes: Axes,
    density_at: Callable[..., Any],
    nonzero: np.ndarray,
    total: int,
    groups: list[list[Interval]],
    atoms: bool,
) -> Axes:
    """Plot one axes per group of intervals, each with its own scale and fraction of eigenvalues; return the last."""
    axes.set_axis_off()
    share, space = 1 / len(groups), 0.11 / len(groups) + 0.03
    middles = [-np.inf, *((a[-1][1] + b[0][0]) / 2 for a, b in zip(groups[:-1], groups[1:], strict=True)), np.inf]
    for number, group in enumerate(groups):
        inset = axes.inset_axes((number * share + (space if number else 0.0), 0.0, share - (space if number else 0), 1))
        inside = nonzero[(nonzero > middles[number]) & (nonzero <= middles[number + 1])]
        low, high = group[0][0], group[-1][1]
        margin = 0.15 * (high - low)
        view = (max(low - margin, middles[number]), min(high + margin, middles[number + 1]))
        _draw_density(inset, density_at, inside, total, group, view, atoms)
        inset.set_xlim(*view)
        inset.set_title(f"{100 * len(inside) / total:.3g} % of the eigenvalues", fontsize=9, loc="right")
        inset.locator_params(axis="x", nbins=5)
        inset.ticklabel_format(axis="y", scilimits=(-2, 4))
        if number:
            inset.set_ylabel("")
    return inset


def _write_atoms(axes: Axes, layer: Layer, simulated: SimulatedLayer) -> None:
    """Write the weights of point masses as text."""
    lines = []
    for at, weight in layer.atoms:
        seen = np.mean([np.mean(at_atom(np.asarray(e), at)) for e in simulated.eigenvalues])
        lines.append(f"atom at {at:.4g}: weight {weight:.4g}\nin simulation {seen:.4g}")
    if lines:
        axes.text(0.99, 0.97, "\n".join(lines), transform=axes.transAxes, ha="right", va="top", fontsize=8)


def _pad(axes: Axes, span: tuple[float, float]) -> None:
    margin = 0.05 * (span[1] - span[0])
    axes.set_xlim(span[0] - margin, span[1] + margin)


def histogram_bins(values: np.ndarray, intervals: list[Interval], view: Interval) -> np.ndarray:
    """Return bin edges aligned to the intervals, with a resolution that follows the number of eigenvalues in each."""
    pieces = intervals or [view]
    ends: list[np.ndarray] = []
    steps = []
    for low, high in pieces:
        count = np.count_nonzero((values >= low) & (values <= high))
        bins = int(np.clip(0.7 * np.sqrt(count), 8, 80))
        ends.append(np.linspace(low, high, bins + 1))
        steps.append((high - low) / bins)
    parts = [pieces[0][0] - steps[0] * np.arange(np.ceil(max(pieces[0][0] - view[0], 0) / steps[0]) + 1, 0, -1)]
    for k, inside in enumerate(ends):
        parts.append(inside)
        if k + 1 < len(ends):
            gap = pieces[k + 1][0] - pieces[k][1]
            parts.append(np.linspace(pieces[k][1], pieces[k + 1][0], int(np.clip(gap / min(steps), 1, 80)) + 1)[1:-1])
    last = pieces[-1][1]
    parts.append(last + steps[-1] * np.arange(1, np.ceil(max(view[1] - last, 0) / steps[-1]) + 2))
    return np.unique(np.concatenate(parts))


def bulk_curve(low: float, high: float, density_at: Callable[[np.ndarray], Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the density of an interval on a grid refined at the edges, where it behaves like a square root.

    The curve ends at zero at an edge where the density vanishes, and above it where the density diverges.
    """
    x = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(np.linspace(0.0, np.pi, 402))
    y = np.asarray(density_at(x), dtype=float)
    falls = [y[1] < y[2], *[True] * (len(x) - 2), y[-2] < y[-3]]
    return x[falls], y[falls]


def _draw_density(
    axes: Axes,
    density_at: Callable[[np.ndarray], np.ndarray],
    nonzero: np.ndarray,
    total: int,
    intervals: list[Interval],
    view: Interval,
    atoms: bool,
) -> None:
    edges = histogram_bins(nonzero, intervals, view)
    counts, edges = np.histogram(nonzero, bins=edges)
    density = counts / (total * np.diff(edges))
    axes.stairs(
        density,
        edges,
        fill=True,
        color=GREY,
        label="simulation, all seeds" + (", without atoms" if atoms else ""),
    )
    axes.stairs(density, edges, color="0.45", linewidth=0.6)
    highest = 0.0
    for number, (left, right) in enumerate(intervals):
        x, y = bulk_curve(left, right, density_at)
        axes.plot(x, y, color=BLUE, linewidth=1.8, label="theory, bulk law" if number == 0 else None)
        highest = max(highest, float(np.nanmax(y[10:-10])))
    axes.set_ylim(0.0, 1.12 * max(density.max(initial=0.0), min(highest, 1.5 * density.max(initial=0.0))) or 1.0)
    axes.set_ylabel("density of eigenvalues")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_outliers(axes: Axes, outliers: tuple[OutlierMatch, ...], intervals: list[Interval], shown: float) -> None:
    for left, right in intervals:
        axes.axvspan(left, right, color=GREY, linewidth=0)
    if intervals:
        left, right = max(intervals, key=lambda pair: pair[1] - pair[0])
        if right - left > 0.08 * shown:
            axes.annotate("bulk", ((left + right) / 2, 0.5), ha="center", va="center", fontsize=9, color="0.2")
    for number, one in enumerate(outliers):
        first = number == 0
        axes.errorbar(
            [one.theory],
            [1.0],
            xerr=None if one.error is None else [one.error],
            fmt="D",
            markersize=7,
            color=BLUE,
            markerfacecolor="white",
            markeredgewidth=1.6,
            capsize=3,
            label="theory, outliers" if first else None,
        )
        axes.plot(
            one.draws,
            np.zeros_like(one.draws),
            "|",
            markersize=11,
            color=ORANGE,
            label="simulation, outlier of each seed" if first else None,
        )
    axes.set_ylim(-0.6, 1.6)
    axes.set_yticks([0.0, 1.0], ["simulation", "theory"])
    axes.spines[["top", "right"]].set_visible(False)
