"""Lowering of a probed matrix: A(z), its reduction to an eigenproblem free of z, and the equations of its bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import Z, index_size
from derive.algebra.sites import SiteEntry, SiteNormal, TraitAverage
from derive.algebra.words import Combination, DiagonalFactor, Letter, Weighed, Word
from derive.equations.layout import Layout, mean_key, probe_tag
from derive.equations.needs import squares_of
from derive.equations.wording import as_declared
from derive.language.contents import atoms
from derive.language.symbols import Clock, EngineSymbol, Parameter
from derive.language.traits import Trait, traits_in
from derive.language.traversal import ByKind, outermost
from derive.language.vectors import PAST, Field, Mean, Total, axes_of, shown
from derive.printing import text
from derive.printing.documents import comment
from derive.printing.lettering import current
from derive.program import nodes as ir
from derive.program.at_sites import AtSites, at_groups
from derive.program.forward import Key, key_of
from derive.program.recurrences import Coefficients
from derive.program.tables import coefficient_table
from derive.records.method import LabelSymmetry
from derive.records.probe import (
    MAP,
    Aligned,
    Block,
    BlockCycle,
    BlockMatrix,
    Bulk,
    DiagonalSpread,
    Directions,
    Pencil,
    ProjectedProbe,
    SampledSiteValues,
    Unknown,
)
from derive.records.system import ProbeTimes, weighing

_BROKEN = (sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min, sp.Piecewise, sp.floor, sp.ceiling)
"""Functions that are not smooth everywhere."""
MOST_PIECES = 64
"""Maximal number of smooth pieces of an expression with nested functions of this kind."""


class _Spectral(AtSites):
    """Builder for functions of z, of the bulk responses and of the order parameters.

    Args:
        gains: coefficients of updated weights that functions receive as numbers.
        of_bulk: whether the functions belong to the bulk alone, in which case functions of traits are averaged over the
            laws of the traits.
    """

    def __init__(
        self,
        projected: ProjectedProbe,
        layout: Layout,
        means: tuple[Mean, ...],
        gains: Mapping[AppliedUndef, sp.Symbol] = MappingProxyType({}),
        of_bulk: bool = False,
    ):
        self.projected, self.means = projected, means
        self.clock = layout.clock
        self.r, self.order, self.s = ir.Symbol("r"), ir.Symbol("order"), ir.Symbol("s", ir.SCALAR)
        self.steps = sp.S.One if self.clock is None else self.clock.steps
        self.when = ir.Symbol("when", (self.steps,))
        self.times = projected.system.stopping
        self.coefficients = Coefficients(layout, of_clock=self.of_run)
        self.letters: dict[Key, ir.Symbol] = {}
        averaged = {value.field for average in _averages(projected) for value in traits_in(average.expression)}
        normals = tuple(normal for spread in projected.spreads for normal in spread.normals)
        traits = (trait for trait in (*atoms(projected.system.model, Trait), *normals) if trait in averaged)
        self.gained = ir.Symbol("gained")
        self.gains = dict(gains)
        super().__init__(traits, {self.r: projected.bulk_symbols, self.gained: gains.values()})
        self.leaves |= {MAP: ir.Slot(ir.Ref(self.s), "s"), PAST: ir.Slot(ir.Ref(self.when), "s")}
        self.values |= {entry: at_groups(entry) for sites in projected.sampled for entry in sites.entries}
        drawn = (sites for sites in projected.sampled if not (of_bulk and sites.of_traits))
        self.law |= {sites: ir.Symbol(f"law_{sites.sector}") for sites in drawn}

    def number(self, expression: sp.Expr) -> ir.Formula:
        """Return a scalar, or weights over the times before the last update."""
        expression = sp.sympify(expression)
        expression = expression.xreplace(self.gains)
        over = expression.has(PAST)
        inner: dict[sp.Basic, sp.Expr] = {}
        for node in outermost(expression, (TraitAverage, Mean, Total, AppliedUndef)):
            if isinstance(node, AppliedUndef):
                inner[node] = self.coefficients.at(node, self.number, (self.steps,))
            elif not isinstance(node, TraitAverage):
                inner[node] = ir.Slot(self._mean(node), "mean")
        return ir.Formula(super().number(expression.xreplace(inner)).expression, (self.steps,) if over else ir.SCALAR)

    def averaged_over(self, average: TraitAverage) -> tuple[tuple[Trait, ...], tuple[ir.Ref, ...]]:
        """Return the traits, or all sampled values of a site, over which an average is taken, and their laws."""
        sites = self._sampled(average.expression)
        if sites is None:
            traits = tuple(value.field for value in traits_in(average.expression))
            return traits, tuple(ir.Ref(self.law[trait]) for trait in traits)
        return tuple(sites.entries), (ir.Ref(self.law[sites]),)

    def _sampled(self, expression: sp.Expr) -> SampledSiteValues | None:
        """Return the sampled values of a site on which an expression depends; None if its traits have known laws."""
        traits = {value.field for value in traits_in(expression)}
        return next((sites for sites in self.projected.sampled if traits & set(sites.entries)), None)

    def _over_sites(self, average: TraitAverage) -> ir.Value:
        if self._sampled(average.expression) is None:
            return super()._over_sites(average)
        function, law = self._of_entries(average.expression)
        return ir.Call("over_sites", (self.z, function, law), ir.SCALAR)

    def _of_entries(self, expression: sp.Expr) -> tuple[ir.Function, ir.Ref]:
        """Return a function of all sampled values at the sites of a sector, and their law."""
        sites = self._sampled(expression)
        assert sites is not None, "its traits are sampled"
        return self._of_traits(expression, sites.entries), ir.Ref(self.law[sites])

    def _law(self, trait: Trait | SampledSiteValues) -> ir.Value:
        if isinstance(trait, SampledSiteValues):
            return ir.Call("sampled_law", (ir.Formula(trait.law, None),), None)
        functions = [a.expression for a in _averages(self.projected) if trait() in traits_in(a.expression)]
        breaks = _breaks(functions, trait)
        places = ir.Tuple(tuple(map(self.number, breaks)))
        if not isinstance(trait, SiteNormal):
            if trait.discrete or not breaks:
                return super()._law(trait)
            whole = super()._law(trait)
            assert isinstance(whole, ir.Call)
            return ir.Call("density_between", (*whole.arguments, places), None)
        if any(place != 0 for place in breaks):
            return ir.Call("normal_between", (ir.Ref(self.nodes), places), None)
        broken = any(expression.has(*_BROKEN) for expression in functions)
        return ir.Call("standard_normal", (self.nodes, int(broken)), None)

    @property
    def law_arguments(self) -> tuple[ir.Symbol, ...]:
        """The arguments of functions in addition to the bulk responses."""
        return (self.laws,) if self.law else ()

    def driving(self, probe: Field) -> tuple[ir.Symbol, ...]:
        """Return the arguments of the functions that map a source in the equation of a probe field to the unknowns."""
        return (self.z, self.r, self.order, *self.law_arguments) if probe in self.projected.differing else (self.order,)

    def _mean(self, average: Mean) -> ir.Value:
        """Return a mean over the times before the last update, or at a fixed time."""
        table = ir.Item(self.order, mean_key(average, self.means.index(average), self.clock), None)
        taken = weighing(average, self.clock)[1]
        if taken is None:
            return ir.Call("by_time", (table,), None)
        last = {} if self.times is None else {self.times.clock.steps: self.times.stop}
        return ir.Call("taken_at", (table, sp.sympify(taken).xreplace(last)), ir.SCALAR)

    @property
    def of_run(self) -> dict[sp.Symbol, sp.Expr]:
        """The substitution for the number of steps where it counts the times of order parameters."""
        return {} if self.times is None else {self.times.clock.steps: self.times.run}

    def there(self, field: Field) -> Word:
        """Return the mask that removes spikes added after the time of the matrix."""
        return (DiagonalFactor(self.times.mask, field),) if self.times is not None and field.timed else ()

    def taken(self, average: Mean) -> ir.Value:
        """Return a mean at its fixed time, or a mean of fields without time."""
        mean = self._mean(average)
        if isinstance(mean, ir.Call) and mean.function == "by_time":
            return ir.Call("taken_at", (*mean.arguments, 0), ir.SCALAR)
        return mean

    def function(
        self, name: str, arguments: Iterable[ir.Symbol], doc: str, result: ir.Value, body: tuple[ir.Let, ...] = ()
    ) -> ir.Definition:
        """Return a function, preceded by the coefficient tables that its result needs."""
        used = {symbol: None for value in (result, *(let.value for let in body)) for symbol in ir.symbols_in(value)}
        first = self.coefficients.statements(used)
        letters = {key: symbol for key, symbol in self.letters.items() if symbol in used}
        first += tuple(
            ir.Let(s, ir.Call("operator", (ir.Item(self.order, key),), s.shape)) for key, s in letters.items()
        )
        if self.when in used:
            first += (ir.Let(self.when, ir.Call("arange", (self.steps,), self.when.shape)),)
        return super().function(name, arguments, doc, result, (*first, *body))

    # -- matrices over training times

    @ByKind
    def letter(self, letter: Letter | DiagonalFactor | Weighed) -> ir.Value:
        """Return a factor of a word."""
        raise TypeError(f"{letter} is not a factor of a word")

    @letter.on(Weighed)
    def _weighed(self, letter: Weighed) -> ir.Value:
        function, law = self._of_entries(letter.weight)
        shape = letter.T.shape if letter.turned else letter.shape
        weighed = ir.Call("weighed", (function, law, ir.Item(self.order, letter.table.key)), shape)
        return ir.Transposed(weighed) if letter.turned else weighed

    @letter.on(Letter)
    def _order_parameter(self, letter: Letter) -> ir.Value:
        key = key_of(letter)
        if key not in self.letters:
            self.letters[key] = ir.Symbol(_as_name(key), letter.shape)
        symbol = ir.Ref(self.letters[key])
        return ir.Transposed(symbol) if letter.transposed else symbol

    @letter.on(DiagonalFactor)
    def _diagonal(self, letter: DiagonalFactor) -> ir.Value:
        spectral = sp.sympify(letter.weight).has(Z, *self.projected.bulk_symbols)
        assert self.law or not spectral, (
            "at many points at once A(z) depends on z through coefficients of matrices alone"
        )
        size = index_size(letter.field)
        labels = letter.field.labels
        return ir.Call("diagonal", (self.number(letter.weight), size, labels), (size, size))

    def word(self, word: Word, size: sp.Expr) -> ir.Value:
        if not word:
            return ir.Call("identity", (size,), (size, size))
        product = self.letter(word[0])
        for letter in word[1:]:
            product = ir.MatMul(product, self.letter(letter))
        return product

    def combination(self, combination: Combination, rows: sp.Expr, columns: sp.Expr, sign: int = 1) -> ir.WeightedSum:
        terms = tuple((self.number(sign * scale), self.word(word, rows)) for scale, word in combination)
        assert all(scale.shape == ir.SCALAR for scale, _ in terms), "weights over times occur in diagonal matrices"
        return ir.WeightedSum(terms, (rows, columns))


def probe_record(
    pencil: Pencil, layout: Layout, means: tuple[Mean, ...], labels: LabelSymmetry | None = None
) -> ir.RuntimeRecord:
    """Return the record of a probed matrix: A(z), its right-hand sides, alignments, cycles and symmetry.

    Args:
        labels: the label symmetry of the training level.
    """
    blocks, projected = pencil.blocks, pencil.blocks.projected
    build = _Spectral(projected, layout, means)
    sizes = [u.size for u in projected.unknowns]
    rows = tuple(
        tuple(_block(build, blocks.block(r, c), *shape) for c, shape in enumerate((size, other) for other in sizes))
        for r, size in enumerate(sizes)
    )
    remarks = tuple(
        f"[{probe_tag('A', row, projected.system)}] {_unknown(u, projected)}"
        for row, u in enumerate(projected.unknowns)
    )
    whole = ir.Blocks(rows, tuple(sizes), tuple(sizes), remarks)
    doc = "A(z), a row of blocks for the equation of each unknown."
    a_matrix = build.function("a_matrix", (build.z, build.r, build.order, *build.law_arguments), doc, whole)
    named = {
        "unknowns": blocks.labels,
        "sites": build.site_laws() if build.law else None,
        "a_matrix": a_matrix,
        "sides": tuple(_side(build, side) for side in projected.directions),
        "directions": tuple(_aligned(build, *numbered) for numbered in enumerate(projected.alignments)) or None,
        "cycles": tuple(_cycle(build, pencil.divided, *numbered) for numbered in enumerate(pencil.cycles)),
        "reduced": not pencil.rest,
        "steady": _steady(blocks, layout.clock),
        "measured": tuple(number.name for number in projected.measured) or None,
        "measure": _measure(build) if projected.measured else None,
        "stopping": None if build.times is None else _stopping(build.times),
        "alike": alike_record(labels) if labels is not None and _falls_apart(blocks, layout, labels) else None,
    }
    return ir.RuntimeRecord("Probe", (), named)


def alike_record(labels: LabelSymmetry) -> ir.RuntimeRecord:
    """Return the record of labels that are equivalent under permutations."""
    return ir.RuntimeRecord("AlikeLabels", (tuple(str(axis.size) for axis in labels.axes), labels.group.components))


def _falls_apart(blocks: BlockMatrix, layout: Layout, labels: LabelSymmetry) -> bool:
    """Return whether A(z) is a direct sum over the irreducible representations of the label permutations.

    This is the case if all unknowns have these labels, and labels enter only through shapes.
    """
    projected = blocks.projected
    sizes = [axis.size for axis in labels.axes]
    if not labels.group.components or not all(isinstance(size, Parameter) for size in sizes):
        return False
    if projected.spreads or projected.sampled:
        return False
    letters = [letter for _, block in blocks.blocks for _, word in block.combination for letter in word]
    fields = [unknown.field for unknown in projected.unknowns]
    numbers = [*projected.bulk_equations, *(number.average for number in projected.measured)]
    numbers += [block.scalar for _, block in blocks.blocks]
    numbers += [scale for _, block in blocks.blocks for scale, _ in block.combination]
    for letter in letters:
        if letter.tables:
            return False
        fields += letter.fields
        numbers += letter.weights
    numbers += [] if layout.clock is None else [layout.clock.steps]
    free = not any(sp.sympify(number).has(*sizes) for number in numbers)
    plain = not any(axes_of(number) for number in numbers)
    return free and plain and all(field.labelled for field in fields)


def _stopping(times: ProbeTimes) -> ir.RuntimeRecord:
    return ir.RuntimeRecord("Stopping", (times.clock.steps.name, times.stop.name, times.run.name, times.ahead))


def cycle_pencils(pencil: Pencil, layout: Layout, means: tuple[Mean, ...]) -> tuple[ir.Definition, ...]:
    """Return the functions that compute the constant matrix of each cycle."""
    build = _Spectral(pencil.blocks.projected, layout, means)
    return tuple(_pencil(build, pencil.divided, number, cycle) for number, cycle in enumerate(pencil.cycles))


def _unknown(unknown: Unknown, projected: ProjectedProbe) -> str:
    """Return a comment that names an unknown of A(z)."""
    if current() is None:
        return f"{unknown.kind}[{text(unknown.probe)}, {text(unknown.field)}]"
    return text(sp.Symbol(unknown.name), projected)


def _measure(build: _Spectral) -> ir.Definition:
    numbers = build.projected.measured
    doc = "What the training level gives to the bulk: " + ", ".join(f"{x.name} = {text(x.average)}" for x in numbers)
    return build.function(
        "measure", (build.order,), f"{doc}.", ir.Tuple(tuple(build.taken(x.average) for x in numbers))
    )


def _as_name(key: Iterable[Any]) -> str:
    """Return a key as a valid variable name."""
    return "".join(c if c.isalnum() else "_" for c in "_".join(map(str, key)))


def _averages(projected: ProjectedProbe) -> set[TraitAverage]:
    """Return the averages over sites in the bulk, in A(z) and in its right-hand sides."""
    combinations = [combination for _, combination in projected.couplings]
    combinations += [combination for side in projected.directions for _, combination in side.drive]
    combinations += [combination for one in projected.alignments for combination in one.combinations]
    scales = [scale for combination in combinations for scale, _ in combination]
    sources = [value for some in (*projected.sources, *(s for _, s in projected.slopes)) for value in some]
    return {average for e in (*projected.bulk_equations, *scales, *sources) for average in e.atoms(TraitAverage)}


def _breaks(expressions: Iterable[sp.Expr], trait: Trait) -> list[sp.Expr]:
    """Return the values of a trait at which functions of it alone have a jump or a kink, where a linear equation
    determines them.
    """
    places: dict[sp.Expr, None] = {}
    value, mark = trait(), sp.Dummy("value")
    for node in sorted({n for e in expressions for n in e.atoms(*_BROKEN)}, key=sp.default_sort_key):
        for crossed in (piece for whole in _crossed(node) for piece in _pieces(whole)):
            if traits_in(crossed) != (value,):
                continue
            line = crossed.xreplace({value: mark})
            if line.is_polynomial(mark) and sp.degree(line, mark) == 1:
                poly = sp.Poly(line, mark)
                places[-poly.coeff_monomial(1) / poly.coeff_monomial(mark)] = None
    return list(places)


@ByKind
def _crossed(node: sp.Basic) -> list[sp.Expr]:
    """Return the expressions whose zeros are the points where a function is not smooth."""
    return [node.args[0]]


@_crossed.on(sp.Max, sp.Min)
def _(node: sp.Basic) -> list[sp.Expr]:
    return [a - b for k, a in enumerate(node.args) for b in node.args[:k]]


@_crossed.on(sp.Piecewise)
def _(node: sp.Piecewise) -> list[sp.Expr]:
    conditions = (c for _, condition in node.args for c in condition.atoms(sp.core.relational.Relational))
    return [c.lhs - c.rhs for c in conditions]


def _pieces(expression: sp.Expr) -> list[sp.Expr]:
    """Return the smooth pieces of an expression: each nonsmooth function replaced by each of its pieces.

    Some combinations of pieces may not occur anywhere.
    """
    inner = next(iter(sorted(expression.atoms(*_BROKEN), key=sp.default_sort_key)), None)
    if inner is None:
        return [expression]
    pieces = [
        p
        for piece in _PIECES.get(inner.func, lambda _: [])(inner)
        for p in _pieces(expression.xreplace({inner: piece}))
    ]
    return list(dict.fromkeys(pieces))[:MOST_PIECES]


_PIECES: dict[type[sp.Basic], Callable[[sp.Basic], list[sp.Expr]]] = {
    sp.Max: lambda node: list(node.args),
    sp.Min: lambda node: list(node.args),
    sp.Piecewise: lambda node: [value for value, _ in node.args],
    sp.Abs: lambda node: [node.args[0], -node.args[0]],
    sp.sign: lambda node: [sp.S.One, sp.S.NegativeOne],
    sp.Heaviside: lambda node: [sp.S.Zero, sp.S.One],
}
"""The smooth pieces of each of these functions."""


def _steady(blocks: BlockMatrix, clock: Clock | None) -> bool:
    """Return whether A(z) and the bulk depend on the number of steps only through shapes and measured averages."""
    projected = blocks.projected
    if clock is None:
        return True
    standing = [value for spread in projected.spreads for value in spread.values]
    standing += [value for sites in projected.sampled for value in sites.values]
    if any(value.time is not None for value in standing):
        return False
    expressions = [*projected.bulk_equations, *(block.scalar for _, block in blocks.blocks)]
    for _, block in blocks.blocks:
        for scale, word in block.combination:
            expressions += [scale, *(weight for letter in word for weight in letter.weights)]
    times = projected.system.stopping
    if times is None:
        return not any(sp.sympify(e).has(clock.steps) for e in expressions)
    # later spikes are left out by their order parameters too; a mean at the last time is taken when the matrix is
    ends = times.stop, clock.steps
    return not any(sp.sympify(e).xreplace({times.mask: sp.S.One}).has(*ends) for e in expressions)


def _side(build: _Spectral, side: Directions) -> ir.RuntimeRecord:
    """Return the right-hand side for sources along the spikes, the rows that read them, and their Gram matrix."""
    unknowns, drive = build.projected.unknowns, dict(side.drive)

    driven = tuple(
        tuple(build.combination(drive.get((r, c), ()), u.size, index_size(f)) for c, f in enumerate(side.fields))
        for r, u in enumerate(unknowns)
    )

    def product(a: Field, b: Field) -> ir.Value:
        return build.word((*build.there(a), Letter.correlation(a, b), *build.there(b)), index_size(a))

    rows = tuple(
        tuple(_seen(u, Unknown("C", side.probe, f), build.word(build.there(f), index_size(f))) for u in unknowns)
        for f in side.fields
    )
    gram = tuple(tuple(product(a, b) for b in side.fields) for a in side.fields)
    names = ", ".join(text(f) for f in side.fields)
    doc = (
        f"For sources along {names}: the right-hand side of A(z) q = b,\n"
        "the rows of q that are its overlaps with them, and their Gram matrix.\n"
    ).rstrip()
    heights, widths = tuple(u.size for u in unknowns), tuple(map(index_size, side.fields))
    arguments = build.driving(side.probe)
    result = ir.Tuple(
        (ir.Blocks(driven, heights, widths), ir.Blocks(rows, widths, heights), ir.Blocks(gram, widths, widths))
    )
    return ir.RuntimeRecord(
        "Side", (side.side, build.function(f"{side.side}_spikes", arguments, doc, result)), _sited(arguments)
    )


def _sited(arguments: tuple[ir.Symbol, ...]) -> dict[str, bool]:
    """Return the flag `sited` if the response to a source depends on z, because its sites differ."""
    return {"sited": True} if len(arguments) > 1 else {}


def _seen(unknown: Unknown, wanted: Unknown, block: ir.Value | None = None) -> ir.Value:
    """Return the block of an unknown in rows that select another unknown: zero, or the identity (or `found`)."""
    size = wanted.size
    if unknown != wanted:
        return ir.WeightedSum((), (size, unknown.size))
    return ir.Call("identity", (size,), (size, size)) if block is None else block


def _aligned(build: _Spectral, number: int, aligned: Aligned) -> ir.RuntimeRecord:
    """Return the source along a direction, the rows that read it, and its time."""
    direction, unknowns = aligned.direction, build.projected.unknowns
    size, name, drive = index_size(direction.field), text(direction.field), dict(aligned.drive)
    everything = (*unknowns, *aligned.later)

    def driven(group: tuple[Unknown, ...], first: int) -> ir.Blocks:
        rows = tuple((build.combination(drive.get(first + r, ()), u.size, size),) for r, u in enumerate(group))
        return ir.Blocks(rows, tuple(u.size for u in group), (size,))

    doc = (
        f"For a source along {name}: the right-hand side of A(z) q = b,\n"
        "the overlaps with it among the rows of q and of the unknowns that it adds,\n"
        "and the matrix with its mean squares on the diagonal.\n"
    ).rstrip()
    seen = tuple(_seen(u, aligned.unknown) for u in everything)
    rows = ir.Blocks((seen,), (aligned.unknown.size,), tuple(u.size for u in everything))
    result, arguments = (
        ir.Tuple((driven(unknowns, 0), rows, build.letter(squares_of(aligned)))),
        build.driving(aligned.probe),
    )
    source = build.function(f"along_{number}", arguments, doc, result)
    later = earlier = time = None
    if aligned.later:
        doc = f"The equations of the overlaps that {name} adds to those of A(z)."
        rows = _equations(build, aligned.later, everything, dict(aligned.couplings))
        later = build.function(f"later_{number}", (build.z, build.r, build.order, *build.law_arguments), doc, rows)
    if aligned.earlier:
        doc = (
            f"The equations of the responses that a source along {name} drives, what it drives them with,\n"
            "and what they add to the right-hand side of A(z) q = b.\n"
        ).rstrip()
        feeds = dict(aligned.feeds)
        added = ir.Blocks(
            tuple(
                tuple(build.combination(feeds.get((r, c), ()), u.size, v.size) for c, v in enumerate(aligned.earlier))
                for r, u in enumerate(unknowns)
            ),
            tuple(u.size for u in unknowns),
            tuple(v.size for v in aligned.earlier),
        )
        rows = _equations(build, aligned.earlier, aligned.earlier, dict(aligned.sources))
        whole = ir.Tuple((rows, driven(aligned.earlier, len(unknowns)), added))
        earlier = build.function(f"earlier_{number}", (build.z, build.r, build.order, *build.law_arguments), doc, whole)
    if direction.time is not None and direction.time != build.clock:
        taken = ir.Formula(direction.time.xreplace(build.of_run))
        time = build.function(f"time_{number}", (), f"The time of {text(direction)}.", taken)
    field = direction.field
    description = (aligned.name, aligned.side, field.name, field.timed, tuple(str(axis.size) for axis in field.axes))
    return ir.RuntimeRecord("Direction", (*description, source, later, earlier, time), _sited(arguments))


def _equations(
    build: _Spectral,
    rows: tuple[Unknown, ...],
    columns: tuple[Unknown, ...],
    couplings: dict[tuple[int, int], Combination],
) -> ir.Blocks:
    """Return propagators minus couplings, one row of blocks per unknown."""
    propagator = dict(build.projected.propagator)
    index = {probe: i for i, probe in enumerate(build.projected.probes)}
    table: list[tuple[ir.Value, ...]] = []
    for r, unknown in enumerate(rows):
        row: list[ir.Value] = []
        for c, other in enumerate(columns):
            same = (unknown.kind, unknown.field) == (other.kind, other.field)
            scalar = propagator.get((index[unknown.probe], index[other.probe]), sp.S.Zero) if same else sp.S.Zero
            if unknown.probe in build.projected.differing:
                scalar = sp.S.One if unknown == other else sp.S.Zero
            block = Block(scalar, couplings.get((r, c), ()))
            row.append(_block(build, block, unknown.size, other.size))
        table.append(tuple(row))
    return ir.Blocks(tuple(table), tuple(u.size for u in rows), tuple(u.size for u in columns))


def _block(build: _Spectral, block: Block, rows: sp.Expr, columns: sp.Expr) -> ir.WeightedSum:
    couplings = build.combination(block.combination, rows, columns, sign=-1)
    if block.scalar == 0:
        return couplings
    identity = (build.number(block.scalar), ir.Call("identity", (rows,), (rows, columns)))
    return ir.WeightedSum((identity, *couplings.terms), couplings.shape)


def _pencil(build: _Spectral, blocks: BlockMatrix, number: int, cycle: BlockCycle) -> ir.Definition:
    unknowns = blocks.projected.unknowns
    product: ir.Value | None = None
    for group, following in zip(cycle.groups, (*cycle.groups[1:], cycle.groups[0]), strict=True):
        coupling = ir.Blocks(
            tuple(
                tuple(
                    build.combination(blocks.block(r, c).combination, unknowns[r].size, unknowns[c].size)
                    for c in following
                )
                for r in group
            ),
            tuple(unknowns[r].size for r in group),
            tuple(unknowns[c].size for c in following),
        )
        product = coupling if product is None else ir.MatMul(product, coupling)
    assert product is not None
    tag = probe_tag("S", number, build.projected.system)
    doc = f"[{tag}] The constant matrix: its eigenvalues are the values of the scalar map at the outliers."
    return build.function(f"pencil_{number}", (build.order,), doc, product)


def _cycle(build: _Spectral, blocks: BlockMatrix, number: int, cycle: BlockCycle) -> ir.RuntimeRecord:
    """Return one cycle of unknowns: its eigenproblem, its scalar map, and the inverse of the map."""
    doc = f"[{probe_tag('S', number, build.projected.system)}] s(z) = {comment(cycle.scalar_map, build.projected)}"
    arguments = (build.z, build.r, *build.law_arguments)
    scalar_map = build.function(f"scalar_map_{number}", arguments, doc, build.number(cycle.scalar_map))
    inverse = relation = None
    if cycle.inverse is not None:
        doc = f"z(s) = {comment(cycle.inverse, build.projected)}"
        inverse = build.function(f"inverse_map_{number}", (build.s,), doc, build.number(cycle.inverse))
    if cycle.relation is not None:
        coefficients = build.numbers(sp.Poly(cycle.relation, Z).all_coeffs())
        doc = "Coefficients in z, highest power first, of the polynomial relation between z and the map."
        relation = build.function(f"relation_{number}", (build.s,), doc, coefficients)
    pencil = _pencil(build, blocks, number, cycle)
    reads = tuple(ir.keys_read((*(let.value for let in pencil.body), pencil.result), build.order))
    return ir.RuntimeRecord("Cycle", (pencil, scalar_map, relation, inverse), {"reads": reads})


def bulk_record(bulk: Bulk, layout: Layout, means: tuple[Mean, ...] = ()) -> ir.RuntimeRecord:
    """Return the record of the bulk: its equations, curve, edges and site averages."""
    projected = bulk.projected
    gains = _gains(bulk)
    build = _Spectral(projected, layout, means, gains, of_bulk=True)
    symbols, arguments = projected.bulk_symbols, (build.z, build.r, *build.law_arguments)
    named: dict[str, Any] = {"responses": tuple(s.name for s in symbols)}
    named["resolvent"] = symbols.index(projected.resolvent)

    def function(name: str, arguments: tuple[ir.Symbol, ...], doc: str, result: ir.Value) -> None:
        named[name] = build.function(name, (*arguments, *((build.gained,) if gains else ())), doc, result)

    def tables(rows: Iterable[Iterable[sp.Expr]]) -> ir.Tuple:
        return ir.Tuple(tuple(map(build.numbers, rows)))

    if gains:
        doc = f"What weights have gained by their updates: {', '.join(map(text, gains))}."
        before = _Spectral(projected, layout, means)
        named["coefficients"] = before.function("coefficients", (), doc, before.numbers(gains))
    if build.law:
        named |= {"sites": build.site_laws(), "densities": _densities(build.traits, projected)}
    spreads = [_spread(build, *numbered) for numbered in enumerate(projected.spreads)]
    if spreads or projected.sampled:
        named["spreads"] = (*spreads, *map(_sampled, projected.sampled))
    # traces of the resolvent have equations of their own, which the document does not show
    tags = [f"[{probe_tag('B', k, projected.system)}] " for k in range(len(projected.bulk_equations))]
    shown_as = [""] * len(tags) if projected.images else tags
    equations = "\n".join(
        f"{tag}0 = {comment(e, projected)}" for tag, e in zip(shown_as, projected.bulk_equations, strict=True)
    )
    averages = sorted({a for e in projected.bulk_equations for a in e.atoms(TraitAverage)}, key=sp.default_sort_key)
    marks = {average: EngineSymbol(f"average{k}") for k, average in enumerate(averages)}
    if averages:
        equations += "".join(f"\n{mark} = {text(average)}" for average, mark in marks.items())
        doc = "Averages over sites, each of a product of powers of polynomials in z and the responses."
        factors = ir.Tuple(tuple(_site_average(build, average, (Z, *symbols)) for average in averages))
        function("averages", (build.laws,), doc, factors)
    doc = "Equations that vanish as z grows, by products of z, responses and averages what multiplies them:"
    polynomials = (_terms(build, e.xreplace(marks), (Z, *symbols, *marks.values())) for e in projected.bulk_equations)
    function("polynomials", (), f"{doc}\n{equations}", ir.Tuple(tuple(polynomials)))
    if bulk.curve is not None:
        named |= _curve_tables(build, bulk, bulk.curve, (build.gained,) if gains else ())
    if projected.sources:
        named["images"] = tuple((name, symbols.index(symbol)) for name, symbol in projected.images)
        names = ", ".join(name for name, _ in projected.images)
        doc = f"How each equation changes with epsilon in the matrix M + epsilon A, at epsilon = 0, for A: {names}."
        function("sources", arguments, doc, tables(projected.sources))
    if projected.slopes:
        named["vanishing"] = tuple(symbols.index(symbol) for symbol, _ in projected.slopes)
        names = ", ".join(symbol.name for symbol, _ in projected.slopes)
        doc = f"How each equation changes with responses that vanish at epsilon = 0: {names}."
        function("slopes", arguments, doc, tables(some for _, some in projected.slopes))
    return ir.RuntimeRecord("BulkLaw", (), named)


def _curve_tables(build: _Spectral, bulk: Bulk, curve: sp.Expr, arguments: tuple[ir.Symbol, ...]) -> dict[str, Any]:
    """Return the curve of the resolvent and the edge polynomials as tables of coefficients."""
    g = bulk.projected.resolvent
    poly = sp.Poly(curve, g, Z)
    powers = [[g**i * Z**j for j in range(poly.degree(Z) + 1)] for i in range(poly.degree(g) + 1)]

    def tabled(name: str, doc: str, rows: Sequence[Sequence[sp.Expr]]) -> ir.RuntimeRecord:
        variables, terms = coefficient_table(rows)
        doc = f"{doc}\nA term of a coefficient is a number and the powers of these:"
        return ir.RuntimeRecord(
            "CoefficientTable", (build.function(f"{name}_variables", arguments, doc, build.numbers(variables)), terms)
        )

    tag = probe_tag("G", 0, bulk.projected.system)
    on_curve = f"[{tag}] Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent."
    of_edges = "Polynomials in z, highest power first: every edge of the support is a real root of one of them."
    return {
        "curve_text": str(curve.xreplace({Z: sp.Symbol("{z}")})),
        "curve": tabled("curve", on_curve, [[poly.coeff_monomial(power) for power in row] for row in powers]),
        "edge_polynomials": tabled(
            "edge_polynomials", of_edges, [sp.Poly(f, Z).all_coeffs() for f in bulk.edge_factors]
        ),
    }


def _densities(traits: Iterable[Trait], projected: ProjectedProbe) -> tuple[tuple[str, str], ...]:
    """Return the densities over which site averages are taken, by kind and as declared."""
    in_words = as_declared(projected.system.model, projected.system.fields)
    densities: dict[tuple[str, str], None] = {}
    for trait in (trait for trait in traits if not trait.discrete):
        if isinstance(trait, SiteNormal):
            values = [value for spread in projected.spreads if trait in spread.normals for value in spread.values]
            names = " and ".join(in_words(shown(value)) for value in values)
            densities["field", f"the Gaussian field {names} on a diagonal"] = None
        elif isinstance(trait, SiteEntry):
            densities["field", f"the sampled entries {in_words(shown(trait.function))} of a diagonal"] = None
        else:
            densities["trait", f"the density of the trait {trait}"] = None
    return tuple(densities)


def _terms(build: _Spectral, polynomial: sp.Expr, variables: Sequence[sp.Symbol]) -> ir.Tuple:
    """Return the terms of a polynomial as products of names with their coefficients."""
    coefficients = _by_monomial(polynomial, variables)
    return ir.Tuple(tuple(ir.Tuple((ir.Quoted(key), build.number(value))) for key, value in coefficients.items()))


def _site_average(build: _Spectral, average: TraitAverage, variables: Sequence[sp.Symbol]) -> ir.Call:
    """Return an average as factors: integer powers of polynomials in the variables, with coefficients that depend on
    the site."""
    scale, factors = sp.S.One, list[ir.Tuple]()
    traits, laws = build.averaged_over(average)
    slots = {trait(): ir.Slot(ir.Ref(build.values[trait]), trait.name) for trait in traits}
    for base, power in average.expression.as_powers_dict().items():
        if not base.has(*variables):
            scale *= base**power
            continue
        assert power.is_Integer and base.is_polynomial(*variables), f"{average} is not a ratio of polynomials"
        by_monomial = {key: sp.factor(value) for key, value in _by_monomial(base, variables).items()}
        terms = (ir.Tuple((ir.Quoted(k), build.number(value.xreplace(slots)))) for k, value in by_monomial.items())
        factors.append(ir.Tuple((int(power), ir.Tuple(tuple(terms)))))
    if scale != 1 or not factors:
        factors.append(ir.Tuple((1, ir.Tuple((ir.Tuple((ir.Quoted("1"), build.number(scale.xreplace(slots)))),)))))
    return ir.Call(
        "site_average", (ir.Function(tuple(build.values[t] for t in traits), ir.Tuple(tuple(factors))), *laws), None
    )


def _by_monomial(equation: sp.Expr, variables: Sequence[sp.Symbol]) -> dict[str, sp.Expr]:
    """Return the coefficient of each monomial in the variables, for a polynomial or for the numerator of a rational
    function.
    """
    coefficients: dict[str, sp.Expr] = {}
    if not equation.is_polynomial(*variables):
        equation = sp.fraction(sp.cancel(sp.together(equation), *variables))[0]
    for term in sp.Add.make_args(sp.expand(equation)):  # rounding far above the spectrum depends on this order
        coefficient, monomial = term.as_independent(*variables, as_Add=False)
        powers = monomial.as_powers_dict()
        assert set(powers) <= {*variables, sp.S.One}, f"{monomial} is not a product of variables"
        key = " ".join(str(v) for v in variables for _ in range(int(powers.get(v, 0)))) or "1"
        coefficients[key] = coefficients.get(key, sp.S.Zero) + coefficient
    return coefficients


def _gains(bulk: Bulk) -> dict[AppliedUndef, sp.Symbol]:
    """Return symbols for the coefficients of updated weights in a bulk; none depends on when a dyad was added."""
    projected = bulk.projected
    slopes = (value for _, some in projected.slopes for value in some)
    curves = (*(() if bulk.curve is None else (bulk.curve,)), *bulk.edge_factors)
    values = (*projected.bulk_equations, *(value for some in projected.sources for value in some), *slopes, *curves)
    nodes = {node for value in values for node in sp.sympify(value).atoms(AppliedUndef)}
    names = {node: _as_name((node.func.__name__, *map(text, node.args))) for node in nodes}
    return {node: sp.Dummy(names[node]) for node in sorted(nodes, key=sp.default_sort_key)}


def _spread(build: _Spectral, number: int, spread: DiagonalSpread) -> ir.RuntimeRecord:
    """Return the record of Gaussian fields on diagonals: their covariances, and the normals that span them."""
    rows = ir.Tuple(tuple(ir.Tuple(tuple(build.taken(mean) for mean in row)) for row in spread.covariances))
    names = ", ".join(text(value) for value in spread.values)
    doc = f"The covariances, of a site, of {names}: rows of the lower triangle."
    covariances = build.function(f"covariances_{number}", (build.order,), doc, rows)
    roots = (tuple(tuple(n.name for n in row) for row in rows) for rows in (spread.lower, spread.inverse))
    return ir.RuntimeRecord("Spread", (*roots, covariances, all(value.time is None for value in spread.values)))


def _sampled(sites: SampledSiteValues) -> ir.RuntimeRecord:
    steady = all(value.time is None for value in sites.values)
    return ir.RuntimeRecord("SampledSites", (sites.law.name, sites.key, steady, *((True,) if sites.of_traits else ())))
