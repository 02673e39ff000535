"""The provenance of a result: declaration, values, options and versions."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from derive.support.plain_words import shown_value
from derive.version import __version__, library_versions


@dataclass(frozen=True)
class Provenance:
    """The provenance of a result.

    verb: "solve", "simulate" or "compare". target: the name of a setting, the path of a file, or "" for a model
    declared in Python. parameters: all values, including choices. options: all other arguments, including seeds.
    declaration: its text. data: a fingerprint of each given array. versions: of this package and of the libraries that
    compute. symbols: LaTeX of the parameters that declare it. matrices: LaTeX of the probed matrices, by layer.
    """

    verb: str
    setting: str
    target: str
    parameters: Mapping[str, int | float | str]
    options: Mapping[str, Any] = field(default_factory=dict)
    declaration: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)
    matrices: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        told = self.command or f"{self.verb} {self.point}"
        return f"{told}, with {', '.join(f'{name} {number}' for name, number in self.versions.items())}"

    @property
    def point(self) -> str:
        """Setting and values in one line."""
        return " ".join([self.setting, *(f"{name}={shown_value(value)}" for name, value in self.parameters.items())])

    def title(self, without: Collection[str] = ()) -> str:
        """The title of a figure: setting, and parameters with their symbols. without: parameters that vary."""
        from numerics.plots.sweeps import shown_symbol

        values = [
            f"{shown_symbol(name, self.symbols.get(name, ''))} = {format(x, '.6g') if isinstance(x, float) else x}"
            for name, x in self.parameters.items()
            if name not in without
        ]
        return ", ".join([self.setting.replace("_", " "), *values])

    @property
    def command(self) -> str | None:
        """The command that gives the same result; None for a model declared in Python, with arrays, or with options
        that only Python has."""
        if not self.target or self.data:
            return None
        values = [f"{name}={value}" for name, value in self.parameters.items()]
        options = []
        for name, value in self.options.items():
            flag = f"--{name.replace('_', '-')}"
            if name == "layer":
                values.append(f"layer={value}")
            elif isinstance(value, bool):
                options += [flag if value else f"--no-{name}"]
            elif isinstance(value, (list, tuple)):
                if name not in ("kernel", "align"):
                    return None  # times that were listed in Python
                options += [word for one in value for word in (flag, str(one))]
            elif value is not None:
                options += [flag, str(value)]
        return shlex.join(["derive", self.verb, self.target, *values, *options])


def versions() -> dict[str, str]:
    """The versions of this package and of the libraries behind the numbers."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    return {"two-level-dmft": __version__, **library_versions()}


def fingerprints(inputs: Mapping[str, Any]) -> dict[str, str]:
    """A fingerprint of every array among the inputs."""
    return {
        name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
        for name, value in inputs.items()
        if getattr(value, "ndim", 0)
    }
