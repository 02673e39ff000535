"""Linear training with constant coefficients: its stationary limit, and the linear map of one step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import sympy as sp

from derive.language.symbols import EngineSymbol
from derive.language.traits import Trait, traits_in
from derive.language.vectors import Field, Mean
from derive.records.base import Record
from derive.records.saddle import MemoryKernel, NoiseKernel
from derive.records.system import Mixing, System


@dataclass(frozen=True)
class LinearPart:
    """coefficient * z^power * (1 + z)^(-delay) times a field or a source, with labels possibly mapped by `mixing`."""

    target: Field
    of: Field
    coefficient: sp.Expr
    delay: int
    power: int = 0
    mixing: Mixing | None = None


@dataclass(frozen=True, repr=False)
class LinearSites(Record):
    """Linear laws with constant coefficients. Every symbol is a matrix over labels, or a number if there is one label.

    In the variable z of z/(1 + z) sum_t x(t) (1 + z)^(-t), the response of a site is the inverse of S(z) = 1 - parts -
    memories, whose blocks belong to fields.
    """

    system: System
    fields: tuple[Field, ...]
    sources: tuple[Field, ...]
    parts: tuple[LinearPart, ...]
    memories: tuple[MemoryKernel, ...]
    covariances: tuple[NoiseKernel, ...]
    assumptions: tuple[str, ...]

    @property
    def responses(self) -> tuple[tuple[Field, Field], ...]:
        """Pairs (a, noise): R[a, noise] is the mean over sites of a block of the inverse of S."""
        return tuple(dict.fromkeys((m.a, m.noise) for m in self.memories))

    @property
    def labelled(self) -> bool:
        """Whether some symbols are matrices over labels."""
        fields = (*self.fields, *self.sources)
        return any(f.labelled for f in fields) or any(part.mixing is not None for part in self.parts)

    def _own(self) -> list[sp.Expr]:
        """Coefficients that belong neither to parts nor to memories or covariances."""
        return []

    @cached_property
    def coefficients(self) -> tuple[sp.Expr, ...]:
        """All coefficients that may depend on parameters, data or traits, without repetition."""
        coefficients = [part.coefficient for part in self.parts]
        coefficients += [m.coefficient for m in self.memories] + [c.coefficient for c in self.covariances]
        return tuple(dict.fromkeys(map(sp.sympify, [*coefficients, *self._own()])))

    @cached_property
    def traits(self) -> tuple[Trait, ...]:
        """The traits in the coefficients."""
        inside = {value.field for e in self.coefficients for value in traits_in(e)}
        return tuple(trait for trait in self.system.traits if trait in inside)


@dataclass(frozen=True)
class Overlap:
    """mean(scale * source * field(t - delay)), which is linear in the field."""

    source: Field
    field: Field
    delay: int
    scale: sp.Expr


@dataclass(frozen=True)
class OverlapTerm:
    """coefficient * source * overlap in the equation of target."""

    target: Field
    source: Field
    coefficient: sp.Expr
    overlap: Overlap


@dataclass(frozen=True, repr=False)
class Recursion(LinearSites):
    """The linear map of one training step, with the noise drawn anew at each step.

    `observed` contains the fields of each observable. `stirred` are the fields whose equations contain white noise.
    `overlap_terms` are means over sites that are linear in fields, such as those due to planted directions.
    """

    observed: tuple[tuple[str, tuple[Field, ...]], ...]
    stirred: tuple[Field, ...]
    overlap_terms: tuple[OverlapTerm, ...]
    drives: ClassVar[tuple[LinearPart, ...]] = ()
    title = "Recursion of linear training"

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        return tuple(dict.fromkeys(term.overlap for term in self.overlap_terms))

    def _own(self) -> list[sp.Expr]:
        variances = [o.scale * o.source.scale**2 for o in self.overlaps]
        return [*(term.coefficient for term in self.overlap_terms), *variances]


@dataclass(frozen=True, repr=False)
class StationaryLimit(LinearSites):
    """The stationary limit of linear training: x(z) tends to the limit of x(t) as z -> 0.

    `drives` are the random terms in the equations of fields. `means` contains, by symbol, the means in the observables
    as triples (coefficient, a, b) for the mean of a b label by label; for a mean of traits alone, a and b are None.
    `forgotten` names a starting value that is omitted because it is not linear in the sources; it has no effect if
    training forgets its initial condition.
    """

    drives: tuple[LinearPart, ...]
    mean_symbols: tuple[tuple[EngineSymbol, Mean], ...]
    means: tuple[tuple[tuple[sp.Expr, Field | None, Field | None], ...], ...]
    observables: tuple[tuple[str, sp.Expr], ...]
    forgotten: str
    overlap_terms: ClassVar[tuple[OverlapTerm, ...]] = ()
    title = "Limit of long training"

    def _own(self) -> list[sp.Expr]:
        coefficients = [part.coefficient for part in self.drives]
        coefficients += [source.scale**2 for source in self.sources]
        return coefficients + [scale for pairs in self.means for scale, _, _ in pairs]
