"""Results as files: a labelled tree for people and other programs, together with the complete result as plain data.

A file is netCDF, or a directory in the format of Zarr. The groups `theory`, `simulation` and `sweep` are the output of
`to_xarray()`. The group `record`, or two files of that name in a directory, stores the result itself for `derive.open`:
all its numbers in one array, and a text that describes them. It contains no code, and nothing is pickled. Digests
detect later changes.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derive.errors import DeriveError, NumericalError
from derive.results.made import Provenance
from derive.results.sealing import sealed, sealed_files
from derive.support.extras import check_installed, optional
from derive.support.guarded import write_whole
from derive.support.interrupts import removing
from derive.support.places import path_of
from numerics.runtime.keys import OrderKey
from numerics.support.formatting import html_table, table
from numerics.support.records import ArrayRecord

if TYPE_CHECKING:
    import xarray

FORMAT = 4
"""Version of the record; files of other versions are refused."""
SUFFIXES = (".nc", ".zarr")
SKELETON, NUMBERS = "record-skeleton.json", "record-numbers.f8"
"""The record in a directory: the description of the numbers, and the numbers themselves, in eight bytes each."""


class Saved(ArrayRecord, ABC):
    """A result that can be saved and reopened with `derive.open`; two are equal if they have the same numbers and
    provenance."""

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the result atomically as netCDF (.nc) or Zarr (.zarr); `derive.open(path)` reads it back."""
        return write_result(self, path_of(path))

    @abstractmethod
    def to_xarray(self) -> Any:
        """The labelled part of the file."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PointResult(Saved):
    """A result at one point, with its provenance."""

    made: Provenance
    """Declaration, values, options and versions behind the result."""
    trouble: tuple[str, ...] = ()
    """Why the result is unreliable; empty otherwise."""
    failed: bool = False
    """Whether there are no numbers; `trouble` gives the reason."""

    def __bool__(self) -> bool:
        return not self.trouble

    @property
    def setting(self) -> str:
        """The name of the setting."""
        return self.made.setting

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """All values, including choices."""
        return dict(self.made.parameters)

    @property
    def title(self) -> str:
        """The setting with its values."""
        return self.made.point

    @abstractmethod
    def _rows(self) -> list[tuple[str, str]]:
        """Names and values for a table."""

    def _check_numbers(self) -> None:
        """Raise NumericalError if the computation failed."""
        if self.failed:
            raise NumericalError(self.trouble[0])

    def __str__(self) -> str:
        if self.failed:
            return f"{self.title}: {self.trouble[0]}"
        return "\n".join([self.title, *table(self._rows()), *(f"not to be trusted: {why}" for why in self.trouble)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.title, self._rows(), self.trouble)


def write_result(result: Saved, path: Path) -> Path:
    """Write a result atomically."""
    xarray = optional("xarray")

    if path.suffix not in SUFFIXES:
        raise DeriveError(f"{path}: end the name in .nc or .zarr; results are saved as netCDF or Zarr")
    if path.suffix == ".zarr":
        check_zarr(path)
    pool = Pool()
    skeleton = json.dumps({"format": FORMAT, "result": pool.encoded(result)}, allow_nan=False).encode()
    tree = as_tree(result.to_xarray())
    try:
        if path.suffix == ".nc":
            record = {"skeleton": ("byte", np.frombuffer(skeleton, np.uint8)), "numbers": ("number", pool.numbers())}
            tree["record"] = xarray.DataTree(xarray.Dataset(record))
            write_whole(path, sealed(bytes(tree.to_netcdf(None, engine="h5netcdf"))))  # HDF5 never sees a full disk
        else:
            _write_directory(tree, skeleton, pool.numbers(), path)
    except OSError as error:
        raise DeriveError(
            f"{path}: cannot be written ({error.strerror or error}); free some space, or choose another file"
        ) from None
    return path


def _write_directory(tree: xarray.DataTree, skeleton: bytes, numbers: np.ndarray, path: Path) -> None:
    from zarr.storage import MemoryStore

    held: dict[str, Any] = {}
    tree.to_zarr(MemoryStore(held), zarr_format=2)  # the version whose texts every reader knows
    contents = {name: content.to_bytes() for name, content in held.items()}
    contents |= {SKELETON: skeleton, NUMBERS: numbers.astype("<f8").tobytes()}
    name = f".{path.name[:100]}-"
    with tempfile.TemporaryDirectory(prefix=name, dir=path.parent) as made, removing(Path(made)):
        unfinished = Path(made) / "new.zarr"
        for file, content in sealed_files(contents).items():
            (unfinished / file).parent.mkdir(parents=True, exist_ok=True)
            (unfinished / file).write_bytes(content)
        if path.exists():
            os.replace(path, Path(made) / "old")
        os.replace(unfinished, path)


def check_zarr(path: Path) -> None:
    """Raise an error if Zarr is not installed, or if something else exists at the path."""
    check_installed("zarr")
    if path.exists() and not (path / ".zgroup").is_file():
        raise DeriveError(f"{path} exists already and is not a result in Zarr format; choose another name")


def as_tree(labelled: Any) -> xarray.DataTree:
    """Return a labelled array or tree as a tree."""
    library = optional("xarray")
    return labelled if isinstance(labelled, library.DataTree) else library.DataTree.from_dict({"/sweep": labelled})


class Pool:
    """All numbers of a result in one array, and its structure as JSON."""

    def __init__(self) -> None:
        self.parts: list[np.ndarray] = []
        self.count = 0

    def numbers(self) -> np.ndarray:
        return np.concatenate([*self.parts, np.zeros(1)])  # never empty

    @singledispatchmethod
    def encoded(self, value: Any) -> Any:
        """Return the value as JSON; anything but a list, a text or a number becomes an object whose only key names its
        type.
        """
        if not is_dataclass(type(value)):
            raise DeriveError(f"a result contains a {type(value).__name__}, which cannot be saved")
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        parts = [f.name for f in fields(value) if not f.metadata.get("live")]
        return {"object": [name, {part: self.encoded(getattr(value, part)) for part in parts}]}

    @encoded.register(type(None))
    @encoded.register(str)
    @encoded.register(int)
    def _plain(self, value: str | int | None) -> Any:
        return value

    @encoded.register
    def _float(self, value: float) -> Any:
        return value if math.isfinite(value) else {"float": repr(value)}

    @encoded.register
    def _number(self, value: np.generic) -> Any:
        return self.encoded(value.item())

    @encoded.register
    def _list(self, value: list) -> Any:  # type: ignore[type-arg]
        return [self.encoded(part) for part in value]

    @encoded.register
    def _tuple(self, value: tuple) -> Any:  # type: ignore[type-arg]
        return {"tuple": [self.encoded(part) for part in value]}

    @encoded.register
    def _key(self, value: OrderKey) -> Any:
        return {"key": list(value)}

    @encoded.register
    def _mapping(self, value: Mapping) -> Any:  # type: ignore[type-arg]
        return {"mapping": [[self.encoded(key), self.encoded(part)] for key, part in value.items()]}

    @encoded.register
    def _array(self, array: np.ndarray) -> Any:
        if array.dtype.kind not in "fiub":
            raise DeriveError(f"a result contains an array of {array.dtype}, which cannot be saved")
        flat = np.asarray(array, float).ravel()
        start, self.count = self.count, self.count + flat.size
        self.parts.append(flat)
        return {"array": [start, list(array.shape), array.dtype.str]}
