"""Lowering of the training level to a forward pass: one statement per field equation, in causal order.

The program states what is computed. The closure that runs it decides how a vector over sites is represented and how
averages are taken: numerics/runtime/rows.py for exact Gaussian averages, quadrature.py for Gaussian integrals,
samples.py for Monte Carlo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import Noise, at, times_of
from derive.algebra.words import Letter
from derive.equations.gaussian_laws import GaussianLaw, Laws
from derive.equations.layout import Layout, lag_of, mean_key
from derive.equations.needs import Needs
from derive.errors import DeclarationError
from derive.language.data import DataAt, EntriesAt, RootAt
from derive.language.symbols import labels_along
from derive.language.traits import split_traits, traits_in
from derive.language.traversal import ByKind, outermost
from derive.language.vectors import (
    PAST,
    Each,
    Field,
    FieldAt,
    LabelSelection,
    Mean,
    Mix,
    Softmax,
    Total,
    axes_of,
    shown,
)
from derive.printing import text
from derive.printing.documents import comment_of_equation
from derive.printing.of_training import covariance_line
from derive.printing.statements import remembered
from derive.program import nodes as ir
from derive.program.labels import around_axis, selection
from derive.program.recurrences import Coefficients
from derive.records.method import ClosureKind, LabelSymmetry
from derive.records.probe import SampledSiteValues
from derive.records.saddle import NoiseKernel
from derive.records.system import Rule, SystemField, Term, is_moment, quadratic_pairs, weighing

ONE = ir.Formula(sp.S.One)
Key = tuple[str, str, str] | tuple[str, int] | tuple[str, str] | tuple[str, str, str, str]
"""An order parameter: correlation ("C", a, b), response ("R", a, b), mean in a coefficient of updates ("M", i), mean at
one time ("F", i), law of the groups of sites ("S", sector), or means within each group ("W", sector, a, b)."""


@dataclass(frozen=True)
class Series:
    """A number recorded at every time, or once. `axes` are the sizes of its label axes."""

    key: str
    axes: tuple[sp.Expr, ...]
    timed: bool


@dataclass(frozen=True)
class IntegratedLaw:
    """A nonlinear law of Gaussian arguments, with its functions as a value of the program."""

    law: GaussianLaw
    functions: ir.Value


@dataclass(frozen=True)
class TwoTimeTable:
    """Two-time functions by quadrature: the laws in each field, and the functions that cannot be computed, with
    reasons.
    """

    carried: tuple[tuple[Field, tuple[GaussianLaw, ...]], ...] = ()
    refused: tuple[tuple[tuple[str, str, str], str], ...] = ()


@dataclass(frozen=True)
class Forward:
    """The program of a forward pass: `start` runs before the first time, `step` at every time, `order` after the last.

    Attributes:
        tables: coefficients of updated weights without a closed form in time.
        remembered: fields whose values at earlier times are needed.
        idle: fields on which neither order parameters nor observables depend.
        vectors: additional vectors that the closure needs, with their roles.
        meetings: pairs of laws whose correlations are needed, and whether at equal times only.
    """

    layout: Layout
    needs: Needs
    closure: ClosureKind
    responses: str
    laws: Laws | None
    time: ir.Symbol
    coefficients: Coefficients
    tables: tuple[ir.Let, ...]
    start: tuple[ir.Let | ir.Do, ...]
    step: tuple[ir.Let | ir.Do, ...]
    observables: tuple[Series, ...]
    means: tuple[Series, ...]
    kept: tuple[str, ...]
    """Means in sums over earlier times."""
    order: tuple[tuple[Key, ir.Value], ...]
    remembered: tuple[Field, ...]
    idle: frozenset[Field]
    lags: dict[Field, int]
    overlaps: tuple[tuple[str, str], ...] = ()
    """Fields a and b whose C[a, b] of the previous time occurs in a sum over earlier times."""
    vectors: tuple[tuple[Field, str], ...] = ()
    integrands: tuple[IntegratedLaw, ...] = ()
    meetings: tuple[tuple[GaussianLaw, GaussianLaw, bool], ...] = ()
    two_time: TwoTimeTable = TwoTimeTable()
    labels: LabelSymmetry | None = None


class Lowering:
    """Lowers the single-site equations with exact averages; other closures override nonlinear laws and means."""

    closure = ClosureKind.EXACT

    def __init__(self, layout: Layout, needs: Needs, laws: Laws | None, responses: str):
        self.layout, self.needs, self.laws, self.responses = layout, needs, laws, responses
        self.clock = layout.clock
        self.time = ir.Symbol("t" if self.clock is None else self.clock.name, ir.SCALAR)
        self.now_slot = ir.Slot(ir.Ref(self.time), self.time.hint)
        self.coefficients = Coefficients(layout)
        self.rules = {f.field: f for f in layout.fields}
        self.done: dict[Field, ir.Symbol] = {}
        """Fields computed at the current time."""
        self.kept: dict[sp.Expr, str] = {}
        """Names of the means in sums over earlier times, by expression."""
        self.remembered: dict[Field, None] = {}
        self.lags: dict[Field, int] = {}
        """Largest lag of each field outside sums."""
        self.overlaps: dict[tuple[str, str], None] = {}
        self.lines: list[ir.Let | ir.Do] = []

    # -- the whole

    def program(self) -> Forward:
        """Return the forward pass."""
        for f in self.layout.fields:
            if not f.field.timed:
                self._field(f)
        if self.clock is None:
            means, observables = self._followed(), self._observed()
        start, self.lines, self.done = tuple(self.lines), [], {}
        if self.clock is not None:
            for f in self.layout.fields:
                if f.field.timed:
                    self._field(f)
            means, observables = self._followed(), self._observed()
            for average, key in self.kept.items():
                self.lines.append(ir.Do(ir.Op("keep", (ir.Quoted(key), self.number(average)))))
        step, self.lines = tuple(self.lines), []
        order = self._order()
        used = dict.fromkeys(symbol for symbol in self.coefficients.tables.values())
        return Forward(
            self.layout,
            self.needs,
            self.closure,
            self.responses,
            self.laws,
            self.time,
            self.coefficients,
            self.coefficients.statements(used),
            start,
            step,
            observables,
            means,
            tuple(self.kept.values()),
            order,
            self._remembered(),
            self._idle(),
            self.lags,
            tuple(self.overlaps),
        )

    def _remembered(self) -> tuple[Field, ...]:
        """Return the fields whose past is needed."""
        return tuple(f.field for f in self.layout.fields if f.field in self.remembered)

    def _idle(self) -> frozenset[Field]:
        """Return the fields on which no result depends."""
        waiting = {f for x in self.needs.letters for f in (x.a, x.b)}
        waiting |= {f for table in self.needs.tables for _, f in (table.left, table.right)}
        observed = [value for _, value in self.layout.system.model.observe]
        results = [*observed, *self.needs.means, *(v for sites in self.needs.sites for v in sites.values)]
        waiting |= {value.field for expression in results for value in sp.sympify(expression).atoms(FieldAt)}
        needed: set[Field] = set()
        while waiting:
            field = waiting.pop()
            if field in needed or field not in self.rules:
                continue
            needed.add(field)
            waiting |= self._needed_by(self.rules[field])
        return frozenset(set(self.rules) - needed)

    def _needed_by(self, f: SystemField) -> set[Field]:
        fields: set[Field] = set()
        for rule in f.rules:
            if rule.product is not None:
                fields.add(rule.product.argument)
            else:
                fields |= {value.field for value in rule.expression(f.time).atoms(FieldAt)}
        for m in self.layout.memories(f.field):
            fields |= {m.a, m.on, m.noise} | {v.field for v in m.coefficient.atoms(FieldAt)}
        for c in self.layout.covariances(f.field):
            fields |= {c.a, c.b} | {v.field for v in c.coefficient.atoms(FieldAt)}
        return fields

    # -- numbers

    def number(self, expression: sp.Expr) -> ir.Formula:
        """Return a number at the current time; it has one entry per label, or per site, if it depends on labels or
        traits.
        """
        return self.formula(sp.sympify(expression))

    def formula(
        self, expression: sp.Expr, slots: dict[FieldAt, ir.Slot] | None = None, when: ir.Slot | None = None
    ) -> ir.Formula:
        """Return arithmetic of values, means, data and coefficients at the current time.

        Args:
            slots: values by the node that they replace.
            when: the symbol of the earlier times in a sum over the past.
        """
        inner: dict[sp.Basic, sp.Expr] = dict(slots or {})
        for node in outermost(expression, (FieldAt, Mean, AppliedUndef, DataAt, Mix, Total)):
            if node in inner:
                continue
            inner[node] = self.leaf(node)
        moved: dict[sp.Basic, sp.Expr] = {} if when is None else {PAST: when}
        if self.clock is not None:
            moved[self.clock] = self.now_slot
        return ir.Formula(expression.xreplace(inner).xreplace(moved), None)

    def leaf(self, node: sp.Basic) -> sp.Expr:
        """Return a slot for a node that is not arithmetic."""
        return self._of_past(node) if node.has(PAST) else self._leaf(node)

    @ByKind
    def _leaf(self, node: sp.Basic) -> sp.Expr:
        raise AssertionError(f"{type(node).__name__} is not allowed where numbers and vectors are expected")

    @ByKind
    def _of_past(self, node: sp.Basic) -> sp.Expr:
        return self._leaf(node)

    @_of_past.on(Mean, Mix, Total)
    def _kept_number(self, node: sp.Expr) -> ir.Slot:
        return ir.Slot(ir.Op("kept", (ir.Quoted(self._kept(node)),)), shown(node))

    @_leaf.on(AppliedUndef)
    def _coefficient(self, node: AppliedUndef) -> ir.Slot:
        recurrence, position = self.coefficients.owners[node.func.__name__]
        function = "coefficient" if recurrence.initial else "coefficients"
        taken = (self.coefficients.tables[recurrence], self.number(node.args[0]), position)
        return ir.Slot(ir.Op(function, taken), str(node.func))

    @_leaf.on(Mean)
    def _mean_leaf(self, node: Mean) -> sp.Expr:
        return self._mean(node)

    @_leaf.on(FieldAt)
    def _field_leaf(self, node: FieldAt) -> ir.Slot:
        return ir.Slot(self.value(node), shown(node))

    @_leaf.on(DataAt)
    def _data(self, node: DataAt) -> ir.Slot:
        return ir.Slot(ir.Op("data", (ir.Formula(node.data, None), *self._when(node))), shown(node))

    @_leaf.on(EntriesAt)
    def _entries(self, node: EntriesAt) -> ir.Slot:
        return ir.Slot(
            ir.Op("entries", (ir.Formula(node.data, None), int(node.turned), *self._when(node))), shown(node)
        )

    @_leaf.on(Mix)
    def _mix(self, node: Mix) -> ir.Slot:
        table = self.table(node.table)
        return ir.Slot(ir.Op("mixed", (table, self.number(node.vector), int(node.transposed))), shown(node))

    @_leaf.on(Softmax)
    def _softmax(self, node: Softmax) -> ir.Slot:
        return ir.Slot(ir.Op("softmax", (self.number(node.expression), *around_axis(node))), shown(node))

    @_leaf.on(Total)
    def _total(self, node: Total) -> ir.Slot:
        return ir.Slot(ir.Op("total", (self.number(node.expression),)), shown(node))

    @ByKind
    def table(self, node: DataAt) -> ir.Op:
        """Return data as a matrix that acts on labels."""
        return ir.Op("table", (ir.Formula(node.data, None), *self._when(node)))

    @table.on(RootAt)
    def _root(self, node: RootAt) -> ir.Op:
        return ir.Op("root", (ir.Formula(node.data, None), *self._when(node)))

    @table.on(LabelSelection)
    def _selection(self, node: LabelSelection) -> ir.Op:
        return ir.Op("selection", selection(node).arguments)

    def _when(self, node: DataAt) -> tuple[Any, ...]:
        """Return the time of a data array: none, a lag, or a fixed time."""
        if node.time is None:
            return ()
        if self.clock is not None and node.time.has(self.clock):
            return (int(sp.expand(self.clock - node.time)),)
        return (0, self.number(node.time))

    def _kept(self, node: sp.Expr) -> str:
        """Return the name under which a mean is stored at all times, for sums over earlier times."""
        if axes_of(node):
            raise DeclarationError(
                f"{shown(node)}: a sum over earlier times contains a mean of fields with labels; give the vector "
                "times that mean a field of its own"
            )
        return self.kept.setdefault(node.xreplace({PAST: self.clock}), f"mean{len(self.kept)}")

    def _mean(self, average: Mean) -> sp.Expr:
        if is_moment(average):
            return self._moment(average)
        return ir.Slot(ir.Op("mean", (self._averaged(average), int(bool(axes_of(average))))), shown(average))

    def _moment(self, average: Mean) -> sp.Expr:
        """Return a mean of a function of traits alone."""
        traits = [value.field for value in traits_in(average.expression)]
        bound = {trait(): ir.Symbol(trait.name, ir.SCALAR) for trait in traits}
        slots = {value: ir.Slot(ir.Ref(symbol), symbol.hint) for value, symbol in bound.items()}
        function = ir.Function(tuple(bound.values()), self.formula(average.expression, slots=slots))
        names = tuple(ir.Quoted(trait.name) for trait in traits)
        return ir.Slot(ir.Op("moment", (ir.Quoted(traits[0].sector.name), function, *names)), shown(average))

    def _averaged(self, average: Mean) -> ir.Value:
        """Return the argument of a mean as products of two vectors with coefficients."""
        pairs = quadratic_pairs(average)
        if pairs is None:
            raise DeclarationError(f"{shown(average)} is not quadratic, so the exact pass cannot average it")
        return ir.WeightedSum(tuple((ONE, self._product(c, a, b)) for c, a, b in pairs), None)

    def _product(self, coefficient: sp.Expr, a: FieldAt, b: FieldAt) -> ir.SiteProduct:
        first, last = sorted((a, b), key=lambda v: (-self.lag(v), self.layout.rank.get(v.field, -1)))
        # the value that is known later comes first: its covariances with all others are known then
        return ir.SiteProduct(self.number(coefficient), (self.value(last), self.value(first)))

    # -- vectors

    def lag(self, value: FieldAt) -> int:
        """Return the number of steps by which a value precedes the current time."""
        lag = lag_of(value, self.clock)
        if lag < 0:
            raise DeclarationError(f"{shown(value)} lies in the future of the equation that uses it")
        return lag

    def present(self, field: Field) -> FieldAt:
        """Return a field at the current time."""
        return field(self.clock) if field.timed else field()

    def value(self, value: FieldAt) -> ir.Value:
        """Return a vector over sites: a field at the current or an earlier time, a drawn vector, or a trait."""
        field, lag = value.field, self.lag(value)
        if field.role == "trait":
            return ir.Op("trait", (ir.Quoted(field.name),))
        if field.role in ("normal", "constant"):
            return ir.Op("drawn", (ir.Quoted(field.name), *((lag,) if lag else ())))
        if lag:
            self.lags[field] = max(self.lags.get(field, 0), lag)
            return ir.Op("earlier", (ir.Quoted(field.name), lag))
        if not field.timed and self.clock is not None and field not in self.done:
            return ir.Op("value", (ir.Quoted(field.name),))
        if field not in self.done:
            raise DeclarationError(f"{shown(value)} is needed before it is computed; use it one step earlier")
        return ir.Ref(self.done[field])

    def _field(self, f: SystemField) -> None:
        value = self._put(f)
        symbol = self.done[f.field] = ir.Symbol(f.field.name)
        remark = "\n".join((*equations_of(self.layout, f), *self._noises(f)))
        self.lines.append(ir.Let(symbol, value, remark))

    def _put(self, f: SystemField) -> ir.Op:
        """Return the operation that computes a field, by its rule or its initial values."""
        value = self._rule(f, f.rule)
        if f.starts:
            value = ir.Op("starting", (tuple(self._rule(f, rule) for rule in f.starts), value))
        return ir.Op("put", (ir.Quoted(f.field.name), value))

    def _noises(self, f: SystemField) -> list[str]:
        covariances = () if f.product is None else self.layout.covariances(f.field)
        return [covariance_of(self.layout, c) for c in covariances]

    def _rule(self, f: SystemField, rule: Rule) -> ir.Value:
        if rule.product is not None:
            return self._matrix_product(f)
        if rule.laws:
            return self._law(f, rule)
        terms = [self._term(term, f.field) for term in rule.terms]
        widths = {width for _, _, width in terms} - {sp.S.One}
        if widths - {f.field.labels}:
            wrong = max(widths - {f.field.labels}, key=sp.default_sort_key)
            raise DeclarationError(
                f"the equation of {f.field} has {wrong} labels on its right side; {f.field} has {f.field.labels}"
            )
        return ir.WeightedSum(tuple((factor, value) for factor, value, _ in terms), None)

    def _law(self, f: SystemField, rule: Rule) -> ir.Value:
        raise DeclarationError(f"the law of {f.field} is not linear")

    def _matrix_product(self, f: SystemField) -> ir.Op:
        """Return a random matrix times a field: noise with its covariances, plus memory terms."""
        for c in self.layout.covariances(f.field):
            if not c.fresh:
                self.remembered.setdefault(c.b)
        memories = tuple(self.number(m.coefficient) for m in self.layout.memories(f.field))
        covariances = tuple(self.number(c.coefficient) for c in self.layout.covariances(f.field))
        return ir.Op("product", (ir.Quoted(f.field.name), memories, covariances))

    def _term(self, term: Term, target: Field) -> tuple[ir.Formula, ir.Value, sp.Expr]:
        """Return the factor of a term, the vector multiplied by it, and the number of labels of the product."""
        if term.past is not None:
            return self._past_term(term, target)
        factor, width = self.number(term.coefficient), labels_along(axes_of(term.coefficient))
        value = self.value(term.vector)
        if term.pair is not None:
            left, right = term.pair
            return factor, ir.Op("met", (self.value(right), self.value(left), value)), right.field.labels
        labels = term.vector.field.labels
        if term.mixing is None:
            if labels != 1 and term.vector.field.axes != target.axes:
                raise DeclarationError(
                    f"the equation of {target} uses {term.vector.field}, which has other labels than {target}; "
                    "sum over them"
                )
            return factor, value, labels if labels != 1 else width
        if term.mixing.table is None:
            return factor, ir.Op("total", (value,)), width
        table = self.table(term.mixing.table)
        return factor, ir.Op("mixed", (table, value, int(term.mixing.transposed))), target.labels

    def _past_term(self, term: Term, target: Field) -> tuple[ir.Formula, ir.Value, sp.Expr]:
        """Return a sum over earlier times."""
        vector, reach = term.vector.field, int(sp.expand(sp.sympify(term.past) - self.clock))
        self._check_reach(reach, vector, target)
        coefficient, of_traits = split_traits(term.coefficient)
        if reach > 0:  # the sum includes the current time
            for node in outermost(coefficient, (Mean, Mix, Total)):
                if node.has(PAST):
                    number = self.number(node.xreplace({PAST: self.clock}))
                    self.lines.append(ir.Do(ir.Op("keep", (ir.Quoted(self._kept(node)), number))))
        weight: ir.Value = self.formula(coefficient)
        if coefficient.has(PAST):
            when = ir.Symbol("s", ir.SCALAR)
            weight = ir.Function((when,), self.formula(coefficient, when=ir.Slot(ir.Ref(when), "s")))
        self.remembered.setdefault(vector)
        if term.pair is None:
            arguments: tuple[Any, ...] = (ir.Quoted(vector.name), reach, weight)
            return self.number(of_traits), ir.Op("past_sum", arguments), vector.labels
        left, right = term.pair
        self.remembered.setdefault(left.field)
        if self.lag(right) == 1 and right.field in self.rules and left.field in self.rules and left.field.timed:
            self.overlaps.setdefault((right.field.name, left.field.name))
        pair = (ir.Quoted(left.field.name), self.value(right))
        return (
            self.number(of_traits),
            ir.Op("past_sum", (ir.Quoted(vector.name), reach, weight, *pair)),
            right.field.labels,
        )

    def _check_reach(self, reach: int, vector: Field, target: Field) -> None:
        if reach > 0:
            raise DeclarationError(
                f"the equation of {target} sums {vector} up to {self.clock}; use values before {self.clock} only"
            )

    # -- what is recorded

    def _followed(self) -> tuple[Series, ...]:
        """Return the time series of the means in probed matrices, and append the statements that record them."""
        series = []
        for i, average in enumerate(self.needs.means):
            moved, _ = weighing(average, self.clock)
            key = f"{mean_key(average, i, self.clock)[0]} {i}"  # no observable has a space in its name
            timed = self.clock is not None and any(v.time is not None for v in average.atoms(FieldAt))
            series.append(Series(key, (labels_along(axes_of(average)),), timed))
            self.lines.append(ir.Do(ir.Op("record", (ir.Quoted(key), self._recorded(moved)))))
        return tuple(series)

    def _recorded(self, average: sp.Expr) -> ir.Value:
        return self._observable(average) if isinstance(average, Total) else self.number(average)

    def _observed(self) -> tuple[Series, ...]:
        series = []
        for name, value in self.layout.system.model.observe:
            axes = axes_of(value.expression) if isinstance(value, Each) else ()
            timed = self.clock is not None and bool(value.has(self.clock))
            series.append(Series(name, tuple(axis.size for axis in axes), timed))
            op = ir.Op("record", (ir.Quoted(name), self._observable(value)))
            self.lines.append(ir.Do(op, f"{name} = {text(value)}"))
        return tuple(series)

    @ByKind
    def _observable(self, value: sp.Expr) -> ir.Value:
        """Return an observable at the current time, averaged over labels outside total(...) and each(...)."""
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(value, (Mean, Total)):
            number = self.number(node)
            labelled = node in value.atoms(Mean) and bool(axes_of(node))
            inner[node] = ir.Slot(ir.Op("mean_of_labels", (number,)) if labelled else number, shown(node))
        moved = {self.clock: self.now_slot} if self.clock is not None else {}
        return ir.Formula(value.xreplace(inner).xreplace(moved), None)

    @_observable.on(Each)
    def _each(self, value: Each) -> ir.Value:
        return self.number(value.expression)

    # -- order parameters

    def _order(self) -> tuple[tuple[Key, ir.Value], ...]:
        entries: list[tuple[Key, ir.Value]] = [(key_of(x), self._letter(x)) for x in self.needs.letters]
        for i, average in enumerate(self.needs.means):
            key = mean_key(average, i, self.clock)
            entries.append((key, ir.Op("series_before" if key[0] == "M" else "series", (ir.Quoted(f"{key[0]} {i}"),))))
        for sites in self.needs.sites:
            entries.append((sites.key, self._law_of_sites(sites)))
        for table in self.needs.tables:
            self.remembered.update(dict.fromkeys(field for kind, field in (table.left, table.right) if kind == "C"))
            ends = (ir.Quoted(part) for kind, field in (table.left, table.right) for part in (kind, field.name))
            entries.append((table.key, ir.Op("by_value", (ir.Quoted(table.sector.name), *ends))))
        return tuple(entries)

    def _law_of_sites(self, sites: SampledSiteValues) -> ir.Op:
        """Return the values of the diagonal entries in each group of sites, and the weights of the groups."""
        entries = (self.number(entry.function) for entry in sites.entries)
        return ir.Op("law_of_sites", (ir.Quoted(sites.sector.name), *entries))

    def _letter(self, letter: Letter) -> ir.Value:
        covariance = self._known_as_covariance(letter)
        if covariance is not None:
            factor, product = covariance
            value = ir.Op("covariance", (ir.Quoted(product.name),))
            return value if factor == 1 else ir.WeightedSum(((self.number(factor), value),), None)
        self.remembered.setdefault(letter.a)
        if letter.kind == "C":
            self.remembered.setdefault(letter.b)
        when = () if letter.time is None else (self.number(letter.time),)
        names = ir.Quoted(letter.a.name), ir.Quoted(letter.b.name)
        return ir.Op("correlation" if letter.kind == "C" else "response", (*names, *when))

    def _known_as_covariance(self, letter: Letter) -> tuple[sp.Expr, Field] | None:
        """Return the factor and the noise whose covariance equals a correlation; None if there is none.

        The correlations of a random matrix's argument equal the covariance of the noise up to a factor, so they are not
        computed again. Only ratios of sizes, which never vanish, are divided out; for a matrix drawn anew, only equal
        times are known.
        """
        field = letter.a
        if letter.kind != "C" or letter.b != field or letter.time is not None or not field.timed:
            return None
        ratios = {symbol for sector in self.layout.sectors for symbol in sector.ratio.free_symbols}
        for c in self.layout.saddle.covariances:
            if c.left != c.right or c.a != field or c.b != field or c.left not in self.rules:
                continue
            divides = c.coefficient.is_positive and c.coefficient.free_symbols <= ratios
            divides = divides and not c.coefficient.atoms(Mean, AppliedUndef, DataAt, Total)
            if divides and not c.fresh and c.left.labels == field.labels:
                return 1 / c.coefficient, c.left
        return None


def key_of(letter: Letter) -> Key:
    """Return the key of an order parameter."""
    return (letter.kind, *letter.shown)


def equations_of(layout: Layout, f: SystemField) -> list[str]:
    """Return the single-site equations of a field with their numbers: initial values, then the update rule."""
    values = [f.field(first) for first in range(len(f.starts))] if f.field.timed else []
    lines = zip((*values, at(f.field, layout.clock)), (*f.starts, f.rule), strict=True)
    numbering = layout.numbering
    tags = [*(numbering.starts[f.field, k] for k in range(len(f.starts))), numbering.laws[f.field]]
    return [
        f"[{tag}] {comment_of_equation(value, _right_side(layout, value, rule), layout.system)}"
        for tag, (value, rule) in zip(tags, lines, strict=True)
    ]


def _right_side(layout: Layout, value: FieldAt, rule: Rule) -> sp.Expr:
    if rule.product is None:
        return rule.expression(layout.clock)
    noise = Noise(value.field, *times_of(value.field, layout.clock))
    return sp.Add(noise, *(remembered(m) for m in layout.memories(value.field)))


def covariance_of(layout: Layout, covariance: NoiseKernel) -> str:
    """Return the covariance of two noises as a comment with its equation number."""
    line = covariance_line(covariance)
    tag = layout.numbering.covariances[covariance.left, covariance.right]
    return f"[{tag}] {comment_of_equation(line.left, line.right, layout.system)}"
