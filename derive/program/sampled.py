"""The training level where laws are not linear: many sites forward in time, as a program.

Values at one time are arrays of sites x labels; the past is kept as coordinates in spans of directions, labels x
directions at one time. See numerics/runtime/sampled.py for the functions that are called here by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sp

from derive.algebra.nodes import outermost
from derive.algebra.words import SiteTable
from derive.equations.layout import Layout, mean_key
from derive.equations.needs import NOTHING, Needs
from derive.errors import DeclarationError
from derive.language.symbols import Sector, labels_along
from derive.language.traits import Trait
from derive.language.vectors import Each, Field, FieldAt, Mean, Total, axes_of, shown
from derive.program.nodes import (
    SCALAR,
    Call,
    Formula,
    Function,
    Item,
    Let,
    MatMul,
    Ref,
    Slot,
    Statement,
    Sum,
    Symbol,
    Transposed,
    Tuple,
    Value,
    alive,
    alive_always,
    shape_of,
    symbols_in,
)
from derive.program.sampled_fields import Fields
from derive.program.sampled_records import (
    MOMENTS,
    NORMALS,
    SITES,
    TOLERANCE,
    Key,
    MomentKey,
    SampledPass,
    has_jumps,
    key_of,
)
from derive.program.sites import Channel
from derive.program.training import apart, labels_in
from derive.program.traits import law_of
from derive.records.probe import SampledSites
from derive.records.system import weighing

FEWEST = 64
"""Values of a density of which the smallest and the largest are as good as its ends."""


def sampled_pass(layout: Layout, needs: Needs = NOTHING, responses: str = "stein") -> SampledPass:
    """The program that gives order parameters and the observables. responses: "stein" or "pathwise"."""
    if responses == "pathwise" and has_jumps(layout):
        raise DeclarationError(
            "responses cannot be found pathwise where a law jumps: its derivative does not tell how it changes; "
            "leave responses out, or write responses='stein'"
        )
    return Build(layout, needs, responses).program()


class Build(Fields):
    """The whole program: all fields in their order, what is carried, the results."""

    def program(self) -> SampledPass:
        sources = self.layout.system.sources
        for made in self.spans:
            slots = (Formula(self._slots(made.span.fields[0])),) if self.pathwise else ()
            self.initial[made.symbol] = Call("empty_span", (SITES, self.size[made.span], *slots), None)
        for trait in self.drawn_traits:
            self.done[trait] = Symbol(trait.name, self.shape(trait))
            self.lines.append(Let(self.done[trait], self.trait(trait)))
        for source in sources:
            if not source.timed:
                self._remember(source, fresh=False)
        for f in self.layout.fields:
            if not f.field.timed:
                self._field(f)
        start, self.lines = tuple(self.lines), []
        self.answered_once = tuple(self.answers.values())
        if self.clock is not None:
            self._begin()
            for f in self.layout.fields:
                if f.field.timed:
                    self._field(f)
            series = {name: self._followed(name, value) for name, value in self._observed() if value.has(self.clock)}
            timed = [any(v.time is not None for v in m.atoms(FieldAt)) for m in self.means]
            weighing = [self._followed_mean(m) if t else None for m, t in zip(self.means, timed, strict=True)]
            self._end()
        else:
            series, weighing = {}, [None] * len(self.means)
        step, self.lines = tuple(self.lines), []
        moments = [*self._moments(weighing), *self._site_moments()]
        averages = tuple(self.averages)
        observables: list[tuple[str, Value]] = [
            (name, series[name] if name in series else Call("once", (self._observable(value),), None))
            for name, value in self._observed()
        ]
        each = {name: value.expression for name, value in self._observed() if isinstance(value, Each)}
        observed = [
            (name, apart(found, each[name]) if name in each else found, "" if name in series else self.observed(name))
            for name, found in observables
        ]
        fields = self._kept_fields()
        results, self.lines = tuple(self.lines), []
        return self._without_dead(start, step, results, averages, tuple(moments), tuple(observed), tuple(fields))

    def _observed(self) -> tuple[tuple[str, sp.Expr], ...]:
        found: tuple[tuple[str, sp.Expr], ...] = self.layout.system.model.observe
        return found

    def _kept_fields(self) -> list[tuple[str, Value]]:
        """What takes the place of moments and observables, by field."""
        return []

    def _begin(self) -> None:
        """What each time starts from: spans of matrices drawn anew are empty, and what is drawn is known."""
        for made in self.spans:
            if made.span.fresh:
                self.lines.append(Let(made.symbol, Call("emptied", (made.symbol,), None)))
        for field in (*self.layout.system.sources, *(f.field for f in self.layout.fields)):
            if not field.timed:
                self._remember(field, fresh=True)
            elif field.role != "field":
                self._remember(field)

    def _end(self) -> None:
        """What is kept once all fields of a time are known."""
        for node, symbol in self.tables.items():
            self._recorded(symbol, self.number(node))
        for field, chain in self.lates.items():
            fresh = self._drawn_anew(field)
            for k in range(len(chain) - 1, -1, -1):
                late, d_late = chain[k]
                before = chain[k - 1] if k else (self.done[field], self.slopes.get(field, late))
                self.lines.append(Let(late, Ref(before[0])))
                if self.sloped:
                    slope: Value = Ref(before[1])
                    for channel in fresh if k == 0 and self.pathwise else ():
                        slope = Call("forgotten", (slope, *self._place(channel)), d_late.shape)
                    self.lines.append(Let(d_late, slope))
        if self.pathwise:
            for made in self.spans:
                for channel in self._drawn_anew(made.span.fields[0]) if not made.span.fresh else ():
                    call = Call("forgetting", (made.symbol, *self._place(channel)), None)
                    self.lines.append(Let(made.symbol, call))

    def _without_dead(
        self,
        start: tuple[Statement, ...],
        step: tuple[Statement, ...],
        results: tuple[Statement, ...],
        averages: tuple[Let, ...],
        moments: tuple[tuple[MomentKey, Value], ...],
        observables: tuple[tuple[str, Value, str], ...],
        fields: tuple[tuple[str, Value], ...],
    ) -> SampledPass:
        """Keep what the results need, through all times."""
        of_moments: dict[Symbol, None] = {}
        for _, value in moments:
            of_moments |= symbols_in(value)
        averages, of_moments = alive(averages, of_moments)
        wanted = dict(of_moments)
        for value in (*(v for _, v in fields), *(v for _, v, _ in observables)):
            wanted |= symbols_in(value)
        known_last = {s for statement in results for s in statement.symbols}
        results, wanted = alive(results, wanted)
        kept, wanted = alive_always(step, wanted)
        fixed = [
            *(s for f, s in self.done.items() if not f.timed),
            *(s for f, s in self.slopes.items() if not f.timed),
            *(s for (f, span), s in self.rows.items() if not f.timed and not span.fresh),
            *self.answered_once,
        ]
        carried = tuple(s for s in (*fixed, *self.initial) if s in wanted)
        spans = {made.symbol for made in self.spans}
        first = [Let(s, value) for s, value in self.initial.items() if s in spans]
        rest = [Let(s, value) for s, value in self.initial.items() if s not in spans]
        begun, more = alive((*first, *start, *rest), {s: None for s in carried})
        # spans of fields without time that nothing later needs: the report is on them as well
        used_once = {s: None for let in begun for s in let.symbols if s in spans and s not in carried}
        carried = (*carried, *used_once)
        used = {**wanted, **more}
        for statement in (*begun, *kept, *results, *averages):
            used |= symbols_in(statement.value)
        made = {s for statement in kept for s in statement.symbols}
        responses, order = self._order()
        return SampledPass(
            self.clock,
            self.method,
            self.time,
            self.when,
            self.spans,
            tuple(self.kinds.values()),
            tuple(normals.key for kind, normals in self.kinds.items() if isinstance(kind, Channel)),
            self._groups(),
            self.sharing.has_mean_of_product,
            self._footprint(),
            self.coefficients.statements(used),
            begun,
            kept,
            tuple(self.done[f.field] for f in self.layout.fields if f.field.timed and self.done[f.field] in made),
            carried,
            results,
            tuple(s for s in of_moments if s in known_last or s in carried),
            averages,
            moments,
            observables,
            responses,
            order,
            tuple((key_of(x), (x.a, x.b)) for x in self.letters),
            tuple(dict.fromkeys(m.noise.name for m in self.layout.saddle.memories if m.target in self.done)),
            fields,
            tuple(
                (sites.reach.name, ("S", sites.sector.name, "reach"), len(sites.entries))
                for sites in self.sampled
                if not sites.bounded
            ),
        )

    def _rows_before(self, field: Field) -> Value:
        """The coordinates of a field before the last update."""
        past = self.past(field)
        if not field.timed:
            return past
        count = self.order_times * field.labels
        return Call("first", (past, count), (count, shape_of(past)[1]))

    def _moments(self, weighing: Sequence[Ref | None]) -> list[tuple[MomentKey, Value]]:
        """What is averaged over sites, before responses are made of it: of what is carried, and of numbers that are
        known after the last time, so that sites are not needed any more. weighing: the means in the probed matrix at
        all times, where they have any."""
        found: list[tuple[MomentKey, Value]] = []
        for letter in self.letters:
            if letter.kind == "C":
                a, b = self._rows_before(letter.a), self._rows_before(letter.b)
                spans = [self.sharing.past_span(f) for f in (letter.a, letter.b)]
                if spans[0] != spans[1]:
                    homes = tuple(Ref(self.home[s].symbol) for s in spans)
                    shape = (shape_of(a)[1], shape_of(b)[1])
                    turned = self._known_last(f"{letter.a}_with_{letter.b}", Call("between", homes, shape))
                    a = MatMul(a, turned)
                value: Value = MatMul(a, Transposed(b))
                if self._with_same_root(letter) and {letter.a, letter.b} <= set(self.past_rests):
                    rests = tuple(Ref(self.past_rests[f]) for f in (letter.a, letter.b))
                    value = Call("with_rest", (value, *rests, self.order_times), value.shape)
                found.append((key_of(letter), value))
        noises: dict[Channel, Ref] = {}
        for channel in dict.fromkeys((*(c for _, c in self._asked()), *self._answered_at_sites())):
            symbol = Symbol(f"noise_{channel.hint}")
            remark = f"the noises of {channel.hint} in terms of its normals"
            self.averages.append(Let(symbol, self._noise_rows(channel), remark))
            noises[channel] = Ref(symbol)
            found.append((("G", self.kinds[channel].key), MatMul(noises[channel], Transposed(noises[channel]))))
        for a, channel in self._asked():
            answered: Value = Ref(self.answered[a, channel])
            if a.timed:
                answered = Call("first", (answered, self.order_times * a.labels), None)
            key = ("K", a.name, self.kinds[channel].key)
            found.append((key, MatMul(answered, Transposed(noises[channel]))))
        for i, followed in enumerate(weighing):
            mean = self.means[i]
            shape = (sp.S.One, labels_in(mean))
            weight = self._known_last("weighing", self.number(mean, shape)) if followed is None else followed
            weighed = mean_key(mean, i, self.clock)
            count = (Formula(self.order_times if weighed[0] == "M" else self.points), Formula(labels_in(mean)))
            found.append((weighed, Call("before", (weight, *count), None)))
        return found

    def _site_moments(self) -> list[tuple[MomentKey, Value]]:
        """What is averaged over sites for each value of what stands on diagonals there, once all times are known."""
        found: list[tuple[MomentKey, Value]] = []
        weights: dict[Sector, Ref] = {}
        for sites in self.sampled:
            if sites.known:
                values = (self._taken(value) for value in sites.values)
                belonging = Call("belonging_to", (_groups_of(sites), *values), None)
                weights[sites.sector] = self._known_last(f"belonging_{sites.sector}", belonging)
                shares = Call("shares_seen", (weights[sites.sector],), None)
                found.append((("S", sites.sector.name), self._known_last(f"shares_{sites.sector}", shares)))
                continue
            known = {v: Slot(self._taken(v), shown(v)) for v in sites.values}
            shape = (self.sites_slot, sp.S.One)
            made_of = [(entry.name, self.formula(entry.function, shape, known=known)) for entry in sites.entries]
            entries, reach = tuple(self._known_last(*entry) for entry in made_of), _reach_of(sites)
            weights[sites.sector] = self._known_last(
                f"belonging_{sites.sector}", Call("belonging", (entries, reach), None)
            )
            shares = Call("shares_of", (entries, reach), None)
            if not sites.bounded:
                within = self._known_last(f"reach_{sites.sector}", Call("reach_of", (entries,), None))
                found.append((("S", sites.sector.name, "reach"), within))
            found.append((("S", sites.sector.name), self._known_last(f"shares_{sites.sector}", shares)))
        made: dict[MomentKey, Ref] = {}
        for table in self.site_tables:
            key = self._site_key(table)
            if key not in made:
                ends = (self._at_sites(*end) for end in (table.left, table.right))
                call = Call("by_value", (weights[table.sector], *ends), None)
                made[key] = self._known_last("_".join(("sites", *map(_as_word, key[1:]))), call)
                found.append((key, made[key]))
        return found

    def _answered_at_sites(self) -> list[Channel]:
        """The random matrices that sites with sampled diagonal entries answer to."""
        found = [self.sharing.channel_of(f) for table in self.site_tables for kind, f in _ends(table) if kind == "R"]
        for channel in (channel for channel in found if channel.fresh):
            raise DeclarationError(
                f"the probed matrix needs how sites answer to {channel.matrix}, which is drawn anew at every time; "
                "probe weights that start from a matrix that stays"
            )
        return found

    def _site_key(self, table: SiteTable) -> MomentKey:
        """Noises of a random matrix are averaged together."""
        ends = (
            f"C {f}" if kind == "C" else f"R {self.kinds[self.sharing.channel_of(f)].key}" for kind, f in _ends(table)
        )
        return ("W", table.sector.name, *ends)

    def _taken(self, value: FieldAt) -> Value:
        """A field at all sites, at the one time at which it stands on a diagonal, or a trait."""
        field, shape = value.field, self.shape(value.field)
        if isinstance(field, Trait):
            return Ref(self.done[field])
        if field.role == "constant":
            return Call("ones", (SITES,), shape)
        rows: Value = self.past(field)
        if field.timed:
            rows = Call("rows_at", (rows, value.time, field.labels), None)
        return Call("expressed", (self.directions(field), rows), shape)

    def _at_sites(self, kind: str, field: Field) -> Value:
        """A field at all sites and all times before the last update, or the noises of a random matrix."""
        if kind == "C":
            return Call("expressed", (self.directions(field), self._rows_before(field)), None)
        channel = self.sharing.channel_of(field)
        return MatMul(Item(NORMALS, self.kinds[channel].key), Transposed(self._noise_rows(channel)))

    def _noise_rows(self, channel: Channel) -> Value:
        """The noises of a random matrix in terms of its normals."""
        rows = [
            Sum(((self.number(self.sharing.strength(p)), self._rows_before(self.sharing.argument(p))),), None)
            for p in channel.products
        ]
        return rows[0] if len(rows) == 1 else Call("stacked", tuple(rows), None)

    def _site_order(self, entries: Callable[..., Call]) -> tuple[list[Let], list[tuple[Key, Value]]]:
        """Laws of what stands on diagonals, and what A(z) needs for each value, from moments."""
        lines: list[Let] = []
        order: list[tuple[Key, Value]] = []
        made: dict[MomentKey, Symbol] = {}
        groups: dict[Sector, Value] = {}
        for sites in self.sampled:
            shares = Item(MOMENTS, ("S", sites.sector.name))
            if sites.known:
                symbol = Symbol(f"groups_{sites.sector}")
                lines.append(Let(symbol, _groups_of(sites)))
                groups[sites.sector] = Ref(symbol)
                order.append((sites.key, Call("law_of_known", (Ref(symbol), _entries_of(sites)), None)))
                continue
            order.append((sites.key, Call("law_of_sites", (shares, _reach_of(sites)), None)))
        for table in self.site_tables:
            key = self._site_key(table)
            shares = Item(MOMENTS, ("S", table.sector.name))
            seen: Value = Item(MOMENTS, key)
            if table.sector in groups:
                seen = Call("as_shared", (seen, shares, groups[table.sector]), None)
            channels = [self.sharing.channel_of(f) for kind, f in _ends(table) if kind == "R"]
            if not channels:
                order.append((table.key, seen))
                continue
            if key not in made:
                noises = [tuple(entries(j, 0) for j in channel.products) for channel in channels]
                covariances = [Item(MOMENTS, ("G", self.kinds[channel].key)) for channel in channels]
                pairs = tuple(x for pair in zip(covariances, noises, strict=True) for x in pair)
                twice = len(channels) == 2
                of_sites = (self._shares(table.sector, groups),) if twice else ()
                given = (seen, *of_sites, *pairs, Formula(self.points), Ref(TOLERANCE))
                call = Call("twice_by_value" if twice else "responses_by_value", given, None)
                made[key] = Symbol("_".join(map(_as_word, key)))
                lines.append(Let(made[key], call))
            fields = [f for kind, f in _ends(table) if kind == "R"]
            places = tuple(c.products.index(f) for c, f in zip(channels, fields, strict=True))
            order.append((table.key, Item(made[key], places)))
        return lines, order

    def _shares(self, sector: Sector, groups: dict[Sector, Value]) -> Call:
        """The share of the sites that has each value of what stands on diagonals."""
        if sector in groups:
            return Call("shares_known", (groups[sector],), None)
        sites = next(sites for sites in self.sampled if sites.sector == sector)
        return Call("shares_by_cubics", (Item(MOMENTS, ("S", sector.name)), _reach_of(sites)), None)

    def _known_last(self, hint: str, value: Value) -> Ref:
        """What is found from the sites after the last time."""
        symbol = Symbol(hint, value.shape)
        self.lines.append(Let(symbol, value))
        return Ref(symbol)

    def _order(self) -> tuple[tuple[Let, ...], tuple[tuple[Key, Value], ...]]:
        """Order parameters from moments, which may be means over several passes."""
        reach = {(x, j): lag for x, j, lag in self.layout.time_order.lags}

        def entries(field: Field, *lag: int | None) -> Call:
            times = Formula(self.order_times) if field.timed else None
            return Call("Entries", (times, field.labels, *lag), None)

        made: dict[tuple[Field, Channel], Symbol] = {}
        lines = []
        for a, channel in self._asked():
            key = self.kinds[channel].key
            lags = [reach.get((a, j), 0 if not j.timed else None) for j in channel.products]
            noises = tuple(entries(j, lag) for j, lag in zip(channel.products, lags, strict=True))
            seen, covariance = (Item(MOMENTS, k) for k in (("K", a.name, key), ("G", key)))
            arguments = (seen, covariance, entries(a), noises, Formula(self.points), Ref(TOLERANCE))
            made[a, channel] = Symbol(f"R_{a}_{channel.hint}")
            lines.append(Let(made[a, channel], Call("responses", arguments, None)))
        order: list[tuple[Key, Value]] = []
        for letter in self.letters:
            if letter.kind == "C":
                order.append((key_of(letter), Item(MOMENTS, key_of(letter))))
            else:
                channel = self.sharing.channel_of(letter.b)
                place = channel.products.index(letter.b)
                order.append((key_of(letter), Item(made[letter.a, channel], place)))
        keys = [mean_key(mean, i, self.clock) for i, mean in enumerate(self.means)]
        order += [(key, Item(MOMENTS, key)) for key in keys]
        more, tables = self._site_order(entries)
        return (*lines, *more), (*order, *tables)

    def _followed(self, name: str, value: sp.Expr) -> Ref:
        """An observable at all times."""
        axes = axes_of(value.expression) if isinstance(value, Each) else ()
        shape = (self.points, labels_along(axes)) if axes else (self.points,)
        symbol = self._carry(Symbol(f"{name}_series", shape))
        return self._recorded(symbol, self._observable(value), self.observed(name))

    def _followed_mean(self, average: Mean) -> Ref:
        """A mean in the probed matrix, at all times."""
        symbol = self._carry(Symbol("weighing", (self.points, labels_in(average))))
        return self._recorded(symbol, self.number(weighing(average, self.clock)[0]))

    def _observable(self, value: sp.Expr) -> Value:
        """An observable at the current time; outside total(...) and each(...) labels are averaged over."""
        if isinstance(value, Each):
            return self.number(value.expression)
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(value, (Mean, Total)):
            if isinstance(node, Mean) and axes_of(node):
                inner[node] = Slot(Call("label_mean", (self._mean(node),), SCALAR), shown(node))
            else:
                inner[node] = Slot(self.number(node), shown(node))
        moved = {self.clock: self.now_slot} if self.clock is not None else {}
        return Formula(value.xreplace(inner).xreplace(moved))


def _groups_of(sites: SampledSites) -> Call:
    """Sites by the values of the traits on diagonals."""
    return Call("grouped", tuple(law_of(value.field, (FEWEST,)) for value in sites.values), None)


def _reach_of(sites: SampledSites) -> Value:
    """Between which numbers lies what stands on diagonals: as traits say, or as it is found in one pass."""
    if not sites.bounded:
        return Formula(sites.reach, None)
    return Call("reach_known", (_groups_of(sites), _entries_of(sites)), None)


def _entries_of(sites: SampledSites) -> Function:
    """What stands on diagonals, as a function of the traits that it is made of."""
    symbols = {value: Symbol(value.field.name) for value in sites.values}
    slots = {value: Slot(Ref(symbol), symbol.hint) for value, symbol in symbols.items()}
    made = (Formula(entry.function.xreplace(slots), None) for entry in sites.entries)
    return Function(tuple(symbols.values()), Tuple(tuple(made)))


def _ends(table: SiteTable) -> tuple[tuple[str, Field], tuple[str, Field]]:
    return table.left, table.right


def _as_word(part: str | int) -> str:
    return "".join(c if c.isalnum() else "_" for c in str(part))
