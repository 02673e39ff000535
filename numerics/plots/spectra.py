"""Figures of trained matrices: the bulk with its fitted law and outliers; many matrices over depth."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numerics.plots.solutions import BLUE, GREY, ORANGE, WIDE
from numerics.spectra.changes import Change
from numerics.spectra.fitting import EXTENSIVE, FITS, NEARLY, FittedSpectrum, marchenko_pastur_density
from numerics.spectra.kinds import by_kind, kind_and_depth
from numerics.spectra.theory import TheoryComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREEN = "#009E73"
MARKS = {FITS: ("o", BLUE), NEARLY: ("s", BLUE), EXTENSIVE: ("D", GREEN)}
"""Marker and colour of the largest singular value by the law of the matrix; crosses for neither."""

MOST_PANELS = 12
"""Number of matrices up to which each has its own panel; more are plotted over depth, one panel per kind."""


def draw_spectra(
    spectra: Sequence[FittedSpectrum],
    comparisons: Sequence[TheoryComparison] = (),
    title: str = "",
    changes: Sequence[Change] = (),
) -> Figure:
    """Plot, for each matrix, the histogram of singular values with the fitted law, and the outliers below.

    Many matrices are plotted over depth instead. With changes, the spectrum before is plotted too.
    """
    if len(spectra) > MOST_PANELS:
        return draw_over_depth(spectra, title, changes)
    return _draw_panels(spectra, comparisons or [None] * len(spectra), title, {one.name: one.before for one in changes})


def _draw_panels(
    spectra: Sequence[FittedSpectrum],
    comparisons: Sequence[TheoryComparison | None],
    title: str,
    before: Mapping[str, FittedSpectrum],
) -> Figure:
    from matplotlib.figure import Figure

    across = min(len(spectra), 1 if len(spectra) == 1 else 2 if len(spectra) <= 4 else 3 if len(spectra) <= 12 else 4)
    down = math.ceil(len(spectra) / across)
    single = across == 1
    figure = Figure(
        figsize=(7.2 if single else 4.4 * across, 0.7 + (4.2 if single else 3.3) * down), layout="constrained"
    )
    grid = np.atleast_2d(figure.subfigures(down, across, squeeze=False))
    labels: dict[str, Any] = {}
    for place, (spectrum, comparison) in enumerate(zip(spectra, comparisons, strict=True)):
        panel = grid[place // across, place % across]
        density, strip = panel.subplots(2, 1, height_ratios=(4, 1 if comparison is None else 1.6))
        _draw_panel(density, strip, spectrum, comparison, before.get(spectrum.name))
        if place % across:
            density.set_ylabel("")
        for axes in (density, strip):
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                labels.setdefault(label, handle)
    figure.legend(
        list(labels.values()),
        list(labels),
        loc="outside upper center",
        ncols=2 if across == 1 else 4,
        frameon=False,
        fontsize=9,
        title=textwrap.fill(title, 92 if across < 3 else 150),
        title_fontsize=10,
    )
    return figure


def _draw_panel(
    density: Axes,
    strip: Axes,
    spectrum: FittedSpectrum,
    comparison: TheoryComparison | None,
    before: FittedSpectrum | None,
) -> None:
    low, high = spectrum.singular_edges
    width = high - low
    values = spectrum.singular_values
    theory = _theory_values(spectrum, comparison)
    earlier = [] if before is None else [float(before.singular_values[0]), float(before.singular_values[-1])]
    span = (min([low, float(values[-1]), *theory, *earlier]), max([high, float(values[0]), *theory, *earlier]))
    wide = span[1] - span[0] > WIDE * width
    view = (max(0.0, low - 0.15 * width), high + 0.15 * width) if wide else span
    _draw_density(density, spectrum, view, before)
    _draw_strip(strip, spectrum, theory, comparison is not None)
    for axes, (left, right) in ((density, view), (strip, span)):
        margin = 0.05 * (right - left)
        axes.set_xlim(left - margin, right + margin)
        axes.spines[["top", "right"]].set_visible(False)
    if wide:
        density.set_xlabel("bulk only", fontsize=8)
    else:
        density.tick_params(labelbottom=False)
    strip.set_xlabel(r"singular value of $W/\sqrt{\mathrm{columns}}$", fontsize=9)
    density.tick_params(labelsize=8)
    strip.tick_params(labelsize=8)
    law = "fits" if spectrum.picture == FITS else spectrum.picture
    fit = spectrum.extensive
    distance = fit.distance if fit is not None and fit.fits else spectrum.distance
    name = spectrum.name if len(spectrum.name) <= 44 else "..." + spectrum.name[-41:]
    density.set_title(
        f"{name}\n{spectrum.rows} x {spectrum.columns}, bulk {law} (KS {distance:.2g}), "
        f"{len(spectrum.outliers)} beyond",
        fontsize=9,
    )


def _theory_values(spectrum: FittedSpectrum, comparison: TheoryComparison | None) -> list[float]:
    """Return the outliers of the theory as singular values of this matrix."""
    if comparison is None:
        return []
    return [math.sqrt(value / comparison.factor * spectrum.aspect_ratio) for value in comparison.theory.outliers]


def _draw_density(
    axes: Axes, spectrum: FittedSpectrum, view: tuple[float, float], before: FittedSpectrum | None
) -> None:
    low, high = spectrum.singular_edges
    values = spectrum.singular_values
    count = len(values)
    step = (high - low) / int(np.clip(0.7 * np.sqrt(count), 12, 60))
    bins = np.arange(
        low - step * math.ceil(max(low - view[0], 0.0) / step),
        high + step * (math.ceil(max(view[1] - high, 0.0) / step) + 1.5),
        step,
    )
    heights = np.histogram(values, bins=bins)[0] / (count * step)
    axes.stairs(heights, bins, fill=True, color=GREY, label="singular values")
    axes.stairs(heights, bins, color="0.45", linewidth=0.6)
    longer, shorter = max(spectrum.rows, spectrum.columns), min(spectrum.rows, spectrum.columns)
    unit = spectrum.scale * math.sqrt(longer / spectrum.columns)
    angle = np.linspace(0.0, np.pi, 402)[1:-1]
    x = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle)
    rest = 1.0 - len(spectrum.outliers) / count
    y = rest * marchenko_pastur_density(x / unit, shorter / longer) / unit
    axes.plot(x, y, color=BLUE, linewidth=1.8, label="Marchenko-Pastur, fitted")
    if spectrum.extensive is not None:
        inside = np.linspace(*view, 400)[1:]
        law = spectrum.extensive.density(inside)
        axes.plot(inside, law, color=GREEN, linewidth=1.6, linestyle="--", label="extensive step, fitted")
    highest = max(float(heights.max(initial=0.0)), float(y.max()))
    if before is not None:
        earlier = np.histogram(before.singular_values, bins=bins)[0] / (len(before.singular_values) * step)
        axes.stairs(earlier, bins, color="black", linewidth=1.0, linestyle=":", label="before")
        highest = max(highest, float(earlier.max(initial=0.0)))
    axes.set_ylim(0.0, 1.12 * highest)
    axes.set_ylabel("density", fontsize=9)


def _draw_strip(axes: Axes, spectrum: FittedSpectrum, theory: list[float], compared: bool) -> None:
    axes.axvspan(*spectrum.singular_edges, color=GREY, linewidth=0)
    outliers = np.array([outlier.singular_value for outlier in spectrum.outliers])
    spread = np.array([outlier.error or 0.0 for outlier in spectrum.outliers])
    if len(outliers):
        axes.errorbar(
            outliers,
            np.zeros_like(outliers),
            xerr=spread,
            fmt="|",
            markersize=11,
            color=ORANGE,
            elinewidth=0.8,
            label="beyond the edge",
        )
    if theory:
        axes.plot(
            theory,
            np.ones(len(theory)),
            "D",
            markersize=6,
            color=BLUE,
            markerfacecolor="white",
            markeredgewidth=1.6,
            label="theory, outliers",
        )
    axes.set_ylim(-0.6, 1.6 if compared else 0.6)
    axes.set_yticks([0.0, 1.0] if compared else [0.0], ["matrix", "theory"] if compared else ["matrix"])


# Many matrices


def draw_over_depth(spectra: Sequence[FittedSpectrum], title: str, changes: Sequence[Change] = ()) -> Figure:
    """Plot one panel per kind of matrix over depth: the bulk as a band, outliers as dots, the largest marked according
    to its law.

    Values are relative to the upper edge of the same matrix. Kinds with a single matrix share the last panel.
    """
    from matplotlib.figure import Figure

    known, before = {one.name: one for one in spectra}, {one.name: one.before for one in changes}
    kinds = by_kind(known)
    deep = {kind: [known[name] for name in names] for kind, names in kinds.items() if len(names) > 1}
    alone = [known[names[0]] for names in kinds.values() if len(names) == 1]
    across = min(max(len(deep), 1), 2 if len(deep) <= 4 else 3)
    down = math.ceil(len(deep) / across)
    tall = 0.9 + 0.24 * len(alone) if alone else 0.0
    figure = Figure(figsize=(4.6 * max(across, 2), 0.9 + 2.7 * down + tall), layout="constrained")
    heights = [height for height in (2.7 * down, tall) if height]
    parts: list[Any] = list(np.atleast_1d(figure.subfigures(len(heights), 1, height_ratios=heights)))  # type: ignore[arg-type]
    if deep:
        grid = parts[0].subplots(down, across, squeeze=False, sharey=True)
        for axes, (kind, members) in zip(grid.flat, deep.items(), strict=False):
            places = [float(kind_and_depth(one.name)[1] or 0) for one in members]
            _draw_column(axes, places, members, before, upright=True)
            axes.set_title(textwrap.fill(kind, 52, break_on_hyphens=False), fontsize=8)
            axes.set_xlabel("depth", fontsize=8)
            axes.xaxis.get_major_locator().set_params(integer=True)
        for axes in grid[:, 0]:
            axes.set_ylabel("singular value / edge", fontsize=8)
        for axes in list(grid.flat)[len(deep) :]:
            axes.set_visible(False)
    if alone:
        axes = parts[-1].subplots()
        rows = [float(-place) for place in range(len(alone))]
        _draw_column(axes, rows, alone, before, upright=False)
        axes.set_yticks(rows, [one.name for one in alone], fontsize=7)
        axes.set_ylim(rows[-1] - 0.7, 0.7)
        axes.set_xlim(left=0.0)
        axes.set_xlabel("singular value / edge", fontsize=8)
    labels: dict[str, Any] = {}
    for part in figure.subfigs:
        for axes in part.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                labels.setdefault(label, handle)
    figure.legend(
        list(labels.values()),
        list(labels),
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=8,
        title=textwrap.fill(title, 100),
        title_fontsize=10,
    )
    return figure


def _draw_column(
    axes: Axes,
    places: Sequence[float],
    members: Sequence[FittedSpectrum],
    before: Mapping[str, FittedSpectrum],
    upright: bool,
) -> None:
    """Plot matrices side by side, along x if upright, along y otherwise."""

    def put(where: Sequence[float], values: Sequence[float], **how: Any) -> None:
        axes.plot(*((where, values) if upright else (values, where)), **how)

    for place, one in zip(places, members, strict=True):
        low, high = one.singular_edges
        bar = axes.bar if upright else axes.barh
        bar(place, 1.0 - low / high, 0.8, low / high, color=GREY, linewidth=0, label="bulk of the fitted noise")
        beyond = [outlier.edge_ratio for outlier in one.outliers if outlier.side == "above"]
        put([place] * len(beyond), beyond, linestyle="", marker=".", markersize=3, color=ORANGE, label="above the edge")
        if one.name in before:
            put(
                [place], [before[one.name].top], linestyle="", marker="_" if upright else "|", markersize=10,
                color="black", label="largest, before",
            )  # fmt: skip
        mark, colour = MARKS.get(one.picture, ("x", "black"))
        put(
            [place], [one.top], linestyle="", marker=mark, markersize=4.5, color=colour, label=f"largest: {one.picture}"
        )
    scale = axes.set_yscale if upright else axes.set_xscale
    if max(one.top for one in members) > WIDE:
        scale("symlog", linthresh=1.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)
