"""The numbers of a figure as rows of a table, read from the figure itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Iterator[dict[str, Any]]


def figure_rows(figure: Figure) -> Rows:
    """Yield a row for each point of a curve, bar of a histogram and cell of a map: panel, series, x, y, and, if they
    apply, x_error, y_error, x_end, y_low, value."""
    drawn: list[Any] = [one for axes in figure.axes for one in (axes, *axes.child_axes)]
    for number, axes in enumerate(drawn, start=1):
        title = axes.get_title(loc="center") or axes.get_title(loc="right")
        name = title if title and len(drawn) > 1 else str(number)
        for series, rows in _series(axes):
            for row in rows:
                yield {"panel": name.replace("\n", " "), "series": series, **row}


def _series(axes: Axes) -> Iterator[tuple[str, Rows]]:
    """Yield the content of axes, by the name in the legend."""
    from matplotlib.collections import QuadMesh
    from matplotlib.container import BarContainer, ErrorbarContainer
    from matplotlib.patches import StepPatch

    inside: list[Any] = []
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            inside += [container.lines[0], *container.lines[1]]
            yield _called(container, axes), _with_errors(container)
        elif isinstance(container, BarContainer):
            yield _called(container, axes), _bars(container)
    for line in axes.lines:
        if not any(line is one for one in inside):
            x, y = (np.ravel(np.asarray(values, float)) for values in line.get_data())
            yield _called(line, axes), ({"x": a, "y": b} for a, b in zip(x.tolist(), y.tolist(), strict=True))
    for patch in axes.patches:
        if isinstance(patch, StepPatch) and patch.get_fill():
            heights, edges, _ = patch.get_data()
            ends = np.asarray(edges, float).tolist()
            stairs = zip(ends[:-1], ends[1:], np.asarray(heights, float).tolist(), strict=True)
            yield _called(patch, axes), ({"x": a, "x_end": b, "y": c} for a, b, c in stairs)
    for mesh in axes.collections:
        if isinstance(mesh, QuadMesh) and mesh.get_array() is not None and axes.get_label() != "<colorbar>":
            yield _called(mesh, axes), _cells(mesh)


def _called(artist: Any, axes: Axes) -> str:
    label = str(artist.get_label() or "")
    return axes.get_ylabel() if not label or label.startswith("_") else label


def _with_errors(container: Any) -> Rows:
    x, y = (np.asarray(values, float) for values in container.lines[0].get_data())
    spread: dict[str, np.ndarray] = {}
    names = [name for name, there in (("x_error", container.has_xerr), ("y_error", container.has_yerr)) if there]
    for name, bars in zip(names, container.lines[2], strict=True):
        along = 0 if name == "x_error" else 1
        ends = [np.asarray(segment, float) for segment in bars.get_segments()]
        spread[name] = np.array([np.ptp(end[:, along]) / 2 if len(end) else np.nan for end in ends])
    for k in range(len(x)):
        more = {name: float(values[k]) for name, values in spread.items() if len(values) == len(x)}
        yield {"x": float(x[k]), "y": float(y[k]), **more}


def _bars(container: Any) -> Rows:
    for bar in container.patches:
        low, x = float(bar.get_y()), float(bar.get_x())
        yield {"x": x, "x_end": x + float(bar.get_width()), "y_low": low, "y": low + float(bar.get_height())}


def _cells(mesh: Any) -> Rows:
    corners = np.asarray(mesh.get_coordinates(), float)
    middles = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    values = np.ma.filled(np.ma.asarray(mesh.get_array(), float), np.nan).reshape(middles.shape[:2])
    for place in np.ndindex(values.shape):
        x, y = middles[place]
        yield {"x": float(x), "y": float(y), "value": float(values[place])}
