"""Results as xarray trees with dimensions and coordinates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.support.extras import optional
from numerics.simulation.outermost import at_ends

if TYPE_CHECKING:
    from numerics.simulation.samples import SimulatedLayer

Result = Any
"""A Solution, Simulation or Sweep, whose modules import this one."""
Variables = dict[str, tuple[tuple[str, ...], np.ndarray]]


if TYPE_CHECKING:
    import xarray
else:
    xarray = optional("xarray")


def tree_of(results: Mapping[str, Result]) -> xarray.DataTree:
    """Return one group per result, with a subgroup for each named layer."""
    groups: dict[str, xarray.Dataset] = {}
    for name, result in results.items():
        layers: dict[str, Variables] = {}
        variables: Variables = {}
        if not result.failed:
            if result.made.verb == "solve":
                variables = _observables(result)
                layers = {layer.label: _layer(layer) for layer in result.layers}
            else:
                variables = _samples(result)
                layers = {layer.label: _spectra(layer) for layer in result.layers}
        groups[f"/{name}"] = _labelled(xarray.Dataset({**variables, **layers.pop("", {})}, attrs=attributes(result)))
        for label, own in layers.items():
            groups[f"/{name}/layer_{label}"] = _labelled(xarray.Dataset(own))
    return xarray.DataTree.from_dict(groups)


def _labelled(dataset: xarray.Dataset) -> xarray.Dataset:
    """Return the dataset with a coordinate along each dimension: names for ends of intervals, ranks counted from 1, all
    others from 0.
    """
    named = {"end": ["low", "high"], "at_and_weight": ["at", "weight"]}
    open_dims = {name: size for name, size in dataset.sizes.items() if name not in dataset.variables}
    return dataset.assign_coords(
        {
            name: named.get(str(name), np.arange(size) + int(str(name).endswith("rank")))
            for name, size in open_dims.items()
        }
    )


def attributes(result: Result) -> dict[str, str]:
    """Return the provenance of a result as attributes."""
    made = result.made
    return {
        "setting": made.setting,
        "parameters": json.dumps(dict(made.parameters)),
        "options": json.dumps(dict(made.options)),
        "versions": json.dumps(dict(made.versions)),
        "data": json.dumps(dict(made.data)),
        "declaration": made.declaration[:60_000],  # what an attribute of a file can hold; whole in the record
        "trouble": "; ".join(result.trouble),
    }


def over_time(name: str, values: np.ndarray, first: tuple[str, ...] = ()) -> tuple[tuple[str, ...], np.ndarray]:
    """Return an observable with its dimensions: the given ones, then time, then one per axis of labels."""
    more = values.ndim - len(first) - 1
    count = values.shape[len(first)]
    when = "time" if count > 1 else f"{name}_time"
    return (*first, when, *(f"{name}_label{k or ''}" for k in range(more))), values


def padded(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return rows of different lengths as one table, padded with NaN."""
    width = max((len(row) for row in rows), default=0)
    found = np.full((len(rows), width), np.nan)
    for k, row in enumerate(rows):
        found[k, : len(row)] = row
    return found


def _observables(solution: Result) -> Variables:
    found = {name: over_time(name, series) for name, series in solution.observables.items()}
    for name, spread in (solution.errors or {}).items():
        found[f"{name}_error"] = (found[name][0], spread)
    return found


def _layer(layer: Any) -> Variables:
    found: Variables = {
        "bulk_edges": (("interval", "end"), layer.bulk_edges),
        "outliers": (("rank",), layer.outliers),
        "moments": (("order",), layer.moments),
        "atoms": (("atom", "at_and_weight"), np.reshape(layer.atoms, (-1, 2))),
    }
    if layer.outlier_errors is not None:
        found["outlier_errors"] = (("rank",), layer.outlier_errors)
    for side, values in (layer.overlaps or {}).items():
        found[f"overlap_{side}"] = (("rank",), values)
    for one in layer.outlier_alignments:
        dims = ("rank", *(f"{_variable(one)}_{axis}" for axis in one.axes))
        found[_variable(one)] = (dims, one.shaped(one.values))
        if one.errors is not None:
            found[f"{_variable(one)}_error"] = (dims, one.shaped(one.errors))
    if layer.outlier_path is not None:
        found["outlier_path"] = (("path_time", "path_rank"), padded(layer.outlier_path))
    if layer.bulk_path is not None:
        table = padded([edges.ravel() for edges in layer.bulk_path])
        dims = ("path_time", "path_interval", "end")
        found["bulk_path"] = (dims, table.reshape(len(table), -1, 2))
    found |= _alignment_path(layer.outlier_alignment_path or ())
    if layer.largest_path is not None:
        found["largest_path"] = (("path_time",), layer.largest_path)
    return {name: (dims, values) for name, (dims, values) in found.items() if values.size}


def _alignment_path(path: Sequence[Sequence[Any]]) -> Variables:
    """Return alignments at all times, with NaN at times with fewer outliers."""
    found: Variables = {}
    for number, one in enumerate(next((now for now in path if now), ())):
        name = f"{_variable(one)}_path"
        dims = ("path_time", "path_rank", *(f"{_variable(one)}_{axis}" for axis in one.axes))
        for tail, part in (("", "values"), ("_error", "errors")):
            rows = [getattr(now[number], part) if now else None for now in path]
            if any(now and row is None for now, row in zip(path, rows, strict=True)):
                continue
            most = max(len(row) for row in rows if row is not None)
            table = np.full((len(path), most, *one.values.shape[1:]), np.nan)
            for time, row in enumerate(rows):
                if row is not None:
                    table[time, : len(row)] = row
            found[f"{name}{tail}"] = (dims, np.stack([one.shaped(now) for now in table]))
    return found


def _variable(one: Any) -> str:
    """Return the variable name of an alignment: letters, digits and underscores."""
    return "alignment_" + "".join(c if c.isalnum() else "_" for c in f"{one.name}_{one.side}").replace("__", "_")


def _samples(simulation: Result) -> Variables:
    return {name: over_time(name, values, ("seed",)) for name, values in simulation.observables.items()}


def _spectra(layer: SimulatedLayer) -> Variables:
    dims = ("seed", _along([layer]))
    found: Variables = {"eigenvalues": (dims, np.array(layer.eigenvalues))}
    for side, values in layer.overlaps.items():
        found[f"overlap_{side}"] = (dims, np.array(values))
    return found


def _along(layers: Sequence[SimulatedLayer]) -> str:
    """Return the coordinate of eigenvalues: their rank in the whole spectrum, or among those at either end."""
    return "index" if all(layer.whole for layer in layers) else "place_at_ends"


def labelled_sweep(sweep: Result) -> xarray.Dataset | xarray.DataTree:
    """Return all points of a sweep: one dataset, or for comparisons two in a tree, with the agreement at its root."""
    if sweep.made.verb != "compare":
        return _dataset(sweep, sweep.points)
    names, shape = tuple(sweep.axes), tuple(len(values) for values in sweep.axes.values())
    agrees = np.array([point.agrees for point in sweep.points]).reshape(shape)
    return xarray.DataTree.from_dict(
        {
            "/": xarray.Dataset({"agrees": (names, agrees)}, coords=_along_axes(sweep), attrs=attributes(sweep)),
            "/theory": _dataset(sweep, [point.theory for point in sweep.points]),
            "/simulation": _dataset(sweep, [point.simulation for point in sweep.points]),
        }
    )


def _along_axes(sweep: Result) -> dict[str, tuple[str, list[Any]]]:
    return {name: (name, list(values)) for name, values in sweep.axes.items()}


def _dataset(sweep: Result, results: Sequence[Any]) -> xarray.Dataset:
    """Return solutions or simulations, labelled by the axes, by seed, time, rank of an outlier or of an eigenvalue."""
    axes = sweep.axes
    shape = tuple(len(values) for values in axes.values())
    table = _Table(tuple(axes), shape)
    points = [None if point.failed else point for point in results]
    simulated = results[0].made.verb == "simulate"
    first = ("seed",) if simulated else ()
    observables = dict.fromkeys(name for point in points if point is not None for name in point.observables)
    for name in observables:
        cells = [None if point is None else point.observables.get(name) for point in points]
        dims = next(over_time(name, cell, first)[0] for cell in cells if cell is not None)
        place = len(first)
        if "time" not in dims and any(cell is not None and cell.shape[place] > 1 for cell in cells):
            dims = (*first, "time", *dims[place + 1 :])
        table.add(name, cells, dims)
        if not simulated:
            spreads = [None if point is None or point.errors is None else point.errors.get(name) for point in points]
            table.add(f"{name}_error", spreads, dims)
    labels = tuple(dict.fromkeys(layer.label for point in points if point is not None for layer in point.layers))
    for label in labels:
        tail = f"_{label}" if label else ""
        layers = [
            None if point is None else next((x for x in point.layers if x.label == label), None) for point in points
        ]
        (_add_spectra if simulated else _add_theory)(table, tail, layers)
    found = xarray.Dataset(table.aligned(), coords=_along_axes(sweep))
    found["trouble"] = (tuple(axes), np.array(["; ".join(p.trouble) for p in results], dtype=str).reshape(shape))
    found.attrs = attributes(sweep)
    return _labelled(found)


class _Table:
    """Variables of a sweep, each one array per point; missing entries are NaN."""

    def __init__(self, names: tuple[str, ...], shape: tuple[int, ...]) -> None:
        self.names, self.shape = names, shape
        self.variables: dict[str, Any] = {}

    def add(self, name: str, cells: Sequence[Any], dims: tuple[str, ...]) -> None:
        arrays = [None if cell is None else np.asarray(cell, float) for cell in cells]
        present = [array.shape for array in arrays if array is not None]
        if not present:
            return
        inner = tuple(max(sizes) for sizes in zip(*present, strict=True))
        table = np.full((len(arrays), *inner), np.nan)
        for k, array in enumerate(arrays):
            if array is not None:
                place: tuple[Any, ...] = (k, *(slice(n) for n in array.shape))
                table[place] = array
        if not table.size:
            return
        while name in self.variables or name in self.names:
            name += "_"
        self.variables[name] = ((*self.names, *dims), table.reshape((*self.shape, *inner)))

    def aligned(self) -> dict[str, Any]:
        """Return the variables, padded with NaN to a common length along each dimension."""
        lengths: dict[str, int] = {}
        for dims, values in self.variables.values():
            lengths |= {name: max(size, lengths.get(name, 0)) for name, size in zip(dims, values.shape, strict=True)}
        return {
            name: (
                dims,
                np.pad(
                    values,
                    [(0, lengths[dim] - size) for dim, size in zip(dims, values.shape, strict=True)],
                    constant_values=np.nan,
                )
                if dims
                else values,  # a sweep of one point
            )
            for name, (dims, values) in self.variables.items()
        }


def _add_theory(table: _Table, tail: str, layers: Sequence[Any]) -> None:
    table.add(f"outliers{tail}", [layer and layer.outliers for layer in layers], ("rank",))
    table.add(f"outlier_errors{tail}", [layer and layer.outlier_errors for layer in layers], ("rank",))
    table.add(f"lower_edge{tail}", [layer and _edge(layer, 0) for layer in layers], ())
    table.add(f"upper_edge{tail}", [layer and _edge(layer, 1) for layer in layers], ())
    table.add(f"largest_path{tail}", [layer and layer.largest_path for layer in layers], ("path_time",))
    for number, one in enumerate(next((x.outlier_alignments for x in layers if x is not None and len(x.outliers)), [])):
        cells = [layer and len(layer.outliers) and layer.outlier_alignments[number] or None for layer in layers]
        dims = ("rank", *(f"{_variable(one)}_{axis}" for axis in one.axes))
        table.add(f"{_variable(one)}{tail}", [cell and cell.shaped(cell.values) for cell in cells], dims)
        spreads = [cell and cell.errors is not None and cell.shaped(cell.errors) for cell in cells]
        if all(spread is not False for spread in spreads):
            table.add(f"{_variable(one)}_error{tail}", spreads, dims)


def _add_spectra(table: _Table, tail: str, layers: Sequence[Any]) -> None:
    present = [layer for layer in layers if layer is not None]
    if not present:
        return
    along = _along(present)
    shortest = min(len(layer.eigenvalues[0]) for layer in present)

    def rows(values: Sequence[np.ndarray]) -> np.ndarray:
        """Return all eigenvalues, or equally many from either end if a point has only the ends of its spectrum."""
        return np.array(values) if along == "index" else at_ends(np.array(values), shortest // 2)

    table.add(f"eigenvalues{tail}", [layer and rows(layer.eigenvalues) for layer in layers], ("seed", along))
    for side in dict.fromkeys(side for layer in present for side in layer.overlaps):
        table.add(f"overlap_{side}{tail}", [layer and rows(layer.overlaps[side]) for layer in layers], ("seed", along))


def _edge(layer: Any, end: int) -> float:
    edges = layer.bulk_edges
    return float(edges[-end, end]) if len(edges) else np.nan
