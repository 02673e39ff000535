"""The training level where laws are not linear: many sites forward in time, as a program.

Values at one time are arrays of sites x labels; the past is kept as coordinates in spans of directions, labels x
directions at one time. See numerics/runtime/sampled.py for the functions that are called here by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.words import Letter
from derive.errors import DeclarationError
from derive.language.data import DataAt
from derive.language.symbols import Clock
from derive.language.vectors import PAST, Each, Field, FieldAt, Mean, Total, labels_of, shown, values as values_of
from derive.printing import text
from derive.program.layout import Layout, lag_of, mean_key, outermost
from derive.program.nodes import (
    SCALAR,
    UNUSED,
    Call,
    Chosen,
    Formula,
    Function,
    Item,
    Let,
    MatMul,
    Quoted,
    Ref,
    Shape,
    Slot,
    Statement,
    Sum,
    Symbol,
    Transposed,
    Tuple,
    Unpack,
    Value,
    alive,
    shape_of,
    symbols_in,
)
from derive.program.recurrences import Coefficients
from derive.program.sites import Channel, Sharing, Span
from derive.records.saddle import Memory
from derive.records.system import DisorderRule, ElementwiseRule, Rule, SystemField, Term, weighing

Key = tuple[str, str, str] | tuple[str, int]
"""An order parameter: ("C", a, b), ("R", a, b), ("M", i) for a mean that weighs updates, ("F", i) for one at a time."""
MomentKey = tuple[str | int, ...]
"""What order parameters are made of: also ("G", matrix), the covariance of its noises, and ("K", a, matrix), the
correlations of a field with them."""

ONE = Formula(sp.S.One)
JUMPS = (sp.Heaviside, sp.sign, sp.Piecewise, sp.DiracDelta, sp.floor, sp.ceiling)
"""Functions whose derivative, where it exists, does not tell how they change."""
METHODS = ("stein", "pathwise")


@dataclass(frozen=True)
class SpanLayout:
    """A span, the symbol of its directions, that of how many it has room for, how many there can be, and how many of
    them can join at one time."""

    span: Span
    symbol: Symbol
    size: Symbol
    entries: sp.Expr
    joining: sp.Expr


@dataclass(frozen=True)
class NormalsOf:
    """One kind of normals: its key, and the shape that they have per site."""

    key: str
    shape: Shape


@dataclass(frozen=True)
class Kick:
    """A source in the equation of a field, for the responses to it."""

    field: Field


Kind = Channel | Field | tuple[Channel, Field] | Kick
"""What has normals of its own: a random matrix, a drawn vector, the part of a field outside of the span of a matrix, a
source in an equation."""


@dataclass(frozen=True)
class SampledPass:
    """The program. `tables` come before everything, `start` before the first time, `step` at every time."""

    clock: Clock | None
    method: str
    time: Symbol
    when: Symbol
    sites: Symbol
    normals: Symbol
    noises: Symbol
    """The normals of random matrices, for the directions that there is room for."""
    rank: Symbol
    tolerance: Symbol
    moments_symbol: Symbol
    spans: tuple[SpanLayout, ...]
    kinds: tuple[NormalsOf, ...]
    channels: tuple[str, ...]
    """Keys of the normals of random matrices."""
    groups: tuple[tuple[str, ...], ...]
    footprint: Formula
    tables: tuple[Let, ...]
    start: tuple[Statement, ...]
    step: tuple[Statement, ...]
    watched: tuple[Symbol, ...]
    carried: tuple[Symbol, ...]
    results: tuple[Statement, ...]
    moments: tuple[tuple[MomentKey, Value], ...]
    observables: tuple[tuple[str, Value], ...]
    responses: tuple[Let, ...]
    order: tuple[tuple[Key, Value], ...]
    ends: tuple[tuple[Key, tuple[Field, Field]], ...]
    """The fields whose times and labels the two axes of a correlation or response run over."""
    wanted: Symbol
    remembered: tuple[str, ...] = ()
    """Fields whose noises random matrices answer to: they are kicked whenever responses are asked for."""
    fields: tuple[tuple[str, Value], ...] = ()
    """In place of moments and observables: what two-time functions are made of."""


def lines_of(field: Field) -> sp.Expr:
    """How many columns the values of a field have: its labels, or one."""
    return field.labels if field.labelled else sp.S.One


def has_jumps(layout: Layout) -> bool:
    """Whether some law jumps, so that its mean derivative is not the mean of its derivatives."""
    rules = [rule for f in layout.fields for rule in (f.rule, *f.starts)]
    return any(rule.law.has(*JUMPS) for rule in rules if isinstance(rule, ElementwiseRule))


def sampled_pass(
    layout: Layout, letters: Iterable[Letter], means: Iterable[Mean] = (), responses: str = ""
) -> SampledPass:
    """The program that gives these matrices over training times, these means at all times, and the observables.

    responses: "stein" (also if left out) or "pathwise".
    """
    method = responses or "stein"
    if method == "pathwise" and has_jumps(layout):
        raise DeclarationError(
            "responses cannot be found pathwise where a law jumps: its derivative does not tell how it changes; "
            "leave responses out, or write responses='stein'"
        )
    return _Build(layout, tuple(letters), tuple(means), method).program()


def sampled_two_time(layout: Layout, letters: Iterable[Letter], means: Iterable[Mean] = ()) -> SampledPass:
    """The program that gives two-time functions of all fields; responses where no law jumps.

    letters, means: what the pass is asked for otherwise, so that it is the same pass over the same sites.
    """
    return _Build(layout, tuple(letters), tuple(means), "stein", two_time=True).program()


class _Build:
    def __init__(
        self,
        layout: Layout,
        letters: tuple[Letter, ...],
        means: tuple[Mean, ...],
        method: str,
        two_time: bool = False,
    ):
        self.layout, self.clock, self.letters, self.means, self.method = layout, layout.clock, letters, means, method
        self.pathwise = method == "pathwise"
        self.two_time = two_time
        self.sloped = self.pathwise or (two_time and not has_jumps(layout))
        """Whether slopes of values are followed: along all normals, or along the kicks of two-time functions."""
        self.wanted = Symbol("wanted")
        self.tangents = Slot(Call("tangents", (Ref(self.wanted),), SCALAR), "tangents")
        self.sharing = Sharing(layout, letters, means)
        self.points = sp.S.One if self.clock is None else self.clock.points
        self.steps = sp.S.One if self.clock is None else self.clock.steps
        self.time = Symbol("t" if self.clock is None else self.clock.name, SCALAR)
        self.when = Symbol("when", (self.points,))
        self.sites, self.tolerance = Symbol("sites", SCALAR), Symbol("tolerance", SCALAR)
        self.rank = Symbol("rank", SCALAR)
        self.normals, self.noises, self.moments_symbol = Symbol("normals"), Symbol("noises"), Symbol("moments")
        self.now_slot, self.when_slot = Slot(Ref(self.time), self.time.hint), Slot(Ref(self.when), "s")
        self.sites_slot = Slot(Ref(self.sites), "sites")
        self.spans = tuple(map(self._span, self.sharing.spans))
        self.home = {made.span: made for made in self.spans}
        self.size = {made.span: Slot(Ref(made.size), made.size.hint) for made in self.spans}
        self.kinds = self._kinds()
        self.coefficients = Coefficients(layout)
        self.correlated = {f for x in self.letters if x.kind == "C" for f in self._with_same_root(x)}
        """Fields of correlations to which what is left out adds."""
        self.done: dict[Field, Symbol] = {}
        self.slopes: dict[Field, Symbol] = {}
        self.rows: dict[tuple[Field, Span], Symbol] = {}
        self.rests: dict[tuple[Field, Span], Symbol] = {}
        """Factors of the covariance of what is left out of a field at the current time, in spans that may lack room."""
        self.past_rests: dict[Field, Symbol] = {}
        self.pasts: dict[Field, Symbol] = {}
        self.answered: dict[tuple[Field, Channel], Symbol] = {}
        self.answers: dict[tuple[Field, Channel], Symbol] = {}
        """The same at the current time."""
        self.answered_once: tuple[Symbol, ...] = ()
        """Those of fields without time that are known before the first time."""
        self.slopes_past: dict[Field, Symbol] = {}
        """Slopes of a field at all times."""
        self.kept: dict[Field, Symbol] = {}
        """Values of a field at all times."""
        self.lates: dict[Field, list[tuple[Symbol, Symbol]]] = {}
        self.tables: dict[sp.Expr, Symbol] = {}
        self.initial: dict[Symbol, Value] = {}
        """What is carried through time, and what it starts from where no field without time gives it."""
        self.lines: list[Statement] = []

    # -- sizes and normals

    def _span(self, span: Span) -> SpanLayout:
        often = sp.S.One if span.fresh else self.points
        entries = sp.Add(*(lines_of(f) * (often if f.timed else 1) for f in span.fields))
        joining = sp.Add(*(lines_of(f) for f in span.fields if f.timed))
        return SpanLayout(span, Symbol(f"span_{span.hint}"), Symbol(f"size_{span.hint}", SCALAR), entries, joining)

    def _kinds(self) -> dict[Kind, NormalsOf]:
        """Everything that has normals of its own, with keys that no two of them share."""
        made: dict[Kind, NormalsOf] = {}
        taken: set[str] = set()
        kinds: list[tuple[Kind, str, Shape]] = []
        for channel in self.sharing.channels:
            size = self.size[self.sharing.channel_span(channel)]
            kinds.append((channel, channel.hint, (self.points, size) if channel.fresh else (size,)))
        for source in self.layout.system.sources:
            if source.role == "normal":
                times = (self.points,) if source.timed else ()
                kinds.append((source, str(source), (*times, *((source.labels,) if source.labelled else ()))))
        for channel in self.sharing.channels:
            span = self.sharing.channel_span(channel)
            for root in dict.fromkeys(self.sharing.root(a)[0] for a in channel.arguments):
                if self._may_lack_room(root, span):
                    kinds.append(((channel, root), f"{channel.hint}_beyond", (self.points, self._beyond(root, span))))
        for field in self.layout.named if self.two_time else ():
            all_times = Formula(self.points if field.timed else sp.S.One)
            many = Slot(Call("kicked", (Ref(self.wanted), Quoted(field.name), all_times), SCALAR), "times")
            kinds.append((Kick(field), f"kick_{field}", (many, lines_of(field))))
        for kind, key, shape in kinds:
            while key in taken:
                key += "_"
            taken.add(key)
            made[kind] = NormalsOf(key, shape)
        return made

    def _with_same_root(self, letter: Letter) -> tuple[Field, ...]:
        roots = {self.sharing.root(f)[0] for f in (letter.a, letter.b)}
        return (letter.a, letter.b) if len(roots) == 1 else ()

    def _may_lack_room(self, field: Field, span: Span) -> bool:
        """Whether something of a field may be left out of a span: what has no time comes first and is always kept."""
        return field.timed and not span.fresh

    def _is_drawn_anew(self, field: Field, span: Span) -> bool:
        """Whether what is left out of a field is needed: for the noise of a random matrix, or in a correlation."""
        base = self.sharing.root(field)[0]
        under = any((c, base) in self.kinds and self.sharing.channel_span(c) == span for c in self.sharing.channels)
        relatives = [f for f in (*self.correlated, base) if self.sharing.root(f)[0] == base]
        correlated = any(f in self.correlated and self.sharing.past_span(f) == span for f in relatives)
        return self._may_lack_room(field, span) and (under or correlated)

    def _beyond(self, field: Field, span: Span) -> Slot:
        entries = Formula(self.home[span].entries)
        return Slot(Call("beyond", (Ref(self.rank), entries, Formula(lines_of(field))), SCALAR), "beyond")

    def _groups(self) -> tuple[tuple[str, ...], ...]:
        found = []
        for members in self.sharing.groups:
            inside = [*self.sharing.noises(members), *(s for s in self.layout.system.sources if s in members)]
            keys = tuple(self.kinds[kind].key for kind in inside if kind in self.kinds)
            found += [keys] if keys else []
        # behind all others, which are then drawn as if nobody kicked
        return (*found, *((normals.key,) for kind, normals in self.kinds.items() if isinstance(kind, Kick)))

    def _slots(self, field: Field) -> sp.Expr:
        """How many normals the sites of a field answer to, or how many fields are kicked."""
        if self.two_time:
            return self.tangents
        channels = self.sharing.noises(self.sharing.group_of(field))
        return sp.Add(*(self.size[self.sharing.channel_span(c)] for c in channels))

    def _first_slot(self, channel: Channel) -> sp.Expr:
        channels = self.sharing.noises(self.sharing.group_of(channel.products[0]))
        before = channels[: channels.index(channel)]
        return sp.Add(*(self.size[self.sharing.channel_span(c)] for c in before))

    def _place(self, channel: Channel) -> tuple[Formula, Formula]:
        """Where the normals of a random matrix stand among the slots of their sites."""
        return Formula(self._first_slot(channel)), Formula(self.size[self.sharing.channel_span(channel)])

    def _footprint(self) -> Formula:
        counted: dict[tuple[Field, ...], sp.Expr] = {}
        for made in self.spans:
            group = self.sharing.group_of(made.span.fields[0])
            counted[group] = counted.get(group, sp.S.Zero) + self.size[made.span]
        for f in self.layout.fields:
            group = self.sharing.group_of(f.field)
            counted[group] = counted.get(group, sp.S.Zero) + lines_of(f.field)
        each = [n * (1 + self._slots(group[0])) if self.sloped else n for group, n in counted.items()]
        for field in self.layout.named if self.two_time else ():
            numbers = Formula(lines_of(field) * (self.points if field.timed else 1))
            kept = Call("numbers_kept", (Ref(self.wanted), Quoted(field.name), numbers), SCALAR)
            each.append(Slot(kept, f"kept of {field}"))  # slots of one name would be added up in any order
        return Formula(sp.Add(*each) if each else sp.S.One)

    # -- the whole

    def program(self) -> SampledPass:
        sources = self.layout.system.sources
        for made in self.spans:
            slots = (Formula(self._slots(made.span.fields[0])),) if self.pathwise else ()
            self.initial[made.symbol] = Call(
                "empty_span", (Ref(self.sites), Formula(self.size[made.span]), *slots), None
            )
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
        moments = [] if self.two_time else self._moments()
        for i, followed in enumerate(weighing if not self.two_time else ()):
            mean = self.means[i]
            value = self.number(mean, (sp.S.One, _labels(mean))) if followed is None else followed
            key = mean_key(mean, i, self.clock)
            count = (Formula(self.steps if key[0] == "M" else self.points), Formula(_labels(mean)))
            moments.append((key, Call("before", (value, *count), None)))
        observables = [
            (name, series[name] if name in series else Call("once", (self._observable(value),), None))
            for name, value in self._observed()
        ]
        fields = [(field.name, self._kept(field)) for field in self.layout.named] if self.two_time else []
        results, self.lines = tuple(self.lines), []
        return self._without_dead(start, step, results, tuple(moments), tuple(observables), tuple(fields))

    def _observed(self) -> tuple[tuple[str, sp.Expr], ...]:
        found: tuple[tuple[str, sp.Expr], ...] = () if self.two_time else self.layout.system.model.observe
        return found

    def _begin(self) -> None:
        """What each time starts from: spans of matrices drawn anew are empty, and what is drawn is known."""
        for made in self.spans:
            if made.span.fresh:
                self.lines.append(Let(made.symbol, Call("emptied", (Ref(made.symbol),), None)))
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
                    call = Call("forgetting", (Ref(made.symbol), *self._place(channel)), None)
                    self.lines.append(Let(made.symbol, call))

    def _drawn_anew(self, field: Field) -> tuple[Channel, ...]:
        return tuple(c for c in self.sharing.noises(self.sharing.group_of(field)) if c.fresh)

    def _without_dead(
        self,
        start: tuple[Statement, ...],
        step: tuple[Statement, ...],
        results: tuple[Statement, ...],
        moments: tuple[tuple[MomentKey, Value], ...],
        observables: tuple[tuple[str, Value], ...],
        fields: tuple[tuple[str, Value], ...],
    ) -> SampledPass:
        """Keep what the results need, through all times."""
        wanted: dict[Symbol, None] = {}
        for _, value in (*moments, *observables, *fields):
            wanted |= symbols_in(value)
        results, wanted = alive(results, wanted)
        while True:  # what a step needs of earlier times must be carried, so that it is needed at those times too
            kept, more = alive(step, wanted)
            if set(more) <= set(wanted):
                break
            wanted |= more
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
        for statement in (*begun, *kept, *results):
            used |= symbols_in(statement.value)
        made = {s for statement in kept for s in statement.symbols}
        responses, order = ((), ()) if self.two_time else self._order()
        return SampledPass(
            self.clock,
            self.method,
            self.time,
            self.when,
            self.sites,
            self.normals,
            self.noises,
            self.rank,
            self.tolerance,
            self.moments_symbol,
            self.spans,
            tuple(self.kinds.values()),
            tuple(normals.key for kind, normals in self.kinds.items() if isinstance(kind, Channel)),
            self._groups(),
            self._footprint(),
            self.coefficients.statements(used),
            begun,
            kept,
            tuple(self.done[f.field] for f in self.layout.fields if f.field.timed and self.done[f.field] in made),
            carried,
            results,
            moments,
            observables,
            responses,
            order,
            tuple((key_of(x), (x.a, x.b)) for x in self.letters),
            self.wanted,
            tuple(dict.fromkeys(m.noise.name for m in self.layout.saddle.memories if m.target in self.done)),
            fields,
        )

    # -- numbers

    def number(self, expression: sp.Expr, shape: Shape | None = None) -> Formula:
        """A number at the current time; a row over labels where it has them, or over all earlier times."""
        expression = sp.sympify(expression)
        labels = labels_of(expression)
        if shape is None:
            shape = SCALAR if labels is None else (sp.S.One, labels)
        return self._formula(expression, shape)

    def _formula(
        self,
        expression: sp.Expr,
        shape: Shape,
        known: dict[FieldAt, Slot] | None = None,
        last: sp.Expr | None = None,
    ) -> Formula:
        """Arithmetic of values, means, data and coefficients. known: what stands for values, if not they themselves;
        last: of earlier times the last one that is asked for, whose value later ones get too."""
        inner: dict[sp.Basic, sp.Expr] = {}
        over = bool(expression.has(PAST))
        for node in outermost(expression, (FieldAt, Mean, AppliedUndef, DataAt, Total)):
            if isinstance(node, FieldAt):
                inner[node] = known[node] if known else Slot(self.value(node), shown(node))
            elif isinstance(node, AppliedUndef):
                inner[node] = self.coefficients.at(node, self.number, (self.points,))
            elif isinstance(node, DataAt):
                inner[node] = Slot(self.given(node), shown(node))
            elif node.has(PAST):
                inner[node] = self._at_earlier_times(node)
            elif isinstance(node, Mean):
                inner[node] = Slot(self._mean(node), shown(node))
            else:
                inner[node] = Slot(Call("over_labels", (self.number(node.expression),), SCALAR), shown(node))
        moved: dict[sp.Basic, sp.Expr] = {PAST: self.when_slot}
        if self.clock is not None:
            moved[self.clock] = self.now_slot
        if last is not None:
            # a power of a delay is not taken where the delay is negative: the weight is zero there
            last_time = sp.sympify(last).xreplace(moved)
            moved[PAST] = Slot(Formula(sp.Min(self.when_slot, last_time), (self.points,)), "s")
        return Formula(expression.xreplace(inner).xreplace(moved), (self.points,) if over else shape)

    def _mean(self, average: Mean) -> Call:
        labels = labels_of(average)
        inside = self._formula(average.expression, (self.sites_slot, _labels(average)))
        return (
            Call("mean", (inside,), SCALAR) if labels is None else Call("mean_by_label", (inside,), (sp.S.One, labels))
        )

    def _at_earlier_times(self, node: sp.Expr) -> Slot:
        """A mean, or a sum of means over labels, at all earlier times."""
        if labels_of(node) is not None:
            raise DeclarationError(
                f"{shown(node)}: a mean of fields with class labels stands in a sum over earlier times; "
                "give the vector times that mean a field of its own"
            )
        moved = node.xreplace({PAST: self.clock})
        if moved not in self.tables:
            self.tables[moved] = self._carry(Symbol("means", (self.points,)))
        return Slot(Ref(self.tables[moved]), shown(node))

    def _table(self, node: sp.Expr) -> tuple[Symbol, Formula]:
        """The table of a mean, and the mean at the current time."""
        moved = node.xreplace({PAST: self.clock})
        return self.tables[moved], self.number(moved)

    def given(self, node: DataAt) -> Value:
        """Data as a matrix, or as a row over labels."""
        axes = node.data.axes
        shape = axes if len(axes) == 2 else (sp.S.One, axes[0])
        array = Formula(node.data, None)
        if node.time is None:
            return Call("given", (array, None, 0), shape)
        if not node.time.has(self.clock):
            return Call("given", (array, Formula(node.time), 0), shape)
        return Call("given", (array, Ref(self.time), int(sp.expand(self.clock - node.time))), shape)

    def _carry(self, symbol: Symbol, value: Value | None = None) -> Symbol:
        """A symbol that goes from one time to the next, starting from zero unless another value is given."""
        self.initial[symbol] = Sum((), symbol.shape) if value is None else value
        return symbol

    # -- values

    def shape(self, field: Field) -> Shape:
        return (self.sites_slot, lines_of(field))

    def slopes_shape(self, field: Field) -> Shape:
        return (*self.shape(field), self._slots(field))

    def present(self, field: Field) -> FieldAt:
        return field(self.clock) if field.timed else field()

    def value(self, value: FieldAt) -> Value:
        """The values of a field at the current time, or some steps earlier."""
        field, lag = value.field, lag_of(value, self.clock)
        if lag < 0:
            raise DeclarationError(f"{shown(value)} lies in the future of the equation that uses it")
        if field.role == "constant":
            when = (Ref(self.time), lag) if lag else ()
            return Call("ones", (Ref(self.sites), *when), (self.sites_slot, sp.S.One))
        if field.role == "normal":
            normals = Item(self.normals, self.kinds[field].key)
            moved = (Ref(self.time), *((lag,) if lag else ()))
            drawn = (
                Call("drawn_at", (normals, *moved), self.shape(field))
                if field.timed
                else Call("drawn", (normals,), self.shape(field))
            )
            return drawn if field.scale == 1 else Sum(((self.number(field.scale), drawn),), drawn.shape)
        if lag:
            return Ref(self._late(field, lag)[0])
        if field not in self.done:
            raise DeclarationError(f"{shown(value)} is needed before it is known; use it one step earlier")
        return Ref(self.done[field])

    def slope(self, value: FieldAt) -> Value | None:
        """The slopes of a value; None for what is drawn, unless it is kicked, or constant, which answers to nothing."""
        if value.field.role == "normal" and self.two_time:
            return self._kick(value)
        if value.field.role != "field":
            return None
        lag = lag_of(value, self.clock)
        return Ref(self._late(value.field, lag)[1]) if lag else Ref(self.slopes[value.field])

    def _kick(self, value: FieldAt) -> Call:
        """The kick of a field at the current time, or some steps earlier."""
        field = value.field
        kicks = Item(self.normals, self.kinds[Kick(field)].key)
        lag = lag_of(value, self.clock)
        when = (Ref(self.time), *((lag,) if lag else ())) if field.timed else ()
        return Call("kick_at", (Ref(self.wanted), Quoted(field.name), kicks, *when), self.slopes_shape(field))

    def _late(self, field: Field, lag: int) -> tuple[Symbol, Symbol]:
        chain = self.lates.setdefault(field, [])
        while len(chain) < lag:
            hint = f"{field}_{len(chain) + 1}_before"
            late = self._carry(Symbol(hint, self.shape(field)))
            slope = Symbol(f"d_{hint}", self.slopes_shape(field))
            chain.append((late, self._carry(slope) if self.sloped else slope))
        return chain[lag - 1]

    def past(self, field: Field) -> Ref:
        """The coordinates of a field at all times, known up to the current one."""
        size = self.size[self.sharing.past_span(field)]
        if not field.timed:
            return Ref(self.rows[field, self.sharing.past_span(field)])
        if field not in self.pasts:
            self.pasts[field] = self._carry(Symbol(f"{field}_past", (self.points * lines_of(field), size)))
        return Ref(self.pasts[field])

    def series(self, field: Field) -> Value:
        """The same in a sum over times, where a field without time is the same at all of them."""
        found = self.past(field)
        if field.timed:
            return found
        shape = (self.points * lines_of(field), shape_of(found)[1])
        return Call("repeated", (found, Formula(self.points)), shape)

    def directions(self, field: Field) -> Ref:
        return Ref(self.home[self.sharing.past_span(field)].symbol)

    # -- one field

    def _field(self, f: SystemField) -> None:
        field = f.field
        left = f"{text(field)}({self.time.hint})" if field.timed else text(field)
        remark = f"{left} = {self.layout.shown(f)}"
        symbol, d_symbol = Symbol(field.name, self.shape(field)), Symbol(f"d_{field}", self.slopes_shape(field))
        if self.sloped and isinstance(f.rule, ElementwiseRule) and values_of(f.rule.law) and not f.starts:
            self._law_and_slopes(f, f.rule, (symbol, d_symbol), remark)
        else:
            value, slope = self._rule(f, f.rule)
            for first, rule in enumerate(f.starts):
                begun, d_begun = self._rule(f, rule)
                at_start = sp.Eq(self.now_slot, first)
                value = Chosen(at_start, begun, value)
                slope = None if slope is None or d_begun is None else Chosen(at_start, d_begun, slope)
            self.lines.append(Let(symbol, value, remark))
            if slope is not None:
                self.lines.append(Let(d_symbol, slope))
        self.done[field] = symbol
        if self.sloped:
            self.slopes[field] = d_symbol
        if self.sloped and self.two_time:
            kicked = Sum(((ONE, Ref(d_symbol)), (ONE, self._kick(self.present(field)))), d_symbol.shape)
            self.lines.append(Let(d_symbol, kicked))
            if field.timed:
                self._all_slopes(field)
                past = self.slopes_past[field]
                self.lines.append(Let(past, Call("keep", (Ref(past), Ref(d_symbol), Ref(self.time)), None)))
        if self.two_time and field.timed:
            self._keep(field)
        self._remember(field)

    def _keep(self, field: Field) -> None:
        """Keep the values of a field at all times, if somebody asks for them."""
        sizes = Formula(self.points), Ref(self.sites), Formula(lines_of(field))
        kept = self.kept[field] = Symbol(f"all_{field}")
        self.initial[kept] = Call("room_for", (Ref(self.wanted), Quoted(field.name), *sizes), None)
        self.lines.append(Let(kept, Call("keep", (Ref(kept), Ref(self.done[field]), Ref(self.time)), None)))

    def _kept(self, field: Field) -> Call:
        """What two-time functions of a field are made of."""
        if field.role == "normal":
            times = Formula(self.points if field.timed else sp.S.One)
            normals = Item(self.normals, self.kinds[field].key)
            values: Value = Call("drawn_values", (normals, self.number(field.scale), times), None)
        else:
            values = Ref(self.kept[field]) if field.timed else Call("kept_once", (Ref(self.done[field]),), None)
        if not self.sloped:
            return Call("Kept", (values, None, None), None)
        return Call("Kept", (values, self._all_slopes(field), Item(self.normals, self.kinds[Kick(field)].key)), None)

    def _rule(self, f: SystemField, rule: Rule) -> tuple[Value, Value | None]:
        """The values that a rule gives, and their slopes where they are followed."""
        if isinstance(rule, ElementwiseRule):
            return self._law(f, rule)
        if isinstance(rule, DisorderRule):
            return self._product(f.field)
        terms = [self._term(t, f.field) for t in rule.terms]
        wide = [_width(factor, value) for factor, value, _ in terms]
        shape = (self.sites_slot, max(wide, key=lambda w: w != 1, default=lines_of(f.field)))
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
        lines = lines_of(field)
        if value.shape is not None and len(value.shape) == 2 and value.shape[0] != 1 and value.shape[1] == lines:
            return value
        if value.shape is None and lines == 1:
            return value
        if value.shape is not None and len(value.shape) == 2 and value.shape[1] not in (1, lines):
            raise DeclarationError(
                f"the equation of {field} has labels {value.shape[1]} on its right side; {field} has "
                f"{field.labels or 'none'}"
            )
        shape = self.shape(field) if value.shape is not None else None
        return Call("spread", (value, Ref(self.sites), Formula(lines)), shape)

    def _law(self, f: SystemField, rule: ElementwiseRule) -> tuple[Value, Value | None]:
        arguments = values_of(rule.law)
        if arguments and self.sloped:
            made = Symbol(f"{f.field}_law", self.shape(f.field)), Symbol(f"d_{f.field}_law", self.slopes_shape(f.field))
            self._law_and_slopes(f, rule, made, "")
            return Ref(made[0]), Ref(made[1])
        shape: Shape = (self.sites_slot if arguments else sp.S.One, _labels(rule.law))
        value = self._spread(self._formula(rule.law, shape), f.field)
        if not self.sloped:
            return value, None
        return value, Sum((), self.slopes_shape(f.field))

    def _law_and_slopes(self, f: SystemField, rule: ElementwiseRule, made: tuple[Symbol, Symbol], remark: str) -> None:
        arguments = values_of(rule.law)
        bound = {v: Symbol(v.field.name, self.shape(v.field)) for v in arguments}
        slots = {v: Slot(Ref(symbol), shown(v)) for v, symbol in bound.items()}
        body = self._formula(rule.law, (self.sites_slot, _labels(rule.law)), slots)
        values = tuple(map(self.value, arguments))
        nothing = Formula(self._slots(f.field))
        slopes = tuple(
            self.slope(v) or Call("no_slopes", (value, nothing), None)
            for v, value in zip(arguments, values, strict=True)
        )
        function = Function(tuple(bound.values()), self._spread(body, f.field))
        call = Call("law_and_slopes", (function, Tuple(values), Tuple(slopes)), None)
        self.lines.append(Unpack(made, call, remark))

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
        weights, labels = self._weights(term), Formula(lines_of(vector))
        past, size = self.series(vector), self.size[self.sharing.past_span(vector)]
        kernel: Value | None = None
        if term.pair is None:
            rows: Value = Call("past_sum", (weights, past, labels), (lines_of(vector), size))
        else:
            left, right = term.pair
            other = self.series(left.field)
            met = MatMul(self._coordinates(right, left.field), Transposed(other))
            kernel = Call("weighted", (met, weights, labels), met.shape)
            rows = MatMul(kernel, past)
        shape = (self.sites_slot, shape_of(rows)[0])
        span = self.directions(vector)
        slopes = None
        if self.pathwise:
            slopes = Call("expressed_slopes", (span, rows), None)
        elif self.sloped:
            weighing = weights if kernel is None else kernel
            slopes = Call("past_slopes", (weighing, self._all_slopes(vector), Formula(self.points)), None)
        return ONE, Call("expressed", (span, rows), shape), slopes

    def _coordinates(self, value: FieldAt, other: Field) -> Value:
        """The coordinates of a value in the span that holds the past of another field."""
        span = self.sharing.past_span(other)
        if lag_of(value, self.clock) == 0 and (value.field, span) in self.rows:
            return Ref(self.rows[value.field, span])
        shape = (lines_of(value.field), self.size[span])
        return Call("seen_from", (Ref(self.home[span].symbol), self.value(value)), shape)

    def _weights(self, term: Term) -> Chosen:
        """The coefficient of each earlier time, zero outside the sum."""
        assert term.past is not None
        if sp.expand(term.past - self.clock) > 0:  # the sum includes the current time
            for node in outermost(term.coefficient, (Mean, Total)):
                if node.has(PAST):
                    self._at_earlier_times(node)
                    self._recorded(*self._table(node))
        inside = self.number(term.past).expression
        shape = (self.points,)
        weight = Formula(self._formula(term.coefficient, SCALAR, last=term.past - 1).expression, shape)
        return Chosen(sp.Lt(self.when_slot, inside, evaluate=False), weight, Formula(sp.S.Zero, shape))

    def _normals_now(self, channel: Channel) -> Value:
        size = self.size[self.sharing.channel_span(channel)]
        normals = Item(self.noises, self.kinds[channel].key)
        if not channel.fresh:
            return normals
        return Call("drawn_at", (normals, Ref(self.time)), (self.sites_slot, size))

    def _product(self, field: Field) -> tuple[Value, Value | None]:
        """Noise, and what its random matrix remembers of the fields that it has answered to."""
        channel = self.sharing.channel_of(field)
        row = Ref(self.rows[self.sharing.argument(field), self.sharing.channel_span(channel)])
        strength = self.number(self.sharing.strength(field))
        terms: list[tuple[Formula, Value]] = [(strength, self._noise(field, channel, row))]
        slopes: list[tuple[Formula, Value]] = []
        if self.pathwise:
            start, _ = self._place(channel)
            slots = Formula(self._slots(field))
            slopes.append((strength, Call("noise_slopes", (row, start, slots, Ref(self.sites)), None)))
        done = set()
        for m in self.layout.memories(field):
            other = self.sharing.channel_of(m.noise)
            if (m.a, other) in done:  # the normals of a random matrix stand for all of its noises
                continue
            done.add((m.a, other))
            span = Ref(self.home[self.sharing.channel_span(other)].symbol)
            scale = self.number(sp.powsimp(sp.simplify(m.coefficient / self.sharing.strength(m.noise))))
            answers = self._answers(m.a, other)
            terms.append((scale, Call("expressed", (span, answers), self.shape(field))))
            if self.pathwise:
                slopes.append((scale, Call("expressed_slopes", (span, answers), None)))
        value = Sum(tuple(terms), self.shape(field))
        if self.two_time and self.sloped:
            slopes = [(self.number(m.coefficient), self._memory_slopes(m)) for m in self.layout.memories(field)]
            return value, Sum(tuple(slopes), self.slopes_shape(field))
        return value, Sum(tuple(slopes), None) if self.sloped else None

    def _memory_slopes(self, m: Memory) -> Call:
        """The slopes of what a random matrix remembers of a field: its responses, from the kicks of the noise, times
        the slopes of the field at all times. Directions of the past would not do: they do not hold the kick of a field
        that has nothing new."""
        a = self.present(m.a)
        slope = self.slope(a) or Call("no_slopes", (self.value(a), Formula(self._slots(m.a))), None)
        kicks = Item(self.normals, self.kinds[Kick(m.noise)].key)
        when = Ref(self.time) if m.a.timed and m.noise.timed else None
        arguments = (Ref(self.wanted), Quoted(m.noise.name), slope, kicks, self._all_slopes(m.on), when, int(m.fresh))
        return Call("memory_slopes", arguments, self.slopes_shape(m.target))

    def _all_slopes(self, field: Field) -> Value:
        """The slopes of a field at all times so far: times x sites x labels x slopes."""
        if field.role == "normal":
            kicks = Item(self.normals, self.kinds[Kick(field)].key)
            times = Formula(self.points if field.timed else sp.S.One)
            return Call("drawn_slopes", (Ref(self.wanted), Quoted(field.name), kicks, times), None)
        if not field.timed:
            return Call("kept_once", (Ref(self.slopes[field]),), None)
        if field not in self.slopes_past:
            self.slopes_past[field] = Symbol(f"d_{field}_past")
            sizes = Formula(self.points), Ref(self.sites), Formula(lines_of(field)), Formula(self._slots(field))
            self.initial[self.slopes_past[field]] = Call("no_slopes_yet", sizes, None)
        return Ref(self.slopes_past[field])

    def _noise(self, product: Field, channel: Channel, row: Ref) -> Call:
        """What the random matrix makes of its argument: of its coordinates, and of what lies beyond its span."""
        argument = self.sharing.argument(product)
        rest = self.rests.get((argument, self.sharing.channel_span(channel)))
        outside: tuple[Value, ...] = ()
        if rest is not None:
            beyond = self.kinds[channel, self.sharing.root(argument)[0]]
            normals = Item(self.normals, beyond.key)
            outside = Call("drawn_at", (normals, Ref(self.time)), (self.sites_slot, beyond.shape[1])), Ref(rest)
        return Call("noise", (self._normals_now(channel), row, *outside), self.shape(product))

    def _answers(self, a: Field, channel: Channel) -> Ref:
        """The mean derivatives of a field by the normals of a random matrix."""
        if (a, channel) not in self.answers:
            span = self.sharing.channel_span(channel)
            shape = (lines_of(a), self.size[span])
            base, factor = self.sharing.root(a)
            if factor is not None and (base, channel) in self.answers:
                call = Call("scaled_rows", (self.number(factor), Ref(self.answers[base, channel])), shape)
            elif self.pathwise:
                slope = self.slope(self.present(a)) or Call(
                    "no_slopes", (self.value(self.present(a)), Formula(self._slots(channel.products[0]))), None
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
            shape = (self.points * lines_of(a), shape_of(rows)[1])
            symbol = self.answered[a, channel] = self._carry(Symbol(f"{a}_to_{channel.hint}", shape))
            self.lines.append(Let(symbol, Call("store", (Ref(symbol), rows, Ref(self.time)), shape)))

    def _join(self, field: Field, span: Span) -> None:
        base, factor = self.sharing.root(field)
        row = Symbol(f"{field}_in_{span.hint}", (lines_of(field), self.size[span]))
        rest_shape = (lines_of(field), lines_of(base))
        rest = Symbol(f"{field}_beyond_{span.hint}", rest_shape) if self._is_drawn_anew(field, span) else None
        if factor is None:
            value = self.value(self.present(field))
            slope: tuple[Value, ...] = ()
            if self.pathwise:
                nothing = Call("no_slopes", (value, Formula(self._slots(field))), None)
                slope = (self.slope(self.present(field)) or nothing,)
            directions = self.home[span].symbol
            least = Ref(self.tolerance) if self._may_lack_room(field, span) else Formula(sp.S.Zero)
            call = Call("extend", (Ref(directions), value, least, *slope), None)
            self.lines.append(Unpack((row, rest or UNUSED, directions), call))
        else:
            rows = Ref(self.rows[base, span])
            self.lines.append(Let(row, Call("scaled_rows", (self.number(factor), rows), row.shape)))
            if rest is not None:
                scaled = Call("scaled_rows", (self.number(factor), Ref(self.rests[base, span])), rest.shape)
                self.lines.append(Let(rest, scaled))
        self.rows[field, span] = row
        if rest is not None:
            self.rests[field, span] = rest
            if field in self.correlated and span == self.sharing.past_span(field):
                shape = (self.points, lines_of(field), self._beyond(base, span))
                past_rest = self._carry(Symbol(f"{field}_rest_past", shape))
                self.past_rests[field] = past_rest
                call = Call("store_rest", (Ref(past_rest), Ref(rest), Ref(self.time)), shape)
                self.lines.append(Let(past_rest, call))
        if field.timed and not span.fresh and field in self.sharing.kept:
            past = self.past(field)
            self.lines.append(Let(past.symbol, Call("store", (past, Ref(row), Ref(self.time)), past.shape)))

    # -- results

    def _asked(self) -> tuple[tuple[Field, Channel], ...]:
        """Which fields answer to the noise of which random matrix in the order parameters asked for."""
        pairs = {(x.a, self.sharing.channel_of(x.b)) for x in self.letters if x.kind == "R"}
        for a, channel in pairs:
            if channel.fresh:
                raise DeclarationError(
                    f"the probed matrix needs how {a} answers to {channel.matrix}, which is drawn anew at every time; "
                    "probe weights that start from a matrix that stays"
                )
        return tuple(sorted(pairs, key=lambda p: (str(p[0]), p[1].hint)))

    def _rows_before(self, field: Field) -> Value:
        """The coordinates of a field before the last update."""
        past = self.past(field)
        if not field.timed:
            return past
        count = self.steps * lines_of(field)
        return Call("first", (past, Formula(count)), (count, shape_of(past)[1]))

    def _moments(self) -> list[tuple[MomentKey, Value]]:
        """What is averaged over sites, before responses are made of it."""
        found: list[tuple[MomentKey, Value]] = []
        for letter in self.letters:
            if letter.kind == "C":
                a, b = self._rows_before(letter.a), self._rows_before(letter.b)
                spans = [self.sharing.past_span(f) for f in (letter.a, letter.b)]
                if spans[0] != spans[1]:
                    homes = tuple(Ref(self.home[s].symbol) for s in spans)
                    a = MatMul(a, Call("between", homes, (shape_of(a)[1], shape_of(b)[1])))
                value: Value = MatMul(a, Transposed(b))
                if self._with_same_root(letter) and {letter.a, letter.b} <= set(self.past_rests):
                    rests = tuple(Ref(self.past_rests[f]) for f in (letter.a, letter.b))
                    value = Call("with_rest", (value, *rests, Formula(self.steps)), value.shape)
                found.append((key_of(letter), value))
        noises: dict[Channel, Ref] = {}
        for channel in dict.fromkeys(c for _, c in self._asked()):
            rows = [
                Sum(((self.number(self.sharing.strength(p)), self._rows_before(self.sharing.argument(p))),), None)
                for p in channel.products
            ]
            symbol = Symbol(f"noise_{channel.hint}")
            remark = f"the noises of {channel.hint} in terms of its normals"
            self.lines.append(Let(symbol, rows[0] if len(rows) == 1 else Call("stacked", tuple(rows), None), remark))
            noises[channel] = Ref(symbol)
            found.append((("G", self.kinds[channel].key), MatMul(noises[channel], Transposed(noises[channel]))))
        for a, channel in self._asked():
            answered: Value = Ref(self.answered[a, channel])
            if a.timed:
                answered = Call("first", (answered, Formula(self.steps * lines_of(a))), None)
            key = ("K", a.name, self.kinds[channel].key)
            found.append((key, MatMul(answered, Transposed(noises[channel]))))
        return found

    def _order(self) -> tuple[tuple[Let, ...], tuple[tuple[Key, Value], ...]]:
        """Order parameters from moments, which may be means over several passes."""
        reach = {(x, j): lag for x, j, lag in self.layout.time_order.lags}

        def entries(field: Field, *lag: int | None) -> Call:
            times = Formula(self.steps) if field.timed else None
            return Call("Entries", (times, Formula(lines_of(field)), *lag), None)

        made: dict[tuple[Field, Channel], Symbol] = {}
        lines = []
        for a, channel in self._asked():
            key = self.kinds[channel].key
            lags = [reach.get((a, j), 0 if not j.timed else None) for j in channel.products]
            noises = Tuple(tuple(entries(j, lag) for j, lag in zip(channel.products, lags, strict=True)))
            seen, covariance = (Item(self.moments_symbol, k) for k in (("K", a.name, key), ("G", key)))
            arguments = (seen, covariance, entries(a), noises, Formula(self.points), Ref(self.tolerance))
            made[a, channel] = Symbol(f"R_{a}_{channel.hint}")
            lines.append(Let(made[a, channel], Call("responses", arguments, None)))
        order: list[tuple[Key, Value]] = []
        for letter in self.letters:
            if letter.kind == "C":
                order.append((key_of(letter), Item(self.moments_symbol, key_of(letter))))
            else:
                channel = self.sharing.channel_of(letter.b)
                place = channel.products.index(letter.b)
                order.append((key_of(letter), Item(made[letter.a, channel], place)))
        keys = [mean_key(mean, i, self.clock) for i, mean in enumerate(self.means)]
        order += [(key, Item(self.moments_symbol, key)) for key in keys]
        return tuple(lines), tuple(order)

    def _followed(self, name: str, value: sp.Expr) -> Ref:
        """An observable at all times."""
        labels = labels_of(value.expression) if isinstance(value, Each) else None
        shape = (self.points,) if labels is None else (self.points, labels)
        symbol = self._carry(Symbol(f"{name}_series", shape))
        return self._recorded(symbol, self._observable(value))

    def _followed_mean(self, average: Mean) -> Ref:
        """A mean in the probed matrix, at all times."""
        symbol = self._carry(Symbol("weighing", (self.points, _labels(average))))
        return self._recorded(symbol, self.number(weighing(average, self.clock)[0]))

    def _recorded(self, symbol: Symbol, value: Value) -> Ref:
        self.lines.append(Let(symbol, Call("record", (Ref(symbol), value, Ref(self.time)), symbol.shape)))
        return Ref(symbol)

    def _observable(self, value: sp.Expr) -> Value:
        """An observable at the current time; outside total(...) and each(...) labels are averaged over."""
        if isinstance(value, Each):
            return self.number(value.expression)
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(value, (Mean, Total)):
            if isinstance(node, Mean) and labels_of(node) is not None:
                inner[node] = Slot(Call("label_mean", (self._mean(node),), SCALAR), shown(node))
            else:
                inner[node] = Slot(self.number(node), shown(node))
        moved = {self.clock: self.now_slot} if self.clock is not None else {}
        return Formula(value.xreplace(inner).xreplace(moved))


def key_of(letter: Letter) -> tuple[str, str, str]:
    return (letter.kind, letter.a.name, letter.b.name)


def _labels(expression: sp.Basic) -> sp.Expr:
    found = labels_of(sp.sympify(expression))
    return sp.S.One if found is None else found


def _width(factor: Formula, value: Value) -> sp.Expr:
    """How many columns a product has."""
    width = shape_of(value)[1]
    return factor.shape[1] if width == 1 and factor.shape else width
