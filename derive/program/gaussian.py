"""The training level where nonlinear laws have Gaussian arguments: the exact forward pass with integrals, as a program.

A law is a row like any other field: its projection on the Gaussian variables of its site, and an entry of its own for
what is left. The covariances of the latter are integrals over the arguments of two laws. See
numerics/runtime/gaussian.py for the functions that are called here by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import sympy as sp

from derive.equations.gaussian_laws import SMOOTH, Law, Laws, Parts, factors, fields_of, joint, product_of
from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.language.symbols import Sector
from derive.language.traits import split_traits
from derive.language.vectors import PAST, Field, FieldAt, Mean
from derive.program.exact import Carried, ExactBuild, ExactPass, SiteLayout
from derive.program.nodes import (
    SCALAR,
    Attribute,
    Call,
    Formula,
    Function,
    Let,
    MatMul,
    Ref,
    Slot,
    Sum,
    Symbol,
    Transposed,
    Tuple,
    Value,
    shape_of,
)
from derive.program.training import ONE, labels_in
from derive.records.system import ElementwiseRule, Rule, SystemField, is_moment


def gaussian_pass(layout: Layout, needs: Needs, laws: Laws) -> ExactPass:
    """The program that gives order parameters and the observables; laws: what is integrated for them."""
    return _Build(layout, laws).program(needs)


def gaussian_two_time(layout: Layout) -> ExactPass:
    """The program that gives what all two-time functions are made of."""
    laws = Laws(layout, (), (), two_time=True)
    build = _Build(layout, laws, kicked=True)
    return replace(build.two_time_program(), refused=tuple(_refused(layout, laws)))


def _refused(layout: Layout, laws: Laws) -> Iterable[tuple[tuple[str, str, str], str]]:
    """Two-time functions that quadrature does not have."""
    for (a, b), why in laws.too_large.items():
        yield ("C", a.name, b.name), why
    jumping = next((law for law in laws.owned if law.slopes is None and len(law.arguments) > 1), None)
    for b in layout.named:
        why = ""
        if b in laws.written_out:
            why = f"{laws.written_out[b]} is nonlinear in {b}, which is not Gaussian: how it answers is no integral"
        elif jumping is not None:
            why = f"{jumping.shown} jumps and has several arguments: how it answers to one of them is no integral"
        if why:
            yield from ((("R", a.name, b.name), why) for a in layout.named if a.sector == b.sector)


class _Build(ExactBuild):
    nodes: Symbol

    def __init__(self, layout: Layout, laws: Laws, kicked: bool = False):
        self.laws = laws
        self.nodes = Symbol("nodes", SCALAR)
        self.terms = Slot(Call("terms", (self.nodes,), SCALAR), "terms")
        self.law_symbols: dict[Law, Symbol] = {}
        self.known: dict[Law, Symbol] = {}
        """What is known of a law at the current time."""
        self.histories: dict[Law, Symbol] = {}
        """The same at all times."""
        self.followed: dict[Mean, Symbol] = {}
        self.bound: dict[str, Symbol] = {}
        """What the arguments of laws are called."""
        super().__init__(layout, kicked)

    def _site(self, sector: Sector) -> SiteLayout:
        site = super()._site(sector)
        mine = tuple(law.own for law in self.laws.owned if law.own.sector == sector)
        one = self.laws.ones[sector]
        drawn = site.drawn if any(f == one for f, _ in site.drawn) else (*site.drawn, (one, Symbol(f"in_{one}")))
        if not mine:
            return replace(site, drawn=drawn)
        extent = sp.Add(*(f.labels * (self.length if f.timed else 1) for f in mine))
        groups = (_groups(site),) if site.traits else ()
        channel = Symbol(f"cov_laws_{sector}", (*groups, extent, extent)), tuple((f, Symbol(f"in_{f}")) for f in mine)
        return replace(site, channels=(*site.channels, channel), drawn=drawn)

    def _more_carried(self) -> tuple[Carried, ...]:
        return (
            *(Carried(self.pasts[f], f, self.home[f.sector]) for f in self.laws.arguments if f in self.pasts),
            *(
                Carried(symbol, law.own, self.home[law.own.sector], columns=self._columns(law), each=True)
                for law, symbol in self.histories.items()
            ),
            *(
                Carried(symbol, None, self.sites[0], columns=labels_in(average))
                for average, symbol in self.followed.items()
            ),
        )

    # -- laws

    def _rule(self, f: SystemField, rule: Rule) -> Value:
        if not isinstance(rule, ElementwiseRule):
            return super()._rule(f, rule)
        number = next(i for i, other in enumerate((f.rule, *f.starts)) if other is rule)
        parts = self.laws.parts[f.field, number]
        terms: list[tuple[Formula, Value]] = [(self._factor(c), self.value(v)) for c, v in parts.linear]
        terms += [(self._factor(c), self._law_rows(law)) for c, law in parts.laws]
        if parts.number != 0:
            terms.append((self._factor(parts.number), self.value(self._one(f.field.sector))))
        return self._filled(tuple(terms), self.rows_shape(f.field))

    def _factor(self, coefficient: sp.Expr) -> Formula:
        labels = labels_in(coefficient)
        return self.number(coefficient, SCALAR if labels == 1 else (labels, sp.S.One))

    def _one(self, sector: Sector) -> FieldAt:
        return self.laws.ones[sector]()

    def _argument(self, field: Field) -> FieldAt:
        """An argument of a law at the current time; what is a combination of fields is computed where first needed."""
        rule = self.laws.arguments.get(field)
        if rule is not None and field not in self.done:
            symbol = Symbol(field.name, self.rows_shape(field))
            value = self._filled(tuple(self._term(term, field) for term in rule.terms), self.rows_shape(field))
            self.lines.append(Let(symbol, value))
            self.done[field] = symbol
            self.known_after[field] = self.noises_known[field.sector]
            if field.timed:
                self.lines.append(self._stored(field, symbol))
        return self.present(field)

    def _law(self, law: Law) -> Ref:
        """The law itself, as an object of the runtime."""
        symbol = self.law_symbols.setdefault(law, Symbol(f"law_{law.own}"))
        if all(let.symbol is not symbol for let in self.lines):

            def function(*bodies: sp.Expr, together: bool = True) -> Function:
                given = (*law.symbols, *law.number_symbols)
                made = [self.bound.setdefault(str(s), Symbol(str(s), SCALAR)) for s in given]
                slots = {s: Slot(Ref(name), str(s)) for s, name in zip(given, made, strict=True)}
                values = tuple(Formula(sp.sympify(body).xreplace(slots)) for body in bodies)
                return Function(tuple(made), Tuple(values) if together else values[0])

            slopes = None if law.slopes is None or law not in self.laws.owned else function(*law.slopes)
            kinks = function(*law.kinks) if law.kinks else None
            more = (True,) if law.straight else ()
            made = Call("Law", (function(law.expression, together=False), slopes, kinks, law.kinds, *more), None)
            self.lines.append(Let(symbol, made, law.shown))
        return Ref(symbol)

    def _moments(self, law: Law) -> tuple[tuple[Value, ...], tuple[Value, ...], Value]:
        """Means of products of the arguments, their means, and the numbers of a law."""
        arguments = [self._argument(f) for f in law.arguments]
        site, labels = self.home[law.own.sector], law.own.labels
        shape, each = (self._lines(law), sp.S.One), bool(site.traits)
        one = self.place[self.laws.ones[law.own.sector]]
        pairs = [(a, b) for i, a in enumerate(arguments) for b in arguments[: i + 1]]
        products = "products_each" if each else "products"
        grams = [Call(products, (self.dual(a, b.field, each), self.value(b), *self._in(site)), shape) for a, b in pairs]
        at = [Call("part_each" if each else "part", (self.value(a), one), shape) for a in arguments]
        numbers = tuple(self._factor(n) for n in law.numbers)
        width = (self._lines(law), sp.Integer(len(law.numbers) + len(law.traits)))
        if not each:
            return tuple(grams), tuple(at), Call("columns", (numbers, labels), width)
        order = {trait(): k for k, (trait, _, _) in enumerate(site.traits)}
        own = tuple(order[trait] for trait in law.traits)
        columns = Call("columns_each", (numbers, labels, site.symbol, own), width)
        return tuple(grams), tuple(at), columns

    def _in(self, site: SiteLayout) -> tuple[Symbol, ...]:
        """What a function takes that treats every group of sites for itself."""
        return (site.symbol,) if site.traits else ()

    def _lines(self, law: Law) -> sp.Expr:
        """How many lines are known of a law at one time: one per label, and per group of sites."""
        site = self.home[law.own.sector]
        return law.own.labels * (_groups(site) if site.traits else 1)

    def _law_rows(self, law: Law) -> Ref:
        """The rows of a law at the current time."""
        own = law.own
        if own in self.done:
            return Ref(self.done[own])
        grams, at, numbers = self._moments(law)
        shape = (self._lines(law), self._columns(law))
        known = Symbol(f"{own}_known", shape)
        self.lines.append(
            Let(known, Call("facts", (self.nodes, self._law(law), grams, at, numbers, self._holds(law)), shape))
        )
        self.known[law] = known
        rows = tuple(self.value(self.present(f)) for f in law.arguments)
        one = Ref(self.place[self.laws.ones[own.sector]])
        shadow = Call("projection", (self._law(law), known, rows, one), self.rows_shape(own))
        when = Ref(self.time) if own.timed else 0
        mine = Call("own", (self.place[own], when, known), self.rows_shape(own))
        symbol = Symbol(f"rows_{own}", self.rows_shape(own))
        self.lines.append(Let(symbol, Sum(((ONE, shadow), (ONE, mine)), symbol.shape)))
        self.done[own] = symbol
        history = self._history(law)
        if own.timed:
            self.lines.append(Let(history, Call("store", (history, known, self.time), history.shape)))
        else:
            self.lines.append(Let(history, Ref(known)))
        for other in self.laws.owned:
            if (law, other) in self.laws.meetings and not (other.own.timed and not own.timed):
                self._meet(law, other)
        self.noises_known[own.sector] += 1
        self.known_after[own] = self.noises_known[own.sector]
        return Ref(symbol)

    def _history(self, law: Law) -> Symbol:
        if law not in self.histories:
            lines = self._lines(law) * (self.length if law.own.timed else 1)
            self.histories[law] = Symbol(f"{law.own}_history", (lines, self._columns(law)))
        return self.histories[law]

    def _columns(self, law: Law) -> sp.Expr:
        """How many numbers are known of a law per time and label."""
        k = len(law.arguments)
        count = sp.Integer(2 + 2 * k + k * (k + 1) // 2 + len(law.numbers) + len(law.traits))
        return count + self.terms if law.kinds == (SMOOTH,) else count

    def _holds(self, law: Law) -> Formula:
        """Whether a law is that of the current time, as a number."""
        first, end = law.holds
        if not law.own.timed or (first == 0 and end is None):
            return ONE
        if end is not None:
            return Formula(sp.Piecewise((1, sp.Eq(self.now_slot, first)), (0, True)))
        return Formula(sp.Piecewise((1, self.now_slot >= first), (0, True)))

    def _meet(self, law: Law, other: Law) -> None:
        """Write the covariance of what is left of a law with what is left of another, as far as it is known."""
        site = self.home[law.own.sector]
        covariance = site.channels[-1][0]
        together = self.laws.meetings[law, other]
        if (together or not other.own.timed) and other.own not in self.done:
            return
        arguments = [self.present(f) for f in law.arguments]
        column: Symbol | None = None
        shared: tuple[tuple[int, int], ...] = ()
        if together:
            column = self.time if law.own.timed else None
            there: Value = Ref(self.known[other])
            crosses = [self._crossed(a, b, self.value(self.present(b))) for a in arguments for b in other.arguments]
            shared = tuple((i, j) for _, i, j in joint(law, other) if i is not None and j is not None)
        else:
            there = Ref(self._history(other))
            crosses = [
                self._crossed(a, b, self.past(b)) if site.traits else self.with_past(a, b)
                for a in arguments
                for b in other.arguments
            ]
        shape = covariance.shape if site.traits else (law.own.labels, shape_of(there)[0])
        laws = (self._law(law), self.known[law], self._law(other), there)
        more = (*((shared,) if shared or site.traits else ()), *self._in(site))
        call = Call("residuals", (self.nodes, *laws, tuple(crosses), *more), shape)
        when = self.time if law.own.timed else 0
        places = self.place[law.own], self.place[other.own]
        put = Call("put", (covariance, places[0], when, places[1], column, call), covariance.shape)
        self.lines.append(Let(covariance, put))

    def _crossed(self, a: FieldAt, b: Field, rows: Value) -> Value:
        """Means of products of a value with another field, whose rows are given; group by group where there are any."""
        site = self.home[b.sector]
        if site.traits:
            return Call("overlaps_each", (self.dual(a, b, True), rows, site.symbol), None)
        return MatMul(self.dual(a, b), Transposed(rows))

    # -- averages

    def column(self, average: Mean) -> Value:
        parts, shape = self.laws.average(average), (labels_in(average), sp.S.One)
        terms: list[tuple[Formula, Value]] = []
        for term in sp.Add.make_args(sp.expand(average.expression)):
            coefficient, core = factors(term)
            pair = product_of(core)
            if pair is not None:
                number, of_traits = split_traits(coefficient)
                terms.append((self._factor(number), self._product(*self._later_first(*pair), of_traits)))
        for coefficient, value in parts.linear:
            number, of_traits = split_traits(coefficient)
            terms.append((self._factor(number), self._product(value, self._one(value.field.sector), of_traits)))
        for coefficient, law in parts.laws:
            number, of_traits = split_traits(coefficient)
            grams, at, numbers = self._moments(law)
            call = Call("average", (self.nodes, self._law(law), grams, at, numbers), (self._lines(law), sp.S.One))
            terms.append((self._factor(number), self._over_groups(call, of_traits, law.own)))
        for part in sp.Add.make_args(parts.number):
            plain, of_traits = split_traits(part)
            if of_traits != 1:
                moment = Call("column_of", (self._moment(Mean(of_traits)),), (sp.S.One, sp.S.One))
                terms.append((self._factor(plain), moment))
            elif part != 0:
                number = Call("columns", ((self._factor(part),), labels_in(part)), None)
                terms.append((ONE, number))
        return Sum(tuple(terms), shape)

    def _over_groups(self, column: Call, of_traits: sp.Expr, like: Field) -> Call:
        """A mean over the groups of sites, each times a function of its traits, as a column over labels."""
        site = self.home[like.sector]
        if not site.traits:
            return column
        given = {trait(): Symbol(trait.name, (_groups(site),)) for trait, _, _ in site.traits}
        body = Formula(of_traits.xreplace({v: Slot(Ref(s), s.hint) for v, s in given.items()}), None)
        factor = Function(tuple(given.values()), body)
        return Call("over_groups", (site.symbol, column, factor), (like.labels, sp.S.One))

    def _product(self, a: FieldAt, b: FieldAt, of_traits: sp.Expr) -> Call:
        lines = a.field.labels if a.field.labelled else b.field.labels
        seen = self._weighed(self.dual(a, b.field), of_traits)
        return Call("products", (seen, self.value(b)), (lines, sp.S.One))

    def _mean_tables(self) -> list[tuple[Symbol, Mean]]:
        """At the end of a step: also means that are no sums of products are written down."""
        if self.clock is not None:
            for average, parts in list(self.laws.averages.items()):
                if _plain(parts) or not _timed(average):
                    continue
                symbol = Symbol("followed", (self.length, labels_in(average)))
                self.followed[average] = symbol
                row = Transposed(self.column(average))
                self.lines.append(Let(symbol, Call("store", (symbol, row, self.time), symbol.shape)))
        return super()._mean_tables()

    def _table(self, average: Mean) -> Value:
        moved = average.xreplace({PAST: self.clock}) if self.clock is not None else average
        if is_moment(moved):
            return super()._table(moved)
        if _plain(self.laws.average(moved)):
            return super()._table(moved)
        if moved in self.followed:
            return Ref(self.followed[moved])
        return Transposed(self.column(moved))


def _groups(site: SiteLayout) -> Slot:
    """How many groups of sites there are."""
    return Slot(Attribute(site.symbol, "groups"), f"groups of {site.sector}")


def _plain(parts: Parts) -> bool:
    """Whether a mean is a sum of means of products of two values."""
    return not parts.linear and not parts.laws and parts.number == 0


def _timed(average: Mean) -> bool:
    return any(v.time is not None for v in fields_of(average.expression))
