"""Open a result that was saved."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from derive.errors import DeriveError
from derive.places import path_of
from derive.results.comparison import Comparison
from derive.results.limit import Limit
from derive.results.made import Made
from derive.results.saving import ENGINES, FORMAT, Saved, check_zarr
from derive.results.simulation import Simulation
from derive.results.solution import Solution
from derive.results.sweep import Sweep
from numerics.bulk.law import Law, Panel, Panelled, Piece
from numerics.outliers.alignments import Alignment
from numerics.runtime.interface import DataOf, FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting
from numerics.simulation.compare import Row
from numerics.simulation.samples import SimulatedLayer, Simulation as FoundSimulation
from numerics.solver import Layer, Solution as FoundSolution
from numerics.training.sampling import Sampling
from numerics.two_time import TwoTime

KINDS = (
    Solution,
    Simulation,
    Comparison,
    Sweep,
    Limit,
    Made,
    FoundSolution,
    Layer,
    Alignment,
    Law,
    Panelled,
    Panel,
    Piece,
    FoundSimulation,
    SimulatedLayer,
    Row,
    Setting,
    ParameterOf,
    DataOf,
    ProbeOf,
    FieldOf,
    ObservableOf,
    TwoTime,
    Sampling,
)
"""What a file may hold; nothing else is ever made from one."""
_NAMED: dict[str, type[Any]] = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in KINDS}


def open_result(path: str | os.PathLike[str]) -> Any:
    """The result that `save` wrote: a Solution, Simulation, Comparison, Sweep or Limit.

    >>> import derive, tempfile, pathlib

    >>> from derive.api.example import SPIKE
    >>> solution = derive.load(SPIKE).solve(strength=2)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     file = solution.save(pathlib.Path(directory) / "run.nc")
    ...     derive.open(file).outliers
    array([2.5])
    """
    import xarray

    file = path_of(path)
    zarr = file.is_dir() and file.suffix == ".zarr"
    if zarr:
        check_zarr(file)
    elif not file.is_file():
        raise DeriveError(f"there is no file {file}; results are written with .save({str(file)!r})")
    try:
        with xarray.open_dataset(file, group="record", engine=ENGINES[".zarr" if zarr else ".nc"]) as record:
            version = int(record.attrs["format"])
            skeleton, numbers = record["skeleton"].values.tobytes(), np.asarray(record["numbers"].values, float)
    except Exception as error:  # noqa: BLE001 - whatever the library raises on a damaged or foreign file
        what = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise DeriveError(f"{file} is not a result saved by this package, or is damaged ({what})") from None
    if version > FORMAT:
        raise DeriveError(f"{file} was saved by a later version (format {version}); install that version to open it")
    try:
        result = decoded(json.loads(skeleton), numbers)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise DeriveError(f"{file} is damaged or of another version ({type(error).__name__}); make it again") from None
    if not isinstance(result, Saved):
        raise DeriveError(f"{file} holds no result")
    return result


def decoded(value: Any, numbers: np.ndarray) -> Any:
    """What `derive.results.saving.Pool` encoded; `numbers` are all its numbers in one row."""
    if isinstance(value, list):
        return [decoded(part, numbers) for part in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "object":
        name, parts = content
        return _NAMED[name](**{key: decoded(part, numbers) for key, part in parts.items()})
    if kind == "mapping":
        return {decoded(key, numbers): decoded(part, numbers) for key, part in content}
    if kind == "tuple":
        return tuple(decoded(part, numbers) for part in content)
    if kind == "float":
        return float(content)
    start, shape, dtype = content
    count = int(np.prod(shape, dtype=int))
    if kind != "array" or start + count > len(numbers):
        raise ValueError(kind)
    return numbers[start : start + count].astype(dtype).reshape(shape)
