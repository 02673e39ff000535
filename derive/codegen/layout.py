"""What generated training code needs to know: shapes, noises and sources of each sector, coefficients by recurrence."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.language.symbols import Clock, Sector
from derive.language.vectors import Field
from derive.pipeline import Derivation
from derive.records.saddle import SingleSite, TimeOrder
from derive.records.system import DisorderRule, SystemField


@dataclass(frozen=True)
class Layout:
    """The training level as arrays. `order` lists fields as they are computed at one time."""

    time_order: TimeOrder
    single_site: SingleSite
    clock: Clock | None

    @staticmethod
    def of(derivation: Derivation) -> Layout:
        time_order = derivation.order
        clocks = {f.field.clock for f in time_order.system.training if f.field.clock is not None}
        clocks |= {s.clock for s in time_order.system.sources if s.clock is not None}
        return Layout(time_order, derivation.single_site, min(clocks, key=str) if clocks else None)

    @property
    def system(self):
        return self.time_order.system

    @property
    def fields(self) -> tuple[SystemField, ...]:
        table = {f.field: f for f in self.system.training}
        return tuple(table[f] for f in self.time_order.order)

    @property
    def sectors(self) -> tuple[Sector, ...]:
        found = [f.field.sector for f in self.fields] + [s.sector for s in self.system.sources]
        return tuple(dict.fromkeys(found))

    @property
    def labels(self) -> sp.Expr | None:
        return None if self.clock is None else self.clock.channels

    def noises(self, sector: Sector) -> tuple[Field, ...]:
        """Disorder fields of a sector, in the order of one time."""
        return tuple(f.field for f in self.fields if isinstance(f.rule, DisorderRule) and f.field.sector == sector)

    def sources(self, sector: Sector) -> tuple[Field, ...]:
        return tuple(s for s in self.system.sources if s.sector == sector)

    def entries(self, field: Field) -> str:
        """How many basis vectors a noise or source has at one time: its class labels."""
        return str(field.labels) if field.labelled else "1"


def indices(*flags: tuple[str, bool]) -> str:
    """Einsum letters whose flag is set: indices(("s", True), ("b", False)) is "s"."""
    return "".join(letter for letter, present in flags if present)
