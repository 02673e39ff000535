"""The equations of the spectral fields of a probed matrix, decomposed into noises, spikes and correlated training
noises.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import sympy as sp

from derive.algebra.sites import SiteValue
from derive.algebra.words import DiagonalFactor, Letter, Word
from derive.equations.dependence import site_parts
from derive.equations.diagonals import SampledDiagonal, field_values, normal_forms
from derive.errors import DeclarationError
from derive.language.symbols import Sector
from derive.language.traits import traits_in
from derive.language.vectors import PAST, Field, Mean
from derive.records.probe import Unknown
from derive.records.saddle import SaddlePoint, TimeOrder
from derive.records.system import Term


@dataclass(frozen=True)
class Spike:
    """scale * word * unknown * vector in the equation of a probe field, where `vector` is a training field."""

    scale: sp.Expr
    word: Word
    unknown: Unknown
    vector: Field


@dataclass(frozen=True)
class SpectralEquations:
    """The terms of the equation of each probe field."""

    saddle: SaddlePoint
    order: TimeOrder
    terms: Mapping[Field, tuple[Term, ...]]

    @classmethod
    def of(cls, saddle: SaddlePoint, order: TimeOrder) -> SpectralEquations:
        terms: dict[Field, tuple[Term, ...]] = {}
        for f in saddle.system.spectral:
            if f.rule.laws:
                raise DeclarationError(
                    f"the probe field {f.field} is not linear; the probed matrix must not depend on the probe"
                )
            if f.product is None:
                terms[f.field] = f.rule.terms
        return cls(saddle, order, terms)

    @property
    def probes(self) -> list[Field]:
        return list(self.terms)

    @cached_property
    def sectors(self) -> list[Sector]:
        return list(dict.fromkeys(probe.sector for probe in self.terms))

    @cached_property
    def roots(self) -> set[Field]:
        """The probe field that is the eigenvector: its equation has a derivative in spectral time."""
        return {f.field for f in self.saddle.system.spectral if f.derivative}

    def coefficients(self, sector: Sector) -> list[sp.Expr]:
        return [t.coefficient for probe, terms in self.terms.items() if probe.sector == sector for t in terms]

    def responds(self, field: Field, noise: Field) -> bool:
        """Return whether a training field responds to an impulse in another, at any delay."""
        return self.order.delay(field, noise) is not None

    def noise_terms(self, probe: Field) -> list[tuple[sp.Expr, Field]]:
        """Return the (coefficient, spectral disorder field) pairs in the equation of a probe field."""
        return [
            (t.coefficient, t.vector.field)
            for t in self.terms[probe]
            if t.vector.field.role == "spectral" and t.vector.field not in self.terms
        ]

    def spikes(self, probe: Field) -> list[Spike]:
        """Return the spike terms of a probe field's equation: overlaps with training fields, times training fields."""
        spikes: list[Spike] = []
        for term in self.terms[probe]:
            vector = term.vector.field
            if vector.role == "spectral":
                continue
            if term.pair is None:
                raise DeclarationError(f"the probe field {probe} is driven by {vector} without an overlap")
            if term.past is None and term.vector.time is not None:
                raise DeclarationError(
                    f"the probed matrix contains outer products of {vector} at a single time "
                    f"{term.vector.time}; add them to weights by an update rule and probe the weights"
                )
            left, right = term.pair
            depends = term.coefficient.has(PAST) or term.coefficient.has(Mean)
            scale, weight = (
                term.coefficient.as_independent(PAST, Mean, as_Add=False) if depends else (term.coefficient, None)
            )
            word: Word = (DiagonalFactor(weight, vector),) if depends else ()
            spikes.append(Spike(scale, word, Unknown("C", right.field, left.field), vector))
        for scale, noise in self.noise_terms(probe):
            for m in self.saddle.memories:
                if m.target == noise and m.on.role != "spectral":
                    spikes.append(Spike(scale * m.coefficient, (), Unknown("R", m.a, m.noise), m.on))
        return spikes

    def shared_noises(self, probe: Field) -> list[tuple[sp.Expr, Field, Unknown]]:
        """Return the training noises that are correlated with noises of a probe field's equation, times an overlap."""
        return [
            (scale * c.coefficient, c.right, Unknown("C", c.a, c.b))
            for scale, noise in self.noise_terms(probe)
            for c in self.saddle.covariances
            if c.left == noise and c.right.role != "spectral"
        ]

    def stein(self, probe: Field, field: Field) -> list[tuple[Unknown, sp.Expr, Word]]:
        """Return <noise of the probe equation * field> by Stein's lemma: covariances of noises times responses."""
        return [
            (unknown, scale, (Letter.response(field, noise),))
            for scale, noise, unknown in self.shared_noises(probe)
            if self.responds(field, noise)
        ]

    # -- diagonal entries

    def diagonal_fields(self, sector: Sector) -> list[SiteValue]:
        """Return the training fields on the diagonals of a sector."""
        return field_values(self.coefficients(sector))

    def is_sampled(self, sector: Sector, everywhere: bool, projecting: bool) -> bool:
        """Return whether the diagonal entries of a sector are sampled.

        They are if `everywhere` is set and they depend on a training field, or if the law of such a field, or of a
        projected field there, has no closed form.
        """
        fields, system = self.diagonal_fields(sector), self.saddle.system
        if not any(map(traits_in, self.coefficients(sector))):
            return False
        if fields and everywhere:
            return True
        forms = normal_forms(system, self.order, fields)
        if forms is None:
            return True
        held = frozenset(entry.value for entry in field_values(forms.values()))
        met = self.projected_fields[sector] if projecting else ()
        return any(site_parts(system, self.order, field, held if fields else None) is None for field in met)

    def with_sampled(self, sampled: Mapping[Sector, SampledDiagonal]) -> SpectralEquations:
        """Return the equations with sampled diagonal entries as constants of their sites."""

        def written(probe: Field, term: Term) -> Term:
            return replace(term, coefficient=sampled[probe.sector].written(term.coefficient))

        terms = {
            probe: tuple(written(probe, term) for term in equation) if probe.sector in sampled else equation
            for probe, equation in self.terms.items()
        }
        return replace(self, terms=terms)

    @cached_property
    def projected_fields(self) -> dict[Sector, list[Field]]:
        """Return, by sector, the training fields on which the equations are projected: in spikes, overlaps and declared
        directions."""
        spikes = [(probe.sector, spike) for probe in self.terms for spike in self.spikes(probe)]
        projected = {
            sector: dict.fromkeys(s.vector for where, s in spikes if where == sector) for sector in self.sectors
        }
        directions = [a.direction.field for _, a in self.saddle.system.model.alignments if spikes]
        waiting = [(field.sector, field) for field in directions if field.sector in projected]
        waiting += [(s.unknown.probe.sector, s.unknown.field) for _, s in spikes if s.unknown.kind == "C"]
        overlaps = dict.fromkeys(waiting)
        while waiting:
            sector, field = waiting.pop(0)
            projected[sector].setdefault(field)
            new = [overlap for overlap in self._noise_overlaps(sector, field) if overlap not in overlaps]
            overlaps |= dict.fromkeys(new)
            waiting += new
        return {sector: list(fields) for sector, fields in projected.items()}

    def _noise_overlaps(self, sector: Sector, field: Field) -> Iterator[tuple[Sector, Field]]:
        """Yield the overlaps that noises contribute to the equation of an overlap with a field.

        By Stein's lemma these are the overlaps with training noises to which the field, or a field on the diagonal,
        responds.
        """
        responding = [field, *(entry.value.field for entry in self.diagonal_fields(sector))]
        for probe in self.terms:
            for _, noise, unknown in self.shared_noises(probe):
                if probe.sector == sector and any(self.responds(entry, noise) for entry in responding):
                    yield unknown.probe.sector, unknown.field
