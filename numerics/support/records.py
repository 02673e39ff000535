"""Frozen records that contain arrays: the arrays are read-only, and records are equal if all their parts are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

PLAIN = frozenset((type(None), bool, int, float, str))
"""Types of values without arrays; most values are of these."""


class ArrayRecord:
    """Base of frozen dataclasses with arrays; declare them with eq=False. Fields with compare=False do not count."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if type(value) not in PLAIN:
                _lock(value)

    def __eq__(self, other: object) -> bool:
        return are_equal(self, other)


def read_only(values: Any) -> np.ndarray:
    """Return a copy as a read-only array of numbers; None becomes NaN."""
    array = np.array(values, float)
    array.flags.writeable = False
    return array


def _lock(value: Any) -> None:
    """Make every array in nested lists, tuples and mappings read-only."""
    match value:
        case np.ndarray():
            value.flags.writeable = False
        case list() | tuple():
            for part in value:
                if type(part) not in PLAIN:
                    _lock(part)
        case dict():  # other mappings read or compute values on access
            for part in value.values():
                if type(part) not in PLAIN:
                    _lock(part)


def are_equal(one: Any, other: Any) -> bool:
    """Return whether two values of nested records, mappings, sequences and arrays are equal; NaN equals NaN."""
    if is_dataclass(one):
        names = [field.name for field in fields(one) if field.compare]
        return type(one) is type(other) and all(are_equal(getattr(one, n), getattr(other, n)) for n in names)
    match one, other:
        case np.ndarray(), np.ndarray():
            return np.array_equal(one, other, equal_nan=True)
        case (list(), list()) | (tuple(), tuple()):
            return len(one) == len(other) and all(map(are_equal, one, other))
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(are_equal(one[key], other[key]) for key in one)
        case float(), float():
            return one == other or (one != one and other != other)
    return type(one) is type(other) and bool(one == other)
