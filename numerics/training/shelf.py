"""Tables of arrays that are kept until they are asked for: in memory as long as they are few or small, then on disk."""

from __future__ import annotations

import ctypes
import tempfile
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

K = TypeVar("K")
IN_MEMORY = 5e8
"""What tables in memory may take together; those that come later are kept on disk."""


class Shelf:
    """Keeps tables; what is on disk goes when the shelf and all its tables are gone. most: bytes in memory."""

    def __init__(self, most: float = IN_MEMORY):
        self.room = most
        self.directory: tempfile.TemporaryDirectory[str] | None = None
        self.count = 0

    def takes(self, table: Mapping[K, np.ndarray]) -> bool:
        """Whether there is room in memory for a table, which is then counted."""
        size = sum(value.nbytes for value in table.values())
        if size > self.room:
            return False
        self.room -= size
        return True

    def keep_parts(self, parts: Iterable[Mapping[K, np.ndarray]]) -> Mapping[K, np.ndarray]:
        """Several tables as one; each is put away before the next one is made."""
        kept = [self.keep(part) for part in parts]
        if any(isinstance(part, _OnDisk) for part in kept):
            return ChainMap(*kept)  # type: ignore[arg-type]  # only read
        return {key: value for part in kept for key, value in part.items()}

    def keep(self, table: Mapping[K, np.ndarray]) -> Mapping[K, np.ndarray]:
        """The same table, whose arrays are read when they are asked for if it is on disk."""
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


def give_back() -> None:
    """Return memory that is free, but kept for later by the C library, to the system, where that knows how."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


class _OnDisk(Mapping[K, np.ndarray]):
    def __init__(self, shelf: Shelf, places: dict[K, Path]):
        self.shelf, self.places = shelf, places

    def __getitem__(self, key: K) -> np.ndarray:
        found: np.ndarray = np.load(self.places[key])
        return found

    def __iter__(self) -> Iterator[K]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)
