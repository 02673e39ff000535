"""Pictures of trained matrices: the bulk with its law, and what lies beyond, one panel a matrix."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import DeriveError
from numerics.plots.solutions import BLUE, GREY, ORANGE, WIDE
from numerics.spectra.fitting import FITS, Spectrum, marchenko_pastur_density
from numerics.spectra.theory import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 48
"""How many matrices one picture can show and still be read."""


def save_spectra(path: Path, spectra: Sequence[Spectrum], comparisons: Sequence[Comparison | None], title: str) -> None:
    """Write the picture; the file type follows the name."""
    figure = draw_spectra(spectra, comparisons, title)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise DeriveError(f"cannot write {path} ({error.strerror}); choose another file for --plot") from None


def draw_spectra(spectra: Sequence[Spectrum], comparisons: Sequence[Comparison | None], title: str) -> Figure:
    """For each matrix, above the histogram of singular values with the fitted law, below the outliers on a line."""
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
        _draw_panel(density, strip, spectrum, comparison)
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


def _draw_panel(density: Axes, strip: Axes, spectrum: Spectrum, comparison: Comparison | None) -> None:
    low, high = spectrum.singular_edges
    width = high - low
    values = spectrum.singular_values
    theory = _theory_values(spectrum, comparison)
    span = (min([low, float(values[-1]), *theory]), max([high, float(values[0]), *theory]))
    wide = span[1] - span[0] > WIDE * width
    view = (max(0.0, low - 0.15 * width), high + 0.15 * width) if wide else span
    _draw_density(density, spectrum, view)
    _draw_strip(strip, spectrum, theory, comparison is not None)
    for axes, (left, right) in ((density, view), (strip, span)):
        margin = 0.05 * (right - left)
        axes.set_xlim(left - margin, right + margin)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    if wide:
        density.set_xlabel("bulk only", fontsize=8)
    else:
        density.tick_params(labelbottom=False)
    strip.set_xlabel(r"singular value of $W/\sqrt{\mathrm{columns}}$", fontsize=9)
    density.tick_params(labelsize=8)
    strip.tick_params(labelsize=8)
    law = "fits" if spectrum.verdict == FITS else spectrum.verdict
    name = spectrum.name if len(spectrum.name) <= 44 else "..." + spectrum.name[-41:]
    density.set_title(
        f"{name}\n{spectrum.rows} x {spectrum.columns}, bulk {law} (KS {spectrum.distance:.2g}), "
        f"{len(spectrum.outliers)} beyond",
        fontsize=9,
    )


def _theory_values(spectrum: Spectrum, comparison: Comparison | None) -> list[float]:
    """Outliers of the theory as singular values of this matrix."""
    if comparison is None:
        return []
    return [math.sqrt(value / comparison.factor * spectrum.aspect_ratio) for value in comparison.theory.outliers]


def _draw_density(axes: Axes, spectrum: Spectrum, view: tuple[float, float]) -> None:
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
    axes.set_ylim(0.0, 1.12 * max(float(heights.max(initial=0.0)), float(y.max())))
    axes.set_ylabel("density", fontsize=9)


def _draw_strip(axes: Axes, spectrum: Spectrum, theory: list[float], compared: bool) -> None:
    axes.axvspan(*spectrum.singular_edges, color=GREY, linewidth=0)
    found = np.array([outlier.singular_value for outlier in spectrum.outliers])
    spread = np.array([outlier.error or 0.0 for outlier in spectrum.outliers])
    if len(found):
        axes.errorbar(
            found,
            np.zeros_like(found),
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
