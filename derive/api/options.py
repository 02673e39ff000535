"""Options of the verbs, told apart from parameters that have the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derive.errors import ParameterError
from numerics.modules import Solver
from numerics.progress import handful
from numerics.runtime.two_time import Wanted
from numerics.two_time import Name, parsed

Asked = dict[str, Any]


class Number(int):
    """A default of an option. It is a number like any other, but one that nobody has typed."""


def asked(**options: Any) -> Asked:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None and not isinstance(value, Number)}


def wanted_kernels(names: Sequence[str | Name]) -> Wanted:
    """Two-time functions by name, as "C[a,b]" or as ("C", "a", "b")."""
    return tuple(parsed(name) if isinstance(name, str) else name for name in names)


def times_to_watch(solver: Solver, values: Mapping[str, Any], path: bool | Sequence[int] | None) -> list[int]:
    """When to diagonalise besides the end: by default at a handful of times where layers have names."""
    if solver.setting.steps is None or path is False or (path is None and not solver.layered):
        return []
    count = int(values[solver.setting.steps]) + 1
    if path is None or isinstance(path, bool):
        return list(range(count)) if path else handful(count)
    times = sorted({int(time) for time in path})
    if any(not 0 <= time < count for time in times) or any(time != int(time) for time in path):
        raise ParameterError(f"path={list(path)}: the times are whole numbers from 0 to {count - 1}")
    return times


def several(value: Any) -> tuple[Any, ...]:
    """The values along an axis; text, numbers and arrays of data by name are one."""
    if isinstance(value, (str, Mapping)) or np.ndim(value) == 0:
        return (value,)
    return tuple(value)
