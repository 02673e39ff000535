"""Options of the Python verbs: distinguished from parameters of the same name, validated, and documented."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from derive.errors import ParameterError
from derive.support.shapes import texts
from numerics.modules import Solver
from numerics.options import Options, options_of, read_options
from numerics.runtime.keys import OrderKey
from numerics.runtime.two_time import Wanted
from numerics.support.progress import handful
from numerics.two_time import parsed

F = TypeVar("F", bound=Callable[..., Any])


def takes_options(method: F) -> F:
    """Give a method that is called like its verb the signature and the documentation of that verb's options.

    The method accepts them among `**arguments`, next to parameters of the model.
    """
    declared = options_of(method.__name__)
    old = inspect.signature(method)
    keyword, rest = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD
    kept = [p for p in old.parameters.values() if p.kind is not rest]
    last = [p for p in kept if p.kind is keyword]
    named = [
        inspect.Parameter(name, keyword, default=one.default, annotation=one.type) for name, one in declared.items()
    ]
    parameters = inspect.Parameter("parameters", rest, annotation="Any")
    lines = [
        line
        for name, one in declared.items()
        for line in textwrap.wrap(f"{name}: {one.help} {one.cost}".rstrip(), 108, subsequent_indent="    ")
    ]
    described = textwrap.indent("\n".join(lines), "    ")
    method.__doc__ = f"{inspect.cleandoc(method.__doc__ or '')}\n\nArgs:\n{described}\n"
    method.__signature__ = old.replace(  # type: ignore[attr-defined]
        parameters=[*(p for p in kept if p not in last), *named, *last, parameters]
    )
    return method


def split_arguments(
    verb: str, arguments: Mapping[str, Any], ambiguous: Collection[str], setting: str
) -> tuple[Options, Any, dict[str, Any]]:
    """Return the options among the arguments of a verb, the record of its own options, and the parameters of the model.

    ambiguous: parameter names that must not coincide with an option.

    Raises:
        ParameterError: An argument could be an option or a parameter, or an option is outside its domain.
    """
    known = options_of(verb)
    options = {name: value for name, value in arguments.items() if name in known}
    for name in sorted(set(ambiguous) & set(options)):
        raise ParameterError(
            f"{name} is an option of {verb} and a parameter of {setting}: write {verb}({{{name!r}: ...}}) for the "
            f"parameter, and {name}=... beside it for the option"
        )
    found, own = read_options(verb, options)
    return found, own, {name: value for name, value in arguments.items() if name not in known}


def wanted_kernels(names: str | Sequence[str | tuple[Any, ...]] | None) -> Wanted:
    """Names of two-time functions, as "C[a,b]" or ("C", "a", "b"); a single name is accepted."""
    return tuple(parsed(name) if isinstance(name, str) else OrderKey(*name) for name in texts(names))


def times_to_watch(solver: Solver, values: Mapping[str, Any], path: bool | Sequence[int] | None) -> list[int]:
    """The times, besides the last, at which to diagonalise: by default a handful if layers have names."""
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
    """The values along an axis; a text, a number or a dict of data arrays counts as one value."""
    if isinstance(value, (str, Mapping)) or np.ndim(value) == 0:
        return (value,)
    return tuple(value)
