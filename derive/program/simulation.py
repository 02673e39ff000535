"""Lowering of a declaration to a finite-size simulation: draw the disorder, run the equations as declared.

It reads the declaration alone; the derivation only resolves ties in the order of fields at equal times. A vector has
the shape sites x labels, with one label where it has none; a mean over sites has one row. Functions that are called by
name are defined in numerics/runtime/finite_size.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sympy as sp

from derive.errors import DeclarationError, blaming
from derive.language.contents import atoms, expressions
from derive.language.data import Data, DataAt, EntriesAt, RootAt
from derive.language.diagonals import DiagonalMatrix
from derive.language.equations import DeclaredSpectrum, Eq
from derive.language.laws import DrawnLaw
from derive.language.matrices import (
    Disorder,
    DisorderAt,
    Dyad,
    MatrixAtom,
    MatrixExpression,
    ProductOfMatrices,
    SumOfMatrices,
    Weights,
    WeightsAt,
)
from derive.language.model import Model
from derive.language.multiplied import half_product
from derive.language.symbols import Axis, Clock, Sector, labels_along
from derive.language.traits import Trait
from derive.language.traversal import ByKind, outermost
from derive.language.vectors import (
    Apply,
    Each,
    Field,
    FieldAt,
    LabelSelection,
    Mean,
    Mix,
    Project,
    Softmax,
    Total,
    axes_of,
    sector_of,
    shown,
)
from derive.program import nodes as ir
from derive.program.labels import around_axis

RNG, XP = ir.Symbol("rng"), ir.Symbol("xp")
"""The random generator and the array library."""

Span = tuple[sp.Expr | None, sp.Expr | None]
"""A half-open range of times; None without times."""
Direction = tuple[sp.Expr, sp.Expr | None, sp.Expr | None]
"""A vector with its range of times."""
Pair = tuple[Direction, Direction]

LEAVES = (FieldAt, Apply, Project, Mean, Mix, Total, DataAt, sp.Sum)
"""Nodes of the language that are not elementwise arithmetic."""


@dataclass(frozen=True, eq=False)
class AtTime(ir.Value):
    """A field at a time given by a formula."""

    owner: ir.Symbol
    time: ir.Formula
    shape: ir.Shape | None


@dataclass(frozen=True, eq=False)
class OverTimes(ir.Value):
    """The sum of a value over whole numbers in range(low, high)."""

    index: ir.Symbol
    low: ir.Formula
    high: ir.Formula
    value: ir.Value
    shape: ir.Shape | None


@dataclass(frozen=True, eq=False)
class DrawnTrait(ir.Value):
    """The values of a trait at all sites, drawn from its law."""

    trait: Trait
    shape: ir.Shape | None


@dataclass(frozen=True)
class KeptField:
    """A field at all times so far."""

    symbol: ir.Symbol
    shape: ir.Shape


@dataclass(frozen=True)
class Held:
    """A matrix at the current time and, if they are needed, at earlier times, latest first.

    Fresh matrices are drawn at every time.
    """

    symbol: ir.Symbol
    before: tuple[ir.Symbol, ...]
    shape: ir.Shape
    draw: ir.Value | None = None


@dataclass(frozen=True)
class Rule:
    """The update of a field or a matrix at the current time: by its rule, or by an initial value at some times."""

    target: KeptField | Held
    starts: tuple[tuple[int, ir.Value], ...]
    value: ir.Value


@dataclass(frozen=True)
class Columns:
    """A vector at one time, or one column per time in range(low, high)."""

    value: ir.Value
    low: ir.Formula | None = None
    high: ir.Formula | None = None


@dataclass(frozen=True)
class SpikeDirections:
    """Directions of the low-rank terms of a probed matrix (of K for K^T K), by side and sector, and by name the
    matrices between its resolvents.
    """

    half: ir.Value | None
    sides: tuple[tuple[str, Sector, tuple[Columns, ...]], ...]
    between: tuple[tuple[str, ir.Value], ...] = ()


@dataclass(frozen=True)
class SampleNumbers:
    """The memory of one sample, as a count of numbers: permanent, temporary for its matrices, and for their spectra."""

    held: sp.Expr
    working: tuple[sp.Expr, ...]
    spectrum: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class FiniteSizeProgram:
    """The simulation program. `drawn` and `static` precede all times.

    Every time draws fresh matrices and fresh vectors, then runs `step`; `after` runs once if weights are updated after
    the last time of the fields.
    """

    bound: dict[sp.Symbol, ir.Symbol]
    """Program symbols of the declaration's symbols: sizes, time, and the index of a sum."""
    sectors: tuple[tuple[Sector, ir.Symbol], ...]
    clock: Clock | None
    time: ir.Symbol
    drawn: tuple[ir.Let, ...]
    static: tuple[ir.Let, ...]
    kept: tuple[KeptField, ...]
    held: tuple[Held, ...]
    sources: tuple[tuple[KeptField, ir.Value], ...]
    step: tuple[Rule, ...]
    after: tuple[Rule, ...]
    probed: tuple[tuple[str, ir.Value], ...]
    spikes: tuple[tuple[str, SpikeDirections], ...]
    observables: tuple[tuple[str, ir.Value, bool], ...]
    """Name, value, and whether it is recorded at every time."""
    fields: tuple[tuple[str, ir.Symbol], ...]
    """All vectors by their declared names."""
    numbers: SampleNumbers


def finite_size_program(model: Model, order_of_fields: Iterable[Field]) -> FiniteSizeProgram:
    """Return the simulation program of a declaration."""
    return _Build(model, tuple(order_of_fields)).program()


class _Build:
    """Lowers one declaration to a simulation program."""

    def __init__(self, model: Model, order: tuple[Field, ...]):
        self.model = model
        clocks = atoms(model, Clock)
        if len(clocks) > 1:
            raise DeclarationError(
                f"clocks {clocks[0]} and {clocks[1]}: one training clock per model; use one for all fields"
            )
        self.clocks: tuple[Clock, ...] = clocks
        self.time = ir.Symbol(clocks[0].name if clocks else "t", ir.SCALAR)
        self.sectors = tuple((s, ir.Symbol(s.name, ir.SCALAR)) for s in atoms(model, Sector))
        self.bound: dict[sp.Symbol, ir.Symbol] = dict(self.sectors)
        self.bound |= {clock: self.time for clock in clocks}
        self.disorder: tuple[Disorder, ...] = atoms(model, Disorder)
        self.fields: tuple[Field, ...] = atoms(model, Field)
        self.weights: tuple[Weights, ...] = atoms(model, Weights)
        self.symbols = {x: ir.Symbol(x.name, x.shape) for x in (*self.disorder, *self.weights)}
        self.symbols |= {f: ir.Symbol(f.name, None if f.timed else _field_shape(f)) for f in self.fields}
        self.before: dict[sp.Symbol, list[ir.Symbol]] = {}
        self.rules = {e.defined: e for e in model.equations if e.start is None}
        self.starts: dict[sp.Symbol, dict[int, Eq]] = {}
        for e in model.equations:
            if e.start is not None:
                self.starts.setdefault(e.defined, {})[e.start] = e
        self.order = self._scheduled({f: i for i, f in enumerate(order)})

    @property
    def clock(self) -> Clock:
        """The clock of all timed fields and weights."""
        return self.clocks[0]

    def program(self) -> FiniteSizeProgram:
        sources = [f for f in self.fields if f.is_drawn]
        drawn = [ir.Let(self.symbols[d], self._draw(d)) for d in self.disorder if d.fresh is None]
        drawn += [ir.Let(self.symbols[f], self._normal(f)) for f in sources if not f.timed]
        drawn += [ir.Let(self.symbols[f], DrawnTrait(f, _field_shape(f))) for f in self.fields if f.role == "trait"]
        static = [ir.Let(self.symbols[x], self._static(x)) for x in self.order if not x.timed]
        timed = [x for x in self.order if x.timed]
        laws = {x: self._law(x) for x in timed}
        probed = [(label, self.matrix(self._now(probe.matrix))) for label, probe in self.model.probes]
        spikes = [(label, self._beside(probe)) for label, probe in self.model.probes]
        observables = [(name, self._observed(value), _is_timed(value)) for name, value in self.model.observe]
        # only now is it known which matrices are used one time late
        kept = {
            f: KeptField(self.symbols[f], _field_shape(f)) for f in (*timed, *sources) if f.timed and f in self.fields
        }
        held = {
            m: Held(
                self.symbols[m], tuple(self.before.get(m, ())), m.shape, self._draw(m) if m in self.disorder else None
            )
            for m in (*(d for d in self.disorder if d.fresh is not None), *self.weights)
        }
        targets: dict[sp.Symbol, KeptField | Held] = {**kept, **held}
        step = tuple(Rule(targets[x], *laws[x]) for x in timed)
        ends = all(clock.endpoint for clock in self.clocks)
        return FiniteSizeProgram(
            self.bound,
            self.sectors,
            self.clock if self.clocks else None,
            self.time,
            tuple(drawn),
            tuple(static),
            tuple(kept.values()),
            tuple(held.values()),
            tuple((kept[f], self._normal(f)) for f in sources if f.timed),
            step,
            () if ends else tuple(rule for x, rule in zip(timed, step, strict=True) if x in held),
            tuple(probed),
            tuple(spikes),
            tuple(observables),
            tuple((f.name, self.symbols[f]) for f in self.fields if f.role in ("field", "normal")),
            self._numbers(),
        )

    # -- the order of one time

    def _scheduled(self, rank: dict[Field, int]) -> tuple[Field | Weights, ...]:
        """Return fields and weights in an order in which they can be computed at each time; weights come early."""
        fields = [x for x in self.rules if x in self.fields]
        waiting = [*self.weights, *sorted(fields, key=lambda f: (f.timed, rank.get(f, len(rank))))]
        needs = {x: self._needs(x) for x in waiting}
        done: dict[Field | Weights, None] = {}
        while waiting:
            ready = next((x for x in waiting if all(n in done for n in needs[x])), None)
            if ready is None:
                names = ", ".join(str(x) for x in waiting)
                advice = f"an earlier time, such as {self.clock} - 1," if self.clocks else "other fields"
                raise DeclarationError(
                    f"the equations of {names}: each needs another of them at the same time; "
                    f"use {advice} in one of them"
                )
            waiting.remove(ready)
            done[ready] = None
        return tuple(done)

    def _needs(self, x: Field | Weights) -> set[sp.Symbol]:
        """Return the fields and weights at the same time on which the update of x depends."""
        needed: set[sp.Symbol] = set()
        for e in (self.rules[x], *self.starts.get(x, {}).values()):
            with blaming(e):
                needed |= self._needs_of(x, e)
        return needed

    def _needs_of(self, x: Field | Weights, e: Eq) -> set[sp.Symbol]:
        symbols: set[sp.Symbol] = set()
        for part in expressions(e.value):
            for needed, lag in self._lags(part, e):
                if lag < 0:
                    raise DeclarationError(
                        f"the equation of {e.name} at {e.time} needs {needed} at a later time; use earlier times"
                    )
                if lag == 0 and needed in self.rules:
                    symbols.add(needed)
                if lag == 0 and x in self.weights and _is_followed(needed):
                    self._check_last(needed, e)
        return symbols

    def _check_last(self, needed: sp.Symbol, e: Eq) -> None:
        if not self.clock.endpoint and e.start is None:
            raise DeclarationError(
                f"the update of {e.name} at {e.time} needs {needed} at the same time, but with endpoint=False "
                f"fields, fresh matrices and data end before the last update; use {needed} one step earlier"
            )

    @ByKind
    def _lags(self, expression: sp.Basic, e: Eq, limits: tuple[sp.Basic, ...] = ()) -> Iterator[tuple[sp.Symbol, int]]:
        """Yield the fields, matrices and data of an equation, each with its smallest lag."""
        for arg in expression.args:
            yield from self._lags(arg, e, limits)

    @_lags.on(sp.Sum)
    def _lags_in_sum(self, node: sp.Sum, e: Eq, *_: Any) -> Iterator[tuple[sp.Symbol, int]]:
        return self._lags(node.function, e, node.limits[0])

    @_lags.on(FieldAt, WeightsAt, DisorderAt, DataAt)
    def _lag(self, node: sp.Expr, e: Eq, limits: tuple[sp.Basic, ...] = ()) -> Iterator[tuple[sp.Symbol, int]]:
        time = node.time
        if time is None:
            yield node.args[0], 0
            return
        now: dict[sp.Basic, sp.Expr] = {self.clock: e.time} if e.start is not None else {}
        ends = [time.xreplace(now)]
        if limits:
            index, low, high = (limit.xreplace(now) for limit in limits)
            if (high - low).is_negative:
                return  # at this starting time nothing is summed
            ends = [time.xreplace({**now, index: bound}) for bound in (low, high)]
        lags = [sp.expand(e.time - end) for end in ends]
        whole = [int(lag) for lag in lags if lag.is_Integer]
        if not whole:
            raise DeclarationError(
                f"the equation of {e.name} uses {node.args[0]} at {time}; times must be {self.clock}, "
                f"{self.clock} - 1, ... or a sum over earlier times"
            )
        yield node.args[0], min(whole)

    # -- equations

    def _law(self, x: Field | Weights) -> tuple[tuple[tuple[int, ir.Value], ...], ir.Value]:
        """Return the initial values and the update rule at the current time."""
        lower: Callable[[Any], ir.Value] = self.matrix if x in self.weights else partial(self.vector, axes=x.axes)
        starts = tuple(
            (first, lower(self._at_start(e.value, first))) for first, e in sorted(self.starts.get(x, {}).items())
        )
        e = self.rules[x]
        shift = e.time - self.clock
        return starts, lower(_mapped(e.value, lambda part: part.xreplace({self.clock: self.clock - shift})))

    def _at_start(self, value: sp.Expr | MatrixExpression, first: int) -> sp.Expr | MatrixExpression:
        """Return an equation at a fixed time, with times of matrices relative to the clock."""

        def at(part: sp.Basic) -> sp.Basic:
            fixed = part.xreplace({self.clock: sp.Integer(first)})
            relative = {
                node: node.func(node.args[0], self.clock + (node.time - first))
                for node in fixed.atoms(WeightsAt, DisorderAt)
            }
            return fixed.xreplace(relative)

        return _mapped(value, at)

    def _now(self, matrix: MatrixExpression) -> MatrixExpression:
        """Return a probed matrix at the current time, which replaces the last time of the declaration."""
        if not self.clocks:
            return matrix

        def at(part: sp.Basic) -> sp.Basic:
            moved = {}
            for node in part.atoms(FieldAt, WeightsAt, DataAt):
                if node.time is None:
                    continue
                moved[node] = node.func(node.args[0], node.time.xreplace({self.clock.steps: self.clock}))
                late = sp.expand(self.clock - moved[node].time)
                if not isinstance(node, WeightsAt) and not self.clock.endpoint and not late.is_positive:
                    raise DeclarationError(
                        f"the probed matrix uses {shown(node)}, but with endpoint=False fields end before the last "
                        f"update; use {node.args[0]}({self.clock.steps - 1})"
                    )
            return part.xreplace(moved)

        return matrix.mapped(at)

    def _static(self, field: Field) -> ir.Value:
        value = self.vector(self.rules[field].value, field.axes)
        shape = _field_shape(field)
        if value.shape == shape:
            return value
        return ir.Call("filled", (value, *shape), shape)

    # -- draws

    def _draw(self, d: Disorder) -> ir.Value:
        rows, columns = d.shape
        if d.symmetric:
            return ir.Call("goe", (RNG, XP, rows, d.variance), d.shape)
        return _scaled(sp.sqrt(d.variance), ir.Call("gaussian", (RNG, XP, rows, columns), d.shape))

    def _normal(self, field: Field) -> ir.Value:
        shape = _field_shape(field)
        axes = shape if field.labelled else shape[:1]
        if field.role != "normal":
            return ir.Call("drawn_from", (RNG, XP, _law(field.law), *axes), shape)
        return _scaled(field.scale, ir.Call("normal", (RNG, XP, *axes), shape))

    # -- expressions

    def vector(self, expression: sp.Expr, axes: tuple[Axis, ...] | None = None) -> ir.Value:
        """Return an elementwise expression over sites and labels, along all given axes if it has labels."""
        own = axes_of(expression)
        wide = own if axes is None or not own else axes
        shape = (sector_of(expression) or sp.S.One, labels_along(wide))
        return self._formula(expression, lambda node: self._along(node, wide), shape)

    def _along(self, node: sp.Basic, axes: tuple[Axis, ...]) -> ir.Value:
        """Return a node broadcast along the axes that it lacks."""
        value, own = self._leaf(node), axes_of(node)
        if not own or own == axes:
            return value
        shown_sizes = (tuple(axis.size if axis in own else sp.S.One for axis in axes), (axis.size for axis in axes))
        return ir.Call("repeated", (XP, value, *map(tuple, shown_sizes)), (_shape(node)[0], labels_along(axes)))

    def number(self, expression: sp.Expr) -> ir.Value:
        """Return a number; outside total(...) labels are averaged before the formula is applied."""
        return self._formula(expression, self._number_leaf, ir.SCALAR)

    def _formula(self, expression: sp.Expr, leaf: Callable[[sp.Basic], ir.Value], shape: ir.Shape) -> ir.Value:
        slots = {node: ir.Slot(leaf(node), shown(node)) for node in outermost(expression, LEAVES)}
        plain = sp.sympify(expression).xreplace(slots)
        return plain.value if isinstance(plain, ir.Slot) else ir.Formula(plain, shape if slots else ir.SCALAR)

    @ByKind
    def _number_leaf(self, node: sp.Basic) -> ir.Value:
        raise DeclarationError(f"{shown(node)} is not allowed where numbers are expected")

    @_number_leaf.on(Total)
    def _total_number(self, node: Total) -> ir.Value:
        return ir.Call("total_number", (self.vector(node.expression),), ir.SCALAR)

    @_number_leaf.on(Mean)
    def _average(self, node: Mean) -> ir.Value:
        return ir.Call("average", (self.vector(node.expression),), ir.SCALAR)

    @_number_leaf.on(sp.Sum)
    def _number_over_times(self, node: sp.Sum) -> ir.Value:
        return self._over_times(node, self.number(node.function), ir.SCALAR)

    @ByKind
    def _leaf(self, node: sp.Basic) -> ir.Value:
        raise AssertionError(f"{type(node).__name__} is not a vector of the language")

    @_leaf.on(FieldAt)
    def _field(self, node: FieldAt) -> ir.Value:
        symbol = self.symbols[node.field]
        return ir.Ref(symbol) if node.time is None else AtTime(symbol, ir.Formula(node.time), _shape(node))

    @_leaf.on(Apply)
    def _applied(self, node: Apply) -> ir.Value:
        return ir.MatMul(self._operator(node.matrix, node.transposed), self.vector(node.vector))

    @_leaf.on(Project)
    def _projected(self, node: Project) -> ir.Value:
        return ir.Call("project", tuple(map(self.vector, node.args)), _shape(node))

    @_leaf.on(Mean)
    def _mean(self, node: Mean) -> ir.Value:
        return ir.Call("mean", (self.vector(node.expression),), _shape(node))

    @_leaf.on(Softmax)
    def _softmax(self, node: Softmax) -> ir.Value:
        return ir.Call("softmax", (XP, self.vector(node.expression), *around_axis(node)), _shape(node))

    @_leaf.on(Total)
    def _total(self, node: Total) -> ir.Value:
        name, places = ("total_along", around_axis(node)) if axes_of(node) else ("total", ())
        return ir.Call(name, (self.vector(node.expression), *places), _shape(node))

    @_leaf.on(EntriesAt)
    def _entries(self, node: EntriesAt) -> ir.Value:
        return ir.Call("by_pair", (self._given(node), int(node.turned)), _shape(node))

    @_leaf.on(sp.Sum)
    def _vector_over_times(self, node: sp.Sum) -> ir.Value:
        return self._over_times(node, self.vector(node.function), _shape(node))

    @_leaf.on(Mix)
    def _mix(self, node: Mix) -> ir.Value:
        return self._tabled(node.table, node)

    @ByKind
    def _tabled(self, table: sp.Basic, node: Mix) -> ir.Value:
        """Return a table of data times a vector."""
        if len(axes_of(node.vector)) > 1:
            return self._mixed(node, _shape(node))
        array = self._given(table)
        return ir.MatMul(self.vector(node.vector), array if node.transposed else ir.Transposed(array))

    @_tabled.on(LabelSelection)
    def _selected(self, table: LabelSelection, node: Mix) -> ir.Value:
        columns = tuple(axis.size for axis in table.columns)
        order = tuple(table.named.index(axis) for axis in table.rows)
        return ir.Call("in_order", (self.vector(node.vector), columns, order), _shape(node))

    def _mixed(self, node: Mix, shape: ir.Shape) -> ir.Value:
        """Return a table times a vector that has other axes besides that of the table's columns."""
        rows, columns = node.table.data.axes[:: -1 if node.transposed else 1]
        axes, table = axes_of(node.vector), self._given(node.table)
        result = (*(axis for axis in axes if axis != columns), rows)
        sizes, order = tuple(axis.size for axis in axes), tuple(result.index(axis) for axis in axes_of(node))
        turned = ir.Transposed(table) if node.transposed else table
        return ir.Call("mixed_along", (XP, self.vector(node.vector), turned, sizes, axes.index(columns), order), shape)

    def _over_times(self, node: sp.Sum, value: ir.Value, shape: ir.Shape) -> ir.Value:
        ((index, low, high),) = node.limits
        counted = self.bound.setdefault(index, ir.Symbol(index.name, ir.SCALAR))
        return OverTimes(counted, ir.Formula(low), ir.Formula(high + 1), value, shape)

    @_leaf.on(DataAt)
    def _data(self, node: DataAt) -> ir.Value:
        return self._given(node)

    @ByKind
    def _given(self, node: DataAt) -> ir.Value:
        data: Data = node.data
        sizes = tuple(axis.size for axis in data.axes)
        shape = sizes if len(sizes) == 2 else (sp.S.One, *sizes)
        array = ir.Formula(data, None)
        return ir.Call("given", (array,) if node.time is None else (array, node.time), shape)

    @_given.on(RootAt)
    def _root(self, node: RootAt) -> ir.Value:
        array = _Build._given.default(self, node)
        return ir.Call("root", (array,), array.shape)

    def _operator(self, symbol: sp.Basic, transposed: bool) -> ir.Value:
        """Return a random matrix or weights at the current or the previous time."""
        matrix = ir.Ref(self._at_lag(symbol))
        return ir.Transposed(matrix) if transposed else matrix

    def _at_lag(self, symbol: sp.Basic) -> ir.Symbol:
        if symbol in self.symbols:
            return self.symbols[symbol]
        owner = symbol.args[0]
        lag = sp.expand(self.clock - symbol.time)
        assert lag.is_Integer and lag >= 0, "a declaration uses matrices at the same time or whole steps before"
        earlier = self.before.setdefault(owner, []) if lag else []
        while len(earlier) < lag:
            earlier.append(ir.Symbol(f"{owner.name}_before{f'_{len(earlier) + 1}' if earlier else ''}", owner.shape))
        return earlier[int(lag) - 1] if lag else self.symbols[owner]

    @ByKind
    def matrix(self, matrix: MatrixExpression) -> ir.Value:
        raise AssertionError(f"{matrix} is not a matrix of the language")

    @matrix.on(SumOfMatrices)
    def _summed(self, matrix: SumOfMatrices) -> ir.Value:
        terms = tuple((_as_formula(self.number(scale)), self.matrix(part)) for scale, part in matrix.terms)
        return ir.WeightedSum(terms, (matrix.rows, matrix.columns))

    @matrix.on(ProductOfMatrices)
    def _product(self, matrix: ProductOfMatrices) -> ir.Value:
        return self._multiplied(matrix.factors)

    @matrix.on(Dyad)
    def _dyad(self, matrix: Dyad) -> ir.Value:
        sides = (self.vector(matrix.left), self.vector(matrix.right))
        return ir.Call("outer", sides, (matrix.rows, matrix.columns))

    @matrix.on(DiagonalMatrix)
    def _diagonal(self, matrix: DiagonalMatrix) -> ir.Value:
        return ir.Call("diagonal_matrix", (self.vector(matrix.entries),), (matrix.rows, matrix.columns))

    @matrix.on(MatrixAtom)
    def _atom(self, matrix: MatrixAtom) -> ir.Value:
        return self._operator(matrix.symbol, matrix.transposed)

    def _multiplied(self, factors: tuple[MatrixExpression, ...]) -> ir.Value:
        """Return a product evaluated from the left; a diagonal matrix scales rows or columns."""
        first, *rest = factors
        if isinstance(first, DiagonalMatrix) and rest:
            after, *rest = rest
            if isinstance(after, DiagonalMatrix):
                return self._multiplied((DiagonalMatrix(first.rows, first.rows, first.entries * after.entries), *rest))
            product: ir.Value = ir.Call(
                "scaled_rows", (self.vector(first.entries), self.matrix(after)), (first.rows, after.columns)
            )
        else:
            product = self.matrix(first)
        for factor in rest:
            product = self._times(factor, product, first.rows)
        return product

    @ByKind
    def _times(self, factor: MatrixExpression, product: ir.Value, rows: sp.Expr) -> ir.Value:
        """Return a product times one more factor."""
        return ir.MatMul(product, self.matrix(factor))

    @_times.on(DiagonalMatrix)
    def _scaled_columns(self, factor: DiagonalMatrix, product: ir.Value, rows: sp.Expr) -> ir.Value:
        return ir.Call("scaled_columns", (product, self.vector(factor.entries)), (rows, factor.columns))

    def _observed(self, value: sp.Expr) -> ir.Value:
        if isinstance(value, Each):
            axes = axes_of(value.expression)
            sizes = (axis.size for axis in axes) if len(axes) > 1 else ()
            return ir.Call("by_label", (self.vector(value.expression), *sizes), None)
        return self.number(value)

    # -- directions of the spikes

    def _beside(self, probe: DeclaredSpectrum) -> SpikeDirections:
        """Return the directions for the alignments of a probe, and the matrices between its resolvents."""
        between = tuple((name, self.matrix(self._now(matrix))) for name, matrix in probe.between)
        return replace(self._spikes(self._now(probe.matrix)), between=between)

    def _spikes(self, matrix: MatrixExpression) -> SpikeDirections:
        half = half_product(matrix)
        if not half:
            # low-rank terms of the leftmost factor add to the random part of an eigenvector
            directions = [a for _, part in matrix.as_sum for a, _ in self._dyads(part.as_product[0])]
            return SpikeDirections(None, self._sides({"right": (matrix.rows, directions)}))
        factors = matrix.as_sum[0][1].as_product
        first, last = factors[half], factors[-1]
        sides = {
            "right": (last.columns, [b for _, b in self._dyads(last)]),
            "left": (first.rows, [a for a, _ in self._dyads(first)]),
        }
        return SpikeDirections(
            self.matrix(ProductOfMatrices(first.rows, last.columns, factors[half:])), self._sides(sides)
        )

    def _sides(
        self, sides: dict[str, tuple[Sector, list[Direction]]]
    ) -> tuple[tuple[str, Sector, tuple[Columns, ...]], ...]:
        return tuple(
            (side, sector, tuple(self._columns(*each) for each in dict.fromkeys(found)))
            for side, (sector, found) in sides.items()
            if found
        )

    def _columns(self, vector: sp.Expr, low: sp.Expr | None, high: sp.Expr | None) -> Columns:
        value = self.vector(vector)
        return Columns(value) if low is None else Columns(value, ir.Formula(low), ir.Formula(high))

    @ByKind
    def _dyads(
        self, matrix: MatrixExpression, seen: tuple[Weights, ...] = (), times: Span = (None, None)
    ) -> list[Pair]:
        """Return left and right directions of the low-rank terms of a matrix, each with its times."""
        return []

    @_dyads.on(Dyad)
    def _dyad_alone(self, matrix: Dyad, _: tuple[Weights, ...] = (), times: Span = (None, None)) -> list[Pair]:
        sides = (matrix.left, matrix.right)
        left, right = ((s, *(times if s.atoms(Clock) else (None, None))) for s in sides)
        return [(left, right)]

    @_dyads.on(SumOfMatrices)
    def _dyads_of_sum(self, matrix: SumOfMatrices, *more: Any) -> list[Pair]:
        return [pair for _, part in matrix.terms for pair in self._dyads(part, *more)]

    @_dyads.on(MatrixAtom)
    def _dyads_of_weights(
        self, matrix: MatrixAtom, seen: tuple[Weights, ...] = (), _: Span = (None, None)
    ) -> list[Pair]:
        weights = matrix.symbol.args[0] if matrix.symbol.args else None  # a random matrix without a time has none
        if weights not in self.weights or weights in seen:
            return []
        dyads = []
        for e in (e for e in self.model.equations if e.defined == weights):
            if e.start is not None:
                dyads += self._dyads(self._at_start(e.value, e.start), (*seen, weights))
            else:
                shift = e.time - self.clock
                starts = self.starts.get(weights, {})
                free = next(time for time in range(len(starts) + 1) if time not in starts)
                when = (sp.Max(free - shift, 0), self.clock.steps - shift + 1)
                dyads += self._dyads(e.value, (*seen, weights), when)
        return [(b, a) for a, b in dyads] if matrix.transposed else dyads

    # -- how much a sample holds

    def _numbers(self) -> SampleNumbers:
        held = [(3 if d.symmetric or d.fresh else 1) * d.rows * d.columns for d in self.disorder]
        held += [3 * w.shape[0] * w.shape[1] for w in self.weights]
        held += [sp.Mul(*_field_shape(f)) * (f.clock.points if f.timed else 1) for f in self.fields]
        matrices = [matrix for _, probe in self.model.probes for matrix in probe.matrices]
        working = sorted({rows * columns for m in matrices for rows, columns in _on_the_way(m)}, key=str)
        spectra = sorted({m.rows * m.columns for m in matrices}, key=str)
        return SampleNumbers(sp.Add(*held), tuple(working), tuple(spectra))


def _shape(expression: sp.Basic) -> ir.Shape:
    """Return the shape sites x labels of a vector; numbers per label and means have one row."""
    return (sector_of(expression) or sp.S.One, labels_along(axes_of(expression)))


def _field_shape(field: Field) -> ir.Shape:
    return (field.sector, field.labels)


def _scaled(scale: sp.Expr, value: ir.Value) -> ir.Value:
    return value if scale == 1 else ir.WeightedSum(((ir.Formula(scale), value),), value.shape)


def _as_formula(value: ir.Value) -> ir.Formula:
    return value if isinstance(value, ir.Formula) else ir.Formula(ir.Slot(value))


def _is_timed(expression: sp.Expr) -> bool:
    return any(node.time is not None for node in expression.atoms(FieldAt, DataAt))


@ByKind
def _is_followed(symbol: sp.Symbol) -> bool:
    """Return whether a symbol has one value per time of the clock."""
    return False


@_is_followed.on(Disorder)
def _(symbol: Disorder) -> bool:
    return True


@_is_followed.on(Data)
def _(symbol: Data) -> bool:
    return symbol.clock is not None


@_is_followed.on(Field)
def _(symbol: Field) -> bool:
    return bool(symbol.timed)


@ByKind
def _mapped(value: sp.Expr, change: Callable[[sp.Basic], sp.Basic]) -> Any:
    """Return a vector or matrix with a function applied to every SymPy expression in it."""
    return change(value)


@_mapped.on(MatrixExpression)
def _(value: MatrixExpression, change: Callable[[sp.Basic], sp.Basic]) -> MatrixExpression:
    return value.mapped(change)


@ByKind
def _on_the_way(matrix: MatrixExpression) -> list[tuple[Sector, Sector]]:
    """Return the shapes of the intermediate matrices when an expression is evaluated from the left."""
    return [(matrix.rows, matrix.columns)]


@_on_the_way.on(MatrixAtom)
def _(matrix: MatrixAtom) -> list[tuple[Sector, Sector]]:
    return []


@_on_the_way.on(SumOfMatrices)
def _(matrix: SumOfMatrices) -> list[tuple[Sector, Sector]]:
    return [*(shape for _, part in matrix.terms for shape in _on_the_way(part)), (matrix.rows, matrix.columns)]


@_on_the_way.on(ProductOfMatrices)
def _(matrix: ProductOfMatrices) -> list[tuple[Sector, Sector]]:
    inner = [shape for factor in matrix.factors for shape in _on_the_way(factor)]
    return [*inner, *((matrix.rows, factor.columns) for factor in matrix.factors[1:])]


@ByKind
def _law(part: sp.Basic) -> Any:
    """Return a law as data: its kind, its numbers and the laws of its parts."""
    return part


@_law.on(DrawnLaw)
def _(law: DrawnLaw) -> tuple[Any, ...]:
    return (ir.Quoted(law.kind), *map(_law, law.args[1:]))


@_law.on(sp.Tuple)
def _(several: sp.Tuple) -> tuple[Any, ...]:
    return tuple(map(_law, several))
