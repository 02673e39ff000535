"""The training level where all laws are linear: one exact forward pass, as a program.

Every field at one time is a row of coefficients over the Gaussian variables of its site: the noises that stand for
random matrices and what is drawn. See numerics/runtime/exact.py for the functions that are called here by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import outermost
from derive.algebra.words import Letter, SiteTable
from derive.equations.layout import Layout, mean_key
from derive.equations.needs import NOTHING, Needs
from derive.errors import DeclarationError
from derive.language.data import DataAt, EntriesAt
from derive.language.matrices import Disorder
from derive.language.symbols import Clock, Sector
from derive.language.traits import Trait, split_traits, traits_in
from derive.language.vectors import PAST, Each, Field, FieldAt, Mean, Mix, Softmax, Total, axes_of, shown
from derive.program.comments import equations_of, shown_covariance
from derive.program.merging import merged
from derive.program.nodes import (
    SCALAR,
    Attribute,
    Call,
    Chosen,
    Formula,
    Function,
    Let,
    MatMul,
    Ref,
    Shape,
    Slot,
    Sum,
    Symbol,
    Transposed,
    Value,
    alive,
    alive_always,
    children,
    shape_of,
    symbols_in,
)
from derive.program.training import ONE, Training, along, apart, labels_in
from derive.records.probe import SampledSites
from derive.records.system import (
    DisorderRule,
    ElementwiseRule,
    LinearRule,
    Rule,
    SystemField,
    Term,
    is_moment,
    quadratic_pairs,
    weighing,
)

Key = tuple[str, str, str] | tuple[str, int] | tuple[str, str] | tuple[str, str, str, str]
"""An order parameter: ("C", a, b), ("R", a, b), ("M", i) for a mean that weighs updates, ("F", i) for one at a time;
("S", sector) for the law of groups of sites, and ("W", sector, a, b) for means in each."""
Ends = tuple[Field | None, ...]


@dataclass(frozen=True)
class SiteLayout:
    """The Gaussian variables of a site of one sector, each with the symbol of its place."""

    sector: Sector
    symbol: Symbol
    channels: tuple[tuple[Symbol, tuple[tuple[Field, Symbol], ...]], ...]
    """For each random matrix the symbol of its covariance, and the noises that it makes."""
    drawn: tuple[tuple[Field, Symbol], ...]
    kicks: tuple[tuple[Field, Symbol], ...]
    """Sources in equations of fields that have no noise, where two-time functions are asked for."""
    traits: tuple[tuple[Trait, Symbol, Symbol], ...]
    """For each trait of its sites the symbol of its law, and that of its values along a row."""
    size: Slot

    @property
    def blocks(self) -> tuple[tuple[Field, Symbol], ...]:
        return (*(pair for _, noises in self.channels for pair in noises), *self.drawn, *self.kicks)


@dataclass(frozen=True)
class Carried:
    """What goes from one time to the next: rows of a field (at all times, or of one without time) or a covariance."""

    symbol: Symbol
    field: Field | None
    site: SiteLayout
    channel: int | None = None
    columns: sp.Expr | None = None
    """Columns of a table that has one line per time and label."""
    each: bool = False
    """Whether such a table has lines of its own for each group of sites."""

    def lines(self, times: sp.Expr) -> sp.Expr:
        """How many lines a table has, or the rows of a field: one per time and label."""
        if self.field is None:
            return times
        return self.field.labels * (times if self.field.timed else 1)


@dataclass(frozen=True)
class ExactPass:
    """The program. `tables` come before everything, `start` before the first time, `step` at every time."""

    clock: Clock | None
    time: Symbol
    times: Symbol
    when: Symbol
    sites: tuple[SiteLayout, ...]
    tables: tuple[Let, ...]
    start: tuple[Let, ...]
    step: tuple[Let, ...]
    carried: tuple[Carried, ...]
    results: tuple[Let, ...]
    order: tuple[tuple[Key, Value], ...] = ()
    ends: tuple[tuple[Key, Ends], ...] = ()
    """The fields whose times and labels the axes of a correlation or response run over; none at one time, or along
    groups of sites."""
    observables: tuple[tuple[str, Value, str], ...] = ()
    """Names, values, and what they are as text."""
    fields: tuple[tuple[str, Value], ...] = ()
    """In place of order parameters and observables: what two-time functions are made of."""
    nodes: Symbol | None = None
    """How many nodes an axis of an integral has, where averages are integrals."""
    refused: tuple[tuple[tuple[str, str, str], str], ...] = ()
    """Two-time functions that there are not, and why."""


def exact_pass(layout: Layout, needs: Needs = NOTHING) -> ExactPass:
    """The program that gives order parameters and the observables."""
    return ExactBuild(layout, grouped=needs.sites).program(needs)


def exact_two_time(layout: Layout) -> ExactPass:
    """The program that gives what all two-time functions are made of."""
    return ExactBuild(layout, kicked=True).two_time_program()


class ExactBuild(Training):
    """Makes the program; the pass by quadrature adds to it what laws need that are not linear.

    kicked: whether there are sources in the equations of all fields. grouped: what stands on diagonals, made of traits,
    so that sites differ by these too.
    """

    nodes: Symbol | None = None

    def __init__(self, layout: Layout, kicked: bool = False, grouped: tuple[SampledSites, ...] = ()):
        self.times = Symbol("times", SCALAR)
        super().__init__(layout, Slot(Ref(self.times), "times"))
        self.kicked, self.grouped = kicked, grouped
        self.sites = tuple(map(self._site, layout.sectors))
        self.home = {site.sector: site for site in self.sites}
        self.place = {field: symbol for site in self.sites for field, symbol in site.blocks}
        self.along = {trait: symbol for site in self.sites for trait, _, symbol in site.traits}
        self.pasts: dict[Field, Symbol] = {}
        self.duals: dict[tuple[Field, int, bool], tuple[int, Symbol]] = {}
        self.noises_known: dict[Sector, int] = dict.fromkeys(layout.sectors, 0)
        """How many noises of a sector have their covariances at the current time."""
        self.known_after: dict[Field, int] = {}
        """The same, with the last noise that the rows of a field hold at the current time."""
        self.met: dict[tuple[Field, int, Field, bool], Symbol] = {}

    def _site(self, sector: Sector) -> SiteLayout:
        channels: dict[tuple[Disorder, bool], list[tuple[Field, Symbol]]] = {}
        for f in self.layout.fields:
            if isinstance(f.rule, DisorderRule) and f.field.sector == sector:
                key = (f.rule.matrix, f.rule.transposed)
                channels.setdefault(key, []).append((f.field, Symbol(f"in_{f.field}")))
        symbol = Symbol(sector.name)
        size = Slot(Attribute(symbol, "size"), f"size of {sector}")
        made = []
        for (matrix, transposed), noises in channels.items():
            extent = sp.Add(*(f.labels * (self.length if f.timed else 1) for f, _ in noises))
            made.append((Symbol(f"cov_{matrix}{'T' if transposed else ''}", (extent, extent)), tuple(noises)))
        drawn = tuple((s, Symbol(f"in_{s}")) for s in self.layout.system.sources if s.sector == sector)
        silent = [f.field for f in self.layout.fields if not isinstance(f.rule, DisorderRule)] if self.kicked else []
        kicks = tuple((f, Symbol(f"kick_{f}")) for f in silent if f.sector == sector)
        standing = (value for sites in self.grouped for value in sites.values)
        traits = tuple(
            (trait, Symbol(f"law_{trait.name}"), Symbol(trait.name, (sp.S.One, size)))
            for trait in self.layout.system.traits_beside(standing)
            if trait.sector == sector
        )
        return SiteLayout(sector, symbol, tuple(made), drawn, kicks, traits, size)

    # -- the whole

    def program(self, needs: Needs) -> ExactPass:
        start, step = self._through_time()
        letters, tables = needs.letters, needs.tables
        order: list[tuple[Key, Value]] = [(key_of(x), self._letter(x)) for x in letters]
        order += [(mean_key(m, i, self.clock), self._mean_before(m)) for i, m in enumerate(needs.means)]
        order += [(sites.key, self._law_of_groups(sites)) for sites in self.grouped]
        order += [(table.key, self._by_group(table)) for table in tables]
        observed = self.layout.system.model.observe
        observables = [(name, self._observed(value), self.observed(name)) for name, value in observed]
        made = self._alive(start, step, [*(v for _, v in order), *(v for _, v, _ in observables)])
        ends: list[tuple[Key, Ends]] = [(key_of(x), _ends(x)) for x in letters]
        ends += [(sites.key, (None, None)) for sites in self.grouped]
        ends += [(table.key, (None, table.left[1], table.right[1])) for table in tables]
        return replace(made, order=tuple(order), ends=tuple(ends), observables=tuple(observables))

    def two_time_program(self) -> ExactPass:
        """The same pass, with the rows of all fields as its results."""
        start, step = self._through_time()
        fields = tuple((field.name, self._rows_of(field)) for field in self.layout.named)
        return replace(self._alive(start, step, [value for _, value in fields]), fields=fields)

    def _rows_of(self, field: Field) -> Call:
        site, scale = self.home[field.sector], field.scale if field.role == "normal" else sp.S.One
        covariances = tuple(symbol for symbol, _ in site.channels)
        source, lines = self.place[field], field.labels
        return Call("Rows", (self.past(field), lines, source, self.number(scale), site.symbol, covariances), None)

    def _through_time(self) -> tuple[tuple[Let, ...], tuple[Let, ...]]:
        """Statements before the first time, and of every time."""
        for f in self.layout.fields:
            if not f.field.timed:
                self._field(f)
        start, self.lines, self.duals, self.met = tuple(self.lines), [], {}, {}
        for f in self.layout.fields:
            if f.field.timed:
                self._field(f)
        for symbol, average in self._mean_tables():
            value = Call("entry", (self.column(average),), SCALAR)
            self.lines.append(Let(symbol, Call("store_number", (symbol, value, self.time), symbol.shape)))
        step, self.lines, self.duals, self.met = tuple(self.lines), [], {}, {}
        return start, step

    def _alive(self, start: tuple[Let, ...], step: tuple[Let, ...], found: Iterable[Value]) -> ExactPass:
        """What the values that are found in the end need, through all times."""
        wanted: dict[Symbol, None] = {}
        for value in found:
            wanted |= symbols_in(value)
        results, wanted = alive(tuple(self.lines), wanted)
        kept, wanted = alive_always(step, wanted)
        first, more = alive(start, wanted)
        wanted |= more
        carried = [
            *(
                Carried(self.pasts[f.field], f.field, self.home[f.field.sector])
                for f in self.layout.fields
                if f.field in self.pasts
            ),
            *(Carried(self.done[f], f, self.home[f.sector]) for f in self.done if not f.timed),
            *(Carried(cov, None, site, number) for site in self.sites for number, (cov, _) in enumerate(site.channels)),
            *(Carried(s, None, self.sites[0], None) for s in self.tables.values()),
            *self._more_carried(),
        ]
        tables = self.coefficients.statements({**wanted, **{s: None for let in kept for s in symbols_in(let.value)}})
        return ExactPass(
            self.clock,
            self.time,
            self.times,
            self.when,
            self.sites,
            tables,
            first,
            merged(kept, wanted),
            tuple(c for c in carried if c.symbol in wanted),
            results,
            nodes=self.nodes,
        )

    def _more_carried(self) -> tuple[Carried, ...]:
        """What else goes from one time to the next."""
        return ()

    # -- numbers

    def number(self, expression: sp.Expr, shape: Shape = SCALAR) -> Formula:
        """A coefficient at the current time, or over all earlier times where it depends on them."""
        expression = sp.sympify(expression)
        of_traits = traits_in(expression)
        if of_traits:
            lines = sp.S.One if shape == SCALAR else shape[0]
            shape = (lines, self.home[of_traits[0].field.sector].size)
        return self.formula(expression, shape)

    def leaf(self, node: sp.Basic) -> sp.Expr:
        if isinstance(node, Mean):
            return self._mean(node)
        if isinstance(node, FieldAt):
            return Slot(Ref(self.along[node.field]), shown(node))
        if isinstance(node, DataAt):
            return self._data(node)
        if isinstance(node, (Mix, Softmax)):
            return Slot(self._along_labels(node), shown(node))
        column = Formula(self.number(node.expression).expression, (sp.S.One, sp.S.One))
        return Slot(Call("total", (column,), (sp.S.One, sp.S.One)), shown(node))

    def _along_labels(self, node: Mix | Softmax) -> Value:
        """Numbers with labels made of others with labels, as a column."""
        inside = node.vector if isinstance(node, Mix) else node.expression
        column = Formula(self.number(inside).expression, (labels_in(inside), sp.S.One))
        if isinstance(node, Mix):
            table = self.given(node.table)
            return MatMul(Transposed(table) if node.transposed else table, column)
        return Call("softmax", (column, *along(node)), column.shape)

    def _mean(self, average: Mean) -> Slot:
        """A mean as a number, or as a column over labels."""
        if is_moment(average):
            return Slot(self._moment(average), shown(average))
        column = self.column(average)
        return Slot(column if axes_of(average) else Call("entry", (column,), SCALAR), shown(average))

    def _moment(self, average: Mean) -> Call:
        """A mean of traits alone."""
        sector = next(iter(traits_in(average.expression))).field.sector
        site = self.home[sector]
        given = {trait(): Symbol(trait.name, (sp.Symbol("groups"),)) for trait, _, _ in site.traits}
        body = Formula(average.expression.xreplace({v: Slot(Ref(s), s.hint) for v, s in given.items()}), None)
        return Call("moment", (site.symbol, Function(tuple(given.values()), body)), SCALAR)

    def _weighed(self, seen: Value, of_traits: sp.Expr) -> Value:
        """Rows times what traits multiply them by inside a mean."""
        return seen if of_traits == 1 else Sum(((self.number(of_traits), seen),), seen.shape)

    def _mean_tables(self) -> list[tuple[Symbol, Mean]]:
        return [(symbol, average) for average, symbol in self.tables.items()]

    def column(self, average: Mean) -> Value:
        """A mean at the current time, as a column over labels."""
        parts = []
        for scale, a, b in self._pairs(average):
            number, of_traits = split_traits(scale)
            seen = self._weighed(self.dual(a, b.field), of_traits)
            parts.append((self.number(number), Call("products", (seen, self.value(b)), (_joint(a, b), sp.S.One))))
        return Sum(tuple(parts), (labels_in(average), sp.S.One))

    def _pairs(self, average: Mean) -> list[tuple[sp.Expr, FieldAt, FieldAt]]:
        """Pairs of values, the one that is known later first: its covariance with all others is known then."""
        found = quadratic_pairs(average)
        if found is None:
            raise DeclarationError(f"{shown(average)} is not quadratic, so the exact pass cannot have it")
        return [(c, *self._later_first(a, b)) for c, a, b in found]

    def _later_first(self, a: FieldAt, b: FieldAt) -> tuple[FieldAt, FieldAt]:
        first, last = sorted((a, b), key=lambda v: (-self.lag(v), self.layout.rank.get(v.field, -1)))
        return last, first

    def _data(self, node: DataAt) -> Slot:
        """Data with one axis, or the entries of a table, as a column."""
        found = self.given(node)
        if isinstance(node, EntriesAt):
            found = Call("listed", (Transposed(found) if node.turned else found,), (labels_in(node), sp.S.One))
        return Slot(found, shown(node))

    # -- rows

    def rows_shape(self, field: Field) -> Shape:
        return (field.labels, self.home[field.sector].size)

    def past_shape(self, field: Field) -> Shape:
        lines = field.labels * (self.length if field.timed else 1)
        return (lines, self.home[field.sector].size)

    def value(self, value: FieldAt) -> Value:
        """The rows of a field at the current time, or some steps earlier."""
        field, lag, shape = value.field, self.lag(value), self.rows_shape(value.field)
        if field.role in ("normal", "constant"):
            when = self.now_slot - lag if field.timed else 0
            drawn = Call("unit", (self.place[field], when), shape)
            return drawn if field.scale == 1 else Sum(((self.number(field.scale), drawn),), shape)
        if lag == 0:
            return self.known_now(value)
        return Call("earlier", (self.past(field), field.labels, self.time, lag), shape)

    def past(self, field: Field) -> Value:
        """The rows of a field at all times that are known; of a source, and of a field without time, all."""
        shape = self.past_shape(field)
        if field.role in ("normal", "constant"):
            drawn = Call("units", (self.place[field],), shape)
            return drawn if field.scale == 1 else Sum(((self.number(field.scale), drawn),), shape)
        if not field.timed:
            return Ref(self.done[field])
        if field not in self.pasts:
            self.pasts[field] = Symbol(f"{field}_past", shape)
        return Ref(self.pasts[field])

    def dual(self, value: FieldAt, other: Field, each: bool = False) -> Value:
        """The rows of a value times the covariance of its site, for its means with another field; `each`: for means
        over the sites of every group.

        It is computed again only if the other has noises whose covariances were not known at the time.
        """
        key = (value.field, self.lag(value), each)
        needed = self.known_after.get(other, 0)
        if key not in self.duals or self.duals[key][0] < needed:
            rows = self.value(value)
            symbol = Symbol(f"seen_{value.field}{'_each' if each else ''}", rows.shape)
            self.lines.append(Let(symbol, self._dual(rows, value.field, each)))
            self.duals[key] = (self.noises_known[value.field.sector], symbol)
        return Ref(self.duals[key][1])

    def _dual(self, rows: Value, field: Field, each: bool = False) -> Call:
        site = self.home[field.sector]
        covariances = tuple(Ref(symbol) for symbol, _ in site.channels)
        return Call("dual_each" if each else "dual", (rows, site.symbol, *covariances), rows.shape)

    def with_past(self, value: FieldAt, field: Field) -> Ref:
        """Means of products of a value with a field at all times, as far as they are known."""
        key = (value.field, self.lag(value), field, field in self.done)
        if key not in self.met:
            seen = self.dual(value, field)
            symbol = Symbol(f"C_{value.field}_{field}", (shape_of(seen)[0], self.past_shape(field)[0]))
            self.lines.append(Let(symbol, Call("overlaps", (seen, self.past(field)), symbol.shape)))
            self.met[key] = symbol
        return Ref(self.met[key])

    # -- one field

    def _field(self, f: SystemField) -> None:
        field = f.field
        symbol, before = Symbol(field.name, self.rows_shape(field)), len(self.lines)
        value = self._rule(f, f.rule)
        for first, rule in enumerate(f.starts):
            value = Chosen(sp.Eq(self.now_slot, first), self._rule(f, rule), value)
        if self.kicked and not isinstance(f.rule, DisorderRule):
            when: Value | int = Ref(self.time) if field.timed else 0
            kick = Call("kick", (self.place[field], when), symbol.shape)
            value = Sum(((ONE, value), (ONE, kick)), symbol.shape)
        self.lines.append(Let(symbol, value))
        self.tell(before, equations_of(self.layout, f))
        self.done[field] = symbol
        own = int(isinstance(f.rule, DisorderRule))  # its own noise, whose covariances follow
        self.known_after[field] = self.noises_known[field.sector] + own
        if field.timed:
            self.lines.append(self._stored(field, symbol))
            if self._reads_own_past(field, value):
                call = Call("stored", (self.past(field), field.labels, self.time), symbol.shape)
                self.lines.append(Let(symbol, call))
        if isinstance(f.rule, DisorderRule):
            self._covariances(f)

    def _stored(self, field: Field, rows: Symbol) -> Let:
        """The past joined by the rows of the current time, once everything that reads it without them is known.

        A compiler changes an array in place only if all reads of its old value come first; where the rows themselves
        do not depend on such a read, the time is made to.
        """
        self.past(field)
        past = self.pasts[field]
        needs: dict[Symbol, None] = {}
        for let in reversed(self.lines):
            if let.symbol is rows or let.symbol in needs:
                needs |= symbols_in(let.value)
        loose = [let.symbol for let in self.lines if past in symbols_in(let.value) and let.symbol not in needs]
        loose = [s for s in loose if s is not rows]
        when: Value = Ref(self.time)
        if loose:
            when = Call("after", (when, *map(Ref, loose)), SCALAR)
        return Let(past, Call("store", (past, rows, when), past.shape))

    def _reads_own_past(self, field: Field, value: Value) -> bool:
        """Whether rows hold earlier rows of their own field as they are, not only in a product.

        A compiler makes such rows anew wherever they are used, from the past without them, which it then copies.
        """
        if isinstance(value, Call) and value.function == "earlier":
            return self.pasts[field] in symbols_in(value)
        return not isinstance(value, MatMul) and any(self._reads_own_past(field, v) for v in children(value))

    def _rule(self, f: SystemField, rule: Rule) -> Value:
        shape = self.rows_shape(f.field)
        if isinstance(rule, ElementwiseRule):
            raise DeclarationError(f"the law of {f.field} is not linear")
        if isinstance(rule, LinearRule):
            return self._filled(tuple(self._term(t, f.field) for t in rule.terms), shape)
        when = Ref(self.time) if f.field.timed else 0
        terms: list[tuple[Formula, Value]] = [(ONE, Call("unit", (self.place[f.field], when), shape))]
        for m in self.layout.memories(f.field):
            answering = self.value(self.present(m.a))
            kernel_shape = (m.a.labels, self.past_shape(m.noise)[0])
            kernel = Call("part", (answering, self.place[m.noise]), kernel_shape)
            if m.fresh:
                on = self.value(self.present(m.on))
                here = Call("at_time", (kernel, m.noise.labels, self.time), (m.a.labels, m.noise.labels))
                terms.append((self.number(m.coefficient), MatMul(here, on)))
            else:
                terms.append((self.number(m.coefficient), MatMul(kernel, self.past(m.on))))
        return self._filled(tuple(terms), shape)

    def _filled(self, terms: tuple[tuple[Formula, Value], ...], shape: Shape) -> Value:
        """A sum of rows with as many lines as there must be: one line stands for every label."""
        lines = {side.shape[0] for term in terms for side in term if side.shape}
        if not terms or shape[0] in lines:
            return Sum(terms, shape)
        return Call("lines", (Sum(terms, (sp.S.One, shape[1])), shape[0]), shape)

    def _term(self, term: Term, target: Field) -> tuple[Formula, Value]:
        vector = term.vector.field
        if term.past is None:
            factor = self.number(term.coefficient, (labels_in(term.coefficient), sp.S.One))
            if term.pair is None:
                return factor, self._mixed(term, target)
            left, right = term.pair
            met = MatMul(self.dual(right, left.field), Transposed(self.value(left)))
            return factor, MatMul(met, self.value(term.vector))
        reach = int(sp.expand(term.past - self.clock))
        if reach > 0:
            raise DeclarationError(
                f"the equation of {target} sums {vector} up to {self.clock}; use values before {self.clock} only"
            )
        labels = vector.labels
        if reach == 0 and not term.coefficient.has(PAST) and self._ends_before_now(vector):
            # what is not known yet is zero in the past, so that the sum ends by itself
            factor = self.number(term.coefficient)
            if term.pair is None:
                return factor, Call("summed", (self.past(vector), labels), self.rows_shape(vector))
            return factor, MatMul(self.with_past(term.pair[1], term.pair[0].field), self.past(vector))
        coefficient, of_traits = split_traits(term.coefficient)
        weights, factor = self.weights(replace(term, coefficient=coefficient)), self.number(of_traits)
        if term.pair is None:
            return factor, Call("past_sum", (weights, self.past(vector), labels), self.rows_shape(vector))
        left, right = term.pair
        found = self.with_past(right, left.field)
        kernel = Call("weighted", (found, weights, labels), found.shape)
        return factor, MatMul(kernel, self.past(vector))

    def _ends_before_now(self, field: Field) -> bool:
        """Whether the past of a field holds nothing at the current time yet."""
        return field.timed and field.role == "field" and field not in self.done

    def _mixed(self, term: Term, target: Field) -> Value:
        rows, vector = self.value(term.vector), term.vector.field
        if term.mixing is None:
            if vector.labelled and vector.axes != target.axes:
                raise DeclarationError(
                    f"the equation of {target} uses {vector}, which has other labels than {target}; sum over them"
                )
            return rows
        if term.mixing.table is None:
            return Call("total", (rows,), (sp.S.One, shape_of(rows)[1]))
        table = self.given(term.mixing.table)
        return MatMul(Transposed(table) if term.mixing.transposed else table, rows)

    def _covariances(self, f: SystemField) -> None:
        """Write the covariance of the new noise with all noises that are known, in both places."""
        site = self.home[f.field.sector]
        covariance = next(cov for cov, noises in site.channels if f.field in dict(noises))
        for c in self.layout.covariances(f.field):
            if c.right.timed and not f.field.timed:
                continue
            when = Ref(self.time) if c.left.timed else 0
            places = Ref(self.place[c.left]), Ref(self.place[c.right])
            if c.fresh:
                if c.right not in self.done:
                    continue
                other = self.value(self.present(c.b))
                seen = self.dual(self.present(c.a), c.b)
                values: Value = MatMul(seen, Transposed(other))
                column: Value | None = Ref(self.time)
            else:
                values = self.with_past(self.present(c.a), c.b)
                column = None
            scaled = values if c.coefficient == 1 else Sum(((self.number(c.coefficient), values),), values.shape)
            call = Call("put", (covariance, places[0], when, places[1], column, scaled), covariance.shape)
            self.lines.append(Let(covariance, call, shown_covariance(c)))
        self.noises_known[site.sector] += 1

    # -- results

    def _first(self, field: Field, time: sp.Expr | None = None) -> Value:
        """The rows of a field before the last update, or at one time."""
        if not field.timed:
            return self.past(field)
        if time is not None:
            lines, size = field.labels, self.home[field.sector].size
            return Call("lines_at", (self.past(field), lines, time), (lines, size))
        count = self.order_times * field.labels
        return Call("first", (self.past(field), count), (count, self.home[field.sector].size))

    def _known_as_covariance(self, field: Field, at_equal_times: bool) -> tuple[Formula, Ref, Ref] | None:
        """A factor, a covariance and a noise of its whose covariance is, times the factor, that of a field.

        Fields that random matrices multiply have their covariances already: nothing has to be computed again. Only
        ratios of sizes are taken off, which are never zero; a matrix drawn afresh knows equal times only.
        """
        ratios = {symbol for sector in self.layout.sectors for symbol in sector.ratio.free_symbols}
        for c in self.layout.saddle.covariances:
            if c.left != c.right or c.a != field or c.b != field or c.left not in self.done or not field.timed:
                continue
            divides = c.coefficient.is_positive and c.coefficient.free_symbols <= ratios
            divides = divides and not c.coefficient.atoms(Mean, AppliedUndef, DataAt, Total)
            if not divides or (c.fresh and not at_equal_times) or c.left.labels != field.labels:
                continue
            found = (cov for cov, noises in self.home[c.left.sector].channels if c.left in dict(noises))
            return self.number(1 / c.coefficient), Ref(next(found)), Ref(self.place[c.left])
        return None

    def _letter(self, letter: Letter) -> Value:
        square = letter.kind == "C" and letter.a == letter.b and letter.time is None
        known = self._known_as_covariance(letter.a, False) if square else None
        if known is not None:
            factor, covariance, noise = known
            count = self.order_times * letter.a.labels
            call = Call("covariance_before", (covariance, noise, count), (count, count))
            return call if factor.expression == 1 else Sum(((factor, call),), call.shape)
        rows = self._first(letter.a)
        if letter.kind == "C":
            return MatMul(self._dual(rows, letter.a), Transposed(self._first(letter.b, letter.time)))
        rows = self._first(letter.a, letter.time)
        count = letter.b.labels * (self.order_times if letter.b.timed else 1)
        return Call("part_before", (rows, self.place[letter.b], count), (shape_of(rows)[0], count))

    def _law_of_groups(self, sites: SampledSites) -> Value:
        """What stands on diagonals in each group of sites, with the weights of the groups."""
        site = self.home[sites.sector]
        return Call("law_of_groups", (site.symbol, *(self.number(entry.function) for entry in sites.entries)), None)

    def _by_group(self, table: SiteTable) -> Value:
        """Means of products, or responses, in each group of sites."""
        (_, left), (kind, right) = table.left, table.right
        rows = self._first(left)
        if kind == "C":
            seen = self._dual(rows, left)
            return Call("products_by_group", (seen, self._first(right), self.home[table.sector].symbol), None)
        count = right.labels * (self.order_times if right.timed else 1)
        return Call("part_by_group", (rows, self.place[right], count), None)

    def _mean_before(self, average: Mean | Total) -> Value:
        """A mean in the probed matrix: at all times before the last update, or all times if it is taken at one, as a
        sum of means over labels always is."""
        moved, taken = weighing(average, self.clock)
        if isinstance(average, Total):
            return self._observed(moved)
        table = self._table(moved)
        if taken is not None:
            return table
        count = self.order_times
        return Call("first", (table, count), (count, labels_in(average)))

    def _table(self, average: Mean) -> Value:
        """A mean at all times: one row per time, one column per label."""
        if is_moment(average):
            return Call("column_of", (self._moment(average),), (sp.S.One, sp.S.One))
        parts: list[tuple[Formula, Value]] = []
        for whole, a, b in self._pairs(average):
            scale, of_traits = split_traits(whole)
            plain = a == b and self.lag(a) == 0 and of_traits == 1
            known = self._known_as_covariance(a.field, True) if plain else None
            if known is not None:
                factor, covariance, noise = known
                both = self.number(scale).expression * factor.expression
                parts.append((Formula(both), Call("variances", (covariance, noise), None)))
                continue
            seen, rows = (self._delayed(v) for v in (a, b))
            call = Call(
                "products_by_time",
                (
                    self._weighed(self._dual(seen, a.field), of_traits),
                    a.field.labels,
                    rows,
                    b.field.labels,
                ),
                None,
            )
            parts.append((self.number(scale), call))
        return Sum(tuple(parts), None)

    def _delayed(self, value: FieldAt) -> Value:
        past, lag = self.past(value.field), self.lag(value)
        if lag == 0:
            return past
        return Call("delayed", (past, value.field.labels, lag), past.shape)

    def _observed(self, value: sp.Expr) -> Value:
        """An observable at all times; outside total(...) and each(...) labels are averaged over."""
        if isinstance(value, Each):
            return apart(self._by_label(value.expression), value.expression)
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(value, (Mean, Total)):
            if isinstance(node, Total):
                inner[node] = Slot(Call("total_of_labels", (self._by_label(node.expression),), None), shown(node))
            else:
                inner[node] = Slot(Call("mean_of_labels", (self._table(node),), None), shown(node))
        return Call("series", (Formula(value.xreplace(inner), None),), None)

    def _by_label(self, expression: sp.Expr) -> Value:
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(expression, (Mean, DataAt, Mix, Total)):
            if isinstance(node, Mean):
                inner[node] = Slot(self._table(node), shown(node))
            elif isinstance(node, Mix):
                table = self.given(node.table)
                rows = MatMul(self._by_label(node.vector), table if node.transposed else Transposed(table))
                inner[node] = Slot(rows, shown(node))
            elif isinstance(node, Softmax):
                call = Call("softmax_by_time", (self._by_label(node.expression), *along(node)), None)
                inner[node] = Slot(call, shown(node))
            elif isinstance(node, Total):
                inner[node] = Slot(Call("total_of_labels", (self._by_label(node.expression),), None), shown(node))
            else:
                lag = 0 if node.time is None else int(sp.expand(self.clock - node.time))
                array = Formula(node.data, None)
                turned = (int(node.turned),) if isinstance(node, EntriesAt) else ()
                call = Call("given_series", (array, 0 if node.time is None else 1, lag, *turned), None)
                inner[node] = Slot(call, shown(node))
        return Formula(expression.xreplace(inner), None)


def key_of(letter: Letter) -> Key:
    return (letter.kind, *letter.shown)


def _ends(letter: Letter) -> tuple[Field | None, Field | None]:
    if letter.time is None:
        return letter.a, letter.b
    return (letter.a, None) if letter.kind == "C" else (None, letter.b)


def _joint(a: FieldAt, b: FieldAt) -> sp.Expr:
    return a.field.labels if a.field.labelled else b.field.labels
