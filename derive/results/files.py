"""Open a saved result."""

from __future__ import annotations

import math
import os
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from derive.errors import DeriveError
from derive.results.comparison import Comparison
from derive.results.limit import Limit, LimitDiagnostics
from derive.results.made import Provenance
from derive.results.saving import FORMAT, NUMBERS, SKELETON, Saved
from derive.results.sealing import check_seal
from derive.results.simulation import Simulation
from derive.results.solution import Solution
from derive.results.sweep import Sweep
from derive.results.typed import built
from derive.support.bounds import RESULT_SIZE
from derive.support.extras import optional
from derive.support.guarded import parsed_json, read_bytes
from derive.support.places import path_of
from derive.support.plain_words import printable
from derive.support.shapes import fits
from numerics.bulk.law import DensityPanel, DensityPiece, Panelled, SpectralLaw
from numerics.certificate.records import Certificate, CertificateCheck
from numerics.outliers.alignments import OutlierAlignment
from numerics.runtime.interface import DataOf, FieldOf, ObservableOf, ParameterOf, ProbeOf, Setting
from numerics.runtime.keys import OrderKey
from numerics.simulation.compare import Row, Verdict
from numerics.simulation.samples import SimulatedLayer
from numerics.solution import Layer
from numerics.support.reports import RECORDS
from numerics.training.sampling import Sampling
from numerics.two_time import TwoTime

KINDS = (
    Solution,
    Simulation,
    Comparison,
    Sweep,
    Limit,
    Provenance,
    Layer,
    OutlierAlignment,
    SpectralLaw,
    Panelled,
    DensityPanel,
    DensityPiece,
    SimulatedLayer,
    Row,
    Verdict,
    Setting,
    ParameterOf,
    DataOf,
    ProbeOf,
    FieldOf,
    ObservableOf,
    TwoTime,
    Sampling,
    Certificate,
    CertificateCheck,
    *RECORDS,
    LimitDiagnostics,
)
"""The types that a file may contain; no other object is ever created from one."""
_NAMED: dict[str, type[Any]] = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in KINDS}


def open_result(path: str | os.PathLike[str]) -> Any:
    """Return the result written by `save`: a Solution, Simulation, Comparison, Sweep or Limit.

    >>> import derive, tempfile, pathlib

    >>> from derive.api.example import SPIKE
    >>> solution = derive.load(SPIKE).solve(strength=2)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     file = solution.save(pathlib.Path(directory) / "run.nc")
    ...     derive.open(file).outliers
    array([2.5])
    """
    file = path_of(path)
    if not os.path.lexists(file):
        raise DeriveError(f"there is no file {file}; results are written with .save({str(file)!r})")
    if file.is_dir() and file.suffix != ".zarr":
        raise DeriveError(f"{file} is a directory but not a saved result; give a .nc file or a .zarr directory")
    check_seal(file)
    try:
        skeleton, numbers = _of_directory(file) if file.is_dir() else _of_file(file)
        held = parsed_json(skeleton)
        if not fits(held, dict) or held.get("format") != FORMAT:
            raise DeriveError(f"{file} was saved by another version; compute it again with this one")
        result = decoded(held.get("result"), numbers)
    except DeriveError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever HDF5 raises on a damaged or foreign file
        what = f"{type(error).__name__}: {error}"[:120]
        raise DeriveError(
            f"{file} is not a result saved by this version, or is damaged ({what}); compute it again"
        ) from None
    if not isinstance(result, Saved):
        raise DeriveError(f"{file} contains no result")
    return result


def _of_file(path: Path) -> tuple[bytes, np.ndarray]:
    """Return the record of a netCDF file: its text and its numbers, which take no more memory than the file."""
    h5py = optional("h5py")

    with h5py.File(path, "r") as file:
        if not isinstance(file.get("record", getlink=True), h5py.HardLink):
            raise ValueError("no record")
        parts = []
        for name, dtype in (("skeleton", np.uint8), ("numbers", np.float64)):
            if not isinstance(file["record"].get(name, getlink=True), h5py.HardLink):
                raise ValueError(f"no {name}")
            part = file["record"][name]
            if not isinstance(part, h5py.Dataset) or part.ndim != 1 or part.dtype != dtype:
                raise ValueError(f"no {name}")
            plain = part.chunks is None and not part.is_virtual and not part.external
            if not plain or part.nbytes > path.stat().st_size:
                raise ValueError(f"{name} needs more data than the file contains")
            parts.append(part[()])
    return parts[0].tobytes(), parts[1]


def _of_directory(path: Path) -> tuple[bytes, np.ndarray]:
    return read_bytes(path / SKELETON, RESULT_SIZE), np.frombuffer(read_bytes(path / NUMBERS, RESULT_SIZE), "<f8")


def decoded(value: Any, numbers: np.ndarray) -> Any:
    """Decode the output of `derive.results.saving.Pool`; `numbers` are all its numbers in one array.

    Anything that it never produces raises ValueError.
    """
    if fits(value, list):
        return [decoded(part, numbers) for part in value]
    if fits(value, str):
        return printable(value)
    if not fits(value, dict):
        return value
    try:
        ((kind, content),) = value.items()
        if kind == "object":
            name, parts = content
            made = {key: decoded(part, numbers) for key, part in parts.items()}
            if fits(parts.get("declaration"), str):
                made["declaration"] = parts["declaration"]  # a text with its own line ends, which nobody prints
            return built(_NAMED[name], made)
        if kind == "mapping":
            return {decoded(key, numbers): decoded(part, numbers) for key, part in content}
        if kind == "tuple":
            return tuple(decoded(part, numbers) for part in content)
        if kind == "key" and all(type(part) in (str, int) for part in content):
            return OrderKey(*map(decoded, content, repeat(numbers)))
        if kind == "float":
            return float(content)
        start, shape, dtype = content
        if kind != "array" or np.dtype(dtype).kind not in "fiub" or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(kind)
        count = math.prod(shape)
        if type(start) is not int or not 0 <= start <= start + count <= len(numbers):
            raise ValueError(kind)
        return numbers[start : start + count].astype(dtype).reshape(shape)
    except (TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
