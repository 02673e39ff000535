"""The training level in the form that a forward pass reads: ordered fields, noises, memories, sources and the clock.

Equation numbers are shown in derivation.md and cited by generated code. The training level has E1, E2, ... A probed
matrix has A1, A2, ... for the rows of A(z), B1, B2, ... for the bulk equations, S1, S2, ... for the scalar maps and G1
for the curve of the resolvent. The label of the matrix, if it has one, follows a point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from derive.language.symbols import Clock, Sector
from derive.language.vectors import Field, FieldAt, Mean
from derive.records.saddle import MemoryKernel, NoiseKernel, SaddlePoint, TimeOrder
from derive.records.system import System, SystemField, weighing


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


@dataclass(frozen=True)
class Layout:
    """The training level, with fields in the order in which they are computed at one time."""

    time_order: TimeOrder
    saddle: SaddlePoint

    @property
    def system(self) -> System:
        return self.time_order.system

    @cached_property
    def clock(self) -> Clock | None:
        clocks = {f.field.clock for f in self.system.training if f.field.clock is not None}
        clocks |= {s.clock for s in self.system.sources if s.clock is not None}
        return min(clocks, key=str) if clocks else None

    @property
    def order_times(self) -> sp.Expr:
        """The number of times of order parameters: those before the last update, and the last if it is needed."""
        times = self.system.stopping
        ahead = 1 if times is not None and times.ahead else 0
        return sp.S.One if self.clock is None else self.clock.steps + ahead

    @cached_property
    def fields(self) -> tuple[SystemField, ...]:
        table = {f.field: f for f in self.system.training}
        return tuple(table[f] for f in self.time_order.order)

    @cached_property
    def rank(self) -> dict[Field, int]:
        return {f: i for i, f in enumerate(self.time_order.order)}

    @property
    def sectors(self) -> tuple[Sector, ...]:
        sectors = [f.field.sector for f in self.fields] + [s.sector for s in self.system.sources]
        return tuple(dict.fromkeys(sectors))

    @property
    def named(self) -> tuple[Field, ...]:
        """The fields with two-time functions: all fields with an equation, and all drawn vectors."""
        drawn = (s for s in self.system.sources if s.role == "normal")
        return (*(f.field for f in self.fields), *drawn)

    @cached_property
    def site_links(self) -> dict[str, dict[str, int]]:
        """By field, the fields of the same site in its equation, with their lag. A random matrix acts through its
        memory.
        """
        products = {f.field for f in self.fields if f.product is not None}
        direct = [(e.target, e.source, e.lag) for e in self.time_order.edges if not e.through_mean]
        indirect = [(a, b, lag) for a, b, lag in direct if a not in products]
        indirect += [(m.target, m.on, m.lag or 0) for m in self.saddle.memories if m.target in products]
        links: dict[str, dict[str, int]] = {}
        for a, b, lag in indirect:
            mine = links.setdefault(a.name, {})
            mine[b.name] = min(lag, mine.get(b.name, lag))
        return links

    @cached_property
    def numbering(self) -> Numbering:
        """The numbers of equations."""
        return Numbering.of(self.system, self.saddle.covariances)

    def memories(self, field: Field) -> tuple[MemoryKernel, ...]:
        """Return the memory terms in the equation of a field."""
        return tuple(m for m in self.saddle.memories if m.target == field)

    def covariances(self, field: Field) -> tuple[NoiseKernel, ...]:
        """Return the covariances of a field's noise with those of fields that have a clock or are computed earlier."""
        return tuple(
            c
            for c in self.saddle.covariances
            if c.left == field
            and c.right.role != "spectral"
            and (c.right.timed or self.rank[c.right] <= self.rank[field])
        )


def lag_of(value: FieldAt, clock: Clock | None) -> int:
    """Return the delay of a value relative to the current time, in steps."""
    return 0 if value.time is None else int(sp.expand(clock - value.time))


def mean_key(average: Mean, number: int, clock: Clock | None) -> tuple[str, int]:
    """Return the key of a mean; the number of steps truncates means at all times before the last update."""
    return ("M" if weighing(average, clock)[1] is None else "F", number)
