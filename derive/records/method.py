"""The closure of each sector: how averages over sites are computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from derive.language.symbols import Axis, Sector
from derive.records.base import Record
from derive.records.system import System

if TYPE_CHECKING:
    from derive.equations.gaussian_laws import Laws


class ClosureKind(Enum):
    """How averages over the sites of a sector are computed. The value is the word shown to users."""

    EXACT = "exact"
    QUADRATURE = "quadrature"
    SAMPLED = "sampled"


@dataclass(frozen=True)
class SectorMethod:
    """The closure of one sector, and the reason for it."""

    sector: Sector
    closure: ClosureKind
    reason: str


class LabelGroup(Enum):
    """The permutations of labels that leave the training level invariant. The value is the word shown to users."""

    SIGNED = "signed permutations"
    PERMUTATIONS = "permutations"
    NONE = "none"

    @property
    def components(self) -> int:
        """The number of distinct irreducible representations in the labels of a vector; 0 without symmetry."""
        return {LabelGroup.SIGNED: 1, LabelGroup.PERMUTATIONS: 2, LabelGroup.NONE: 0}[self]


@dataclass(frozen=True)
class LabelSymmetry:
    """The symmetry of the labels along some axes, and the reason for it."""

    axes: tuple[Axis, ...]
    group: LabelGroup
    reason: str


@dataclass(frozen=True, repr=False)
class Method(Record):
    """The closure of every sector, and the symmetry of labels.

    `laws` are the decomposed nonlinear laws and averages, if averages are Gaussian integrals. `responses` is the
    estimator of responses in a sampled pass: "stein" or "pathwise".
    """

    system: System
    sectors: tuple[SectorMethod, ...]
    responses: str
    assumptions: tuple[str, ...]
    labels: LabelSymmetry | None = None
    laws: Laws | None = field(default=None, compare=False)
    title = "Method"

    @property
    def sampled(self) -> bool:
        """Whether results have a sampling error."""
        return any(sector.closure is ClosureKind.SAMPLED for sector in self.sectors)
