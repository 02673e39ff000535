"""The spectral fields of one site: L psi = noises + spikes after the Laplace transform, and the bulk equations.

If L depends on traits, sites differ. Their equations are then solved conditional on the traits, psi = L^-1 (noises +
spikes), before they are averaged: averages of the site's response replace L between unknowns.
"""

from __future__ import annotations

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.sites import TraitAverage, averaged, site_responses
from derive.equations.diagonals import normal_diagonal, normal_forms, sampled_diagonal
from derive.equations.spectral_equations import SpectralEquations
from derive.language.contents import declared_names
from derive.language.symbols import EngineSymbol, Sector, free_name
from derive.language.traits import traits_in
from derive.language.vectors import Field
from derive.records.probe import BulkResponse
from derive.records.saddle import SaddlePoint, TimeOrder

RESOLVENT = EngineSymbol("G")
Propagator = dict[tuple[int, int], sp.Expr]


class SpectralSites:
    """Propagator, responses and bulk equations of the spectral fields.

    `images` are additional fields whose responses to the source of the resolvent are needed; they are not projected on
    training fields. `sampled` and `normal` are the diagonal entries by sector. `differing` are the sectors in which L
    depends on the site.
    """

    def __init__(self, saddle: SaddlePoint, order: TimeOrder, sampled: bool, images: tuple[Field, ...] = ()):
        system, self.images = saddle.system, images
        taken = self._taken = declared_names(system.model)
        plain = SpectralEquations.of(saddle, order)
        self.sampled = {
            sector: sampled_diagonal(system, order, sector, plain.coefficients(sector), taken)
            for sector in plain.sectors
            if plain.is_sampled(sector, sampled, projecting=not images)
        }
        self.equations = plain.with_sampled(self.sampled)
        self.probes = self.equations.probes
        self.responses: dict[tuple[Field, Field], BulkResponse] = {}
        for m in saddle.memories:
            if m.a.role == "spectral" and m.noise.role == "spectral":
                self.response_symbol(m.a, m.noise)
        standing = {sector: self.equations.diagonal_fields(sector) for sector in plain.sectors}
        self.differing = {s for s in plain.sectors if any(map(traits_in, self.equations.coefficients(s)))}
        self.normal = {
            sector: normal_diagonal(order, sector, normal_forms(system, order, fields) or {}, taken)
            for sector, fields in standing.items()
            if fields
        }
        self.given = {value: form for diagonal in self.normal.values() for value, form in diagonal.given.items()}
        # the law of entries that depend on traits alone is known: only fields given the entries are sampled
        sites = (diagonal.sites for diagonal in self.sampled.values() if diagonal.sites.of_traits)
        self.given |= {entry(): entry.function for diagonal in sites for entry in diagonal.entries}
        self._inverses: dict[Sector, sp.Matrix] = {}

    def averaged(self, expression: sp.Expr) -> sp.Expr:
        """Return the average over sites, with diagonal entries in terms of their Gaussian variables."""
        return averaged(sp.sympify(expression).xreplace(self.given))

    def propagator(self) -> Propagator:
        """Return the entries of L, by positions of probe fields."""
        equations, place = self.equations, {probe: i for i, probe in enumerate(self.probes)}
        table: Propagator = {}

        def add(row: int, column: Field, entry: sp.Expr) -> None:
            table[row, place[column]] = table.get((row, place[column]), sp.S.Zero) - entry

        for i, probe in enumerate(self.probes):
            table[i, i] = Z if probe in equations.roots else sp.S.One
            for term in equations.terms[probe]:
                if term.vector.field in place and term.pair is None:
                    add(i, term.vector.field, term.coefficient)
            for scale, noise in equations.noise_terms(probe):
                for m in equations.saddle.memories:
                    if m.target == noise and m.on.role == "spectral":
                        add(i, m.on, scale * m.coefficient * self.responses[m.a, m.noise].symbol)
        return dict(sorted(table.items()))

    def inverted(self, rows: list[list[sp.Expr]]) -> sp.Matrix:
        """Return the responses of one site: the inverse of its propagator."""
        return site_responses(rows)

    def responses_to_drives(self, probe: Field) -> list[tuple[sp.Expr, Field]]:
        """Return the responses of a spectral field to drives in all equations of its site: (response, driven field)."""
        rows = [i for i, other in enumerate(self.probes) if other.sector == probe.sector]
        if probe.sector not in self._inverses:
            table = self.propagator()
            entries = [[table.get((i, j), sp.S.Zero) for j in rows] for i in rows]
            self._inverses[probe.sector] = self.inverted(entries)
        inverse, row = self._inverses[probe.sector], rows.index(self.probes.index(probe))
        return [(inverse[row, k], self.probes[j]) for k, j in enumerate(rows) if inverse[row, k] != 0]

    def response_to(self, probe: Field, driven: Field) -> sp.Expr:
        """Return the response of a spectral field to a source in the equation of another field of the same site."""
        return sp.Add(*(response for response, other in self.responses_to_drives(probe) if other == driven))

    # -- the bulk

    def bulk_equations(self) -> tuple[sp.Expr, ...]:
        """Return the equations L R = b for the response to each noise and to the source, where b contains the
        coefficients of that noise or source.
        """
        table = self.propagator()
        terms = {place: sp.Add.make_args(sp.expand(entry)) for place, entry in table.items()}
        columns: list[Field | None] = [*dict.fromkeys(noise for _, noise in self.responses), None]
        traced = [p for p in self.probes if p in self.equations.roots or p in self.images]
        wanted = [*self.responses, *((p, None) for p in traced)]
        equations = []
        for column in columns:
            if self.driven_by(column).sector in self.differing:
                for probe in (p for p, noise in wanted if noise == column):
                    responses = self.responses_to_drives(probe)
                    total = self.averaged(sp.Add(*(value * self._drive(other, column) for value, other in responses)))
                    equations.append(self.response_symbol(probe, column) - total)
                continue
            rows = self.connected(column, table)
            for i in rows:
                probe = self.probes[i]
                parts = [-sp.expand(self._drive(probe, column))]
                for j in rows:
                    if (i, j) in table:
                        response = self.response_symbol(self.probes[j], column)
                        parts += [term * response for term in terms[i, j]]
                equations.append(sp.Add(*parts))
        if self.differing and not any(equation.has(TraitAverage) for equation in equations):
            # sites turn out to be equal, for example with a constant field on the diagonal
            equations = [sp.expand(sp.fraction(sp.together(equation))[0]) for equation in equations]
        return tuple(equations)

    def driven_by(self, column: Field | None) -> Field:
        """Return the first probe field whose equation contains a noise, or the source."""
        return next(p for p in self.probes if self._drive(p, column) != 0)

    def _drive(self, probe: Field, column: Field | None) -> sp.Expr:
        if column is None:
            return sp.S.One if probe in self.equations.roots else sp.S.Zero
        return sp.Add(*(scale for scale, noise in self.equations.noise_terms(probe) if noise == column))

    def connected(self, column: Field | None, table: Propagator) -> list[int]:
        """Return the positions of probe fields that an impulse reaches within one site."""
        reached = {i for i, probe in enumerate(self.probes) if self._drive(probe, column) != 0}
        while True:
            more = {i for i, j in table if j in reached} - reached
            if not more:
                return sorted(reached)
            reached |= more

    def response_symbol(self, probe: Field, column: Field | None) -> EngineSymbol:
        """Return the symbol for the response of a probe field to a noise, or to the source."""
        if column is None:
            return RESOLVENT if probe in self.equations.roots else EngineSymbol(f"G_{probe}", probe)
        if (probe, column) not in self.responses:
            # underscores keep its printed name distinct
            symbol = EngineSymbol(free_name(f"R_{probe}_{column}", self._taken), probe, column)
            self.responses[probe, column] = BulkResponse(symbol, probe, column)
        return self.responses[probe, column].symbol
