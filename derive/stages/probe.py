"""SaddlePoint, TimeOrder -> ProjectedProbe: close the mixed order parameters between probe and training fields.

The single-site equations of the spectral fields are linear: L psi = noises + sum over spikes. Multiplying by a
training field and averaging needs <noise * field>, which Stein's lemma turns into responses; differentiating by a
training noise needs nothing more. The Laplace transform turns d/dtau into z and convolutions into products.

Where traits stand in L, sites differ. Their equations are then solved given the traits, psi = L^-1 (noises + spikes),
before they are averaged: unknowns are joined by averages of the site's response instead of by L.

A training field in L is a number of the site too, but one that noises and other fields of the site go along with. With
standard normal numbers x of which it is made, and normal a and b, <F(x) a b> = <F> <a b> + <F (x^2 - 1)> <a x> <x b>,
whatever F is. Noises of the probe, training fields and derivatives by training noises are all such a and b.

Where the law of such a field is not known it is sampled, and so are <F a b> for each value of what stands in L.
Products with a noise of the probe are derivatives by the training noises that it goes along with, by Stein's lemma.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.sites import (
    SiteAverage,
    SiteEntry,
    SiteNormal,
    SiteValue,
    at_source,
    averaged,
    by_source,
    site_responses,
)
from derive.algebra.words import Combination, Diagonal, Letter, Weighed, Word, combine
from derive.equations.aligning import alignments
from derive.equations.dependence import Parts, normal_parts, of_normals, trait_parts
from derive.errors import DeclarationError
from derive.language.contents import declared_names
from derive.language.symbols import EngineSymbol, Parameter, Sector
from derive.language.traits import Trait, traits_in
from derive.language.vectors import PAST, Field, FieldAt, Mean, shown
from derive.records.base import gathered
from derive.records.probe import BulkResponse, Directions, ProjectedProbe, SampledSites, Spread, Unknown
from derive.records.saddle import Covariance, Memory, SaddlePoint, SingleSite, TimeOrder
from derive.records.system import DisorderRule, LinearRule, System, SystemField, Term

RESOLVENT = EngineSymbol("G")
Along = tuple[list[tuple[sp.Expr, Letter]], ...]
"""For each of the normal numbers of a site what goes along with it, as a sum of letters."""


Chosen = frozenset[Sector] | None
"""Some sectors; None: all at whose sites training fields stand on diagonals."""
MOST_ENTRIES = 2
"""Different functions of sampled fields on the diagonals of a sector: values of all of them together are kept."""


def project_probe(
    saddle: SaddlePoint, order: TimeOrder, images: tuple[tuple[str, Field], ...] = (), sampled: Chosen = frozenset()
) -> ProjectedProbe:
    """Propagators, bulk equations and the closed set of projected equations, from what the spectral fields add.

    images: fields A psi0 of matrices that stand between resolvents. Then the bulk equations are those of traces with
    them, and nothing is projected. sampled: sectors where what stands on diagonals is sampled.
    """
    if images:
        return _traced(saddle, order, images, sampled)
    work = _Projection(saddle, order, sampled)
    equations = work.bulk_equations()
    unknowns, couplings = work.close()
    asked = saddle.system.model.alignments
    return ProjectedProbe(
        saddle.system,
        tuple(work.probes),
        work.propagator(),
        tuple(work.responses.values()),
        equations,
        RESOLVENT,
        unknowns,
        couplings,
        work.directions(unknowns),
        alignments(work, unknowns, asked),
        gathered(
            SingleSite.of(saddle),
            order,
            new="the probe is stationary in spectral time and starts without overlap with the noises",
        ),
        tuple(probe for probe in work.probes if probe.sector in work.differing),
        spreads=tuple(site.spread for site in work.held.values()),
        sampled=tuple(site.sites for site in work.sampled.values()),
    )


def _traced(
    saddle: SaddlePoint, order: TimeOrder, images: tuple[tuple[str, Field], ...], sampled: Chosen
) -> ProjectedProbe:
    """Bulk equations of a probed matrix M with those of tr R A, and what they gain where M becomes M + epsilon A.

    d R / d epsilon = R A R, so that the rate of tr R is tr R A R, and that of tr R B is tr R A R B.
    """
    work = _Traced(saddle, order, tuple(image for _, image in images), sampled)
    whole = work.bulk_equations()
    whole = (*whole, *work.unreached())
    none = {source: sp.S.Zero for source in work.sources.values()}
    # what vanishes without epsilon is put to zero where others stand, so that it is exactly zero and not rounding
    known = {image: work.image(image) for _, image in images}
    gone = work.vanishing() & {symbol for equation in whole for symbol in equation.free_symbols}
    nothing = {symbol: sp.S.Zero for symbol in gone}
    bare = [at_source(equation, none) for equation in whole]
    kept = tuple(e if e.free_symbols & gone and at_source(e, nothing) == 0 else at_source(e, nothing) for e in bare)
    slopes = tuple(
        (symbol, tuple(at_source(by_source(e, symbol), nothing) for e in bare)) for symbol in sorted(gone, key=str)
    )
    return ProjectedProbe(
        saddle.system,
        tuple(work.probes),
        work.propagator(),
        tuple(work.responses.values()),
        kept,
        RESOLVENT,
        (),
        (),
        (),
        (),
        gathered(saddle, order, new="the probe is stationary in spectral time"),
        tuple(probe for probe in work.probes if probe.sector in work.differing),
        tuple((name, known[image]) for name, image in images),
        tuple(
            tuple(at_source(at_source(by_source(e, source), none), nothing) for e in whole)
            for source in work.sources.values()
        ),
        slopes,
        spreads=tuple(site.spread for site in work.held.values()),
        sampled=tuple(site.sites for site in work.sampled.values()),
    )


class _Held:
    """The training fields on diagonals at the sites of a sector, and what else there goes along with them."""

    def __init__(self, system: System, order: TimeOrder, sector: Sector, fields: list[SiteValue], taken: set[str]):
        self.order = order
        written = {one: of_normals(system, order, one.value) for one in fields}
        found = {v.field for made in written.values() for v in traits_in(made) if isinstance(v.field, SiteValue)}
        values = tuple(one.value for one in sorted(found, key=sp.default_sort_key))
        for value in values:
            _check_noises(system, order, value)
            other = next(v for v in values if v.time is not None or value.time is None)
            if value.time is not None and not sp.expand(value.time - other.time).is_Integer:
                raise DeclarationError(
                    f"spectrum(...) has diag(...) of {shown(other)} and {shown(value)}, whose times are not a fixed "
                    "number of steps apart; take both at the last times"
                )
        names = [SiteValue(value).name for value in values]
        normals = tuple(SiteNormal(_free(f"x_{name}", taken), sector) for name in names)
        lower, inverse = (
            tuple(
                tuple(
                    Parameter(_free(f"{word}_{a}" if a == b else f"{word}_{a}_{b}", taken), 1.0) for b in names[: k + 1]
                )
                for k, a in enumerate(names)
            )
            for word in ("spread", "inverse")
        )
        self.spread = Spread(values, normals, lower, inverse)
        made_of = {
            SiteValue(value)(): sp.Add(*(c * x() for c, x in zip(row, normals, strict=False)))
            for value, row in zip(values, lower, strict=True)
        }
        self.given = {**made_of, **{one(): made.xreplace(made_of) for one, made in written.items()}}
        self.fields = frozenset(values)

    def along(self, field: Field) -> Along:
        """The means of a field times each of the normal numbers: columns."""
        return tuple(
            [(scale, Letter.with_value(field, value)) for scale, value in zip(row, self.spread.values, strict=False)]
            for row in self.spread.inverse
        )

    def rows_of(self, field: Field) -> Along:
        """The same as rows."""
        return _transposed(self.along(field))

    def kicked(self, noise: Field) -> Along:
        """The derivatives of the normal numbers by a noise: rows."""
        return tuple(
            [
                (scale, Letter.of_value(value, noise))
                for scale, value in zip(row, self.spread.values, strict=False)
                if self.order.delay(value.field, noise) is not None
            ]
            for row in self.spread.inverse
        )


def _check_noises(system: System, order: TimeOrder, value: FieldAt) -> None:
    """At the last time a field must not hold noises of that time, because spikes end before it."""
    clock = value.field.clock
    if value.time is None or clock is None or value.time != clock.steps:
        return
    for f in system.training:
        now = isinstance(f.rule, DisorderRule) and f.field.timed and f.field.sector == value.field.sector
        if now and order.delay(value.field, f.field) == 0:
            raise DeclarationError(
                f"spectrum(...) has diag(...) of {shown(value)}, which a random matrix makes from fields at that "
                f"time, after the last update; use {value.field}({shown(value.time - 1)})"
            )


class _Sampled:
    """What stands on diagonals at the sites of a sector, as functions of the site whose law is sampled."""

    def __init__(
        self, system: System, order: TimeOrder, sector: Sector, coefficients: list[sp.Expr], taken: set[str]
    ) -> None:
        self.order = order
        functions: dict[sp.Expr, None] = {}
        for coefficient in coefficients:
            if traits_in(coefficient):
                functions[_power(_of_site(coefficient))[0]] = None
        ordered = sorted(functions, key=sp.default_sort_key)
        plain = {
            f: f.xreplace({v: v.field.value for v in traits_in(f) if isinstance(v.field, SiteValue)}) for f in ordered
        }
        if len(ordered) > MOST_ENTRIES:
            told = ", ".join(f"diag({shown(function)})" for function in plain.values())
            raise DeclarationError(
                f"spectrum(...) has {told}, whose joint law has to be sampled; use at most {MOST_ENTRIES} different "
                f"functions on the diagonals of {sector}"
            )
        names = [
            _free(f"d_{sector}" if len(ordered) == 1 else f"d_{sector}_{k + 1}", taken) for k in range(len(ordered))
        ]
        entries = {f: SiteEntry(name, sector, plain[f]) for f, name in zip(ordered, names, strict=True)}
        self.given = {function: entry() for function, entry in entries.items()}
        reach, law = (Parameter(_free(f"{word}_{sector}", taken), 1.0) for word in ("reach", "sites"))
        self.sites = SampledSites(sector, tuple(entries.values()), reach, law)
        for value in self.sites.values:
            if not isinstance(value.field, Trait):
                _check_noises(system, order, value)

    def written(self, coefficient: sp.Expr) -> sp.Expr:
        """A coefficient with what is sampled as one number of its site."""
        if not traits_in(coefficient):
            return coefficient
        inside = _of_site(coefficient)
        base, power = _power(inside)
        return coefficient / inside * self.given[base] ** power

    def answers(self, noise: Field) -> bool:
        """Whether what stands on diagonals answers to a training noise."""
        fields = (value.field for value in self.sites.values if not isinstance(value.field, Trait))
        return any(self.order.delay(field, noise) is not None for field in fields)


def _of_site(coefficient: sp.Expr) -> sp.Expr:
    """The factor of a coefficient that differs from site to site."""
    found: sp.Expr = coefficient.as_independent(*traits_in(coefficient), as_Add=False)[1]
    return found


def _power(function: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    if function.is_Pow and function.exp.is_Integer and function.exp > 0:
        return function.base, function.exp
    return function, sp.S.One


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _transposed(along: Along) -> Along:
    return tuple([(scale, letter.T) for scale, letter in terms] for terms in along)


class _Projection:
    images: tuple[Field, ...] = ()
    """Fields besides that of the resolvent whose answers to its source are wanted."""

    def __init__(self, saddle: SaddlePoint, order: TimeOrder, sampled: Chosen = frozenset()):
        system = saddle.system
        self.rules: dict[Field, SystemField] = {f.field: f for f in system.spectral}
        self.probes = [f.field for f in system.spectral if not isinstance(f.rule, DisorderRule)]
        self.system, self.middle = system, system.middle
        self.memories: tuple[Memory, ...] = saddle.memories
        self.covariances: tuple[Covariance, ...] = saddle.covariances
        self.order = order
        self.responses: dict[tuple[Field, Field], BulkResponse] = {}
        self.taken = declared_names(system.model)
        self.sampled: dict[Sector, _Sampled] = {}
        for sector in dict.fromkeys(probe.sector for probe in self.probes):
            coefficients = [t.coefficient for p in self.probes if p.sector == sector for t in self.terms(p)]
            standing = [value.field for c in coefficients for value in traits_in(c)]
            trained = any(isinstance(trait, SiteValue) for trait in standing)
            if standing and (trained if sampled is None else sector in sampled):
                self.sampled[sector] = _Sampled(system, order, sector, coefficients, self.taken)
        for m in self.memories:
            if m.a.role == "spectral" and m.noise.role == "spectral":
                self._respond(m.a, m.noise)
        self.differing: set[Sector] = {
            probe.sector for probe in self.probes for term in self.terms(probe) if traits_in(term.coefficient)
        }
        self.sites: dict[Sector, tuple[list[int], sp.Matrix]] = {}
        self.held: dict[Sector, _Held] = {}
        for sector in dict.fromkeys(probe.sector for probe in self.probes):
            coefficients = [t.coefficient for p in self.probes if p.sector == sector for t in self.terms(p)]
            found = {v.field for c in coefficients for v in traits_in(c) if isinstance(v.field, SiteValue)}
            if found:
                fields = sorted(found, key=sp.default_sort_key)
                self.held[sector] = _Held(system, order, sector, fields, self.taken)
        self.given = {value: made for held in self.held.values() for value, made in held.given.items()}
        # a law that traits make is known: only what fields are beside them is sampled
        sites = (some.sites for some in self.sampled.values() if some.sites.of_traits)
        self.given |= {entry(): entry.function for one in sites for entry in one.entries}

    def averaged(self, expression: sp.Expr) -> sp.Expr:
        """The average over sites, what stands on diagonals written as what it is made of."""
        return averaged(sp.sympify(expression).xreplace(self.given))

    def _respond(self, probe: Field, noise: Field) -> EngineSymbol:
        """The symbol for the response of a probe field to a noise; underscores keep its printed name apart."""
        if (probe, noise) not in self.responses:
            name = f"R_{probe}_{noise}"
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.responses[probe, noise] = BulkResponse(EngineSymbol(name, probe, noise), probe, noise)
        found: EngineSymbol = self.responses[probe, noise].symbol
        return found

    def responds(self, field: Field, noise: Field) -> bool:
        """Whether a training field answers a kick to another, at any delay."""
        return self.order.delay(field, noise) is not None

    def terms(self, probe: Field) -> tuple[Term, ...]:
        rule = self.rules[probe].rule
        if not isinstance(rule, LinearRule):
            raise DeclarationError(
                f"the probe field {probe} is not linear; the probed matrix must not depend on the probe"
            )
        if probe.sector in self.sampled:
            written = self.sampled[probe.sector].written
            return tuple(replace(term, coefficient=written(term.coefficient)) for term in rule.terms)
        return rule.terms

    def noise_terms(self, probe: Field) -> list[tuple[sp.Expr, Field]]:
        """(coefficient, spectral disorder field) pairs in the equation of a probe field."""
        return [
            (t.coefficient, t.vector.field)
            for t in self.terms(probe)
            if t.vector.field.role == "spectral" and isinstance(self.rules[t.vector.field].rule, DisorderRule)
        ]

    def propagator(self) -> tuple[tuple[tuple[int, int], sp.Expr], ...]:
        table: dict[tuple[int, int], sp.Expr] = {}
        for i, probe in enumerate(self.probes):
            table[i, i] = Z if self.rules[probe].derivative else sp.S.One
            for term in self.terms(probe):
                inner = term.vector.field
                if inner in self.probes and term.pair is None:
                    key = (i, self.probes.index(inner))
                    table[key] = table.get(key, sp.S.Zero) - term.coefficient
            for scale, noise in self.noise_terms(probe):
                for m in self.memories:
                    if m.target == noise and m.on.role == "spectral":
                        key = (i, self.probes.index(m.on))
                        table[key] = (
                            table.get(key, sp.S.Zero) - scale * m.coefficient * self.responses[m.a, m.noise].symbol
                        )
        return tuple(sorted(table.items()))

    def site(self, probe: Field) -> tuple[list[int], sp.Matrix]:
        """The spectral fields of one site, as places in the list of all, and their response to a drive of each."""
        if probe.sector not in self.sites:
            table = dict(self.propagator())
            rows = [i for i, other in enumerate(self.probes) if other.sector == probe.sector]
            self.sites[probe.sector] = (
                rows,
                self.inverted([[table.get((i, j), sp.S.Zero) for j in rows] for i in rows]),
            )
        return self.sites[probe.sector]

    def inverted(self, rows: list[list[sp.Expr]]) -> sp.Matrix:
        """The responses of one site from its propagator."""
        return site_responses(rows)

    def answers(self, probe: Field) -> list[tuple[sp.Expr, Field]]:
        """How a spectral field of a site answers drives in the equations of all of them: (response, driven field)."""
        rows, inverse = self.site(probe)
        row = rows.index(self.probes.index(probe))
        return [(inverse[row, k], self.probes[j]) for k, j in enumerate(rows) if inverse[row, k] != 0]

    def bulk_equations(self) -> tuple[sp.Expr, ...]:
        """L R = (coefficient of the noise in each equation), and the same for the source."""
        table = dict(self.propagator())
        terms = {place: sp.Add.make_args(sp.expand(entry)) for place, entry in table.items()}
        columns: list[Field | None] = [*dict.fromkeys(noise for _, noise in self.responses), None]
        traced = [p for p in self.probes if self.rules[p].derivative or p in self.images]
        wanted = [*self.responses, *((p, None) for p in traced)]
        equations = []
        for column in columns:
            driven = next(p for p in self.probes if self._drive(p, column) != 0)
            if driven.sector in self.differing:
                for probe in (p for p, noise in wanted if noise == column):
                    answers = ((response, self._drive(other, column)) for response, other in self.answers(probe))
                    total = self.averaged(sp.Add(*(response * drive for response, drive in answers)))
                    equations.append(self._response_symbol(probe, column) - total)
                continue
            rows = self._connected(column, table)
            for i in rows:
                probe = self.probes[i]
                parts = [-sp.expand(self._drive(probe, column))]
                for j in rows:
                    if (i, j) in table:
                        response = self._response_symbol(self.probes[j], column)
                        parts += [term * response for term in terms[i, j]]
                equations.append(sp.Add(*parts))
        if self.differing and not any(equation.has(SiteAverage) for equation in equations):
            # sites are alike after all, as where a constant field is on the diagonal
            equations = [sp.expand(sp.fraction(sp.together(equation))[0]) for equation in equations]
        return tuple(equations)

    def _drive(self, probe: Field, column: Field | None) -> sp.Expr:
        if column is None:
            return sp.S.One if self.rules[probe].derivative else sp.S.Zero
        return sp.Add(*(scale for scale, noise in self.noise_terms(probe) if noise == column))

    def _connected(self, column: Field | None, table: dict[tuple[int, int], sp.Expr]) -> list[int]:
        """Probe fields that a kick reaches within one site."""
        reached = {i for i, probe in enumerate(self.probes) if self._drive(probe, column) != 0}
        while True:
            more = {i for i, j in table if j in reached} - reached
            if not more:
                return sorted(reached)
            reached |= more

    def _response_symbol(self, probe: Field, column: Field | None) -> EngineSymbol:
        if column is not None:
            return self._respond(probe, column)
        return RESOLVENT if self.rules[probe].derivative else EngineSymbol(f"G_{probe}", probe)

    # -- mixed order parameters

    def spikes(self, probe: Field) -> list[tuple[sp.Expr, Word, Unknown, Field]]:
        """The equation of a probe field: sum of coefficient * weight * unknown, times a training field."""
        found: list[tuple[sp.Expr, Word, Unknown, Field]] = []
        for term in self.terms(probe):
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
            word: Word = (Diagonal(weight, vector),) if depends else ()
            found.append((scale, word, Unknown("C", right.field, left.field), vector))
        for scale, noise in self.noise_terms(probe):
            for m in self.memories:
                if m.target == noise and m.on.role != "spectral":
                    found.append((scale * m.coefficient, (), Unknown("R", m.a, m.noise), m.on))
        return found

    def stein(self, probe: Field, field: Field) -> list[tuple[sp.Expr, Word, Unknown]]:
        """<noise of the probe equation * field>: covariance with each training noise times the field's response."""
        found: list[tuple[sp.Expr, Word, Unknown]] = []
        for scale, noise in self.noise_terms(probe):
            for c in self.covariances:
                if c.left == noise and c.right.role != "spectral" and self.responds(field, c.right):
                    found.append((scale * c.coefficient, (Letter.response(field, c.right),), Unknown("C", c.a, c.b)))
        return found

    def row(self, unknown: Unknown) -> dict[Unknown, Combination]:
        """Everything that multiplies other unknowns in the equation of this one."""
        parts: dict[Unknown, list[tuple[sp.Expr, Word]]] = {}
        if unknown.probe.sector in self.sampled:
            for response, probe in self.answers(unknown.probe):
                for scale, thing, word, other in self._sampled_drives(probe):
                    for factor, letter in self._weighed(response * scale, unknown, thing):
                        parts.setdefault(other, []).append((factor, (letter, *word)))
            return {other: made for other, terms in parts.items() if (made := combine(terms))}
        if unknown.probe.sector in self.differing:
            for response, probe in self.answers(unknown.probe):
                for scale, seen, other in self.site_drives(unknown, probe):
                    parts.setdefault(other, []).append((self.averaged(response * scale), seen))
            return {other: combine(terms) for other, terms in parts.items()}
        for scale, word, other, vector in self.spikes(unknown.probe):
            if unknown.kind == "C":
                letters: Word = (Letter.correlation(unknown.field, vector), *word)
            elif self.responds(vector, unknown.field):
                letters = (Letter.response(vector, unknown.field).T, *word)
            else:
                continue
            parts.setdefault(other, []).append((scale, letters))
        if unknown.kind == "C":
            for scale, letters, other in self.stein(unknown.probe, unknown.field):
                parts.setdefault(other, []).append((scale, letters))
        return {other: combine(terms) for other, terms in parts.items()}

    def site_drives(self, unknown: Unknown, probe: Field) -> list[tuple[sp.Expr, Word, Unknown]]:
        """What drives the equation of a probe field at a site that differs, projected as an unknown is: coefficients
        may hold traits."""
        found: list[tuple[sp.Expr, Word, Unknown]] = []
        for scale, word, other, vector in self.spikes(probe):
            found += [(scale * factor, (*letters, *word), other) for factor, letters in self._seen(unknown, vector)]
        return found + self._noises_seen(unknown, probe)

    def _sampled_drives(self, probe: Field) -> list[tuple[sp.Expr, tuple[str, Field], Word, Unknown]]:
        """What drives the equation of a probe field at a site whose law is sampled: a coefficient, a training field or
        the noise that one of the probe goes along with, and what they are multiplied with."""
        found: list[tuple[sp.Expr, tuple[str, Field], Word, Unknown]] = [
            (scale, ("C", vector), word, other) for scale, word, other, vector in self.spikes(probe)
        ]
        for scale, noise in self.noise_terms(probe):
            for c in self.covariances:
                if c.left == noise and c.right.role != "spectral":
                    found.append((scale * c.coefficient, ("R", c.right), (), Unknown("C", c.a, c.b)))
        return found

    def _weighed(
        self, weight: sp.Expr, unknown: Unknown, thing: tuple[str, Field]
    ) -> list[tuple[sp.Expr, Letter | Weighed]]:
        """The mean over sites of a weight times what an unknown is projected on times another thing; none where it
        vanishes: what is drawn independently of both is differentiated by."""
        sites, own = self.sampled[unknown.probe.sector], (unknown.kind, unknown.field)
        if not traits_in(weight):
            if own[0] == thing[0]:
                return [(weight, Letter.correlation(own[1], thing[1]))] if own[0] == "C" else []
            (_, field), (_, noise) = sorted((own, thing), key=lambda end: end[0])
            letter = Letter.response(field, noise)
            return [(weight, letter if own[0] == "C" else letter.T)] if self.responds(field, noise) else []
        fields, noises = ([field for kind, field in (own, thing) if kind == which] for which in ("C", "R"))
        for noise in noises:
            if not sites.answers(noise) and not any(self.responds(field, noise) for field in fields):
                return []
        whole = averaged(weight)
        (average,) = whole.atoms(SiteAverage)
        return [(whole / average, Weighed(average.expression, unknown.probe.sector, own, thing))]

    def _parts(self, field: Field) -> Parts:
        """A training field at a site that differs: functions of the site, each times a field that is none."""
        held = self.held.get(field.sector)
        if held is None:
            return trait_parts(self.system, field)
        return normal_parts(self.system, self.order, field, held.fields)

    def _seen(self, unknown: Unknown, vector: Field) -> list[tuple[sp.Expr, Word]]:
        """What an unknown sees of a training field at a site given its traits: functions of traits, and letters."""
        found: list[tuple[sp.Expr, Word]] = []
        for f, part in self._parts(vector):
            for g, own in self._parts(unknown.field) if unknown.kind == "C" else ((sp.S.One, None),):
                if own is not None:
                    found.append((f * g, (Letter.correlation(own, part),)))
                elif self.responds(part, unknown.field):
                    found.append((f, (Letter.response(part, unknown.field).T,)))
                if vector.sector in self.held:
                    constant = part.role == "constant"
                    rows = None if constant else self.held[vector.sector].rows_of(part)
                    found += [(f * g * scale, word) for scale, word in self._going_along(unknown, own, rows)]
        return found

    def _noises_seen(self, unknown: Unknown, probe: Field) -> list[tuple[sp.Expr, Word, Unknown]]:
        """The noises in the equation of a probe field at a site that differs, projected as an unknown is."""
        found: list[tuple[sp.Expr, Word, Unknown]] = []
        for g, own in self._parts(unknown.field) if unknown.kind == "C" else ((sp.S.One, None),):
            if own is not None:
                found += [(g * scale, letters, other) for scale, letters, other in self.stein(probe, own)]
            if probe.sector not in self.held:
                continue
            for scale, noise in self.noise_terms(probe):
                for c in self.covariances:
                    if c.left == noise and c.right.role != "spectral":
                        rows = self.held[probe.sector].kicked(c.right)
                        seen = self._going_along(unknown, own, rows)
                        found += [(g * scale * c.coefficient * s, word, Unknown("C", c.a, c.b)) for s, word in seen]
        return found

    def _going_along(self, unknown: Unknown, own: Field | None, rows: Along | None) -> list[tuple[sp.Expr, Word]]:
        """How far two things go along with the fields on diagonals: `own` or the noise of an unknown, and what has
        `rows`. The constant, which has none, goes along with nothing, but a function of the site that it multiplies
        does."""
        held = self.held[unknown.probe.sector]
        if own is None:
            columns: Along | None = _transposed(held.kicked(unknown.field))
        else:
            columns = None if own.role == "constant" else held.along(own)
        x = [normal() for normal in held.spread.normals]
        if columns is None or rows is None:
            one = columns or rows or ()
            return [(x[b] * scale, (letter,)) for b, terms in enumerate(one) for scale, letter in terms]
        return [
            ((x[b] * x[c] - (1 if b == c else 0)) * left * right, (column, row))
            for b, some in enumerate(columns)
            for c, others in enumerate(rows)
            for left, column in some
            for right, row in others
        ]

    def directions(self, unknowns: tuple[Unknown, ...]) -> tuple[Directions, ...]:
        """The spikes on either side, and what a source along them adds to each equation."""
        found = []
        for side, probe in self.sides():
            fields = tuple(dict.fromkeys(t.vector.field for t in self.terms(probe) if t.pair is not None))
            if not fields or any(Unknown("C", probe, f) not in unknowns for f in fields):
                continue
            drive: dict[tuple[int, int], Combination] = {}
            for row, unknown in enumerate(unknowns):
                for column, f in enumerate(fields):
                    made = self.driven(unknown, probe, f)
                    if made:
                        drive[row, column] = made
            found.append(Directions(side, probe, fields, tuple(drive.items())))
        return tuple(found)

    def sides(self) -> list[tuple[str, Field]]:
        """The probe fields that are an eigenvector psi0 and, where the matrix is K^T K, its image K psi0."""
        root = next(probe for probe in self.probes if self.rules[probe].derivative)
        return [("right", root), *([("left", self.middle)] if self.middle is not None else [])]

    def driven(self, unknown: Unknown, probe: Field, along: Field) -> Combination:
        """What a source along a training field in the equation of a probe field adds to that of an unknown."""
        if unknown.probe.sector in self.sampled and unknown.probe.sector == probe.sector:
            response = sp.Add(*(found for found, other in self.answers(unknown.probe) if other == probe))
            return combine([(f, (letter,)) for f, letter in self._weighed(response, unknown, ("C", along))])
        if unknown.probe.sector in self.differing and unknown.probe.sector == probe.sector:
            response = sp.Add(*(found for found, other in self.answers(unknown.probe) if other == probe))
            seen = [(self.averaged(response * scale), word) for scale, word in self._seen(unknown, along)]
            return combine(seen)
        if unknown.probe != probe:
            return ()
        if unknown.kind == "C":
            return combine([(sp.S.One, (Letter.correlation(unknown.field, along),))])
        return combine(
            [(sp.S.One, (Letter.response(along, unknown.field).T,))] if self.responds(along, unknown.field) else []
        )

    def neighbours(self) -> dict[Field, list[Field]]:
        """The other probe fields in the equation of each, within one site."""
        found: dict[Field, list[Field]] = {p: [] for p in self.probes}
        for (i, j), _ in self.propagator():
            if i != j and self.probes[i].sector not in self.differing:
                found[self.probes[i]].append(self.probes[j])
        return found

    def reachable(self) -> dict[Unknown, dict[Unknown, Combination]]:
        """The overlaps in the probe equations and what their own equations need, each with its equation."""
        rows: dict[Unknown, dict[Unknown, Combination]] = {}
        waiting = [other for probe in self.probes for _, _, other, _ in self.spikes(probe)]
        neighbours = self.neighbours()
        while waiting:
            unknown = waiting.pop(0)
            if unknown in rows:
                continue
            rows[unknown] = self.row(unknown)
            waiting += [*rows[unknown], *(Unknown(unknown.kind, p, unknown.field) for p in neighbours[unknown.probe])]
        return rows

    def close(self) -> tuple[tuple[Unknown, ...], tuple[tuple[tuple[int, int], Combination], ...]]:
        """The unknowns that do not vanish, in a fixed order, and what multiplies them in each other's equations."""
        rows = _without_zeros(self.reachable(), self.neighbours())
        position = {p: i for i, p in enumerate(self.probes)}
        order = sorted(rows, key=lambda u: (position[u.probe], u.kind, u.field.name))
        table = {(r, c): rows[u][v] for r, u in enumerate(order) for c, v in enumerate(order) if rows[u].get(v)}
        return tuple(order), tuple(sorted(table.items(), key=lambda item: item[0]))


class _Traced(_Projection):
    """The same with epsilon A added to the matrix, for each A."""

    def __init__(self, saddle: SaddlePoint, order: TimeOrder, images: tuple[Field, ...], sampled: Chosen):
        super().__init__(saddle, order, sampled)
        self.images = images
        self.sources = {image: EngineSymbol(f"epsilon_{image}", image) for image in images}

    @cached_property
    def small(self) -> tuple[sp.Symbol, ...]:
        """What is put to zero, and is needed to first order only: epsilon of each matrix, and what vanishes with it."""
        return (*self.sources.values(), *sorted(self.vanishing(), key=str))

    def inverted(self, rows: list[list[sp.Expr]]) -> sp.Matrix:
        """To first order in what is small: 1 / (S + y E) = 1/S - y (1/S) E (1/S). S without the rest is sparse."""
        matrix = sp.Matrix(rows)
        bare = matrix.xreplace({symbol: sp.S.Zero for symbol in self.small})
        found = site_responses(bare.tolist())
        whole = found
        for symbol in self.small:
            rate = matrix.diff(symbol)
            if not rate.is_zero_matrix:
                rate = rate.xreplace({other: sp.S.Zero for other in self.small})
                whole = whole - symbol * (found * rate * found).applyfunc(sp.factor_terms)
        return whole

    def averaged(self, expression: sp.Expr) -> sp.Expr:
        """What is small stands in front of averages."""
        expression = sp.sympify(expression)
        here = [symbol for symbol in self.small if expression.has(symbol)]
        none = {symbol: sp.S.Zero for symbol in here}
        total = super().averaged(expression.xreplace(none))
        for symbol in here:
            total += symbol * super().averaged(sp.diff(expression, symbol).xreplace(none))
        return total

    def propagator(self) -> tuple[tuple[tuple[int, int], sp.Expr], ...]:
        table = dict(super().propagator())
        root = next(i for i, probe in enumerate(self.probes) if self.rules[probe].derivative)
        for image, source in self.sources.items():
            table[root, self.probes.index(image)] = -source
        return tuple(sorted(table.items()))

    def vanishing(self) -> set[sp.Symbol]:
        """Responses that are zero where epsilon is: no way leads from what is kicked to what answers."""
        table = dict(super().propagator())
        every = {response.symbol for response in self.responses.values()}
        there: set[sp.Symbol] = set()
        while True:
            none = {symbol: sp.S.Zero for symbol in every - there}
            ways = {key: value for key, entry in table.items() if (value := entry.xreplace(none)) != 0}
            found = {
                response.symbol
                for (probe, noise), response in self.responses.items()
                if self.probes.index(probe) in self._connected(noise, ways)
            }
            if found == there:
                reached = self._connected(None, ways)
                driven = {self._response_symbol(p, None) for i, p in enumerate(self.probes) if i not in reached}
                return (every - there) | driven
            there = found

    def unreached(self) -> list[sp.Symbol]:
        """Responses that vanish whatever epsilon is, as those of a matrix of low rank, and so have no equation."""
        table = dict(self.propagator())
        asked = [*self.responses, *((image, None) for image in self.images)]
        found = []
        for probe, column in asked:
            driven = next(p for p in self.probes if self._drive(p, column) != 0)
            if driven.sector not in self.differing and self.probes.index(probe) not in self._connected(column, table):
                found.append(self._response_symbol(probe, column))
        return found

    def image(self, image: Field) -> EngineSymbol:
        """The symbol of the answer of an image to the source of the resolvent."""
        return self._response_symbol(image, None)


def _without_zeros(
    rows: dict[Unknown, dict[Unknown, Combination]], neighbours: dict[Field, list[Field]]
) -> dict[Unknown, dict[Unknown, Combination]]:
    """Keep unknowns that the source reaches: a response that no overlap drives, however indirectly, vanishes."""
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
