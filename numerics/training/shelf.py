"""Storage for tables of arrays: in memory up to a limit, then in temporary files."""

from __future__ import annotations

import ctypes
import tempfile
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

K = TypeVar("K")
IN_MEMORY = 5e8
"""Bytes that stored tables may take in memory; further ones go to disk. Trades memory for time."""


class Shelf:
    """Store for tables of arrays.

    Its files are deleted with the store and all its tables. most: bytes that may be kept in memory.
    """

    def __init__(self, most: float = IN_MEMORY):
        self.room = most
        self.directory: tempfile.TemporaryDirectory[str] | None = None
        self.count = 0

    def takes(self, table: Mapping[K, np.ndarray]) -> bool:
        """Reserve memory for a table; return whether there is enough."""
        size = sum(value.nbytes for value in table.values())
        if size > self.room:
            return False
        self.room -= size
        return True

    def keep(self, table: Mapping[K, np.ndarray]) -> Mapping[K, np.ndarray]:
        """Store a table; arrays on disk are loaded when they are read."""
        if self.takes(table):
            return table
        if self.directory is None:
            self.directory = tempfile.TemporaryDirectory(prefix="two-level-dmft-")
        places: dict[K, Path] = {}
        for key, value in table.items():
            places[key] = Path(self.directory.name) / f"{self.count}.npy"
            np.save(places[key], value)
            self.count += 1
        return _OnDisk(self, places)


def joined(parts: Sequence[Mapping[K, np.ndarray]]) -> Mapping[K, np.ndarray]:
    """Return several stored tables as one."""
    if any(isinstance(part, _OnDisk) for part in parts):
        return ChainMap(*parts)  # type: ignore[arg-type]  # only read
    return {key: value for part in parts for key, value in part.items()}


def give_back() -> None:
    """Return free memory of the C library to the system, if that is supported."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class _OnDisk(Mapping[K, np.ndarray]):
    """A table whose arrays are loaded from files."""

    def __init__(self, shelf: Shelf, places: dict[K, Path]):
        self.shelf, self.places = shelf, places

    def __getitem__(self, key: K) -> np.ndarray:
        array: np.ndarray = np.load(self.places[key])
        return array

    def __iter__(self) -> Iterator[K]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)
