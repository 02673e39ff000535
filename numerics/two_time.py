"""Two-time functions as results: correlations C[a, b](t, s) and responses R[a, b](t, s) of the fields of a model.

C[a, b](t, s) is the mean over sites of a(t) b(s). R[a, b](t, s) is the impulse response: the mean derivative of a(t) by
a source added to the equation of b at time s, on the same site; for b = W @ ... that source is its noise. By causality
there is no response for s > t, and the entry is NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from derive.errors import ParameterError
from numerics.runtime.interface import FieldOf, Setting
from numerics.runtime.two_time import Wanted
from numerics.support.labelled import with_none

Name = tuple[str, str, str]
"""("C", a, b) or ("R", a, b)."""
AXES = ("t", "label of a", "s", "label of b")
KINDS = {"C": "correlation", "R": "response"}


class NoTwoTime(ParameterError, KeyError):
    """The requested two-time function does not exist."""

    __str__ = Exception.__str__


@dataclass(frozen=True)
class TwoTime:
    """A correlation C[a, b] or response R[a, b].

    Attributes:
        axes: meaning of each axis of `values`: "t" and "s" for the times of a and b, "label of a" and "label of b";
            absent for a field without times or labels.
        values: the values.
        errors: standard errors; None where nothing is sampled.
    """

    kind: str
    a: str
    b: str
    axes: tuple[str, ...]
    values: np.ndarray
    errors: np.ndarray | None
    moved: float = 0.0
    """How far it moved, relative to its largest entry, with the last nodes added where it is integrated."""

    @property
    def name(self) -> str:
        """Name, such as C[h0,h0]."""
        return shown((self.kind, self.a, self.b))

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
        """Yield a few entries, each as text and index: times selected by `times`, and the first two labels."""
        chosen = []
        for axis, count in zip(self.axes, self.values.shape, strict=True):
            chosen.append(list(times(count)) if axis in ("t", "s") else [0, 1][: min(count, 2)])
        for place in np.ndindex(*map(len, chosen)):
            at = tuple(options[i] for options, i in zip(chosen, place, strict=True))
            half = len(at) // 2
            mirrored = self.kind == "C" and self.a == self.b and at[:half] < at[half:]
            if np.isfinite(self.values[at]) and not mirrored:
                yield f"{self.name}({', '.join(map(str, at))})", at


def shown(name: Name) -> str:
    """Return a name as text, such as C[h0,h0]."""
    return f"{name[0]}[{name[1]},{name[2]}]"


def parsed(text: str) -> Name:
    """Parse "C[h0,h0]" to ("C", "h0", "h0")."""
    match = re.fullmatch(r"\s*([CR])\s*\[\s*([^\[\],]+?)\s*,\s*([^\[\],]+?)\s*\]\s*", text)
    if match is None:
        raise NoTwoTime(f"{text} is not a two-time function; write C[a,b] or R[a,b], with the names of two fields")
    return match[1], match[2], match[3]


def checked(setting: Setting, names: Iterable[Name]) -> Wanted:
    """Return the names without duplicates; raise if a field does not exist.

    In R[a, b] with b on another sector, the source acts on the product of a random matrix with b on the sector of a.
    Where there is one such product, its name replaces b.
    """
    fields = {f.name: f for f in setting.fields}
    wanted: dict[Name, None] = {}
    for name in names:
        missing = [f for f in name[1:] if f not in fields]
        if missing or name[0] not in KINDS:
            raise NoTwoTime(f"{shown(name)}: there is no field {missing[0]}; {_there_is(setting)}")
        a, b = fields[name[1]], fields[name[2]]
        if a.sector != b.sector:
            here = [f.name for f in setting.fields if f.argument == b.name and f.sector == a.sector]
            if name[0] == "R" and len(here) == 1:
                name = ("R", a.name, here[0])
            else:
                instead = f"what random matrices make of {b.name} on {a.sector} is {', '.join(here)}; " if here else ""
                raise NoTwoTime(
                    f"{shown(name)}: {a.name} lives on {a.sector} and {b.name} on {b.sector}, so that they share no "
                    f"site; {instead}{_there_is(setting)}"
                )
        wanted[name] = None
    return tuple(wanted)


def pairs(setting: Setting) -> list[tuple[str, str]]:
    """Return the pairs of declared fields on the same sector."""
    declared = [f for f in setting.fields if f.declared]
    return [(a.name, b.name) for a in declared for b in declared if a.sector == b.sector]


def _there_is(setting: Setting) -> str:
    """Return a sentence that lists the fields by sector."""
    by_sector: dict[str, list[str]] = {}
    for f in sorted(setting.fields, key=lambda f: not f.declared):
        by_sector.setdefault(f.sector, []).append(f.name)
    if not by_sector:
        return f"{setting.name} has no fields"
    return "there are " + "; ".join(f"{', '.join(names)} on {sector}" for sector, names in by_sector.items())


def finished(
    setting: Setting, name: Name, values: np.ndarray, errors: np.ndarray | None = None, moved: float = 0.0
) -> TwoTime:
    """Return the result with the axes that the fields have, from times of a x labels of a x times of b x labels of
    b."""
    fields = {f.name: f for f in setting.fields}
    a, b = fields[name[1]], fields[name[2]]
    gone = tuple(i for i, there in enumerate((*_has(a), *_has(b))) if not there)
    table = np.array(values, float)
    spread = None if errors is None else np.array(errors, float)
    if name[0] == "R" and b.timed:
        when = np.arange(table.shape[0]) if a.timed else np.full(table.shape[0], -1)
        later = np.arange(table.shape[2])[None, :] > when[:, None]
        for array in (table, *([] if spread is None else [spread])):
            np.moveaxis(array, 2, 1)[later] = np.nan
    return TwoTime(
        *name,
        axes_of(setting, name),
        table.squeeze(gone),
        None if spread is None else spread.squeeze(gone),
        moved,
    )


def axes_of(setting: Setting, name: Name) -> tuple[str, ...]:
    """Return the meaning of each axis of a two-time function."""
    fields = {f.name: f for f in setting.fields}
    there = (*_has(fields[name[1]]), *_has(fields[name[2]]))
    return tuple(axis for axis, is_there in zip(AXES, there, strict=True) if is_there)


def _has(field: FieldOf) -> tuple[bool, bool]:
    """Return whether a field has times, and whether it has labels."""
    return field.timed, bool(field.labels)


class Kernels(Mapping[tuple[str, str], TwoTime]):
    """All correlations, or all responses, of one solution: `solution.C["h0", "h0"]`.

    Each is computed on first access and cached. Iteration runs over the pairs of declared fields.
    """

    def __init__(self, kind: str, setting: Setting, found: dict[Name, TwoTime], compute: Callable[[Wanted], None]):
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
