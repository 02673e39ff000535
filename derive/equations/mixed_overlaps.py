"""The closed system for overlaps of spectral and training fields, C[psi, field] and R[psi, noise].

Multiplying L psi = noises + spikes by a training field and averaging gives <noise * field>, which Stein's lemma turns
into responses. Differentiating with respect to a training noise adds no further unknown. Sites that are equivalent,
differ by traits or by Gaussian diagonal entries, or are sampled require different averages of products and are
otherwise treated alike.
"""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import sympy as sp

from derive.algebra.sites import TraitAverage, averaged
from derive.algebra.words import Combination, Letter, Weighed, Word, combine
from derive.equations.dependence import Parts, site_parts
from derive.equations.diagonals import Along, transposed
from derive.equations.spectral_sites import SpectralSites
from derive.language.symbols import Sector
from derive.language.traits import traits_in
from derive.language.vectors import Field
from derive.records.probe import Directions, Unknown

Terms = list[tuple[sp.Expr, Word]]
Drives = list[tuple[Unknown, sp.Expr, Word]]
"""Terms of an equation: (unknown, coefficient, word)."""


class Projector(Protocol):
    """Averages of products over the sites of a sector."""

    def row(self, unknown: Unknown) -> Drives:
        """Return the coefficients of other unknowns in the equation of one."""

    def driven(self, unknown: Unknown, probe: Field, along: Field) -> Terms:
        """Return the contribution of a source along a training field in a probe equation to the equation of an
        unknown."""


class _AlikeSites:
    """All sites have the same propagator, which multiplies the unknowns."""

    def __init__(self, sites: SpectralSites):
        self.equations = sites.equations

    def row(self, unknown: Unknown) -> Drives:
        drives: Drives = [
            (spike.unknown, spike.scale, (letter, *spike.word))
            for spike in self.equations.spikes(unknown.probe)
            for letter in self._mean_with(unknown, spike.vector)
        ]
        return drives + (self.equations.stein(unknown.probe, unknown.field) if unknown.kind == "C" else [])

    def driven(self, unknown: Unknown, probe: Field, along: Field) -> Terms:
        return [(sp.S.One, (letter,)) for letter in self._mean_with(unknown, along)] if unknown.probe == probe else []

    def _mean_with(self, unknown: Unknown, vector: Field) -> list[Letter]:
        """Return the mean of a training field times the field or noise of an unknown; empty if it vanishes."""
        if unknown.kind == "C":
            return [Letter.correlation(unknown.field, vector)]
        return [Letter.response(vector, unknown.field).T] if self.equations.responds(vector, unknown.field) else []


class _DifferingSites:
    """Sites differ by traits or Gaussian diagonal entries: each site is solved before the average."""

    def __init__(self, sites: SpectralSites, sector: Sector):
        self.sites, self.equations = sites, sites.equations
        self.normal = sites.normal.get(sector)

    def row(self, unknown: Unknown) -> Drives:
        return [
            (other, self.sites.averaged(response * scale), word)
            for response, probe in self.sites.responses_to_drives(unknown.probe)
            for other, scale, word in self._drives(unknown, probe)
        ]

    def driven(self, unknown: Unknown, probe: Field, along: Field) -> Terms:
        response = self.sites.response_to(unknown.probe, probe)
        return [(self.sites.averaged(response * scale), word) for scale, word in self._mean_with(unknown, along)]

    def _drives(self, unknown: Unknown, probe: Field) -> Drives:
        """Return the driving terms of a probe equation, projected for an unknown, with traits in the coefficients."""
        drives: Drives = []
        for spike in self.equations.spikes(probe):
            seen = self._mean_with(unknown, spike.vector)
            drives += [(spike.unknown, spike.scale * factor, (*letters, *spike.word)) for factor, letters in seen]
        for g, own in self._projected_on(unknown):
            if own is not None:
                drives += [(other, g * scale, word) for other, scale, word in self.equations.stein(probe, own)]
            if self.normal is not None:
                for scale, noise, other in self.equations.shared_noises(probe):
                    seen = self._correlated_part(unknown, own, self.normal.derivatives(noise))
                    drives += [(other, g * scale * factor, word) for factor, word in seen]
        return drives

    def _parts(self, field: Field) -> Parts:
        """Return a training field as functions of the site, each times a field that does not depend on the site."""
        held = None if self.normal is None else self.normal.fields
        parts = site_parts(self.equations.saddle.system, self.equations.order, field, held)
        assert parts is not None, f"{field} has no law in closed form, so its sites are sampled"
        return parts

    def _projected_on(self, unknown: Unknown) -> tuple[tuple[sp.Expr, Field | None], ...]:
        """Return the parts of the field of an overlap; a derivative with respect to a noise is a single part."""
        return self._parts(unknown.field) if unknown.kind == "C" else ((sp.S.One, None),)

    def _mean_with(self, unknown: Unknown, vector: Field) -> Terms:
        """Return the mean, conditional on the traits, of a training field times the field or noise of an unknown."""
        terms: Terms = []
        for f, part in self._parts(vector):
            for g, own in self._projected_on(unknown):
                if own is not None:
                    terms.append((f * g, (Letter.correlation(own, part),)))
                elif self.equations.responds(part, unknown.field):
                    terms.append((f, (Letter.response(part, unknown.field).T,)))
                if self.normal is not None:
                    rows = None if part.role == "constant" else transposed(self.normal.covariances(part))
                    terms += [(f * g * scale, word) for scale, word in self._correlated_part(unknown, own, rows)]
        return terms

    def _correlated_part(self, unknown: Unknown, own: Field | None, rows: Along | None) -> Terms:
        """Return the part of a mean that is due to correlations of both factors with the fields on diagonals.

        The factors are `own`, or the noise of an unknown, and the field with covariances `rows`. The constant has no
        rows and is uncorrelated, but a function of the site that multiplies it is not.
        """
        assert self.normal is not None
        if own is None:
            columns: Along | None = transposed(self.normal.derivatives(unknown.field))
        else:
            columns = None if own.role == "constant" else self.normal.covariances(own)
        x = [normal() for normal in self.normal.spread.normals]
        if columns is None or rows is None:
            covariances = columns or rows or ()
            return [(x[b] * scale, (letter,)) for b, terms in enumerate(covariances) for scale, letter in terms]
        return [
            ((x[b] * x[c] - (1 if b == c else 0)) * left * right, (column, row))
            for b, terms_of_b in enumerate(columns)
            for c, others in enumerate(rows)
            for left, column in terms_of_b
            for right, row in others
        ]


class _SampledSites:
    """Diagonal entries are sampled, as are means of products conditional on these entries."""

    def __init__(self, sites: SpectralSites, sector: Sector):
        self.sites, self.equations = sites, sites.equations
        self.sampled = sites.sampled[sector]

    def row(self, unknown: Unknown) -> Drives:
        return [
            (other, factor, (letter, *word))
            for response, probe in self.sites.responses_to_drives(unknown.probe)
            for scale, thing, word, other in self._drives(probe)
            for factor, letter in self._weighted_mean(response * scale, unknown, thing)
        ]

    def driven(self, unknown: Unknown, probe: Field, along: Field) -> Terms:
        response = self.sites.response_to(unknown.probe, probe)
        return [(factor, (letter,)) for factor, letter in self._weighted_mean(response, unknown, ("C", along))]

    def _drives(self, probe: Field) -> list[tuple[sp.Expr, tuple[str, Field], Word, Unknown]]:
        """Return the driving terms of a probe field's equation as (coefficient, factor, unknown).

        The factor is a training field, or a training noise with which a noise of the probe is correlated.
        """
        spikes = [(s.scale, ("C", s.vector), s.word, s.unknown) for s in self.equations.spikes(probe)]
        noises = [(scale, ("R", noise), (), other) for scale, noise, other in self.equations.shared_noises(probe)]
        return [*spikes, *noises]

    def _weighted_mean(
        self, weight: sp.Expr, unknown: Unknown, thing: tuple[str, Field]
    ) -> list[tuple[sp.Expr, Letter | Weighed]]:
        """Return the mean over sites of a weight times the field or noise of an unknown times another factor.

        Factors that are independent of both are replaced by derivatives. Empty if the mean vanishes.
        """
        own, responds = (unknown.kind, unknown.field), self.equations.responds
        if not traits_in(weight):
            if own[0] == thing[0]:
                return [(weight, Letter.correlation(own[1], thing[1]))] if own[0] == "C" else []
            (_, field), (_, noise) = sorted((own, thing), key=lambda end: end[0])
            letter = Letter.response(field, noise)
            return [(weight, letter if own[0] == "C" else letter.T)] if responds(field, noise) else []
        fields, noises = ([field for kind, field in (own, thing) if kind == which] for which in ("C", "R"))
        for noise in noises:
            if not self.sampled.responds(noise) and not any(responds(field, noise) for field in fields):
                return []
        whole = averaged(weight)
        (average,) = whole.atoms(TraitAverage)
        return [(whole / average, Weighed(average.expression, unknown.probe.sector, own, thing))]


class MixedOverlaps:
    """The unknowns of A(z) and their equations, from the spectral fields of the sites."""

    def __init__(self, sites: SpectralSites):
        self.sites, self.probes = sites, sites.probes
        self._projectors: dict[Sector, Projector] = {
            sector: _SampledSites(sites, sector)
            if sector in sites.sampled
            else _DifferingSites(sites, sector)
            if sector in sites.differing
            else _AlikeSites(sites)
            for sector in sites.equations.sectors
        }

    def row(self, unknown: Unknown) -> dict[Unknown, Combination]:
        """Return the coefficients of all other unknowns in the equation of this one."""
        parts: dict[Unknown, Terms] = {}
        for other, scale, word in self._projectors[unknown.probe.sector].row(unknown):
            parts.setdefault(other, []).append((scale, word))
        return {other: combination for other, terms in parts.items() if (combination := combine(terms))}

    def driven(self, unknown: Unknown, probe: Field, along: Field) -> Combination:
        """Return the contribution of a source along a training field in a probe equation to the equation of an
        unknown."""
        if unknown.probe.sector != probe.sector:
            return ()
        return combine(self._projectors[probe.sector].driven(unknown, probe, along))

    def directions(self, unknowns: tuple[Unknown, ...]) -> tuple[Directions, ...]:
        """Return the spikes on either side, and the contribution of a source along them to each equation."""
        sides = []
        for side, probe in self.sides():
            terms = self.sites.equations.terms[probe]
            fields = tuple(dict.fromkeys(t.vector.field for t in terms if t.pair is not None))
            if not fields or any(Unknown("C", probe, f) not in unknowns for f in fields):
                continue
            drive: dict[tuple[int, int], Combination] = {}
            for row, unknown in enumerate(unknowns):
                for column, f in enumerate(fields):
                    if added := self.driven(unknown, probe, f):
                        drive[row, column] = added
            sides.append(Directions(side, probe, fields, tuple(drive.items())))
        return tuple(sides)

    def sides(self) -> list[tuple[str, Field]]:
        """Return the probe field of the eigenvector psi0 and, if the matrix is K^T K, that of its image K psi0."""
        root = next(probe for probe in self.probes if probe in self.sites.equations.roots)
        middle = self.sites.equations.saddle.system.middle
        return [("right", root), *([("left", middle)] if middle is not None else [])]

    def neighbours(self) -> dict[Field, list[Field]]:
        """Return, by probe field, the other probe fields of the same site in its equation."""
        neighbours: dict[Field, list[Field]] = {p: [] for p in self.probes}
        for i, j in self.sites.propagator():
            if i != j and self.probes[i].sector not in self.sites.differing:
                neighbours[self.probes[i]].append(self.probes[j])
        return neighbours

    def reachable(self) -> dict[Unknown, dict[Unknown, Combination]]:
        """Return the overlaps in the probe equations and, recursively, those in their own equations, each with its
        equation."""
        return self._reachable

    @cached_property
    def _reachable(self) -> dict[Unknown, dict[Unknown, Combination]]:
        rows: dict[Unknown, dict[Unknown, Combination]] = {}
        waiting = [spike.unknown for probe in self.probes for spike in self.sites.equations.spikes(probe)]
        neighbours = self.neighbours()
        while waiting:
            unknown = waiting.pop(0)
            if unknown in rows:
                continue
            rows[unknown] = self.row(unknown)
            waiting += [*rows[unknown], *(Unknown(unknown.kind, p, unknown.field) for p in neighbours[unknown.probe])]
        return rows

    def close(self) -> tuple[tuple[Unknown, ...], tuple[tuple[tuple[int, int], Combination], ...]]:
        """Return the nonzero unknowns in a fixed order, and their coefficients in each other's equations."""
        rows = _without_zeros(self.reachable(), self.neighbours())
        position = {p: i for i, p in enumerate(self.probes)}
        order = sorted(rows, key=lambda u: (position[u.probe], u.kind, u.field.name))
        table = {(r, c): rows[u][v] for r, u in enumerate(order) for c, v in enumerate(order) if rows[u].get(v)}
        return tuple(order), tuple(sorted(table.items(), key=lambda item: item[0]))


def _without_zeros(
    rows: dict[Unknown, dict[Unknown, Combination]], neighbours: dict[Field, list[Field]]
) -> dict[Unknown, dict[Unknown, Combination]]:
    """Return the unknowns that the source reaches; a response that no overlap drives, even indirectly, vanishes."""
    driven = {u for u in rows if u.kind == "C"}
    while True:
        more = {
            u
            for u in rows
            if u not in driven
            and (
                any(v in driven for v in rows[u])
                or any(Unknown("R", p, u.field) in driven for p in neighbours[u.probe])
            )
        }
        if not more:
            return {u: row for u, row in rows.items() if u in driven}
        driven |= more
