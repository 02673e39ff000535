"""Solutions, simulations or comparisons on a grid of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import ParameterError
from derive.results.comparison import Comparison
from derive.results.made import Provenance
from derive.results.saving import Saved
from derive.results.simulation import Simulation, standard_error
from derive.results.solution import Solution
from numerics.solution import Layer
from numerics.support.formatting import counted, html_table, listed, shown_cell

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from numerics.plots.sweeps import SweepData

SHOWN = 5
"""Rows of a long table shown at either end."""
MOST_LISTED = 8
"""Quantities that an error names."""


@dataclass(frozen=True, eq=False)
class Sweep(Saved):
    """Results on a grid: axes with their values, and one result per point, with the last axis varying fastest.

    A point is a Solution, a Simulation or a Comparison, as given by `made.verb`. Diverged points are included and
    marked as such. The sweep is false in a condition if no point is reliable.

    >>> import derive
    >>> from derive.api.example import SPIKE
    >>> w = derive.load(SPIKE).sweep(strength=[0.5, 2])
    >>> [len(point.outliers) for point in w]
    [0, 1]
    """

    made: Provenance
    axes: Mapping[str, tuple[Any, ...]]
    points: tuple[Any, ...]

    def __bool__(self) -> bool:
        return any(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.points)

    @property
    def trouble(self) -> tuple[str, ...]:
        """The problems that occurred, and the number of points with each."""
        bad = [point for point in self.points if not point]
        if not bad:
            return ()
        why = bad[0].trouble[0] if bad[0].trouble else bad[0].verdict
        return (f"{len(bad)} of {len(self.points)} points: {why}",)

    @property
    def missing(self) -> int:
        """The number of points without a result."""
        return sum(point.failed for point in self.points)

    def at(self, **values: Any) -> Any:
        """Return the result at the given values of all axes."""
        for point in self.points:
            if all(point.parameters[name] == values.get(name) for name in self.axes):
                return point
        wanted = ", ".join(f"{name}={value}" for name, value in values.items())
        raise ParameterError(f"no point of the sweep is at {wanted}; its axes are {', '.join(self.axes)}")

    def __getitem__(self, name: str) -> np.ndarray:
        """Return an observable at all points: the axes of the sweep first, then seeds if it is simulated, then time;
        NaN if a point diverged. For comparisons this is the value of the theory.
        """
        found = self.to_xarray()
        found = found["theory"].to_dataset() if self.made.verb == "compare" else found
        if name not in found:
            raise ParameterError(f"the sweep has no {name!r}; it has {', '.join(map(str, found.data_vars))}")
        return np.asarray(found[name].values)

    def rows(self) -> list[dict[str, Any]]:
        """One row of scalars per point: parameters, observables at the last time, edges and outliers."""
        return [row_of(point) for point in self.points]

    def to_frame(self) -> pandas.DataFrame:
        """One row per point: parameters, observables at the last time, edges and outliers."""
        from derive.results.frames import frame_of_sweep

        return frame_of_sweep(self)

    def to_xarray(self) -> Any:
        """One array per quantity, labelled by the parameters of the sweep, time, rank of the outlier and seed; for
        comparisons a tree with theory and simulation as groups."""
        from derive.results.trees import labelled_sweep

        return labelled_sweep(self)

    def plot(self, quantity: str | None = None, log: bool = False) -> Figure:
        """Plot a quantity along the grid: curves along the last axis, one for each value of the first, or a map if
        there are many.

        quantity: a column of `rows`, such as "outlier_1", "upper_edge", "bbp_time" or an observable at the last time,
        or one at another time as "test_loss at 5"; by default the loss if there is one, otherwise the first outlier or
        edge. log: a logarithmic scale of the quantity. Points that diverged are hatched.
        """
        from numerics.plots.sweeps import draw_sweep

        made = replace(self.made, parameters=self.points[0].parameters)
        return draw_sweep(self._quantity(quantity), made.title(without=self.axes), log)

    def plot_rows(self, quantity: str | None = None) -> list[dict[str, Any]]:
        """Return the numbers of `plot` as one row per point: parameters, the quantity, and its error or simulation."""
        data = self._quantity(quantity)
        tables = {
            data.quantity: data.values,
            f"{data.quantity}_error": data.errors,
            f"{data.quantity} (simulation)": data.simulated,
            f"{data.quantity} (simulation error)": data.simulated_errors,
        }
        columns = {name: table.ravel().tolist() for name, table in tables.items() if table is not None}
        points = product(*self.axes.values())
        return [
            {**dict(zip(self.axes, point, strict=True)), **{name: column[k] for name, column in columns.items()}}
            for k, point in enumerate(points)
        ]

    def _quantity(self, quantity: str | None) -> SweepData:
        """Return a quantity at all points, by the name that `plot` accepts."""
        from numerics.plots.sweeps import SweepData, column

        rows = [dict(row) for row in self.rows()]
        name = self._default_quantity(rows) if quantity is None else quantity
        if name is not None and " at " in name:
            for row, point in zip(rows, self.points, strict=True):
                row |= {} if point.failed else _at_time(point, name)
        shape = tuple(len(values) for values in self.axes.values())

        def shaped(tail: str = "") -> np.ndarray | None:
            found = column(rows, f"{name}{tail}")
            return None if found is None else found.reshape(shape)

        values = shaped()
        if name is None or values is None or name in self.points[0].parameters:
            known = self._quantities(rows)
            layered = [one for one in known if one in {f"{name}_{label}" for label in self._layers()}]
            if len(layered) == 1:
                return self._quantity(layered[0])
            if layered:
                raise ParameterError(f"there is no {name!r} to draw, because layers are named: take {listed(layered)}")
            have = ", ".join(known[:MOST_LISTED]) + (", ..." if len(known) > MOST_LISTED else "") or "no numbers"
            raise ParameterError(f"there is no {name!r} to draw; there are {have}, and observables as 'NAME at TIME'")
        symbols = dict(self.made.symbols)
        errors, simulated, spread = (shaped(tail) for tail in ("_error", " (simulation)", " (error)"))
        diverged = np.array([point.failed for point in self.points]).reshape(shape)
        return SweepData(name, dict(self.axes), values, errors, simulated, spread, symbols, diverged, self._title(name))

    def _layers(self) -> list[str]:
        """Return the names of the layers of all points."""
        labels = (layer.label for point in self.points for layer in getattr(point, "layers", ()))
        return list(dict.fromkeys(label for label in labels if label))

    def _title(self, name: str) -> str:
        """Return the label of a column on an axis: "outlier 1 of layer 0" for outlier_1_0."""
        from numerics.plots.solutions import name_of_layer

        observed = any(name in getattr(point, "observables", ()) for point in self.points)
        of_layer = [label for label in self._layers() if name.endswith(f"_{label}") and not observed]
        layer = of_layer[0] if of_layer else ""
        base = name.removesuffix(f"_{layer}").replace("_", " ")
        return f"{base} of {name_of_layer(layer)}" if layer else base

    def _quantities(self, rows: list[dict[str, Any]]) -> list[str]:
        """Return the columns that can be plotted."""
        known = {name for row in rows for name in row}
        numbers = dict.fromkeys(
            name
            for row in rows
            for name, value in row.items()
            if isinstance(value, float) or name.startswith("bbp_time")
        )
        left_out = {f"{name}{tail}" for name in known for tail in ("_error", " (simulation)", " (error)")}
        return [n for n in numbers if n not in left_out and n not in self.points[0].parameters and n not in _JUDGED]

    def _default_quantity(self, rows: list[dict[str, Any]]) -> str | None:
        """Return the loss at the last time, preferably on a test set; otherwise the first outlier, edge or number."""
        names = self._quantities(rows)
        order = ("test_loss", "loss", "outlier_1", "outlier 1", "largest", "upper_edge", "")
        found = ((word, [name for name in names if word in name]) for word in order)
        return next((some[-1] if "loss" in word else some[0] for word, some in found if some), None)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that the command of the same verb prints with --json for a grid."""
        axes = {name: list(values) for name, values in self.axes.items()}
        return {"setting": self.made.setting, "axes": axes, "points": [point.as_dict() for point in self.points]}

    def lines(self) -> tuple[list[str], list[list[str]]]:
        """Return headings and rows of a table for people: axes, observables at the last time, largest eigenvalues."""
        rows = self.rows()
        names = list(dict.fromkeys(key for row in rows for key in row))
        parameters = set(self.points[0].parameters)
        if self.made.verb == "compare":
            shown = [name for name in names if name in _JUDGED]
        else:
            errors = {f"{name}_error" for name in names}
            shown = [name for name in names if name not in parameters | errors and not name.startswith(_HIDDEN)]
        cells = [
            [shown_cell(row[name]) for name in self.axes]
            + (
                ["diverged", *[""] * (len(shown) - 1)]
                if point.failed
                else [shown_cell(row.get(name), row.get(f"{name}_error")) for name in shown]
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
        return "\n".join([f"{self.made.setting}, {counted(len(self.points), 'point')}", *lines, *bad])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, rows = self.lines()
        few = rows if len(rows) <= 2 * SHOWN else [*rows[:SHOWN], ["..."] * len(heads), *rows[-SHOWN:]]
        title = f"{self.made.setting}, {counted(len(self.points), 'point')}"
        return html_table(title, [tuple(row) for row in few], self.trouble, heads)


_JUDGED = ("agrees", "largest_difference", "largest_difference_of")
_HIDDEN = ("lower_edge", "smallest", "outlier", "intervals", "size", "trouble")
"""Prefixes of columns omitted from tables for people."""


def points_of(result: Any) -> tuple[Any, ...]:
    """Return the points of a sweep, or another result as the only point."""
    return result.points if isinstance(result, Sweep) else (result,)


def row_of(point: Any) -> dict[str, Any]:
    """Return one point as scalars: for a solution its parameters, observables at the last time, and the edges and
    outliers of each layer; for a simulation means and errors; for a comparison the agreement.
    """
    row: dict[str, Any] = point.parameters
    if point.failed:
        return {**row, "trouble": point.trouble[0]}
    row |= _numbers(point, row)
    if point.trouble:
        row["trouble"] = "; ".join(point.trouble)
    return row


@singledispatch
def _numbers(point: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scalars of a result that `row` has no columns for."""
    raise TypeError(f"a {type(point).__name__} is not a point of a sweep")


@_numbers.register
def _(point: Solution, row: Mapping[str, Any]) -> dict[str, Any]:
    from derive.results.frames import columns_of

    found: dict[str, Any] = {}
    for name, series in point.observables.items():
        for column, values in columns_of(name, series).items():
            if len(values):
                found[_free(column, row)] = float(values[-1])
    for layer in point.layers:
        found |= _spectrum(layer)
    return found


@_numbers.register
def _(point: Simulation, row: Mapping[str, Any]) -> dict[str, Any]:
    from derive.results.frames import columns_of

    found: dict[str, Any] = {"size": point.size, "seeds": point.seeds}

    def add(name: str, draws: np.ndarray) -> None:
        found.update(_mean_and_error(_free(name, row), draws))

    for name, values in point.observables.items():
        columns = [columns_of(name, one) for one in values]
        for column, series in columns[0].items():
            if len(series):
                add(column, np.array([one[column][-1] for one in columns]))
    for layer in point.layers:
        tail = f"_{layer.label}" if layer.label else ""
        for what, place in (("largest", -1), ("smallest", 0)):
            add(f"{what}{tail}", np.array([values[place] for values in layer.eigenvalues]))
    return {name: value for name, value in found.items() if value == value}


@_numbers.register
def _(point: Comparison, row: Mapping[str, Any]) -> dict[str, Any]:
    judged = [one for one in point.rows if one.difference is not None]
    worst = max(judged, key=lambda one: abs(one.difference or 0.0), default=None)
    found: dict[str, Any] = {"size": point.simulation.size, "seeds": point.simulation.seeds, "agrees": point.agrees}
    if worst is not None:
        found |= {"largest_difference": float(worst.difference or 0.0), "largest_difference_of": worst.quantity}
    for one in point.rows:
        column = _free(one.quantity, row)
        found |= {column: one.theory, f"{column} (simulation)": one.simulation, f"{column} (error)": one.stderr}
    return {name: value for name, value in found.items() if value is not None}


def _mean_and_error(column: str, draws: np.ndarray) -> dict[str, float]:
    error = standard_error(draws)
    return {column: float(draws.mean()), **({} if error is None else {f"{column}_error": error})}


@singledispatch
def _at_time(point: Any, quantity: str) -> dict[str, float]:
    """Return an observable at a time with its error, as "test_loss at 5"; empty for a comparison."""
    return {}


@_at_time.register
def _(point: Solution, quantity: str) -> dict[str, float]:
    found = {quantity: _entry(point.observables, quantity), f"{quantity}_error": _entry(point.errors or {}, quantity)}
    return {name: value for name, value in found.items() if value is not None}


@_at_time.register
def _(point: Simulation, quantity: str) -> dict[str, float]:
    seeds = ({name: values[k] for name, values in point.observables.items()} for k in range(point.seeds))
    draws = [_entry(observables, quantity) for observables in seeds]
    return {} if None in draws else _mean_and_error(quantity, np.array(draws))


def _entry(observables: Mapping[str, np.ndarray], quantity: str) -> float | None:
    """Return an entry of an observable at a time, as "test_loss at 5"; None if there is none."""
    from derive.results.frames import columns_of

    name, _, time = quantity.rpartition(" at ")
    base = name.split("[")[0]
    if not time.isdigit() or base not in observables:
        return None
    series = columns_of(base, observables[base]).get(name, np.zeros(0))
    return float(series[int(time)]) if int(time) < len(series) else None


def _free(name: str, row: Mapping[str, Any]) -> str:
    """Return a column name for an observable: its own name, unless a parameter has it."""
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
    for one in layer.outlier_alignments:
        for rank, squares in enumerate(one.values):  # at the last of its times, the mean over labels
            row[f"{one.name} {one.side} of outlier_{rank + 1}{tail}"] = float(np.mean(squares[-1]))
    if layer.bbp_time is not None:
        row[f"bbp_time{tail}"] = layer.bbp_time
    return row
