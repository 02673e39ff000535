"""Two-time functions as results: correlations C[a, b](t, s) and responses R[a, b](t, s) of the fields of a model.

C[a, b](t, s) is the mean over sites of a(t) b(s). R[a, b](t, s) is the mean over sites of the derivative of a(t) with
respect to a source on the right side of the equation of b at time s, on the same site; for b = W @ ... that source is
its noise. For s > t there is no response, and the entry is NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from derive.errors import ParameterError
from numerics.runtime.interface import FieldOf, Setting
from numerics.runtime.keys import OrderKey
from numerics.runtime.two_time import Wanted
from numerics.support.labelled import with_none

AXES = ("t", "label of a", "s", "label of b")
KINDS = {"C": "correlation", "R": "response"}


class NoTwoTime(ParameterError, KeyError):
    """Raised for a two-time function that does not exist."""

    __str__ = Exception.__str__


@dataclass(frozen=True)
class TwoTime:
    """C[a, b] or R[a, b]. axes: the meaning of each axis of `values`: "t" and "s", the times of a and b, and "label of
    a" and "label of b"; a field without times or labels has no such axis. errors: one standard error for each value,
    None unless the theory is sampled."""

    kind: str
    a: str
    b: str
    axes: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray | None
    moved: float = 0.0
    """Relative change, in units of its largest entry, with the last increase of quadrature nodes."""

    @property
    def name(self) -> str:
        return str(OrderKey(self.kind, self.a, self.b))

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return self.errors is None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{axis} of {count}" for axis, count in zip(self.axes, self.values.shape, strict=True))
        return f"{KINDS[self.kind]} {self.name}{f' over {sizes}' if sizes else ''}; .values, .errors, .axes"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; undefined entries are None."""
        errors = None if self.errors is None else with_none(self.errors)
        return {"axes": list(self.axes), "values": with_none(self.values), "errors": errors}

    def entries(self, times: Callable[[int], Sequence[int]]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Return a few entries, each with its position as text: times chosen by their number, the first label, and for
        two different labels the first two."""
        chosen = []
        for axis, count in zip(self.axes, self.values.shape, strict=True):
            chosen.append(list(times(count)) if axis in ("t", "s") else [0, 1][: min(count, 2)])
        for place in np.ndindex(*map(len, chosen)):
            at = tuple(options[i] for options, i in zip(chosen, place, strict=True))
            half = len(at) // 2
            mirrored = self.kind == "C" and self.a == self.b and at[:half] < at[half:]
            if np.isfinite(self.values[at]) and not mirrored:
                yield f"{self.name}({', '.join(map(str, at))})", at


def parsed(text: str) -> OrderKey:
    """Return the key written as C[a,b]."""
    found = re.fullmatch(r"\s*([CR])\s*\[\s*([^\[\],]+?)\s*,\s*([^\[\],]+?)\s*\]\s*", text)
    if found is None:
        raise NoTwoTime(f"{text} is not a two-time function; write C[a,b] or R[a,b], with the names of two fields")
    return OrderKey(found[1], found[2], found[3])


def checked(setting: Setting, names: Iterable[tuple[Any, ...]]) -> Wanted:
    """Return the names, each once, if the setting has all their fields.

    In a response R[a, b] to a field of another sector, b acts on the site of a through a random matrix; if that product
    is a single field, its name is used.
    """
    fields = {f.name: f for f in setting.fields}
    wanted: dict[OrderKey, None] = {}
    for written in names:
        if len(written) != 3 or written[0] not in KINDS:
            raise NoTwoTime(f"{written} is not a two-time function; write C[a,b] or R[a,b], with names of fields")
        name = OrderKey(*written)
        missing = [f for f in name.of if f not in fields]
        if missing:
            raise NoTwoTime(f"{name}: there is no field {missing[0]}; {_there_is(setting)}")
        a, b = (fields[f] for f in name.of)
        if a.sector != b.sector:
            here = [f.name for f in setting.fields if f.argument == b.name and f.sector == a.sector]
            if name.kind == "R" and len(here) == 1:
                name = OrderKey("R", a.name, here[0])
            else:
                instead = (
                    f"products of random matrices with {b.name} on {a.sector} are {', '.join(here)}; " if here else ""
                )
                raise NoTwoTime(
                    f"{name}: {a.name} lives on {a.sector} and {b.name} on {b.sector}, so they share no "
                    f"site; {instead}{_there_is(setting)}"
                )
        wanted[name] = None
    return tuple(wanted)


def pairs(setting: Setting) -> list[tuple[str, str]]:
    """Return the pairs of declared fields on the same sector."""
    declared = [f for f in setting.fields if f.declared]
    return [(a.name, b.name) for a in declared for b in declared if a.sector == b.sector]


def _there_is(setting: Setting) -> str:
    by_sector: dict[str, list[str]] = {}
    for f in sorted(setting.fields, key=lambda f: not f.declared):
        by_sector.setdefault(f.sector, []).append(f.name)
    if not by_sector:
        return f"{setting.name} has no fields"
    return "there are " + "; ".join(f"{', '.join(names)} on {sector}" for sector, names in by_sector.items())


def finished(
    setting: Setting, name: OrderKey, values: np.ndarray, errors: np.ndarray | None = None, moved: float = 0.0
) -> TwoTime:
    """Return the result with the axes of the fields, from times of a x labels of a x times of b x labels of b."""
    fields = {f.name: f for f in setting.fields}
    a, b = (fields[f] for f in name.of)
    gone = tuple(i for i, there in enumerate((*_has(a), *_has(b))) if not there)
    table = np.array(values, float)
    spread = None if errors is None else np.array(errors, float)
    if name.kind == "R" and b.timed:
        when = np.arange(table.shape[0]) if a.timed else np.full(table.shape[0], -1)
        later = np.arange(table.shape[2])[None, :] > when[:, None]
        for array in (table, *([] if spread is None else [spread])):
            np.moveaxis(array, 2, 1)[later] = np.nan
    return TwoTime(
        name.kind,
        a.name,
        b.name,
        axes_of(setting, name),
        table.squeeze(gone),
        None if spread is None else spread.squeeze(gone),
        moved,
    )


def axes_of(setting: Setting, name: OrderKey) -> tuple[str, ...]:
    """Return the meaning of each axis of a two-time function."""
    fields = {f.name: f for f in setting.fields}
    there = (*_has(fields[name[1]]), *_has(fields[name[2]]))
    return tuple(axis for axis, is_there in zip(AXES, there, strict=True) if is_there)


def _has(field: FieldOf) -> tuple[bool, bool]:
    """Return whether a field has times, and whether it has labels."""
    return field.timed, bool(field.labels)


class Kernels(Mapping[tuple[str, str], TwoTime]):
    """All correlations, or all responses, of one solution: `solution.C["h0", "h0"]`. Each is computed on first access,
    and cached. It iterates over the pairs of declared fields."""

    def __init__(self, kind: str, setting: Setting, found: dict[OrderKey, TwoTime], compute: Callable[[Wanted], None]):
        self._kind, self._setting, self._found, self._compute = kind, setting, found, compute

    def __getitem__(self, fields: tuple[str, str]) -> TwoTime:
        if not (isinstance(fields, tuple) and len(fields) == 2):
            raise NoTwoTime(f'{self._kind}[{fields!r}]: name two fields, as in {self._kind}["a", "b"]')
        (name,) = checked(self._setting, [(self._kind, str(fields[0]), str(fields[1]))])
        if name not in self._found:
            self._compute((name,))
        return self._found[name]

    def __contains__(self, fields: object) -> bool:
        return fields in pairs(self._setting)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(pairs(self._setting))

    def __len__(self) -> int:
        return len(pairs(self._setting))

    def __repr__(self) -> str:
        return f"<{KINDS[self._kind]}s of {self._setting.name}; {_there_is(self._setting)}>"
