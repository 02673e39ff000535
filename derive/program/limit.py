"""Lowering of linear time-invariant training to records: its stationary limit, and its recursion.

`numerics.limit.linear_sites` assembles matrices over labels from their terms and formulas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.errors import DeclarationError
from derive.language.data import DataAt, EntriesAt, RootAt
from derive.language.symbols import EngineSymbol, labels_along
from derive.language.traits import Trait
from derive.language.traversal import ByKind, outermost
from derive.language.vectors import Each, Field, LabelSelection, Mean, Mix, Softmax, Total, axes_of, shown
from derive.program import nodes as ir
from derive.program.labels import apart, selection
from derive.program.text import PARAMETERS, ModuleText
from derive.program.traits import law_of
from derive.records.limit import LinearPart, LinearSites, Overlap, Recursion, StationaryLimit
from derive.records.system import Mixing

DOC = (
    "Linear training, with w for a delay by one step: the laws of a site, their stationary limit, and the "
    "step that is repeated."
)


@dataclass(frozen=True)
class LinearProgram:
    """One record of the module `linear.py`: the structure of the linear laws, and its own entries."""

    name: str
    kind: str
    structure: ir.RuntimeRecord
    own: ir.RuntimeRecord


class LinearPrograms:
    """The stationary limit and the recursion of a setting; laws that they share are written once."""

    def __init__(self) -> None:
        self.values: dict[Trait, ir.Symbol] = {}
        self.laws: dict[tuple[Trait, ...], ir.Definition] = {}

    def limit(self, limit: StationaryLimit) -> LinearProgram:
        """Return the stationary limit as a record."""
        lowering = _Lowering(limit, self)
        means = dict(zip((symbol for symbol, _ in limit.mean_symbols), limit.means, strict=True))
        own = {
            "drives": tuple(map(lowering.term, limit.drives)),
            "variances": tuple(lowering.coefficient(source.scale**2) for source in limit.sources),
            "means": tuple(tuple(lowering.product(*pair) for pair in pairs) for pairs in means.values()),
            "observables": tuple(name for name, _ in limit.observables),
            "forgotten": limit.forgotten,
            "observing": lowering.observing(limit),
        }
        return LinearProgram("LIMIT", "LimitOf", lowering.structure(), ir.RuntimeRecord("", (), own))

    def recursion(self, recursion: Recursion) -> LinearProgram:
        """Return the recursion, the step that training repeats, as a record."""
        lowering = _Lowering(recursion, self)
        own = {
            "observed": tuple((name, tuple(f.name for f in fields)) for name, fields in recursion.observed),
            "stirred": tuple(field.name for field in recursion.stirred),
            "overlaps": tuple(lowering.overlap(recursion, overlap) for overlap in recursion.overlaps),
            "renewed": tuple(source.name for source in recursion.sources if source.timed),
        }
        return LinearProgram("RECURSION", "RecursionOf", lowering.structure(), ir.RuntimeRecord("", (), own))


def linear_text(programs: Sequence[LinearProgram], runtime: str) -> str:
    """Return the text of `linear.py`, the module of the stationary limit and the recursion."""
    return _LinearText(runtime).module(programs)


class _LinearText(ModuleText):
    """Prints a module of records with their formulas in place; equal laws appear once."""

    sources = (*ModuleText.sources, "exact", "linear")

    def __init__(self, runtime: str):
        super().__init__(runtime, ())

    def module(self, programs: Sequence[LinearProgram]) -> str:
        records = [record for program in programs for record in (program.structure, program.own)]
        functions = tuple(dict.fromkeys(f for record in records for f in record.functions))
        for symbol in (PARAMETERS, *(symbol for f in functions for symbol in f.parameters)):
            self.names.of(symbol)
        body = [line for function in functions for line in self.text.function(function)]
        laws: dict[str, str] = {}
        for program in programs:
            code = self.offered(program.structure)
            if code not in laws:
                laws[code] = "SITES" if not laws else f"SITES_OF_{program.name}"
                body.append(f"{laws[code]} = {code[:-1]},)")  # one line per entry
            own = "".join(f"{word}={self.offered(value)}," for word, value in program.own.named.items())
            body.append(f"{program.name} = {self.called(program.kind)}(**vars({laws[code]}), {own})")
        return self.whole(DOC, body, ())


class _Lowering:
    """Lowers linear laws to records of `numerics.runtime.linear`.

    `programs` holds the laws shared within one setting.
    """

    def __init__(self, linear: LinearSites, programs: LinearPrograms):
        self.linear, self.programs = linear, programs
        self.values = {t: programs.values.setdefault(t, ir.Symbol(t.name, ir.SCALAR)) for t in linear.traits}

    def structure(self) -> ir.RuntimeRecord:
        linear = self.linear
        named = {
            "fields": tuple(map(self.site_field, linear.fields)),
            "sources": tuple(map(self.site_field, linear.sources)),
            "traits": tuple((trait.name, trait.sector.name) for trait in linear.traits),
            "operator": tuple(self.operator()),
            "memories": tuple(
                ir.RuntimeRecord(
                    "MemoryTerm",
                    (m.target.name, m.on.name, self.coefficient(m.coefficient), (m.a.name, m.noise.name)),
                    {"fresh": m.fresh or None},
                )
                for m in linear.memories
            ),
            "covariances": tuple(
                ir.RuntimeRecord(
                    "NoiseCovariance",
                    (c.left.name, c.right.name, self.coefficient(c.coefficient), (c.a.name, c.b.name)),
                    {"fresh": c.fresh or None},
                )
                for c in linear.covariances
            ),
            "settles": any(not trait.discrete for trait in linear.traits),
            "sites": self.site_laws(),
        }
        return ir.RuntimeRecord("LinearSitesOf", (), named)

    def site_field(self, field: Field) -> ir.RuntimeRecord:
        labels = ir.Function((PARAMETERS,), ir.Formula(labels_along(field.axes))) if field.labelled else None
        return ir.RuntimeRecord("SiteField", (field.name, field.sector.name), {"labels": labels})

    def operator(self) -> Iterator[ir.RuntimeRecord]:
        """Yield the terms of the site operator S(w) = 1 - parts."""
        rows: dict[Field, dict[tuple[Field, Mixing | None], dict[int, sp.Expr]]] = {
            field: {(field, None): {0: sp.S.One}} for field in self.linear.fields
        }
        for part in self.linear.parts:
            powers = rows[part.target].setdefault((part.of, part.mixing), {})
            powers[part.delay] = powers.get(part.delay, sp.S.Zero) - part.coefficient
        for target, row in rows.items():
            for (of, mixing), powers in row.items():
                for (delay, power), coefficient in _at_rest_first(powers).items():
                    yield self.term(LinearPart(target, of, coefficient, delay + power, power, mixing))

    def term(self, part: LinearPart) -> ir.RuntimeRecord:
        """Return a part as powers of w: z^power (1 + z)^-delay = (1 - w)^power w^(delay - power)."""
        named = {
            "delay": part.delay - part.power or None,
            "power": part.power or None,
            "acting": self.acting(part.mixing, part.of),
        }
        return ir.RuntimeRecord(
            "LinearTerm", (part.target.name, part.of.name, self.coefficient(part.coefficient)), named
        )

    def acting(self, mixing: Mixing | None, of: Field) -> ir.Function | None:
        """Return the table that acts on the labels of a field; None for the identity."""
        if mixing is None:
            return None
        if mixing.table is None:
            return ir.Function((PARAMETERS,), ir.Call("summing", (labels_along(of.axes),), None))
        table = _given(mixing.table)
        return ir.Function((PARAMETERS,), ir.Transposed(table) if mixing.transposed else table)

    def product(self, scale: sp.Expr, a: Field | None, b: Field | None) -> ir.RuntimeRecord:
        inside = [trait.sector for trait in self.linear.traits if sp.sympify(scale).has(trait())]
        sector = next(iter([*(f.sector for f in (a, b) if f is not None), *inside, self.linear.fields[0].sector]))
        names = tuple(f.name for f in (a, b) if f is not None)
        return ir.RuntimeRecord("MeanProduct", (self.coefficient(scale), sector.name, *names))

    def overlap(self, recursion: Recursion, overlap: Overlap) -> ir.RuntimeRecord:
        terms = tuple(
            ir.RuntimeRecord("PlantedTerm", (use.target.name, use.source.name, self.coefficient(use.coefficient)))
            for use in recursion.overlap_terms
            if use.overlap == overlap
        )
        variance = self.coefficient(overlap.scale * overlap.source.scale**2)
        entries = (overlap.source.name, overlap.field.name, overlap.delay, variance, terms)
        return ir.RuntimeRecord("PlantedOverlap", entries)

    # -- formulas

    def coefficient(self, expression: sp.Expr) -> ir.Function:
        return ir.Function((PARAMETERS, *self.values.values()), self._formula(expression))

    def _formula(self, expression: sp.Expr) -> ir.Formula:
        expression = sp.sympify(expression)
        for node in outermost(expression, (Mean, Mix, Total, AppliedUndef)):
            raise DeclarationError(
                f"the coefficient {shown(expression)} contains {shown(node)}, for which no limit of many steps is "
                "derived; solve it at a large T"
            )
        slots: dict[sp.Basic, sp.Expr] = {trait(): ir.Slot(ir.Ref(s), trait.name) for trait, s in self.values.items()}
        slots |= {node: ir.Slot(_column(node), shown(node)) for node in expression.atoms(DataAt)}
        return ir.Formula(expression.xreplace(slots), None)

    def site_laws(self) -> ir.Definition:
        cached, traits = self.programs.laws, tuple(self.linear.traits)
        if traits not in cached:
            doc = "The laws of what differs from site to site: values, and the share of the sites that has each."
            nodes = ir.Symbol("nodes", ir.SCALAR)
            laws = ir.Tuple(tuple(law_of(trait, (ir.Ref(nodes),), self._formula) for trait in traits))
            name = f"sites_{len(cached)}" if cached else "sites"
            cached[traits] = ir.Definition(name, (PARAMETERS, nodes), doc, (), laws)
        return cached[traits]

    def observing(self, limit: StationaryLimit) -> ir.Definition:
        m, means = ir.Symbol("m"), dict(limit.mean_symbols)
        symbols = {symbol: ir.Symbol(symbol.name) for symbol in means}
        rows = {symbol: ir.Slot(ir.Ref(row), symbol.name) for symbol, row in symbols.items()}
        definitions = (f"{symbol} = {shown(mean)}" for symbol, mean in means.items())
        doc = "\n".join(("The observables from stationary means, each a row with one number per label:", *definitions))
        observables = ir.Tuple(tuple(_observed(value, rows, means) for _, value in limit.observables))
        return ir.Definition("observing", (PARAMETERS, m), doc, (), observables, ((m, tuple(symbols.values())),))


def _at_rest_first(powers: dict[int, sp.Expr]) -> dict[tuple[int, int], sp.Expr]:
    """Rewrite a polynomial in w as its value at w = 1 plus multiples of 1 - w^d.

    Since 1 - w^d = (1 - w)(1 + w + ...), nothing cancels numerically near the stationary limit w = 1. A single power is
    kept.
    """
    powers = {delay: value for delay, value in powers.items() if value != 0}
    if len(powers) < 2:
        return {(delay, 0): value for delay, value in powers.items()}
    terms = {(0, 0): sp.Add(*powers.values())}
    for k in range(max(powers)):
        terms[k, 1] = -sp.Add(*(value for delay, value in powers.items() if delay > k))
    shortest = {key: min(value, sp.expand(value), key=sp.count_ops) for key, value in terms.items()}
    return {key: value for key, value in shortest.items() if value != 0}


def _observed(value: sp.Expr, rows: dict[EngineSymbol, ir.Slot], means: dict[EngineSymbol, Mean]) -> ir.Value:
    """Return an observable, averaged over labels outside total(...) and each(...)."""
    if isinstance(value, Each):
        return apart(_by_label(value.expression, rows), value.expression.xreplace(means))
    inner: dict[sp.Basic, sp.Expr] = {}
    for node in outermost(value, (Total,)):
        summed = ir.Call("total_of_labels", (_by_label(node.expression, rows),), None)
        inner[node] = ir.Slot(summed, shown(node))
    averaged = {
        symbol: ir.Slot(ir.Call("mean_of_labels", (row.value,), None), symbol.name) if axes_of(means[symbol]) else row
        for symbol, row in rows.items()
    }
    return ir.Formula(value.xreplace(inner).xreplace(averaged), None)


def _by_label(expression: sp.Expr, rows: dict[EngineSymbol, ir.Slot]) -> ir.Value:
    inner: dict[sp.Basic, sp.Expr] = {}
    arrays = {node for node in expression.atoms(DataAt) if node.time is None}
    for node in outermost(expression, (DataAt, Mix, Softmax, Total)):
        if node not in arrays:
            raise DeclarationError(
                f"an observable contains {shown(node)}, for which no limit of many steps is derived; leave it out"
            )
        turned = (int(node.turned),) if node in expression.atoms(EntriesAt) else ()
        inner[node] = ir.Slot(ir.Call("given_series", (ir.Formula(node.data, None), 0, 0, *turned), None), shown(node))
    return ir.Formula(expression.xreplace(inner).xreplace(rows), None)


@ByKind
def _given(node: DataAt) -> ir.Value:
    return ir.Call("given", (ir.Formula(node.data, None), None, 0), None)


_given.on(LabelSelection)(selection)


@_given.on(RootAt)
def _(node: RootAt) -> ir.Value:
    return ir.Call("root", (_given.default(node),), None)


@ByKind
def _column(node: DataAt) -> ir.Value:
    """Return data with one axis, or the entries of a table, as a column."""
    return _given(node)


@_column.on(EntriesAt)
def _(node: EntriesAt) -> ir.Value:
    table = ir.Transposed(_given(node)) if node.turned else _given(node)
    return ir.Call("listed", (table,), (labels_along(axes_of(node)), sp.S.One))
