"""Data arrays of a problem: from a user's file, or from the declaration's own function.

A file is a NumPy archive (.npz) with an array for each name declared with data(...). An array with a clock has one row
per time, or none if it is constant or cut into batches: then `order`, if present, gives the points of each step (steps
x points). Without it points are taken in shuffled batches, epoch after epoch, or all together.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.errors import CheckpointError, ParameterError
from derive.support.guarded import parsed_json
from derive.support.shapes import fits

if TYPE_CHECKING:
    import numpy as np

    from derive.language.data import Data
    from derive.language.model import Model
    from derive.language.symbols import Axis

ORDER = "order"
ROUNDING = 1e-9
"""Asymmetry and negative eigenvalues of a covariance matrix, relative to its entries, that count as rounding."""


def declared_data(model: Model) -> tuple[Data, ...]:
    """Return the data arrays that a model takes."""
    from derive.language.contents import atoms
    from derive.language.data import Data

    return atoms(model, Data)


def shown_source(data: str | Mapping[str, Any]) -> str:
    """Return the name of a source of arrays for a sentence."""
    return f"data={data}" if isinstance(data, str) else "data={...}"


def read_arrays(data: str | Mapping[str, Any], model: Model) -> dict[str, Any]:
    """Return the arrays that a model needs, from a file or by name, checked for shape and finite entries."""
    import numpy as np

    needed = declared_data(model)
    names, where = ", ".join(d.name for d in needed), shown_source(data)
    if isinstance(data, Mapping):
        unknown = [str(name) for name in data if name not in {d.name for d in needed} | {ORDER}]
        if unknown:
            raise ParameterError(f"{where}: {model.setting} has no data {unknown[0]}; it takes {names}")
        arrays = {name: np.asarray(array) for name, array in data.items()}
    else:
        arrays = _archive(data, {d.name for d in needed} | {ORDER}, names)
    for d in needed:
        if d.name in arrays:
            arrays[d.name] = _numbers(arrays[d.name], d, where)
        elif not d.optional or model.arrays is None:
            raise ParameterError(f"{where} has no array {d.name}; it must contain {names}")
    needed = tuple(d for d in needed if d.name in arrays)
    if ORDER in arrays:
        arrays[ORDER] = _positions(arrays[ORDER], arrays, needed, where)
    if model.refuses is not None and (wrong := model.refuses(arrays)):
        raise ParameterError(f"{where}: {wrong}")
    _check_alike(arrays, needed, where)
    return arrays


def array_of(d: Data, value: Any) -> Any:
    """Return an array given as numbers, as text in square brackets, or as a file."""
    import numpy as np

    if fits(value, tuple[str, ...]):
        raise ParameterError(f"{d.name} is an array, not a list of values; write it as {d.name}={_example(d)}")
    if not fits(value, str):
        try:
            return np.asarray(value, float)
        except (TypeError, ValueError):
            raise ParameterError(f"{d.name} is not an array of numbers; its axes are {_shape_of(d)}") from None
    if not value.startswith("["):
        if Path(value).suffix == ".npz":
            arrays = _archive(value, {d.name}, d.name)
            if d.name not in arrays:
                raise ParameterError(f"{d.name}={value}: the file has no array {d.name}; save it with numpy.savez")
            return arrays[d.name]
        raise ParameterError(
            f"{d.name}={value} is not an array; write it in brackets, such as {d.name}={_example(d)}, or give a "
            "NumPy archive (.npz) that contains it"
        )
    try:
        return np.asarray(parsed_json(value), float)
    except (TypeError, ValueError):
        raise ParameterError(
            f"{d.name}={value} is not an array of numbers; its axes are {_shape_of(d)}, so write it as {_example(d)}"
        ) from None


def _shape_of(d: Data) -> str:
    return " by ".join(str(axis.size) for axis in d.axes)


def _example(d: Data) -> str:
    return "[1,0.5]" if len(d.axes) == 1 else "[[1,0.5],[0.5,1]]"


def check_roots(arrays: dict[str, Any], model: Model) -> None:
    """Raise ParameterError if a table whose matrix square root is taken is not a covariance matrix."""
    import numpy as np

    from derive.language.contents import everything
    from derive.language.data import RootAt

    for d in dict.fromkeys(node.data for e in everything(model) for node in sorted(e.atoms(RootAt), key=str)):
        table = np.asarray(arrays[d.name], float)
        if table.ndim < 2 or table.shape[-1] != table.shape[-2]:
            raise ParameterError(f"{d.name} has shape {table.shape}; it must be {_shape_of(d)}")
        largest = float(np.abs(table).max())
        if np.abs(table - np.swapaxes(table, -1, -2)).max() > ROUNDING * largest:
            raise ParameterError(f"{d.name} is not symmetric, so it is not a covariance; give a symmetric table")
        lowest = float(np.linalg.eigvalsh(table).min())
        if lowest < -ROUNDING * max(largest, 1.0):
            raise ParameterError(
                f"{d.name} has the negative eigenvalue {lowest:.3g}, so no vectors have these scalar products; give a "
                "positive semidefinite table"
            )


def _archive(path: str, wanted: set[str], names: str) -> dict[str, Any]:
    """Return the wanted arrays of a file."""
    from derive.inputs.checkpoints import load, read_npz

    if not os.path.lexists(path):
        raise ParameterError(f"data={path}: there is no such file; give a NumPy archive (.npz) with {names}")
    try:
        entries = read_npz(Path(path))
        return {entry.name: load(path, entry) for entry in entries if entry.name in wanted}
    except CheckpointError as error:
        reason = str(error).removeprefix(f"{path}: ").removeprefix(f"{path} ")
        raise ParameterError(
            f"data={path} is not a NumPy archive of numbers; save {names} with numpy.savez ({reason})"
        ) from None


def _numbers(array: np.ndarray, d: Data, where: str) -> np.ndarray:
    import numpy as np

    axes = [str(axis.size) for axis in d.axes]
    if array.dtype.kind not in "fiub":
        raise ParameterError(f"{where}: {d.name} does not consist of numbers")
    if array.ndim not in ({len(axes), len(axes) + 1} if d.clock is not None else {len(axes)}):
        shape = " by ".join(axes)
        raise ParameterError(
            f"{where}: {d.name} has shape {array.shape}; it must be {shape}"
            + (f", or times by {shape}" if d.clock is not None else "")
        )
    if not np.all(np.isfinite(array)):
        raise ParameterError(f"{where}: {d.name} has an entry that is not a finite number; correct the data")
    if array.size == 0:
        raise ParameterError(f"{where}: {d.name} is empty")
    return array.astype(float)


def _positions(order: np.ndarray, arrays: dict[str, Any], needed: tuple[Data, ...], where: str) -> np.ndarray:
    points = _points(needed)
    taken = [d for d in needed if d.clock is not None and d.axes[0] == points]
    streams = [d.name for d in taken if arrays[d.name].ndim > len(d.axes)]
    if not taken or streams:
        why = f"{streams[0]} already has one row per time" if streams else "no array has points to batch"
        raise ParameterError(f"{where}: {ORDER} is given, but {why}; leave one of the two out")
    count = len(arrays[taken[0].name])
    if order.size == 0 or order.ndim != 2 or order.dtype.kind not in "iu" or order.min() < 0 or order.max() >= count:
        raise ParameterError(
            f"{where}: {ORDER} must be whole numbers from 0 to {count - 1}, steps by points of a batch"
        )
    return order


def _points(needed: tuple[Data, ...]) -> Axis | None:
    """Return the axis along which training takes points in batches.

    It is the first of data on a clock; an axis whose size follows another parameter takes precedence.
    """
    firsts: list[Axis] = [d.axes[0] for d in needed if d.clock is not None]
    return min(firsts, key=lambda axis: getattr(axis.size, "follows", None) is None, default=None)


def _check_alike(arrays: dict[str, Any], needed: tuple[Data, ...], where: str) -> None:
    """Raise unless each axis has the same length in all arrays."""
    seen: dict[str, tuple[int, str]] = {}
    for d in needed:
        shape = arrays[d.name].shape
        axes = [str(axis.size) for axis in d.axes]
        for axis, length in zip(axes, shape[len(shape) - len(axes) :], strict=True):
            other, name = seen.setdefault(axis, (length, d.name))
            if other != length:
                raise ParameterError(
                    f"{where}: {d.name} of shape {shape} has {length} entries along {axis}, but {name} has {other}; "
                    f"they must be equal"
                )


def sizes(arrays: dict[str, Any], model: Model) -> dict[str, int]:
    """Return the integer parameters that the data determine: lengths of axes, and the number of points."""
    lengths: dict[str, int] = {}
    points = _points(declared_data(model))
    for d in declared_data(model):
        if d.name not in arrays:
            continue
        array = arrays[d.name]
        for axis, length in zip(d.axes, array.shape[array.ndim - len(d.axes) :], strict=True):
            size = axis.size
            if size.is_Integer:
                if int(size) != length:
                    raise ParameterError(f"{d.name} has {length} entries along {axis}, but the axis has {size} labels")
                continue
            batched = d.clock is not None and axis == points and array.ndim == len(d.axes)
            root = size.follows if size.follows is not None and batched else size
            lengths[root.name] = length
            if batched and ORDER in arrays:
                lengths[size.name] = arrays[ORDER].shape[1]
    return lengths


def spread(found: dict[str, Any], model: Model, values: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays with one row per time, in the order in which training takes their points."""
    import numpy as np

    arrays = {}
    order: np.ndarray | None = None
    points = _points(declared_data(model))
    for d in (d for d in declared_data(model) if d.name in found):
        array = found[d.name]
        if d.clock is None:
            arrays[d.name] = array
            continue
        times = int(values[d.clock.steps.name]) + int(d.clock.endpoint)
        if array.ndim > len(d.axes):
            arrays[d.name] = _lasting(array, times, d)
            continue
        if d.axes[0] != points:
            arrays[d.name] = np.broadcast_to(array, (times, *array.shape))
            continue
        if order is None:
            taken = int(d.axes[0].size if d.axes[0].size.is_Integer else values[d.axes[0].size.name])
            order = (
                _lasting(found[ORDER], times, d)
                if ORDER in found
                else batches(len(array), taken, times, np.random.default_rng(0))
            )
        arrays[d.name] = array[order]
    return arrays


def _lasting(array: np.ndarray, times: int, d: Data) -> np.ndarray:
    """Return one row per time; the last row is repeated for the time after the last step."""
    import numpy as np

    if len(array) < times - int(d.clock.endpoint):
        raise ParameterError(
            f"the data cover {len(array)} steps, but {d.clock.steps} needs {times - int(d.clock.endpoint)}; "
            f"take {d.clock.steps}={len(array)} at most, or give more"
        )
    return array[:times] if len(array) >= times else np.concatenate([array, array[-1:]])


def batches(points: int, size: int, times: int, rng: np.random.Generator) -> np.ndarray:
    """Return indices of the points of each step: all of them, or shuffled batches without replacement."""
    import numpy as np

    if size > points:
        raise ParameterError(f"{size} points per batch are too many; take at most {points}")
    if size == points:
        return np.tile(np.arange(points), (times, 1))
    whole = points // size
    epochs = [rng.permutation(points)[: whole * size] for _ in range(-(-times // whole))]
    return np.concatenate(epochs)[: times * size].reshape(times, size)
