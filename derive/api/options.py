"""Options of the verbs, told apart from parameters that have the same name."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
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


NO_NAMES: tuple[str, ...] = ()
"""The default of an option that takes names (Python has one empty tuple)."""


def asked(**options: Any) -> Asked:
    """The options that were given; those with a number as their default have no meaning for None."""
    given = {name: value for name, value in options.items() if not isinstance(value, Number) and value is not NO_NAMES}
    return {name: value for name, value in given.items() if value is not None or name in ("size", "seeds", "seed")}


def check(options: Asked) -> None:
    """Raise ParameterError for the first option that is not of its kind, whichever verb it was given to."""
    for name, value in options.items():
        allowed, meaning = KINDS.get(name, (None, ""))
        if allowed is not None and not allowed(value):
            raise ParameterError(f"{name}={value!r}: {name} must be {meaning}")


def _whole(low: float = -np.inf) -> Callable[[Any], bool]:
    def allowed(value: Any) -> bool:
        try:
            return not _yes_or_no(value) and operator.index(value) >= low
        except TypeError:
            return isinstance(value, float) and value.is_integer() and value >= low

    return allowed


def _yes_or_no(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _times(value: Any) -> bool:
    return _yes_or_no(value) or (not _text(value) and np.ndim(value) == 1)


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _names(value: Any) -> bool:
    """One name, or several: each a text, or three texts as in ("C", "a", "b")."""
    if _text(value):
        return True
    return isinstance(value, Iterable) and all(
        _text(name) or (isinstance(name, tuple) and len(name) == 3 and all(map(_text, name))) for name in value
    )


KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "size": (_whole(), "a whole number"),
    "seeds": (_whole(), "a whole number"),
    "seed": (_whole(0), "a whole number, 0 or larger"),
    "samples": (_whole(100), "a whole number, 100 or larger"),
    "rank": (_whole(2), "a whole number, 2 or larger"),
    "memory": (_positive, "a number of GB, larger than 0"),
    "path": (_times, "True, False or a list of times"),
    "overlaps": (_yes_or_no, "True or False"),
    "simulation": (_yes_or_no, "True or False"),
    "certify": (_yes_or_no, "True or False"),
    "command": (_text, "text"),
    "align": (
        lambda value: _text(value) or (isinstance(value, Iterable) and all(map(_text, value))),
        "names of fields such as 'v(3)' in a list",
    ),
    "kernels": (_names, "names such as C[a,b] in a list"),
    "backend": (lambda value: _text(value) and value in ("numpy", "jax"), "numpy or jax"),
    "eigenvalues": (lambda value: _text(value) and value in ("all", "ends"), "all or ends"),
    "jobs": (lambda value: _text(value) or _whole()(value), "a number of processes or 'cores'"),
    "executor": (lambda value: callable(getattr(value, "submit", None)), "a concurrent.futures.Executor"),
    "on": (_text, "text such as dask:tcp://HOST:PORT"),
    "journal": (lambda value: isinstance(value, (str, os.PathLike)), "the path of a file"),
    "shard": (_text, "text such as 2/8"),
    "progress": (callable, "a function of a share and a text"),
}
"""What an option must be, and how a sentence says so."""


def wanted_kernels(names: str | Sequence[str | Name] | None) -> Wanted:
    """Two-time functions by name, as "C[a,b]" or as ("C", "a", "b"); one name may stand alone."""
    listed = (names,) if isinstance(names, str) else () if names is None else names
    return tuple(parsed(name) if isinstance(name, str) else name for name in listed)


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
