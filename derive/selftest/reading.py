"""Conversion of a declared model to a draft, so that laws act on users' declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import sympy as sp
from sympy.core.relational import Relational

from derive.language.alignments import Alignment
from derive.language.contents import atoms
from derive.language.data import Data, DataAt, EntriesAt, RootAt
from derive.language.diagonals import DiagonalMatrix
from derive.language.laws import DrawnLaw
from derive.language.matrices import (
    Disorder,
    DisorderAt,
    Dyad,
    MatrixAtom,
    ProductOfMatrices,
    SumOfMatrices,
    Weights,
    WeightsAt,
)
from derive.language.model import Model
from derive.language.symbols import Axis, Clock, Domain, Sector
from derive.language.traits import VALUE, Trait
from derive.language.traversal import ByKind
from derive.language.vectors import PAST, Apply, Each, Field, FieldAt, Mean, Mix, PastSum, Project, Softmax, Total
from derive.selftest import drafts
from derive.selftest.drafts import Draft, DraftEquation, Node, call, name, number, outer, pruned, root
from derive.words import LANGUAGE


def draft_of_model(model: Model, values: Mapping[str, Any], layers: Iterable[str] | None = None) -> Draft:
    """Return the declaration of a model as a draft, at values of its parameters and arrays.

    `layers` are the labels of the probes to keep; all if None.
    """
    kept = [label for label, _ in model.probes] if layers is None else list(layers)
    reader = _ModelReader(model)
    return pruned(
        Draft(
            reader.sectors(),
            tuple(
                drafts.DraftParameter(p.name, Fraction(repr(values[p.name])), _domain(p.domain))
                for p in model.parameters
            ),
            reader.clock(),
            tuple(map(reader.matrix_symbol, atoms(model, Disorder))),
            tuple(map(reader.vector, (f for f in atoms(model, Field) if f.is_drawn))),
            tuple(map(reader.vector, (f for f in atoms(model, Field) if f.role == "field" and not f.is_drawn))),
            tuple(drafts.DraftWeights(w.name, w.shape[0].name, w.shape[1].name) for w in atoms(model, Weights)),
            tuple(DraftEquation(e.name, reader.target(e.time), reader.tree(e.value)) for e in model.equations),
            tuple((label, reader.tree(value)) for label, value in (*model.observe, *model.alignments)),
            tuple((label, reader.probe(value)) for label, value in model.probes if label in kept),
            tuple(reader.data(d, values[d.name]) for d in atoms(model, Data)),
            tuple(map(reader.trait, atoms(model, Trait))),
            tuple(
                drafts.DraftAxis(a.name, a.size.name if a.size.is_Symbol else int(a.size)) for a in atoms(model, Axis)
            ),
            responses=model.responses,
        )
    )


def _domain(domain: Domain) -> str:
    """Return a domain as source text."""
    from derive.language import symbols

    for word in LANGUAGE["derive.language.symbols"]:
        if getattr(symbols, word) == domain:
            return word
    ends = [f"{end!r}" if abs(end) != float("inf") else f'float("{end}")' for end in (domain.low, domain.high)]
    more = [f"{word}=True" for word in ("low_included", "high_included", "whole") if getattr(domain, word)]
    return f"Domain({', '.join((*ends, *more))})"


_CONSTANTS = {sp.pi: "pi", sp.E: "E", sp.oo: "oo"}
_RELATIONS = {sp.Gt: "Gt", sp.Ge: "Ge", sp.Lt: "Lt", sp.Le: "Le"}


class _ModelReader:
    """Conversion of the expressions of one model to trees."""

    def __init__(self, model: Model):
        self.model = model

    def sectors(self) -> tuple[drafts.DraftSector, ...]:
        """Return the sectors, base first; an unused base gets a name of its own."""
        sectors = [drafts.DraftSector(s.name, self.tree(s.ratio)) for s in atoms(self.model, Sector)]
        base = next((s for s in sectors if s.ratio == drafts.ONE), None)
        if base is None:
            taken = {symbol.name for symbol in (*self.model.symbols, *self.model.parameters)}
            word = next(w for w in ("base", *(f"base{k}" for k in range(2, 1000))) if w not in taken)
            base = drafts.DraftSector(word)
        return (base, *(s for s in sectors if s is not base))

    def clock(self) -> drafts.DraftClock | None:
        clocks = [*atoms(self.model, Clock)]
        return drafts.DraftClock(clocks[0].name, clocks[0].steps.name, clocks[0].endpoint) if clocks else None

    def matrix_symbol(self, m: Disorder) -> drafts.DraftMatrix:
        kind = "goe" if m.symmetric else "gaussian" if m.fresh is None else "fresh"
        variance = m.variance * m.rows if m.symmetric else m.variance
        return drafts.DraftMatrix(m.name, kind, m.rows.name, m.columns.name, self.tree(variance))

    def vector(self, f: Field) -> drafts.DraftVector:
        law = self.tree(f.law) if f.is_drawn and f.role != "normal" else None
        kind, axes = "timed" if f.timed else "static", tuple(axis.name for axis in f.axes)
        return drafts.DraftVector(f.name, f.sector.name, kind, self.tree(f.scale), axes, law)

    def trait(self, f: Trait) -> drafts.DraftTrait:
        if not f.discrete:
            density = tuple(self.tree(part) for part in f.law)
            return drafts.DraftTrait(f.name, f.sector.name, density=density)
        if not f.weights:
            return drafts.DraftTrait(f.name, f.sector.name, given=f.values.name)
        values, shares = (tuple(map(self.tree, some)) for some in (f.values, f.weights))
        return drafts.DraftTrait(f.name, f.sector.name, values=values, shares=shares)

    def data(self, d: Data, values: Any) -> drafts.DraftData:
        def nested(numbers: Any) -> drafts.Numbers:
            return tuple(map(nested, numbers)) if isinstance(numbers, list) else float(numbers)

        axes = tuple(axis.name for axis in d.axes)
        return drafts.DraftData(d.name, axes, d.clock is not None, values=nested(values.tolist()), optional=d.optional)

    def probe(self, spectrum: Any) -> Node:
        matrix, *between = map(self.tree, spectrum.matrices)
        if not spectrum.plus and not between:
            return matrix
        named = [part for (word, _), other in zip(spectrum.between, between, strict=True) for part in (word, other)]
        return Node("probe", (matrix, spectrum.plus, *named))

    def target(self, time: sp.Expr | None) -> str:
        """Return the time of an equation: t, t + 1, an integer, or nothing."""
        if time is None or time.is_Integer:
            return "" if time is None else str(time)
        (clock,) = time.atoms(Clock)
        ahead = int(time - clock)
        return f"t + {ahead}" if ahead else "t"

    # expressions

    @ByKind
    def tree(self, expression: Any, past: bool = False) -> Node:
        """Return an expression, a matrix or a law as a tree; `past`: inside a sum over earlier times."""
        if expression.is_Rational:
            return number(Fraction(int(expression.p), int(expression.q)))
        if expression in (PAST, VALUE):
            return Node("index", ())
        if expression.is_Symbol:
            return name(expression.name)
        arguments = [self.tree(arg, past) for arg in expression.args]
        if expression.is_Add or expression.is_Mul:
            return Node("sum" if expression.is_Add else "product", tuple(arguments))
        if expression.is_Pow:
            return self._power(*arguments)
        word = _CONSTANTS.get(expression) or type(expression).__name__
        return call(word, *arguments)

    def _power(self, base: Node, exponent: Node) -> Node:
        value = exponent.args[0] if exponent.op == "number" else None
        if not isinstance(value, Fraction):
            return base**exponent
        if value.denominator == 2:
            return root(base) ** value.numerator
        return base ** int(value) if value.denominator == 1 else base**exponent

    # matrices

    @tree.on(SumOfMatrices)
    def _(self, matrix: SumOfMatrices, past: bool = False) -> Node:
        terms = [drafts.times(self.tree(scale), self.tree(part)) for scale, part in matrix.terms]
        return drafts.add(*terms) if terms else number(0)

    @tree.on(ProductOfMatrices)
    def _(self, matrix: ProductOfMatrices, past: bool = False) -> Node:
        return Node("matmul", tuple(map(self.tree, matrix.factors)))

    @tree.on(Dyad)
    def _(self, matrix: Dyad, past: bool = False) -> Node:
        return outer(self.tree(matrix.left), self.tree(matrix.right))

    @tree.on(DiagonalMatrix)
    def _(self, matrix: DiagonalMatrix, past: bool = False) -> Node:
        return Node("diag", (self.tree(matrix.entries),))

    @tree.on(MatrixAtom)
    def _(self, matrix: MatrixAtom, past: bool = False) -> Node:
        found = self.tree(matrix.symbol)
        return found.T if matrix.transposed else found

    @tree.on(Disorder)
    def _(self, symbol: Disorder, past: bool = False) -> Node:
        return Node("matrix", (symbol.name,))

    @tree.on(DisorderAt)
    def _(self, symbol: DisorderAt, past: bool = False) -> Node:
        return self._timed("fresh", symbol.disorder.name, symbol.time, past)

    @tree.on(WeightsAt)
    def _(self, symbol: WeightsAt, past: bool = False) -> Node:
        return self._timed("weights", symbol.weights.name, symbol.time, past)

    # vectors and numbers

    def _timed(self, op: str, word: str, time: sp.Expr | None, past: bool, *more: Any) -> Node:
        """Return a node at a time, as a delay if the time is the clock minus a number."""
        if time is None:
            return Node(op, (word, None, *more))
        for index in (PAST,) if past else tuple(time.atoms(Clock)):
            if (time - index).is_Integer:
                return Node(op, (word, int(index - time), *more))
        node = Node(op, (word, self.tree(time, past), *more))
        if past and time.atoms(Clock):
            return Node("now", (self._timed(op, word, time, False, *more),))
        return node

    @tree.on(FieldAt)
    def _(self, node: FieldAt, past: bool = False) -> Node:
        return self._timed("at", node.field.name, node.time, past)

    @tree.on(Apply)
    def _(self, node: Apply, past: bool = False) -> Node:
        matrix = self.tree(node.matrix, past)
        return Node("apply", (matrix.T if node.transposed else matrix, self.tree(node.vector, past)))

    @tree.on(Project)
    def _(self, node: Project, past: bool = False) -> Node:
        left, right, vector = (self.tree(part, past) for part in node.args)
        return Node("apply", (outer(left, right), vector))

    @tree.on(Mix)
    def _(self, node: Mix, past: bool = False) -> Node:
        inner = self.tree(node.vector, past)
        if node.table.data is None:
            for old, new in zip(node.table.columns, node.table.named, strict=True):
                inner = inner if old == new else Node("relabel", (inner, old.name, new.name))
            return inner
        how = ("root",) if isinstance(node.table, RootAt) else ()
        word, time = node.table.data.name, node.table.time
        return self._timed("mix", word, time, past, int(node.transposed), inner, *how)

    @tree.on(Total)
    def _(self, node: Total, past: bool = False) -> Node:
        inner = self.tree(node.expression, past)
        return Node("total", (inner,)) if node.axis is None else Node("total_over", (inner, node.axis.name))

    @tree.on(Softmax)
    def _(self, node: Softmax, past: bool = False) -> Node:
        return Node("softmax", (self.tree(node.expression, past), node.axis.name))

    @tree.on(Each)
    def _(self, node: Each, past: bool = False) -> Node:
        return Node("each", (self.tree(node.expression, past),))

    @tree.on(Mean)
    def _(self, node: Mean, past: bool = False) -> Node:
        return drafts.mean(self.tree(node.expression, past))

    @tree.on(PastSum)
    def _(self, node: PastSum, past: bool = False) -> Node:
        end = node.limits[0][2] + 1
        (clock,) = end.atoms(Clock)
        later = int(end - clock)
        return Node("past", (self.tree(node.function, True), *((later,) if later else ())))

    @tree.on(DataAt)
    def _(self, node: DataAt, past: bool = False) -> Node:
        return self._timed("data", node.data.name, node.time, past)

    @tree.on(EntriesAt)
    def _(self, node: EntriesAt, past: bool = False) -> Node:
        return self._timed("entries", node.data.name, node.time, past)

    @tree.on(Alignment)
    def _(self, node: Alignment, past: bool = False) -> Node:
        return Node("alignment", (self.tree(node.direction),))

    @tree.on(sp.Piecewise)
    def _(self, node: sp.Piecewise, past: bool = False) -> Node:
        cases = [self.tree(part, past) for pair in node.args for part in pair if part != sp.true]
        return Node("cases", tuple(cases))

    @tree.on(*_RELATIONS)
    def _(self, node: Relational, past: bool = False) -> Node:
        return drafts.compare(_RELATIONS[node.func], self.tree(node.lhs, past), self.tree(node.rhs, past))

    @tree.on(DrawnLaw)
    def _(self, law: DrawnLaw, past: bool = False) -> Node:
        if law.kind not in ("discrete", "mixture"):
            return Node("law", (law.kind, *map(self.tree, law.args[1:])))
        shares, others = (Node("list", tuple(map(self.tree, some))) for some in law.args[1:])
        return Node("law", (law.kind, *((others, shares) if law.kind == "discrete" else (shares, others))))
