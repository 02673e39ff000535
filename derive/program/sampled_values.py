"""A sampled pass as a program: sizes, normals, numbers and values that fields are made of."""

from __future__ import annotations

import sympy as sp

from derive.algebra.sites import SiteAverage, written_out
from derive.algebra.words import Letter
from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.errors import DeclarationError
from derive.language.data import DataAt, EntriesAt
from derive.language.symbols import Sector
from derive.language.traits import Trait, traits_in
from derive.language.vectors import Field, FieldAt, Mean, Mix, Softmax, Total, axes_of, shown
from derive.program.nodes import (
    SCALAR,
    Call,
    Formula,
    Item,
    Let,
    MatMul,
    Ref,
    Shape,
    Slot,
    Statement,
    Sum,
    Symbol,
    Transposed,
    Value,
    shape_of,
)
from derive.program.sampled_records import NORMALS, RANK, SITES, Kick, Kind, NormalsOf, SpanLayout
from derive.program.sites import Channel, Sharing, Span
from derive.program.training import Training, along, labels_in
from derive.program.traits import law_parts
from derive.records.system import is_moment


class Values(Training):
    """What is known of each field as the program grows."""

    over_times = (Mean, Mix, Total)
    upright = False

    def __init__(self, layout: Layout, needs: Needs, responses: str):
        self.sampled, self.site_tables = needs.sites, needs.tables
        super().__init__(layout, sp.S.One if layout.clock is None else layout.clock.points)
        self.letters, self.means, self.method = needs.letters, needs.means, responses
        self.pathwise = responses == "pathwise"
        self.sloped = self._follows_slopes()
        self.sharing = Sharing(layout, needs)
        self.sites_slot = Slot(Ref(SITES), "sites")
        self.spans = tuple(map(self._span, self.sharing.spans))
        self.home = {made.span: made for made in self.spans}
        self.size = {made.span: Slot(Ref(made.size), made.size.hint) for made in self.spans}
        self.traits: dict[Sector, tuple[Trait, ...]] = {}
        for trait in self.drawn_traits:
            self.traits[trait.sector] = (*self.traits.get(trait.sector, ()), trait)
        self.kinds = self._kinds()
        self.correlated = {f for x in self.letters if x.kind == "C" for f in self._with_same_root(x)}
        """Fields of correlations to which what is left out adds."""
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
        self.lates: dict[Field, list[tuple[Symbol, Symbol]]] = {}
        self.initial: dict[Symbol, Value] = {}
        """What is carried through time, and what it starts from where no field without time gives it."""
        self.lines: list[Statement] = []
        self.averages: list[Let] = []
        """What moments share, once all sites are forgotten."""

    def _follows_slopes(self) -> bool:
        """Whether slopes of values are followed: here along all normals."""
        return self.pathwise

    # -- sizes and normals

    def _span(self, span: Span) -> SpanLayout:
        often = sp.S.One if span.fresh else self.points
        entries = sp.Add(*(f.labels * (often if f.timed else 1) for f in span.fields))
        joining, before = (sp.Add(*(f.labels for f in span.fields if f.timed == timed)) for timed in (True, False))
        symbol, size = Symbol(f"span_{span.hint}"), Symbol(f"size_{span.hint}", SCALAR)
        return SpanLayout(span, symbol, size, entries, joining, before)

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
        for sector, traits in self.traits.items():
            kinds.append((sector, f"traits_{sector}", (sp.Integer(len(traits)),)))
        for channel in self.sharing.channels:
            span = self.sharing.channel_span(channel)
            for root in dict.fromkeys(self.sharing.root(a)[0] for a in channel.arguments):
                if self._may_lack_room(root, span):
                    kinds.append(((channel, root), f"{channel.hint}_beyond", (self.points, self._beyond(root, span))))
        for kind, key, shape in (*kinds, *self._more_kinds()):
            while key in taken:
                key += "_"
            taken.add(key)
            made[kind] = NormalsOf(key, shape)
        return made

    def _more_kinds(self) -> list[tuple[Kind, str, Shape]]:
        """What else has normals."""
        return []

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
        entries = self.home[span].entries
        return Slot(Call("beyond", (RANK, entries, field.labels), SCALAR), "beyond")

    def _groups(self) -> tuple[tuple[str, ...], ...]:
        found = []
        for members in self.sharing.groups:
            inside = [*self.sharing.noises(members), *(s for s in self.layout.system.sources if s in members)]
            keys = tuple(self.kinds[kind].key for kind in inside if kind in self.kinds)
            found += [keys] if keys else []
        # traits apart from all normals, so that each value has its share of the sites whatever else is drawn
        found += [(normals.key,) for kind, normals in self.kinds.items() if isinstance(kind, Sector)]
        # behind all others, which are then drawn as if nobody kicked
        return (*found, *((normals.key,) for kind, normals in self.kinds.items() if isinstance(kind, Kick)))

    def _slots(self, field: Field) -> sp.Expr:
        """How many slopes the values of a field have: one for each normal that its sites answer to."""
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
            counted[group] = counted.get(group, sp.S.Zero) + f.field.labels
        each = [n * (1 + self._slots(group[0])) if self.sloped else n for group, n in counted.items()]
        each += self._more_numbers()
        return Formula(sp.Add(*each) if each else sp.S.One)

    def _more_numbers(self) -> list[sp.Expr]:
        """What else is kept for each site."""
        return []

    @property
    def drawn_traits(self) -> tuple[Trait, ...]:
        """Traits that fields, means, observables or sampled diagonals depend on."""
        return self.layout.system.traits_beside(value for sites in self.sampled for value in sites.values)

    # -- numbers

    def number(self, expression: sp.Expr, shape: Shape | None = None) -> Formula:
        """A number at the current time; a row over labels where it has them, or over all earlier times."""
        expression = sp.sympify(expression)
        if shape is None:
            shape = (sp.S.One, labels_in(expression)) if axes_of(expression) else SCALAR
        if traits_in(expression):
            shape = (self.sites_slot, labels_in(expression))
        return self.formula(expression, shape)

    def leaf(self, node: sp.Basic) -> sp.Expr:
        if isinstance(node, FieldAt):
            return Slot(self.value(node), shown(node))
        if isinstance(node, DataAt):
            return Slot(self._numbers_given(node), shown(node))
        if isinstance(node, Mean):
            known = written_out(SiteAverage(node.expression)) if is_moment(node) else None
            return Slot(self._mean(node), shown(node)) if known is None else known
        if isinstance(node, Mix):
            table = self.given(node.table)
            return Slot(MatMul(self.number(node.vector), table if node.transposed else Transposed(table)), shown(node))
        row = self.number(node.expression)
        if isinstance(node, Softmax):
            return Slot(Call("softmax", (row, *along(node)), row.shape), shown(node))
        return Slot(Call("over_labels", (row,), SCALAR), shown(node))

    def _mean(self, average: Mean) -> Call:
        labels = labels_in(average)
        inside = self.formula(average.expression, (self.sites_slot, labels))
        labelled = bool(axes_of(average))
        return Call("mean_by_label", (inside,), (sp.S.One, labels)) if labelled else Call("mean", (inside,), SCALAR)

    def _numbers_given(self, node: DataAt) -> Value:
        """Data as a row over labels."""
        found = self.given(node)
        if not isinstance(node, EntriesAt):
            return found
        return Transposed(Call("listed", (Transposed(found) if node.turned else found,), (labels_in(node), sp.S.One)))

    def _carry(self, symbol: Symbol, value: Value | None = None) -> Symbol:
        """A symbol that goes from one time to the next, starting from zero unless another value is given."""
        self.initial[symbol] = Sum((), symbol.shape) if value is None else value
        return symbol

    # -- values

    def shape(self, field: Field) -> Shape:
        return (self.sites_slot, field.labels)

    def slopes_shape(self, field: Field) -> Shape:
        return (*self.shape(field), self._slots(field))

    def value(self, value: FieldAt) -> Value:
        """The values of a field at the current time, or some steps earlier."""
        field, lag = value.field, self.lag(value)
        if field.role == "constant":
            when = (Ref(self.time), lag) if lag else ()
            return Call("ones", (SITES, *when), (self.sites_slot, sp.S.One))
        if field.role == "normal":
            normals = Item(NORMALS, self.kinds[field].key)
            moved = (Ref(self.time), *((lag,) if lag else ()))
            drawn = (
                Call("drawn_at", (normals, *moved), self.shape(field))
                if field.timed
                else Call("drawn", (normals,), self.shape(field))
            )
            return drawn if field.scale == 1 else Sum(((self.number(field.scale), drawn),), drawn.shape)
        if lag:
            return Ref(self._late(field, lag)[0])
        return self.known_now(value)

    def trait(self, trait: Trait) -> Call:
        """The values of a trait at all sites, from a normal for each."""
        sector, shape = trait.sector, self.shape(trait)
        normals = Item(NORMALS, self.kinds[sector].key)
        drawn = (normals, self.traits[sector].index(trait))
        return Call("of_values" if trait.discrete else "of_density", (*drawn, *law_parts(trait)), shape)

    def slope(self, value: FieldAt) -> Value | None:
        """The slopes of a value; None for what is drawn or constant, which answers to nothing."""
        if value.field.role != "field":
            return None
        lag = self.lag(value)
        return Ref(self._late(value.field, lag)[1]) if lag else Ref(self.slopes[value.field])

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
            self.pasts[field] = self._carry(Symbol(f"{field}_past", (self.points * field.labels, size)))
        return Ref(self.pasts[field])

    def series(self, field: Field) -> Value:
        """The same in a sum over times, where a field without time is the same at all of them."""
        found = self.past(field)
        if field.timed:
            return found
        shape = (self.points * field.labels, shape_of(found)[1])
        return Call("repeated", (found, self.points), shape)

    def directions(self, field: Field) -> Ref:
        return Ref(self.home[self.sharing.past_span(field)].symbol)

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

    def _recorded(self, symbol: Symbol, value: Value, remark: str = "") -> Ref:
        self.lines.append(Let(symbol, Call("record", (symbol, value, self.time), symbol.shape), remark))
        return Ref(symbol)
