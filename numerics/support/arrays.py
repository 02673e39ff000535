"""Data arrays, checked against the axes of the declaration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from derive.errors import ParameterError


def size_of(values: Mapping[str, Any], size: str) -> int:
    """Return the size of an axis: a parameter, or a number as text."""
    return int(values.get(size, size))


def labels_in(values: Mapping[str, Any], sizes: Iterable[str]) -> int:
    """Return the number of labels along axes of these sizes."""
    return math.prod(size_of(values, size) for size in sizes)


def checked_array(name: str, axes: tuple[str, ...], values: dict[str, Any]) -> np.ndarray:
    """Return the array of that name if its shape matches the declaration and all entries are finite."""
    if name not in values:
        raise ParameterError(f"the data {name} is missing; it has the axes {', '.join(axes)}")
    try:
        array = np.asarray(values[name])
        if array.dtype.kind not in "fiub":
            raise ValueError
        array = array.astype(float)
    except (TypeError, ValueError):
        raise ParameterError(f"the data {name} is not an array of numbers") from None
    if not np.all(np.isfinite(array)):
        raise ParameterError(f"the data {name} has an entry that is not a finite number; fix the data")
    wanted = tuple(size_of(values, axis) for axis in axes)
    if array.shape != wanted:
        shown = ", ".join(f"{axis} = {n}" for axis, n in zip(axes, wanted, strict=True))
        raise ParameterError(f"the data {name} has shape {array.shape}; it must be {wanted} ({shown})")
    return array
