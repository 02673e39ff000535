"""Solutions on a grid of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import ParameterError
from derive.results.made import Made
from derive.results.saving import Saved
from derive.results.solution import Layer, Solution
from derive.results.words import html_table, shown_number

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.figure import Figure

SHOWN = 5
"""Rows of a long table that are shown at either end."""


@dataclass(frozen=True)
class Sweep(Saved):
    """Solutions on a grid: axes with their values, and one solution per point, the last axis fastest.

    A point that diverged is there all the same and says so. The sweep is false in a condition if no point can be
    trusted.

    >>> import derive

    >>> from derive.api.example import SPIKE
    >>> w = derive.load(SPIKE).sweep(strength=[0.5, 2])
    >>> [len(point.outliers) for point in w]
    [0, 1]
    """

    made: Made
    axes: Mapping[str, tuple[Any, ...]]
    points: tuple[Solution, ...]

    def __bool__(self) -> bool:
        return any(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Solution]:
        return iter(self.points)

    @property
    def trouble(self) -> tuple[str, ...]:
        """What is wrong, and at how many points."""
        bad = [point for point in self.points if not point]
        return (f"{len(bad)} of {len(self.points)} points: {bad[0].trouble[0]}",) if bad else ()

    def at(self, **values: Any) -> Solution:
        """The solution at the values of all axes."""
        for point in self.points:
            if all(point.parameters[name] == values.get(name) for name in self.axes):
                return point
        wanted = ", ".join(f"{name}={value}" for name, value in values.items())
        raise ParameterError(f"no point of the sweep is at {wanted}; its axes are {', '.join(self.axes)}")

    def __getitem__(self, name: str) -> np.ndarray:
        """An observable at all points: the axes of the sweep first, then time; NaN where a point diverged."""
        found = self.to_xarray()
        if name not in found:
            raise ParameterError(f"the sweep has no {name!r}; it has {', '.join(map(str, found.data_vars))}")
        return np.asarray(found[name].values)

    def rows(self) -> list[dict[str, Any]]:
        """One row of single numbers per point: parameters, observables at the last time, edges and outliers."""
        return [row_of(point) for point in self.points]

    def to_frame(self) -> pandas.DataFrame:
        """One row per point: parameters, observables at the last time, edges and outliers."""
        from derive.results.frames import frame_of_sweep

        return frame_of_sweep(self)

    def to_xarray(self) -> xarray.Dataset:
        """One array per quantity, labelled by the parameters of the sweep, time and rank of the outlier."""
        from derive.results.trees import dataset_of_sweep

        return dataset_of_sweep(self)

    def plot(self, quantity: str | None = None) -> Figure:
        """A quantity of `rows` along the grid: a curve for one axis, a heat map for two."""
        from numerics.plots.sweeps import draw_sweep

        return draw_sweep(dict(self.axes), self.rows(), quantity, self.made.setting)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that `derive solve --json` prints for a grid."""
        axes = {name: list(values) for name, values in self.axes.items()}
        return {"setting": self.made.setting, "axes": axes, "points": [point.as_dict() for point in self.points]}

    def lines(self) -> tuple[list[str], list[list[str]]]:
        """Heads and rows of a table for people: axes, observables at the last time, largest eigenvalues."""
        rows = self.rows()
        names = list(dict.fromkeys(key for row in rows for key in row))
        parameters = set(self.points[0].parameters)
        shown = [
            name
            for name in names
            if name not in parameters
            and not name.startswith(("lower_edge", "smallest", "outlier", "intervals", "trouble"))
        ]
        cells = [
            [_cell(row[name]) for name in self.axes]
            + (
                ["diverged", *[""] * (len(shown) - 1)]
                if point.found is None
                else [_cell(row.get(name)) for name in shown]
            )
            for point, row in zip(self.points, rows, strict=True)
        ]
        return [*self.axes, *shown], cells

    def __str__(self) -> str:
        heads, rows = self.lines()
        few = rows if len(rows) <= 2 * SHOWN else [*rows[:SHOWN], ["..."] * len(heads), *rows[-SHOWN:]]
        widths = [max(len(row[k]) for row in [heads, *few]) for k in range(len(heads))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in [heads, *few]]
        bad = self.trouble
        return "\n".join([f"{self.made.setting}, {len(self.points)} points", *lines, *bad])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, rows = self.lines()
        few = rows if len(rows) <= 2 * SHOWN else [*rows[:SHOWN], ["..."] * len(heads), *rows[-SHOWN:]]
        title = f"{self.made.setting}, {len(self.points)} points"
        return html_table(title, [tuple(row) for row in few], self.trouble, heads)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return shown_number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def row_of(point: Solution) -> dict[str, Any]:
    """One point as single numbers: parameters, observables at the last time, edges and all outliers of each layer."""
    row: dict[str, Any] = point.parameters
    if point.found is None:
        return {**row, "trouble": point.trouble[0]}
    from derive.results.frames import columns_of

    for name, series in point.observables.items():
        for column, values in columns_of(name, series).items():
            if len(values):
                row[_free(column, row)] = float(values[-1])
    for layer in point.layers:
        row |= _spectrum(layer)
    if point.trouble:
        row["trouble"] = "; ".join(point.trouble)
    return row


def _free(name: str, row: Mapping[str, Any]) -> str:
    """A column for an observable: its own name, unless a parameter has it."""
    while name in row:
        name += "_"
    return name


def _spectrum(layer: Layer) -> dict[str, Any]:
    if not len(layer.bulk_edges):
        return {}
    tail = f"_{layer.label}" if layer.label else ""
    edges, outliers = layer.bulk_edges, layer.outliers
    places = [*outliers, *(at for at, _ in layer.atoms)]
    row: dict[str, Any] = {
        f"lower_edge{tail}": float(edges[0, 0]),
        f"upper_edge{tail}": float(edges[-1, 1]),
        f"largest{tail}": float(max([edges[-1, 1], *places])),
        f"smallest{tail}": float(min([edges[0, 0], *places])),
        f"intervals{tail}": len(edges),
    }
    row |= {f"outlier_{rank + 1}{tail}": float(z) for rank, z in enumerate(outliers)}
    if layer.bbp_time is not None:
        row[f"bbp_time{tail}"] = layer.bbp_time
    return row
