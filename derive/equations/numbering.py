"""Numbers under which derivation.md shows equations and generated code cites them.

Of the training level: E1, E2, ... Of a probed matrix: A1, A2, ... the rows of A(z), B1, B2, ... the equations of the
bulk, S1, S2, ... the scalar maps, G1 the curve of the resolvent; behind a point its label, where it has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from derive.language.vectors import Field
from derive.records.saddle import NoiseKernel
from derive.records.system import System


def probe_tag(series: str, number: int, system: System) -> str:
    """The tag of an equation of the probed matrix that a system is joined by, counted from zero."""
    (probe,) = system.probes
    return f"{series}{number + 1}{f'.{probe.label}' if probe.label else ''}"


@dataclass(frozen=True)
class Numbering:
    """By field the tags of its values at the first times and of its law; by pair those of covariances of noises."""

    starts: dict[tuple[Field, int], str]
    laws: dict[Field, str]
    covariances: dict[tuple[Field, Field], str]

    @staticmethod
    def of(system: System, covariances: Iterable[NoiseKernel]) -> Numbering:
        """The training level in the order of its declaration, covariances of its noises last."""
        starts: dict[tuple[Field, int], str] = {}
        laws: dict[Field, str] = {}
        pairs: dict[tuple[Field, Field], str] = {}

        def tag() -> str:
            return f"E{1 + len(starts) + len(laws) + len(set(pairs.values()))}"

        for f in system.training:
            for time in range(len(f.starts)):
                starts[f.field, time] = tag()
            laws[f.field] = tag()
        for c in covariances:
            if "spectral" not in (c.left.role, c.right.role) and (c.left, c.right) not in pairs:
                pairs[c.left, c.right] = pairs[c.right, c.left] = tag()
        return Numbering(starts, laws, pairs)
