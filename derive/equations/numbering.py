"""Equation numbers, shown in derivation.md and cited by generated code.

The training level has E1, E2, ... A probed matrix has A1, A2, ... for the rows of A(z), B1, B2, ... for the bulk
equations, S1, S2, ... for the scalar maps and G1 for the curve of the resolvent. The label of the matrix, if it has
one, follows a point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from derive.language.vectors import Field
from derive.records.saddle import NoiseKernel
from derive.records.system import System


def probe_tag(series: str, number: int, system: System) -> str:
    """Return the number of an equation of the probed matrix of a joined system, counted from zero."""
    (probe,) = system.probes
    return f"{series}{number + 1}{f'.{probe.label}' if probe.label else ''}"


@dataclass(frozen=True)
class Numbering:
    """Equation numbers: by field, of its starting values and its law; by pair, of noise covariances."""

    starts: dict[tuple[Field, int], str]
    laws: dict[Field, str]
    covariances: dict[tuple[Field, Field], str]

    @staticmethod
    def of(system: System, covariances: Iterable[NoiseKernel]) -> Numbering:
        """Number the training level in the order of its declaration, with noise covariances last."""
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
