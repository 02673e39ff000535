"""Figures of a quantity along a grid of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import ParameterError
from numerics.plots.solutions import BLUE, ORANGE, can_be_drawn, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CURVES = 10
"""Values of the first of two parameters up to which each has a curve; more make a map."""
MOST_NAMED = 5
"""Curves up to which a legend names each; more have a colour scale."""
LOG_SPAN = 100.0
"""Ratio of the largest to the smallest colour of a map above which its scale is logarithmic: with 256 linear colours
the smallest values would be indistinguishable."""
DECADE = 10.0
OFF_SCALE = 1e3
"""Ratio to the median above which a value is hatched as off the scale, unless the scale is logarithmic. The losses of
training below its largest stable rate remain within two decades of their median; above it they grow geometrically with
time."""


@dataclass(frozen=True)
class SweepData:
    """A quantity on a grid.

    axes: the values of each parameter.
    values: an array of the grid's shape, NaN if missing; errors: their standard errors.
    simulated, simulated_errors: the values and errors of a simulation.
    symbols: LaTeX of parameters.
    diverged: the points without any result; at other points a missing value means that the quantity does not exist
        there, like an outlier below threshold.
    label: the quantity as printed on an axis.
    """

    quantity: str
    axes: Mapping[str, Sequence[Any]]
    values: np.ndarray
    errors: np.ndarray | None = None
    simulated: np.ndarray | None = None
    simulated_errors: np.ndarray | None = None
    symbols: Mapping[str, str] | None = None
    diverged: np.ndarray | None = None
    label: str = ""

    @property
    def title(self) -> str:
        """The name of the quantity on an axis."""
        return self.label or self.quantity.replace("_", " ")

    @property
    def absent(self) -> np.ndarray:
        """The points that have results, but not this quantity."""
        missing = ~np.isfinite(self.values)
        return np.zeros_like(missing) if self.diverged is None else missing & ~self.diverged

    def symbol(self, name: str) -> str:
        """Return a parameter as it is printed on an axis."""
        return shown_symbol(name, (self.symbols or {}).get(name, ""))


GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta kappa mu nu xi rho sigma tau phi chi psi omega".split()
)


def shown_symbol(name: str, tex: str = "") -> str:
    """Return a parameter in its declared LaTeX, or in LaTeX derived from its name; its name if that cannot be drawn."""
    if not tex:
        letters = name.rstrip("0123456789")
        if len(letters) > 1 and letters not in GREEK:
            return name.replace("_", " ")
        tex = (f"\\{letters}" if letters in GREEK else letters) + (
            f"_{{{name[len(letters) :]}}}" if name != letters else ""
        )
    return f"${tex}$" if can_be_drawn(tex) else name


def draw_sweep(data: SweepData, title: str, log: bool = False) -> Figure:
    """Plot a curve along one parameter; along two a curve for each value of the first, or a map for many.

    Points that diverged, and values off the scale, are hatched; points without the quantity are left blank. log: a
    logarithmic scale of the quantity.
    """
    from matplotlib.figure import Figure

    if data.values.ndim not in (1, 2):
        raise ParameterError(f"a figure has one or two axes, and this sweep has {data.values.ndim}: fix a parameter")
    if not np.isfinite(data.values).any():
        raise ParameterError(f"there is nothing to plot: no point of the sweep has {data.title}")
    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    panel = figure.subplots()
    off = ~np.isfinite(data.values)
    if log:
        off |= data.values <= 0
    else:
        off |= np.abs(data.values) > OFF_SCALE * np.median(np.abs(data.values[~off]))
    shown = np.where(off, np.nan, data.values)
    off &= ~data.absent
    *first, (name, along) = data.axes.items()
    if first and len(first[0][1]) > MOST_CURVES:
        spans = np.nanmin(shown) > 0 and np.nanmax(shown) > LOG_SPAN * np.nanmin(shown)
        _draw_map(figure, panel, data, shown, off, log or bool(spans))
    else:
        _draw_curves(figure, panel, data, shown, off, log)
    panel.set_xlabel(data.symbol(name))
    _ticks(panel.xaxis, along)
    panel.set_title(wrapped(title, 62), fontsize=9)
    return figure


def _draw_curves(figure: Figure, panel: Axes, data: SweepData, shown: np.ndarray, off: np.ndarray, log: bool) -> None:
    """Plot a curve for each value of the first parameter; hatch points that diverged or are off the scale."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    *first, (_, along) = data.axes.items()
    places = _places(along)
    members: list[Any] = list(first[0][1]) if first else [None]
    numbers = _are_numbers(members)
    scaled = numbers and len(members) > MOST_NAMED
    colours: Any = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.9, len(members))) if first else [BLUE]
    if scaled:
        positive = min(members) > 0 and max(members) >= 10 * min(members)
        scale = ScalarMappable((LogNorm if positive else Normalize)(min(members), max(members)), "viridis")
        colours = [scale.to_rgba(member) for member in members]
        figure.colorbar(scale, ax=panel, label=data.symbol(first[0][0]))
    tables: Any = (shown, data.errors, data.simulated, data.simulated_errors)
    for k, (member, colour) in enumerate(zip(members, colours, strict=True)):
        own: list[Any] = [None if t is None else t.reshape(len(members), -1)[k] for t in tables]
        y, spread, drawn, drawn_error = own
        label = None if member is None else f"{data.symbol(first[0][0])} = {_word(member)}"
        panel.errorbar(places, y, spread, fmt="o-", color=colour, markersize=3.5, capsize=2, label=label)
        if drawn is not None:
            name = "simulation" if k == 0 else None
            ink = ORANGE if member is None else colour
            panel.errorbar(places, drawn, drawn_error, fmt="s", mfc="white", color=ink, markersize=4, label=name)
    if log:
        panel.set_yscale("log")
        low, high = np.nanmin(shown), np.nanmax(shown)
        if high < LOG_SPAN * low:  # powers of ten would leave one or two ticks
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > DECADE * low else (1, 1.5, 2, 3, 5, 7)))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
            panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_ylabel(data.title)
    if data.absent.any() and len(places) > 1:  # the axis covers the whole grid
        margin = 0.05 * np.ptp(places)
        panel.set_xlim(places.min() - margin, places.max() + margin)
    borders = _borders(places)
    missing = _missing(data.values, off)
    gone = np.flatnonzero(off.reshape(len(members), -1).any(axis=0))
    for number, k in enumerate(gone.tolist()):
        whole = off.reshape(len(members), -1)[:, k].all()
        text = missing if whole else f"{missing} for some"
        name = text if number == 0 or whole != off.reshape(len(members), -1)[:, gone[number - 1]].all() else None
        panel.axvspan(
            borders[k],
            borders[k + 1],
            fill=False,
            hatch="////" if whole else "//",
            edgecolor="0.7",
            linewidth=0,
            label=name,
        )
    panel.spines[["top", "right"]].set_visible(False)
    if panel.get_legend_handles_labels()[1] and not (scaled and not len(gone) and data.simulated is None):
        handles, labels = panel.get_legend_handles_labels()
        kept = [k for k, label in enumerate(labels) if not (scaled and " = " in label)]
        panel.legend([handles[k] for k in kept], [labels[k] for k in kept], frameon=bool(len(gone)), fontsize=8)


def _draw_map(figure: Figure, panel: Axes, data: SweepData, shown: np.ndarray, off: np.ndarray, log: bool) -> None:
    """Plot a heat map; cells that diverged or are off the colour scale are hatched."""
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Patch

    (first, down), (_, along) = data.axes.items()
    x, y = _borders(_places(along)), _borders(_places(down))
    mesh = panel.pcolormesh(x, y, np.ma.masked_invalid(shown), norm=LogNorm() if log else None, cmap="viridis")
    figure.colorbar(mesh, label=data.title)
    keys = []
    if off.any():
        from matplotlib.patches import Rectangle

        for j, i in np.argwhere(off):
            corner, wide, high = (x[i], y[j]), x[i + 1] - x[i], y[j + 1] - y[j]
            panel.add_patch(Rectangle(corner, wide, high, fill=False, hatch="////", edgecolor="0.6", linewidth=0))
        keys.append(Patch(fill=False, hatch="////", edgecolor="0.6", label=_missing(data.values, off)))
    if data.absent.any():
        keys.append(Patch(facecolor="white", edgecolor="0.6", label=f"no {data.title}"))
    if keys:
        figure.legend(handles=keys, loc="outside lower right", ncols=len(keys), frameon=False, fontsize=8)
    panel.set_ylabel(data.symbol(first))
    _ticks(panel.yaxis, down)


def _missing(values: np.ndarray, off: np.ndarray) -> str:
    """Return why points are hatched: they diverged, or their value is off the scale."""
    finite = np.isfinite(values[off])
    return "off scale" if finite.all() else "diverged or off scale" if finite.any() else "diverged"


def _borders(places: np.ndarray) -> np.ndarray:
    """Return the boundaries of cells around ascending or descending positions."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    middles = (places[:-1] + places[1:]) / 2
    return np.array([2 * places[0] - middles[0], *middles, 2 * places[-1] - middles[-1]])


def _are_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def _places(values: Sequence[Any]) -> np.ndarray:
    """Return the positions of values on an axis: numbers unchanged, words by their index."""
    if _are_numbers(values):
        return np.array(values, float)
    return np.arange(len(values), dtype=float)


def _ticks(axis: Any, values: Sequence[Any]) -> None:
    if not _are_numbers(values):
        axis.set_ticks(range(len(values)), [str(value) for value in values])


def _word(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def column(rows: Sequence[Mapping[str, Any]], name: str) -> np.ndarray | None:
    """Return a column of numbers; None if no row has it."""
    values = [row.get(name) for row in rows]
    numbers = [value if _are_numbers([value]) else None for value in values]
    return None if numbers.count(None) == len(rows) else np.array(numbers, float)
