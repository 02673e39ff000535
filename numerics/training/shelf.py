"""Tables of arrays that are kept until they are asked for: in memory, or on disk where they are many and large."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

K = TypeVar("K")
IN_MEMORY = 1e9
"""Tables that take more bytes than this together are kept on disk."""


class Shelf:
    """Keeps tables; what is on disk goes when the shelf and all its tables are gone. expected: bytes of all tables."""

    def __init__(self, expected: float):
        self.directory = tempfile.TemporaryDirectory(prefix="two-level-dmft-") if expected > IN_MEMORY else None
        self.count = 0

    def keep(self, table: Mapping[K, np.ndarray]) -> Mapping[K, np.ndarray]:
        """The same table, whose arrays are read when they are asked for if it is on disk."""
        if self.directory is None:
            return table
        places: dict[K, Path] = {}
        for key, value in table.items():
            places[key] = Path(self.directory.name) / f"{self.count}.npy"
            np.save(places[key], value)
            self.count += 1
        return _OnDisk(self, places)


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
