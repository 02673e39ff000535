"""A sampled pass as a program: one field after the other, from its equation."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.algebra.nodes import outermost
from derive.errors import DeclarationError
from derive.language.traits import split_traits
from derive.language.vectors import PAST, Field, FieldAt, Mean, Total, shown, values as values_of
from derive.program.comments import equations_of, shown_covariance
from derive.program.nodes import (
    UNUSED,
    Call,
    Chosen,
    Formula,
    Function,
    Item,
    Let,
    MatMul,
    Ref,
    Shape,
    Slot,
    Sum,
    Symbol,
    Transposed,
    Unpack,
    Value,
    shape_of,
)
from derive.program.sampled_records import NOISES, NORMALS, SITES, TOLERANCE
from derive.program.sampled_values import Values
from derive.program.sites import Channel, Span
from derive.program.training import ONE, labels_in
from derive.records.system import DisorderRule, ElementwiseRule, Rule, SystemField, Term


class Fields(Values):
    """Adds the lines of fields: values, slopes where they are followed, coordinates in spans, answers to noises."""

    def _field(self, f: SystemField) -> None:
        field = f.field
        covariances = self.layout.covariances(field) if isinstance(f.rule, DisorderRule) else ()
        before = len(self.lines)
        symbol, d_symbol = Symbol(field.name, self.shape(field)), Symbol(f"d_{field}", self.slopes_shape(field))
        if self.sloped and isinstance(f.rule, ElementwiseRule) and values_of(f.rule.law) and not f.starts:
            self._law_and_slopes(f, f.rule, (symbol, d_symbol))
        else:
            value, slope = self._rule(f, f.rule)
            for first, rule in enumerate(f.starts):
                begun, d_begun = self._rule(f, rule)
                at_start = sp.Eq(self.now_slot, first)
                value = Chosen(at_start, begun, value)
                slope = None if slope is None or d_begun is None else Chosen(at_start, d_begun, slope)
            self.lines.append(Let(symbol, value))
            if slope is not None:
                self.lines.append(Let(d_symbol, slope))
        self.tell(before, [*equations_of(self.layout, f), *map(shown_covariance, covariances)])
        self.done[field] = symbol
        if self.sloped:
            self.slopes[field] = d_symbol
        self._known(field)
        self._remember(field)

    def _known(self, field: Field) -> None:
        """What else happens to a field once its values are known."""

    def _rule(self, f: SystemField, rule: Rule) -> tuple[Value, Value | None]:
        """The values that a rule gives, and their slopes where they are followed."""
        if isinstance(rule, ElementwiseRule):
            return self._law(f, rule)
        if isinstance(rule, DisorderRule):
            return self._product(f.field)
        terms = [self._term(t, f.field) for t in rule.terms]
        wide = [_width(factor, value) for factor, value, _ in terms]
        shape = (self.sites_slot, max(wide, key=lambda w: w != 1, default=f.field.labels))
        value = self._spread(Sum(tuple((factor, value) for factor, value, _ in terms), shape), f.field)
        if not self.sloped:
            return value, None
        d_terms, d_wide = [], []
        for (factor, _, slope), width in zip(terms, wide, strict=True):
            if slope is not None:
                by_label = bool(factor.shape)
                d_terms.append((ONE, Call("scaled_slopes", (factor, slope), None)) if by_label else (factor, slope))
                d_wide.append(width)
        if not d_terms:
            return value, Sum((), self.slopes_shape(f.field))
        slopes = Sum(tuple(d_terms), None)
        return value, self._spread(slopes, f.field) if all(w == 1 for w in d_wide) else slopes

    def _spread(self, value: Value, field: Field) -> Value:
        """Values for all labels of a field, where they are the same for all of them."""
        lines = field.labels
        if value.shape is not None and len(value.shape) == 2 and value.shape[0] != 1 and value.shape[1] == lines:
            return value
        if value.shape is None and lines == 1:
            return value
        if value.shape is not None and len(value.shape) == 2 and value.shape[1] not in (1, lines):
            raise DeclarationError(
                f"the equation of {field} has {value.shape[1]} labels on its right side; {field} has {lines}"
            )
        shape = self.shape(field) if value.shape is not None else None
        return Call("spread", (value, SITES, lines), shape)

    def _law(self, f: SystemField, rule: ElementwiseRule) -> tuple[Value, Value | None]:
        arguments = values_of(rule.law)
        if arguments and self.sloped:
            made = Symbol(f"{f.field}_law", self.shape(f.field)), Symbol(f"d_{f.field}_law", self.slopes_shape(f.field))
            self._law_and_slopes(f, rule, made)
            return Ref(made[0]), Ref(made[1])
        shape: Shape = (self.sites_slot if arguments else sp.S.One, labels_in(rule.law))
        value = self._spread(self.formula(rule.law, shape), f.field)
        if not self.sloped:
            return value, None
        return value, Sum((), self.slopes_shape(f.field))

    def _law_and_slopes(self, f: SystemField, rule: ElementwiseRule, made: tuple[Symbol, Symbol]) -> None:
        arguments = values_of(rule.law)
        bound = {v: Symbol(v.field.name, self.shape(v.field)) for v in arguments}
        slots = {v: Slot(Ref(symbol), shown(v)) for v, symbol in bound.items()}
        body = self.formula(rule.law, (self.sites_slot, labels_in(rule.law)), known=slots)
        values = tuple(map(self.value, arguments))
        nothing = self._slots(f.field)
        slopes = tuple(
            self.slope(v) or Call("no_slopes", (value, nothing), None)
            for v, value in zip(arguments, values, strict=True)
        )
        function = Function(tuple(bound.values()), self._spread(body, f.field))
        call = Call("law_and_slopes", (function, values, slopes), None)
        self.lines.append(Unpack(made, call))

    def _term(self, term: Term, target: Field) -> tuple[Formula, Value, Value | None]:
        """A factor, what it multiplies, and the slopes of that."""
        if term.past is not None:
            return self._past_term(term)
        factor = self.number(term.coefficient)
        value, slope = self.value(term.vector), self.slope(term.vector) if self.sloped else None
        if term.pair is not None:
            left, right = map(self.value, term.pair)
            met = Call("overlaps", (left, right), (shape_of(left)[1], shape_of(right)[1]))
            mixed = Call("mixed_slopes", (slope, met), None) if slope is not None else None
            return factor, MatMul(value, met), mixed
        if term.mixing is None:
            return factor, value, slope
        if term.mixing.table is None:
            summed = Call("total", (slope,), None) if slope is not None else None
            return factor, Call("total", (value,), (self.sites_slot, sp.S.One)), summed
        table = self.given(term.mixing.table)
        if not term.mixing.transposed:
            table = Transposed(table)
        mixed = Call("mixed_slopes", (slope, table), None) if slope is not None else None
        return factor, MatMul(value, table), mixed

    def _past_term(self, term: Term) -> tuple[Formula, Value, Value | None]:
        """A sum over earlier times: coordinates in the span of its vector."""
        vector = term.vector.field
        coefficient, of_traits = split_traits(term.coefficient)
        weights, labels = self.weights(replace(term, coefficient=coefficient)), vector.labels
        past, size = self.series(vector), self.size[self.sharing.past_span(vector)]
        kernel: Value | None = None
        if term.pair is None:
            rows: Value = Call("past_sum", (weights, past, labels), (vector.labels, size))
        else:
            left, right = term.pair
            other = self.series(left.field)
            met = MatMul(self._coordinates(right, left.field), Transposed(other))
            kernel = Call("weighted", (met, weights, labels), met.shape)
            rows = MatMul(kernel, past)
        shape = (self.sites_slot, shape_of(rows)[0])
        span = self.directions(vector)
        slopes = self._past_slopes(vector, rows, weights if kernel is None else kernel)
        return self.number(of_traits), Call("expressed", (span, rows), shape), slopes

    def _past_slopes(self, vector: Field, rows: Value, weighing: Value) -> Value | None:
        """The slopes of a sum over earlier times, from its coordinates or its weights."""
        return Call("expressed_slopes", (self.directions(vector), rows), None) if self.pathwise else None

    def _coordinates(self, value: FieldAt, other: Field) -> Value:
        """The coordinates of a value in the span that holds the past of another field."""
        span = self.sharing.past_span(other)
        if self.lag(value) == 0 and (value.field, span) in self.rows:
            return Ref(self.rows[value.field, span])
        shape = (value.field.labels, self.size[span])
        return Call("seen_from", (self.home[span].symbol, self.value(value)), shape)

    def weights(self, term: Term) -> Chosen:
        assert term.past is not None
        if sp.expand(term.past - self.clock) > 0:  # the sum includes the current time
            for node in outermost(term.coefficient, (Mean, Total)):
                if node.has(PAST):
                    self._recorded(self.over_time(node), self.number(node.xreplace({PAST: self.clock})))
        return super().weights(term)

    def _normals_now(self, channel: Channel) -> Value:
        size = self.size[self.sharing.channel_span(channel)]
        normals = Item(NOISES, self.kinds[channel].key)
        if not channel.fresh:
            return normals
        return Call("drawn_at", (normals, self.time), (self.sites_slot, size))

    def _product(self, field: Field) -> tuple[Value, Value | None]:
        """Noise, and what its random matrix remembers of the fields that it has answered to."""
        channel = self.sharing.channel_of(field)
        row = Ref(self.rows[self.sharing.argument(field), self.sharing.channel_span(channel)])
        strength = self.number(self.sharing.strength(field))
        terms: list[tuple[Formula, Value]] = [(strength, self._noise(field, channel, row))]
        slopes: list[tuple[Formula, Value]] = []
        if self.pathwise:
            start, _ = self._place(channel)
            slots = self._slots(field)
            slopes.append((strength, Call("noise_slopes", (row, start, slots, SITES), None)))
        done = set()
        for m in self.layout.memories(field):
            other = self.sharing.channel_of(m.noise)
            if (m.a, other) in done:  # the normals of a random matrix stand for all of its noises
                continue
            done.add((m.a, other))
            span = Ref(self.home[self.sharing.channel_span(other)].symbol)
            # a multiple of the strength, and so finite where the variance of the matrix vanishes
            deviation = self.sharing.strength(m.noise)
            scale = self.number(sp.powsimp(sp.simplify(m.coefficient / deviation**2) * deviation))
            answers = self._answers(m.a, other)
            terms.append((scale, Call("expressed", (span, answers), self.shape(field))))
            if self.pathwise:
                slopes.append((scale, Call("expressed_slopes", (span, answers), None)))
        return Sum(tuple(terms), self.shape(field)), Sum(tuple(slopes), None) if self.pathwise else None

    def _noise(self, product: Field, channel: Channel, row: Ref) -> Call:
        """What the random matrix makes of its argument: of its coordinates, and of what lies beyond its span."""
        argument = self.sharing.argument(product)
        rest = self.rests.get((argument, self.sharing.channel_span(channel)))
        outside: tuple[Value, ...] = ()
        if rest is not None:
            beyond = self.kinds[channel, self.sharing.root(argument)[0]]
            normals = Item(NORMALS, beyond.key)
            outside = Call("drawn_at", (normals, self.time), (self.sites_slot, beyond.shape[1])), Ref(rest)
        return Call("noise", (self._normals_now(channel), row, *outside), self.shape(product))

    def _answers(self, a: Field, channel: Channel) -> Ref:
        """The mean derivatives of a field by the normals of a random matrix."""
        if (a, channel) not in self.answers:
            span = self.sharing.channel_span(channel)
            shape = (a.labels, self.size[span])
            base, factor = self.sharing.root(a)
            if factor is not None and (base, channel) in self.answers:
                call = Call("scaled_rows", (self.number(factor), self.answers[base, channel]), shape)
            elif self.pathwise:
                slope = self.slope(self.present(a)) or Call(
                    "no_slopes", (self.value(self.present(a)), self._slots(channel.products[0])), None
                )
                call = Call("mean_slopes", (slope, *self._place(channel)), shape)
            else:
                arguments = (self.value(self.present(a)), self._normals_now(channel), Ref(self.home[span].symbol))
                call = Call("answers", arguments, shape)
            symbol = self.answers[a, channel] = Symbol(f"{a}_answers_{channel.hint}", shape)
            self.lines.append(Let(symbol, call))
        return Ref(self.answers[a, channel])

    def _remember(self, field: Field, fresh: bool | None = None) -> None:
        """Coordinates of a new value in its spans, and its answers to the noises so far.

        fresh: only in spans that start anew at every time, or only in the others.
        """
        for span in self.sharing.coordinates(field):
            if fresh is None or span.fresh == fresh:
                self._join(field, span)
        if fresh:
            return
        for a, channel in self._asked():
            if a != field:
                continue
            rows = self._answers(a, channel)
            if not a.timed:
                self.answered[a, channel] = rows.symbol
                continue
            shape = (self.points * a.labels, shape_of(rows)[1])
            symbol = self.answered[a, channel] = self._carry(Symbol(f"{a}_to_{channel.hint}", shape))
            self.lines.append(Let(symbol, Call("store", (symbol, rows, self.time), shape)))

    def _join(self, field: Field, span: Span) -> None:
        base, factor = self.sharing.root(field)
        row = Symbol(f"{field}_in_{span.hint}", (field.labels, self.size[span]))
        rest_shape = (field.labels, base.labels)
        rest = Symbol(f"{field}_beyond_{span.hint}", rest_shape) if self._is_drawn_anew(field, span) else None
        if factor is None:
            value = self.value(self.present(field))
            slope: tuple[Value, ...] = ()
            if self.pathwise:
                nothing = Call("no_slopes", (value, self._slots(field)), None)
                slope = (self.slope(self.present(field)) or nothing,)
            directions = self.home[span].symbol
            least = Ref(TOLERANCE) if self._may_lack_room(field, span) else Formula(sp.S.Zero)
            call = Call("extend", (directions, value, least, *slope), None)
            self.lines.append(Unpack((row, rest or UNUSED, directions), call))
        else:
            rows = Ref(self.rows[base, span])
            self.lines.append(Let(row, Call("scaled_rows", (self.number(factor), rows), row.shape)))
            if rest is not None:
                scaled = Call("scaled_rows", (self.number(factor), self.rests[base, span]), rest.shape)
                self.lines.append(Let(rest, scaled))
        self.rows[field, span] = row
        if rest is not None:
            self.rests[field, span] = rest
            if field in self.correlated and span == self.sharing.past_span(field):
                shape = (self.points, field.labels, self._beyond(base, span))
                past_rest = self._carry(Symbol(f"{field}_rest_past", shape))
                self.past_rests[field] = past_rest
                call = Call("store_rest", (past_rest, rest, self.time), shape)
                self.lines.append(Let(past_rest, call))
        if field.timed and not span.fresh and field in self.sharing.kept:
            past = self.past(field)
            self.lines.append(Let(past.symbol, Call("store", (past, row, self.time), past.shape)))

    def _drawn_anew(self, field: Field) -> tuple[Channel, ...]:
        return tuple(c for c in self.sharing.noises(self.sharing.group_of(field)) if c.fresh)


def _width(factor: Formula, value: Value) -> sp.Expr:
    """How many columns a product has."""
    width = shape_of(value)[1]
    return factor.shape[1] if width == 1 and factor.shape else width
