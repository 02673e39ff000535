"""A(z), its reduction to matrices that do not depend on z, and its bulk, as programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.nodes import Z, index_size, outermost
from derive.algebra.sites import SiteAverage, SiteNormal
from derive.algebra.words import Combination, Diagonal, Letter, Word
from derive.language.contents import atoms
from derive.language.symbols import Clock
from derive.language.traits import VALUE, Trait, traits_in
from derive.language.vectors import PAST, Field, Mean, Total
from derive.printing import text
from derive.program.exact import Key, key_of
from derive.program.layout import Layout, mean_key
from derive.program.nodes import (
    SCALAR,
    Blocks,
    Call,
    Definition,
    Formula,
    Function,
    Item,
    Let,
    MatMul,
    Ref,
    Slot,
    Sum,
    Symbol,
    Transposed,
    Tuple,
    Value,
    symbols_in,
)
from derive.program.recurrences import Coefficients
from derive.program.text import PARAMETERS
from derive.records.probe import (
    MAP,
    Aligned,
    BlockMatrix,
    Bulk,
    Cycle,
    Directions,
    Pencil,
    ProjectedProbe,
    Spread,
    Unknown,
)
from derive.records.system import weighing

_BROKEN = (sp.Abs, sp.sign, sp.Heaviside, sp.Max, sp.Min, sp.Piecewise, sp.floor, sp.ceiling)
"""Functions that are not smooth everywhere."""


def letters_needed(blocks: BlockMatrix) -> tuple[tuple[Letter, ...], tuple[Mean, ...]]:
    """The matrices over training times that A(z) is made of, each once and untransposed, and the means."""
    letters: dict[Letter, None] = {}
    means: dict[Mean, None] = {}
    for combination in _combinations(blocks):
        for _, word in combination:
            for letter in word:
                if isinstance(letter, Letter):
                    letters[letter.plain] = None
                else:
                    means.update(dict.fromkeys(sorted(letter.weight.atoms(Mean), key=sp.default_sort_key)))
    means.update(dict.fromkeys(number.average for number in blocks.projected.measured))
    for spread in blocks.projected.spreads:
        means.update(dict.fromkeys(mean for row in spread.covariances for mean in row))
    return tuple(sorted(letters, key=lambda x: x.name)), tuple(means)


def _combinations(blocks: BlockMatrix) -> list[Combination]:
    sides, asked = blocks.projected.directions, blocks.projected.alignments
    return [
        *(block.combination for _, block in blocks.blocks),
        *(combination for side in sides for _, combination in side.drive),
        *(((sp.S.One, (Letter.correlation(a, b),)),) for side in sides for a in side.fields for b in side.fields),
        *(combination for one in asked for combination in one.combinations),
        *(((sp.S.One, (_squares(one),)),) for one in asked),
    ]


def _squares(aligned: Aligned) -> Letter:
    """The matrix whose diagonal holds the mean squares of a direction."""
    return Letter.correlation(aligned.direction.field, aligned.direction.field)


@dataclass(frozen=True)
class RingProgram:
    """One ring of unknowns: its eigenproblem and its map."""

    pencil: Definition
    scalar_map: Definition
    relation: Definition | None
    inverse: Definition | None

    @property
    def functions(self) -> tuple[Definition, ...]:
        return tuple(f for f in (self.pencil, self.scalar_map, self.inverse, self.relation) if f is not None)


@dataclass(frozen=True)
class AlignedProgram:
    """A declared direction: `source` gives what it drives and its mean squares, `later` the equations of the overlaps
    that A(z) has not, `earlier` those of responses that only it drives, None where there are none; `time`: when it is
    taken, None for all times."""

    aligned: Aligned
    source: Definition
    later: Definition | None
    earlier: Definition | None
    time: Definition | None

    @property
    def functions(self) -> tuple[Definition | None, ...]:
        return self.source, self.later, self.earlier, self.time


@dataclass(frozen=True)
class ProbeProgram:
    unknowns: tuple[str, ...]
    a_matrix: Definition
    sides: tuple[tuple[str, Definition], ...]
    alignments: tuple[AlignedProgram, ...]
    rings: tuple[RingProgram, ...]
    reduced: bool
    steady: bool
    sites: Definition | None
    measured: tuple[str, ...]
    measure: Definition | None
    """What the training level gives to the bulk as parameters: their names, and their values."""


@dataclass(frozen=True)
class SpreadProgram:
    """Training fields on diagonals: their covariances, and whether they are the same however many steps there are."""

    spread: Spread
    covariances: Definition
    steady: bool


@dataclass(frozen=True)
class BulkProgram:
    responses: tuple[str, ...]
    resolvent: int
    equations: Definition
    curve_text: str | None
    curve: Definition | None
    edge_polynomials: Definition | None
    sites: Definition | None
    settles: bool
    """Whether a trait has a density, which is taken at so many values that nothing changes with more."""
    spreads: tuple[SpreadProgram, ...]
    images: tuple[tuple[str, int], ...] = ()
    sources: Definition | None = None
    slopes: Definition | None = None
    vanishing: tuple[int, ...] = ()


class _Spectral:
    """What functions of z, of the bulk responses and of the order parameters share."""

    def __init__(self, projected: ProjectedProbe, layout: Layout, means: tuple[Mean, ...]):
        self.projected, self.means = projected, means
        self.clock = layout.clock
        self.z, self.r, self.order, self.s = Symbol("z", SCALAR), Symbol("r"), Symbol("order"), Symbol("s", SCALAR)
        self.responses = {b: Symbol(b.name, SCALAR) for b in projected.bulk_symbols}
        steps = sp.S.One if self.clock is None else self.clock.steps
        self.steps, self.when = steps, Symbol("when", (steps,))
        self.coefficients = Coefficients(layout)
        self.letters: dict[Key, Symbol] = {}
        self.leaves: dict[sp.Symbol, Slot] = {b: Slot(Ref(made), b.name) for b, made in self.responses.items()}
        self.leaves |= {Z: Slot(Ref(self.z), "z"), MAP: Slot(Ref(self.s), "s"), PAST: Slot(Ref(self.when), "s")}
        found = {value.field for average in _averages(projected) for value in traits_in(average.expression)}
        made = tuple(normal for spread in projected.spreads for normal in spread.normals)
        self.traits: tuple[Trait, ...] = tuple(
            trait for trait in (*atoms(projected.system.model, Trait), *made) if trait in found
        )
        self.sites, self.nodes = Symbol("laws"), Symbol("nodes", SCALAR)
        self.values = {trait: Symbol(trait.name, (sp.Symbol("groups"),)) for trait in self.traits}
        self.laws = {trait: Symbol(f"law_{trait.name}") for trait in self.traits}

    def number(self, expression: sp.Expr) -> Formula:
        """A scalar, or weights over the times before the last update."""
        expression = sp.sympify(expression)
        averages = sorted(expression.atoms(SiteAverage), key=sp.default_sort_key)
        expression = expression.xreplace({node: Slot(self._over_sites(node), "average") for node in averages})
        inner: dict[sp.Basic, sp.Expr] = {}
        over = expression.has(PAST)
        for node in outermost(expression, (Mean, Total, AppliedUndef)):
            if isinstance(node, (Mean, Total)):
                inner[node] = Slot(self._mean(node), "mean")
            else:
                inner[node] = self.coefficients.at(node, self.number, (self.steps,))
        return Formula(expression.xreplace(inner).xreplace(self.leaves), (self.steps,) if over else SCALAR)

    def _over_sites(self, average: SiteAverage) -> Value:
        """The average of one site's response over the laws of its traits."""
        traits = [value.field for value in traits_in(average.expression)]
        slots = {trait(): Slot(Ref(self.values[trait]), trait.name) for trait in traits}
        body = Formula(self.number(average.expression.xreplace(slots)).expression, None)
        laws = (Ref(self.laws[trait]) for trait in traits)
        function = Function(tuple(self.values[trait] for trait in traits), body)
        return Call("over_sites", (Ref(self.z), function, *laws), SCALAR)

    def site_laws(self) -> Definition | None:
        """The laws of the traits that stand in the random part of the matrix."""
        if not self.traits:
            return None
        doc = "The laws of what differs from site to site: values, and the share of the sites that has each."
        result = Tuple(tuple(map(self._law, self.traits)))
        return Definition("sites", (PARAMETERS, self.nodes), doc, (), result)

    def _law(self, trait: Trait) -> Value:
        if isinstance(trait, SiteNormal):
            found = [a.expression for a in _averages(self.projected) if trait() in traits_in(a.expression)]
            broken = any(expression.has(*_BROKEN) for expression in found)
            return Call("standard_normal", (Ref(self.nodes), int(broken)), None)
        if trait.discrete:
            parts = (Tuple(tuple(map(self.number, some))) for some in (trait.values, trait.weights))
            return Call("discrete", tuple(parts), None)
        value = Symbol(VALUE.name, (sp.Symbol("values"),))
        formula = Formula(trait.density.xreplace({VALUE: Slot(Ref(value), VALUE.name)}), None)
        ends = (self.number(end) for end in trait.law[1:])
        return Call("density", (Function((value,), formula), *ends, Ref(self.nodes)), None)

    @property
    def given(self) -> tuple[Symbol, ...]:
        """What functions of the responses take besides them."""
        return (self.sites,) if self.traits else ()

    def driving(self, probe: Field) -> tuple[Symbol, ...]:
        """What functions take that tell what a source in the equation of a probe field drives."""
        return (self.z, self.r, self.order, *self.given) if probe in self.projected.differing else (self.order,)

    def _mean(self, average: Mean) -> Value:
        """A mean over the times before the last update, or one that is taken at a time."""
        table = Item(self.order, mean_key(average, self.means.index(average), self.clock), None)
        taken = weighing(average, self.clock)[1]
        return Call("by_time", (table,), None) if taken is None else Call("taken_at", (table, Formula(taken)), SCALAR)

    def taken(self, average: Mean) -> Value:
        """A mean at the one time at which it is taken, or of fields that have none."""
        found = self._mean(average)
        if isinstance(found, Call) and found.function == "by_time":
            return Call("taken_at", (*found.arguments, 0), SCALAR)
        return found

    def function(self, name: str, parameters: Iterable[Symbol], doc: str, result: Value) -> Definition:
        """A function with the tables of coefficients that its result needs."""
        used = symbols_in(result)
        body = list(self.coefficients.statements(used))
        for key, symbol in self.letters.items():
            if symbol in used:
                body.append(Let(symbol, Item(self.order, key, symbol.shape)))
        if self.when in used:
            body.append(Let(self.when, Call("arange", (Formula(self.steps),), self.when.shape)))
        taken = ((self.r, self.responses.values()), (self.sites, self.laws.values()))
        unpacked = tuple((whole, tuple(parts)) for whole, parts in taken if whole in parameters)
        return Definition(name, (PARAMETERS, *parameters), doc, tuple(body), result, unpacked)

    # -- matrices over training times

    def letter(self, letter: Letter | Diagonal) -> Value:
        if isinstance(letter, Letter):
            key = key_of(letter)
            if key not in self.letters:
                self.letters[key] = Symbol(_as_name(key), letter.shape)
            made = Ref(self.letters[key])
            return Transposed(made) if letter.transposed else made
        size = index_size(letter.field)
        labels = letter.field.labels
        return Call("diagonal", (self.number(letter.weight), Formula(size), Formula(labels)), (size, size))

    def word(self, word: Word, size: sp.Expr) -> Value:
        if not word:
            return Call("eye", (Formula(size),), (size, size))
        product = self.letter(word[0])
        for letter in word[1:]:
            product = MatMul(product, self.letter(letter))
        return product

    def combination(self, combination: Combination, rows: sp.Expr, columns: sp.Expr, sign: int = 1) -> Sum:
        terms = tuple((self.number(sign * scale), self.word(word, rows)) for scale, word in combination)
        return Sum(terms, (rows, columns))


def probe_program(pencil: Pencil, layout: Layout, means: tuple[Mean, ...]) -> ProbeProgram:
    blocks, projected = pencil.blocks, pencil.blocks.projected
    work = _Spectral(projected, layout, means)
    sizes = [u.size for u in projected.unknowns]
    rows = []
    for r, rows_size in enumerate(sizes):
        row: list[Value] = []
        for c, columns_size in enumerate(sizes):
            block = blocks.block(r, c)
            made = work.combination(block.combination, rows_size, columns_size, sign=-1)
            if block.scalar != 0:
                identity = (work.number(block.scalar), Call("eye", (Formula(rows_size),), (rows_size, columns_size)))
                made = Sum((identity, *made.terms), made.shape)
            row.append(made)
        rows.append(tuple(row))
    whole = Blocks(tuple(rows)) if rows else Sum((), (sp.S.Zero, sp.S.Zero))
    names = ", ".join(f"{u.kind}[{text(u.probe)}, {text(u.field)}]" for u in projected.unknowns)
    doc = f"A(z), one row of blocks per unknown: {names or 'there are none'}."
    a_matrix = work.function("a_matrix", (work.z, work.r, work.order, *work.given), doc, whole)
    sides = tuple((side.side, _side(work, side)) for side in projected.directions)
    asked = tuple(_aligned(work, number, aligned) for number, aligned in enumerate(projected.alignments))
    rings = tuple(_ring(work, pencil.divided, number, cycle) for number, cycle in enumerate(pencil.cycles))
    steady, sites = _steady(blocks, layout.clock), work.site_laws()
    measured = tuple(number.name for number in projected.measured)
    measure = _measure(work) if measured else None
    return ProbeProgram(blocks.labels, a_matrix, sides, asked, rings, not pencil.rest, steady, sites, measured, measure)


def _measure(work: _Spectral) -> Definition:
    numbers = work.projected.measured
    doc = "What the training level gives to the bulk: " + ", ".join(f"{x.name} = {text(x.average)}" for x in numbers)
    return work.function("measure", (work.order,), f"{doc}.", Tuple(tuple(work.taken(x.average) for x in numbers)))


def _as_name(key: Key) -> str:
    """A key as a name of a variable."""
    return "".join(c if c.isalnum() else "_" for c in "_".join(map(str, key)))


def _averages(projected: ProjectedProbe) -> set[SiteAverage]:
    """The averages over sites in the bulk, in A(z) and in what sources drive."""
    combinations = [combination for _, combination in projected.couplings]
    combinations += [combination for side in projected.directions for _, combination in side.drive]
    combinations += [combination for one in projected.alignments for combination in one.combinations]
    scales = [scale for combination in combinations for scale, _ in combination]
    sources = [value for some in (*projected.sources, *(s for _, s in projected.slopes)) for value in some]
    return {average for e in (*projected.bulk_equations, *scales, *sources) for average in e.atoms(SiteAverage)}


def _steady(blocks: BlockMatrix, clock: Clock | None) -> bool:
    """Whether neither A(z) nor the bulk depends on the number of steps otherwise than through their shapes, and
    through what is measured."""
    projected = blocks.projected
    if clock is None:
        return True
    if any(value.time is not None for spread in projected.spreads for value in spread.values):
        return False
    expressions = [*projected.bulk_equations, *(block.scalar for _, block in blocks.blocks)]
    for _, block in blocks.blocks:
        for scale, word in block.combination:
            expressions += [scale, *(letter.weight for letter in word if isinstance(letter, Diagonal))]
    return not any(sp.sympify(e).has(clock.steps) for e in expressions)


def _side(work: _Spectral, side: Directions) -> Definition:
    """The right-hand side for sources along the spikes, the rows that see them, and their Gram matrix."""
    unknowns, drive = work.projected.unknowns, dict(side.drive)

    def size(field: Field) -> sp.Expr:
        return index_size(field)

    def seen(f: Field, u: Unknown) -> Value:
        if u == Unknown("C", side.probe, f):
            return Call("eye", (Formula(size(f)),), (size(f), size(f)))
        return Sum((), (size(f), u.size))

    driven = tuple(
        tuple(work.combination(drive.get((r, c), ()), u.size, size(f)) for c, f in enumerate(side.fields))
        for r, u in enumerate(unknowns)
    )
    rows = tuple(tuple(seen(f, u) for u in unknowns) for f in side.fields)
    gram = tuple(tuple(work.letter(Letter.correlation(a, b)) for b in side.fields) for a in side.fields)
    names = ", ".join(text(f) for f in side.fields)
    doc = (
        f"For sources along {names}: the right-hand side of A(z) q = b,\n"
        "the rows of q that are its overlaps with them, and their Gram matrix.\n"
    ).rstrip()
    return work.function(
        f"{side.side}_spikes", work.driving(side.probe), doc, Tuple((Blocks(driven), Blocks(rows), Blocks(gram)))
    )


def _aligned(work: _Spectral, number: int, aligned: Aligned) -> AlignedProgram:
    """The source along a direction, what sees it, and when it is taken."""
    direction, unknowns = aligned.direction, work.projected.unknowns
    size, name, drive = index_size(direction.field), text(direction.field), dict(aligned.drive)
    everything = (*unknowns, *aligned.later)

    def seen(u: Unknown) -> Value:
        found = u == aligned.unknown
        return Call("eye", (Formula(size),), (size, size)) if found else Sum((), (size, u.size))

    def driven(some: tuple[Unknown, ...], first: int) -> Blocks:
        return Blocks(tuple((work.combination(drive.get(first + r, ()), u.size, size),) for r, u in enumerate(some)))

    doc = (
        f"For a source along {name}: the right-hand side of A(z) q = b,\n"
        "the rows that are its overlaps with it among those of q and of what it adds,\n"
        "and the matrix with its mean squares on the diagonal.\n"
    ).rstrip()
    result = Tuple((driven(unknowns, 0), Blocks((tuple(map(seen, everything)),)), work.letter(_squares(aligned))))
    source = work.function(f"along_{number}", work.driving(aligned.probe), doc, result)
    later = earlier = time = None
    if aligned.later:
        doc = f"The equations of the overlaps that {name} adds to those of A(z)."
        rows = _equations(work, aligned.later, everything, dict(aligned.couplings))
        later = work.function(f"later_{number}", (work.z, work.r, work.order, *work.given), doc, rows)
    if aligned.earlier:
        doc = (
            f"The equations of the responses that a source along {name} drives, what it drives them with,\n"
            "and what they add to the right-hand side of A(z) q = b.\n"
        ).rstrip()
        feeds = dict(aligned.feeds)
        added = Blocks(
            tuple(
                tuple(work.combination(feeds.get((r, c), ()), u.size, v.size) for c, v in enumerate(aligned.earlier))
                for r, u in enumerate(unknowns)
            )
        )
        rows = _equations(work, aligned.earlier, aligned.earlier, dict(aligned.sources))
        whole = Tuple((rows, driven(aligned.earlier, len(unknowns)), added))
        earlier = work.function(f"earlier_{number}", (work.z, work.r, work.order, *work.given), doc, whole)
    if direction.time is not None and direction.time != work.clock:
        time = work.function(f"time_{number}", (), f"The time of {text(direction)}.", work.number(direction.time))
    return AlignedProgram(aligned, source, later, earlier, time)


def _equations(
    work: _Spectral,
    rows: tuple[Unknown, ...],
    columns: tuple[Unknown, ...],
    couplings: dict[tuple[int, int], Combination],
) -> Blocks:
    """Propagators minus couplings, one row of blocks per unknown."""
    propagator = dict(work.projected.propagator)
    index = {probe: i for i, probe in enumerate(work.projected.probes)}
    table: list[tuple[Value, ...]] = []
    for r, unknown in enumerate(rows):
        found: list[Value] = []
        for c, other in enumerate(columns):
            made = work.combination(couplings.get((r, c), ()), unknown.size, other.size, sign=-1)
            same = (unknown.kind, unknown.field) == (other.kind, other.field)
            scalar = propagator.get((index[unknown.probe], index[other.probe]), sp.S.Zero) if same else sp.S.Zero
            if unknown.probe in work.projected.differing:
                scalar = sp.S.One if unknown == other else sp.S.Zero
            if scalar != 0:
                identity = (work.number(scalar), Call("eye", (Formula(unknown.size),), (unknown.size, other.size)))
                made = Sum((identity, *made.terms), made.shape)
            found.append(made)
        table.append(tuple(found))
    return Blocks(tuple(table))


def _ring(work: _Spectral, blocks: BlockMatrix, number: int, cycle: Cycle) -> RingProgram:
    unknowns = blocks.projected.unknowns
    product: Value | None = None
    for group, following in zip(cycle.groups, (*cycle.groups[1:], cycle.groups[0]), strict=True):
        coupling = Blocks(
            tuple(
                tuple(
                    work.combination(blocks.block(r, c).combination, unknowns[r].size, unknowns[c].size)
                    for c in following
                )
                for r in group
            )
        )
        product = coupling if product is None else MatMul(product, coupling)
    assert product is not None
    doc = "The constant matrix: its eigenvalues are the values of the scalar map at the outliers."
    pencil = work.function(f"pencil_{number}", (work.order,), doc, product)
    doc = f"s(z) = {text(cycle.scalar_map)}"
    given = (work.z, work.r, *work.given)
    scalar_map = work.function(f"scalar_map_{number}", given, doc, work.number(cycle.scalar_map))
    inverse = relation = None
    if cycle.inverse is not None:
        doc = f"z(s) = {text(cycle.inverse)}"
        inverse = work.function(f"inverse_map_{number}", (work.s,), doc, work.number(cycle.inverse))
    if cycle.relation is not None:
        coefficients = Tuple(tuple(work.number(c) for c in sp.Poly(cycle.relation, Z).all_coeffs()))
        doc = "Coefficients in z, highest power first, of the polynomial relation between z and the map."
        relation = work.function(f"relation_{number}", (work.s,), doc, coefficients)
    return RingProgram(pencil, scalar_map, relation, inverse)


def bulk_program(bulk: Bulk, layout: Layout, means: tuple[Mean, ...] = ()) -> BulkProgram:
    projected = bulk.projected
    work = _Spectral(projected, layout, means)
    symbols = projected.bulk_symbols
    doc = "Each is zero at the bulk responses r at z, and vanishes as z grows:\n" + "\n".join(
        f"0 = {text(e)}" for e in projected.bulk_equations
    )
    residual = Tuple(tuple(map(work.number, projected.bulk_equations)))
    equations = work.function("equations", (work.z, work.r, *work.given), doc, residual)
    curve = edges = None
    if bulk.curve is not None:
        poly = sp.Poly(bulk.curve, projected.resolvent, Z)
        top = poly.degree(projected.resolvent), poly.degree(Z)
        table = Tuple(
            tuple(
                Tuple(tuple(work.number(poly.coeff_monomial(projected.resolvent**i * Z**j)) for j in range(top[1] + 1)))
                for i in range(top[0] + 1)
            )
        )
        doc = "Table c with sum_ij c[i][j] G^i z^j = 0 on the curve of the resolvent."
        curve = work.function("curve", (), doc, table)
        polynomials = Tuple(
            tuple(Tuple(tuple(map(work.number, sp.Poly(f, Z).all_coeffs()))) for f in bulk.edge_factors)
        )
        doc = "Polynomials in z, highest power first: every edge of the support is a real root of one of them."
        edges = work.function("edge_polynomials", (), doc, polynomials)
    sources = None
    if projected.sources:
        names = ", ".join(name for name, _ in projected.images)
        doc = f"How each equation changes with epsilon in the matrix M + epsilon A, at epsilon = 0, for A: {names}."
        rates = Tuple(tuple(Tuple(tuple(map(work.number, some))) for some in projected.sources))
        sources = work.function("sources", (work.z, work.r, *work.given), doc, rates)
    slopes = None
    if projected.slopes:
        names = ", ".join(symbol.name for symbol, _ in projected.slopes)
        doc = f"How each equation changes with responses that vanish at epsilon = 0: {names}."
        rates = Tuple(tuple(Tuple(tuple(map(work.number, some))) for _, some in projected.slopes))
        slopes = work.function("slopes", (work.z, work.r, *work.given), doc, rates)
    return BulkProgram(
        tuple(s.name for s in symbols),
        symbols.index(projected.resolvent),
        equations,
        None if bulk.curve is None else str(bulk.curve.xreplace({Z: sp.Symbol("{z}")})),
        curve,
        edges,
        work.site_laws(),
        any(not trait.discrete for trait in work.traits),
        tuple(_spread(work, number, spread) for number, spread in enumerate(projected.spreads)),
        tuple((name, symbols.index(symbol)) for name, symbol in projected.images),
        sources,
        slopes,
        tuple(symbols.index(symbol) for symbol, _ in projected.slopes),
    )


def _spread(work: _Spectral, number: int, spread: Spread) -> SpreadProgram:
    """The covariances of training fields on diagonals, rows of the lower triangle."""
    rows = Tuple(tuple(Tuple(tuple(work.taken(mean) for mean in row)) for row in spread.covariances))
    names = ", ".join(text(value) for value in spread.values)
    doc = f"The covariances, of a site, of {names}: rows of the lower triangle."
    made = work.function(f"covariances_{number}", (work.order,), doc, rows)
    return SpreadProgram(spread, made, all(value.time is None for value in spread.values))
