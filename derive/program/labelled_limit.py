"""Linear laws at all sites as a program: numbers and tables, from which matrices over labels are put together at run
time. For where training with labels comes to rest, and for the step that training applies over and over."""

from __future__ import annotations

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import outermost
from derive.errors import DeclarationError
from derive.language.data import DataAt, EntriesAt, RootAt
from derive.language.symbols import labels_along
from derive.language.vectors import Each, Field, Mean, Mix, Selection, Softmax, Total, axes_of, shown
from derive.program.labels import apart, selection
from derive.program.nodes import SCALAR, Call, Definition, Formula, Record, Ref, Slot, Symbol, Transposed, Tuple, Value
from derive.program.text import PARAMETERS
from derive.program.traits import law_of
from derive.records.limit import LabelledLimit, LinearSites, Part, Recursion
from derive.records.system import Mixing

PLAIN, SUMMED = -1, -2
"""In place of a table: labels stay as they are, or are summed over."""


def labelled_limit_record(limit: LabelledLimit) -> Record:
    """What is joined with what, as plain data, and the functions that give numbers and tables."""
    work = _LimitWork(limit, limit.drives)
    functions = (*work.functions(), work.observing())
    named = {**work.structure(), **work.own_structure(), **{function.name: function for function in functions}}
    return Record("LabelledLimitOf", (), named)


def recursion_record(recursion: Recursion) -> Record:
    """The same for a step of training that is applied over and over."""
    work = _Work(recursion)
    place, number = work.place, work.number_of
    overlaps = {overlap: k for k, overlap in enumerate(recursion.overlaps)}
    own = {
        "instant": tuple(k for k, m in enumerate(recursion.memories) if m.fresh),
        "white": tuple(k for k, c in enumerate(recursion.covariances) if c.fresh),
        "observed": tuple((name, tuple(place[f] for f in fields)) for name, fields in recursion.observed),
        "stirred": tuple(place[f] for f in recursion.stirred),
        "overlaps": tuple(
            (place[o.source], place[o.field], o.delay, number(o.scale * o.source.scale**2)) for o in overlaps
        ),
        "uses": tuple(
            (place[u.target], place[u.source], number(u.coefficient), overlaps[u.overlap])
            for u in recursion.overlap_terms
        ),
        "renewed": tuple(place[source] for source in recursion.sources if source.timed),
    }
    return Record("RecursionOf", (), {**work.structure(), **own, **{f.name: f for f in work.functions()}})


class _Work:
    def __init__(self, linear: LinearSites, drives: tuple[Part, ...] = ()):
        self.linear = linear
        self.place = {field: k for k, field in enumerate((*linear.fields, *linear.sources))}
        self.sectors = tuple(dict.fromkeys(field.sector for field in self.place))
        self.number = {e: k for k, e in enumerate(linear.coefficients)}
        mixings = [part.mixing for part in (*linear.parts, *drives) if part.mixing is not None]
        found = dict.fromkeys(m.table for m in mixings if m.table is not None)
        self.table = {table: k for k, table in enumerate(found)}
        self.values = {trait: Symbol(trait.name, SCALAR) for trait in linear.traits}

    def structure(self) -> dict[str, object]:
        linear, place = self.linear, self.place
        responses = {pair: k for k, pair in enumerate(linear.responses)}
        return {
            "fields": tuple(field.name for field in linear.fields),
            "sources": tuple(field.name for field in linear.sources),
            "sectors": tuple(self.sectors.index(field.sector) for field in self.place),
            "traits": tuple(self.sectors.index(trait.sector) for trait in linear.traits),
            "parts": tuple(map(self.part, linear.parts)),
            "memories": tuple(
                (place[m.target], place[m.on], self.number_of(m.coefficient), responses[m.a, m.noise])
                for m in linear.memories
            ),
            "covariances": tuple(
                (place[c.left], place[c.right], self.number_of(c.coefficient), place[c.a], place[c.b])
                for c in linear.covariances
            ),
            "responses": tuple((place[a], place[noise]) for a, noise in linear.responses),
            "settles": any(not trait.discrete for trait in linear.traits),
        }

    def number_of(self, expression: sp.Expr) -> int:
        return self.number[sp.sympify(expression)]

    def part(self, part: Part) -> tuple[int, ...]:
        table, turned = self._mixing(part.mixing)
        of = self.place[part.of]
        return self.place[part.target], of, self.number_of(part.coefficient), part.delay, part.power, table, turned

    def _mixing(self, mixing: Mixing | None) -> tuple[int, int]:
        if mixing is None:
            return PLAIN, 0
        if mixing.table is None:
            return SUMMED, 0
        return self.table[mixing.table], int(mixing.transposed)

    # -- functions

    def functions(self) -> tuple[Definition, ...]:
        return self.site_laws(), self.sizes(), self.numbers(), self.tables()

    def site_laws(self) -> Definition:
        doc = "The laws of what differs from site to site: values, and the share of the sites that has each."
        nodes = Symbol("nodes", SCALAR)
        laws = Tuple(tuple(law_of(trait, (Ref(nodes),), self._formula) for trait in self.linear.traits))
        return Definition("sites", (PARAMETERS, nodes), doc, (), laws)

    def sizes(self) -> Definition:
        doc = "How many labels each field has, and each of what is drawn."
        return Definition(
            "sizes", (PARAMETERS,), doc, (), Tuple(tuple(Formula(labels_along(f.axes)) for f in self.place))
        )

    def numbers(self) -> Definition:
        doc = "Coefficients at a site: numbers, or columns with one per label."
        found = Tuple(tuple(map(self._formula, self.linear.coefficients)))
        return Definition("numbers", (PARAMETERS, *self.values.values()), doc, (), found)

    def tables(self) -> Definition:
        doc = "Tables that act on labels."
        return Definition("tables", (PARAMETERS,), doc, (), Tuple(tuple(map(_given, self.table))))

    def _formula(self, expression: sp.Expr) -> Formula:
        expression = sp.sympify(expression)
        for node in outermost(expression, (Mean, Mix, Total, AppliedUndef)):
            raise DeclarationError(
                f"the coefficient {shown(expression)} holds {shown(node)}, for which the limit of many steps is not "
                "derived; solve it at a large T"
            )
        slots: dict[sp.Basic, sp.Expr] = {trait(): Slot(Ref(s), trait.name) for trait, s in self.values.items()}
        slots |= {node: Slot(_column(node), shown(node)) for node in expression.atoms(DataAt)}
        return Formula(expression.xreplace(slots), None)


class _LimitWork(_Work):
    """The same with what is drawn and what is observed at rest."""

    def __init__(self, limit: LabelledLimit, drives: tuple[Part, ...]):
        super().__init__(limit, drives)
        self.limit = limit

    def own_structure(self) -> dict[str, object]:
        limit = self.limit
        return {
            "drives": tuple(map(self.part, limit.drives)),
            "scales": tuple(self.number_of(source.scale**2) for source in limit.sources),
            "means": tuple(tuple(map(self._pair, pairs)) for pairs in limit.means),
            "observables": tuple(name for name, _ in limit.observables),
            "forgotten": limit.forgotten,
        }

    def _pair(self, pair: tuple[sp.Expr, Field | None, Field | None]) -> tuple[int, int, int]:
        scale, a, b = pair
        return self.number_of(scale), -1 if a is None else self.place[a], -1 if b is None else self.place[b]

    def observing(self) -> Definition:
        m = Symbol("m")
        symbols = {symbol: Symbol(symbol.name) for symbol, _ in self.limit.mean_symbols}
        rows = {symbol: Slot(Ref(made), symbol.name) for symbol, made in symbols.items()}
        doc = "The observables from the means at rest, which are rows with one number per label."
        found = Tuple(tuple(self._observed(value, rows) for _, value in self.limit.observables))
        unpacked = ((m, tuple(symbols.values())),) if symbols else ()
        return Definition("observing", (PARAMETERS, m), doc, (), found, unpacked)

    def _observed(self, value: sp.Expr, rows: dict[sp.Symbol, Slot]) -> Value:
        """An observable; outside total(...) and each(...) labels are averaged over."""
        means = {symbol: mean for symbol, mean in self.limit.mean_symbols}
        if isinstance(value, Each):
            return apart(self._by_label(value.expression, rows), value.expression.xreplace(means))
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(value, (Total,)):
            summed = Call("total_of_labels", (self._by_label(node.expression, rows),), None)
            inner[node] = Slot(summed, shown(node))
        averaged = {s: Slot(Call("mean_of_labels", (slot.value,), None), s.name) for s, slot in rows.items()}
        return Formula(value.xreplace(inner).xreplace(averaged), None)

    def _by_label(self, expression: sp.Expr, rows: dict[sp.Symbol, Slot]) -> Value:
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(expression, (DataAt, Mix, Softmax, Total)):
            if not isinstance(node, DataAt) or node.time is not None:
                raise DeclarationError(
                    f"an observable holds {shown(node)}, for which the limit of many steps is not derived; leave it out"
                )
            turned = (int(node.turned),) if isinstance(node, EntriesAt) else ()
            inner[node] = Slot(Call("given_series", (Formula(node.data, None), 0, 0, *turned), None), shown(node))
        return Formula(expression.xreplace(inner).xreplace(rows), None)


def _given(node: DataAt | Selection) -> Value:
    if isinstance(node, Selection):
        return selection(node)
    found = Call("given", (Formula(node.data, None), None, 0), None)
    return Call("root", (found,), None) if isinstance(node, RootAt) else found


def _column(node: DataAt) -> Value:
    """Data with one axis, or the entries of a table, as a column."""
    found = _given(node)
    if not isinstance(node, EntriesAt):
        return found
    return Call("listed", (Transposed(found) if node.turned else found,), (labels_along(axes_of(node)), sp.S.One))
