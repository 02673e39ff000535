"""Fields that share sites in a sampled forward pass, and the bases that represent their past.

Sites fall into independent groups where no law, memory or average connects their fields, such as the layers of a
network. Within a group the past is stored in orthonormal bases over sites: each remembered field has coordinates in one
of them. A multiple of another field needs no basis vectors of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from derive.algebra.scaling import size_free
from derive.equations.layout import Layout
from derive.equations.needs import Needs
from derive.language.matrices import Disorder
from derive.language.traits import traits_in
from derive.language.vectors import Field, FieldAt, Mean
from derive.records.system import DisorderRule, Rule, SystemField, Term


@dataclass(frozen=True)
class SiteChannel:
    """A random matrix, or its transpose, with the fields that it acts on and their products."""

    matrix: Disorder
    transposed: bool
    arguments: tuple[Field, ...]
    products: tuple[Field, ...]

    @property
    def hint(self) -> str:
        return f"{self.matrix}{'T' if self.transposed else ''}"

    @property
    def fresh(self) -> bool:
        """Whether the matrix is drawn anew at every time."""
        return self.matrix.fresh is not None


@dataclass(frozen=True)
class FieldSpan:
    """Fields that share an orthonormal basis of their past: all arguments of random matrices, or a single field.

    A `fresh` span restarts at every time, because its matrices are drawn anew, and stores no past.
    """

    hint: str
    fields: tuple[Field, ...]
    fresh: bool


class Sharing:
    """Groups of fields, spans and channels that a sampled pass needs for its order parameters."""

    def __init__(self, layout: Layout, needs: Needs):
        self.layout, self.letters, self.means = layout, needs.letters, needs.means
        self.sampled, self.tables = needs.sites, needs.tables
        self.rules: dict[Field, SystemField] = {f.field: f for f in layout.fields}

    # -- random matrices

    @cached_property
    def channels(self) -> tuple[SiteChannel, ...]:
        """The random matrices and transposes in products, each with its arguments and products."""
        uses: dict[tuple[Disorder, bool], list[tuple[Field, Field]]] = {}
        for f in self.layout.fields:
            if (rule := f.product) is not None:
                uses.setdefault((rule.matrix, rule.transposed), []).append((rule.argument, f.field))
        return tuple(
            SiteChannel(matrix, transposed, tuple(dict.fromkeys(a for a, _ in pairs)), tuple(p for _, p in pairs))
            for (matrix, transposed), pairs in uses.items()
        )

    def channel_of(self, product: Field) -> SiteChannel:
        return next(c for c in self.channels if product in c.products)

    def argument(self, product: Field) -> Field:
        """Return the field that the random matrix multiplies."""
        return self._disorder(product).argument

    def strength(self, product: Field) -> sp.Expr:
        """Return the standard deviation of the noise in a product for an argument of norm one, with its sign."""
        rule = self._disorder(product)
        columns = rule.matrix.rows if rule.transposed else rule.matrix.columns
        return size_free(rule.coefficient * sp.sqrt(rule.matrix.variance * columns), f"the noise of {product}")

    def _disorder(self, product: Field) -> DisorderRule:
        rule = self.rules[product].product
        assert rule is not None, "what is asked for is a product"
        return rule

    # -- multiples of other fields

    def root(self, field: Field) -> tuple[Field, sp.Expr | None]:
        """Return the field of which this one is a multiple at each time, and the factor; else the field and None."""
        f = self.rules.get(field)
        if f is None or f.starts or not f.rule.terms:
            return field, None
        value = f.rule.terms[0].vector
        vector = value.field
        plain = all(t.vector == value and t == Term(t.coefficient, value) for t in f.rule.terms)
        same = vector.timed == field.timed and vector.axes == field.axes and vector.sector == field.sector
        if not (plain and same and vector in self.rules) or (field.timed and value.time != field.clock):
            return field, None
        factor = sp.Add(*(t.coefficient for t in f.rule.terms))
        if traits_in(factor):  # not the same number at all sites
            return field, None
        return (vector, factor) if self.root(vector)[1] is None else (field, None)

    # -- spans

    @cached_property
    def kept(self) -> tuple[Field, ...]:
        """The fields whose past is needed: by memory sums, correlations and fixed random matrices."""
        needed: dict[Field, None] = {}
        for f in self.layout.fields:
            for rule in f.rules:
                for term in rule.terms:
                    if term.past is not None:
                        needed.update(dict.fromkeys([term.vector.field, *(v.field for v in (term.pair or ())[:1])]))
        for letter in self.letters:
            if letter.kind == "C":
                needed.update(dict.fromkeys((letter.a, letter.b)))
        needed.update(dict.fromkeys(field for field in self._standing if field.role != "trait"))
        needed.update(dict.fromkeys(f for table in self.tables for kind, f in (table.left, table.right) if kind == "C"))
        needed.update({a: None for c in self.channels if not c.fresh for a in c.arguments})
        everyone = (*self.layout.system.sources, *(f.field for f in self.layout.fields))
        return tuple(f for f in everyone if f in needed)

    @cached_property
    def _standing(self) -> tuple[Field, ...]:
        """The fields and traits that occur in diagonal entries."""
        return tuple(dict.fromkeys(value.field for sites in self.sampled for value in sites.values))

    @cached_property
    def spans(self) -> tuple[FieldSpan, ...]:
        """The orthonormal bases of the past: one per connected set of matrix arguments, then one per other field."""
        spans: list[FieldSpan] = []
        parts = [(c, tuple(dict.fromkeys(self.root(a)[0] for a in c.arguments))) for c in self.channels]
        for fields in _components([fields for _, fields in parts]):
            owners = [c for c, inside in parts if set(inside) & set(fields)]
            spans.append(FieldSpan(owners[0].hint, fields, all(c.fresh for c in owners)))
        # a span that starts anew holds no past: a field whose past is needed has another one
        taken = {f for span in spans if not span.fresh for f in span.fields}
        for field in self.kept:
            base = self.root(field)[0]
            if base not in taken:
                spans.append(FieldSpan(str(base), (base,), False))
                taken.add(base)
        return tuple(spans)

    def past_span(self, field: Field) -> FieldSpan:
        """Return the span that stores the past of a field."""
        base = self.root(field)[0]
        return next(span for span in self.spans if base in span.fields and not span.fresh)

    def channel_span(self, channel: SiteChannel) -> FieldSpan:
        """Return the span of the arguments of a random matrix."""
        base = self.root(channel.arguments[0])[0]
        spans = [span for span in self.spans if base in span.fields]
        return next((span for span in spans if not span.fresh or channel.fresh), spans[0])

    def coordinates(self, field: Field) -> tuple[FieldSpan, ...]:
        """Return the spans in which a field needs coordinates at each time."""
        spans: dict[FieldSpan, None] = {}
        base = self.root(field)[0]
        for span in self.spans:
            if field in span.fields:
                spans.setdefault(span)
        for channel in self.channels:
            if field in channel.arguments:
                spans.setdefault(self.channel_span(channel))
        if field in self.kept:
            spans.setdefault(self.past_span(field))
        return tuple(span for span in spans if base in span.fields)

    # -- groups

    @cached_property
    def groups(self) -> tuple[tuple[Field, ...], ...]:
        """The groups of fields and sources that share sites."""
        saddle = self.layout.saddle
        everyone = [f.field for f in self.layout.fields] + list(self.layout.system.sources)
        ties: list[tuple[Field, ...]] = [(f,) for f in everyone]
        for edge in self.layout.time_order.edges:
            direct = not edge.through_mean and self.rules[edge.target].product is None
            if direct and edge.source.role != "constant":
                ties.append((edge.target, edge.source))
        ties += [(m.target, m.on) for m in saddle.memories]
        ties += [c.products for c in self.channels] + [c.arguments for c in self.channels]
        ties += [span.fields for span in self.spans]
        ties += [(x.a, x.b) for x in self.letters]
        ties += [tuple(value.field for value in sites.values) for sites in self.sampled]
        for table in self.tables:
            there = next(sites for sites in self.sampled if sites.sector == table.sector)
            ties.append((table.left[1], table.right[1], *(value.field for value in there.values)))
        for average in self._averages():
            ties.append(tuple(v.field for v in sorted(average.atoms(FieldAt), key=sp.default_sort_key)))
        for f in self.layout.fields:
            for rule in f.rules:
                ties += [(t.pair[0].field, t.pair[1].field) for t in rule.terms if t.pair is not None]
        present = set(everyone)
        parts = _components([tuple(f for f in tie if f in present) for tie in ties])
        return tuple(sorted(parts, key=lambda p: everyone.index(p[0])))

    def _averages(self) -> list[Mean]:
        rules = [rule for f in self.layout.fields for rule in f.rules]
        means = [m for rule in rules for m in _means(rule)]
        observed = [m for _, value in self.layout.system.model.observe for m in sorted(value.atoms(Mean), key=str)]
        return [*means, *observed, *self.means]

    @cached_property
    def has_mean_of_product(self) -> bool:
        """Whether an equation contains the mean of a product of fields, such as a network's output.

        Such a mean may vanish by symmetry, and then its Monte Carlo noise drives the fields.
        """
        rules = [rule for f in self.layout.fields for rule in f.rules]
        return any(len({v.field for v in m.atoms(FieldAt)}) > 1 for rule in rules for m in _means(rule))

    def group_of(self, field: Field) -> tuple[Field, ...]:
        """Return the group of a field."""
        return next(members for members in self.groups if field in members)

    def noises(self, group: tuple[Field, ...]) -> tuple[SiteChannel, ...]:
        """Return the random matrices whose products belong to a group."""
        return tuple(c for c in self.channels if c.products[0] in group)


def _means(rule: Rule) -> list[Mean]:
    if rule.product is not None:
        return []
    return sorted(rule.expression(sp.Symbol("t")).atoms(Mean), key=str)


def _components(ties: list[tuple[Field, ...]]) -> list[tuple[Field, ...]]:
    """Return the connected components of fields joined by ties, in order of first occurrence."""
    home: dict[Field, list[Field]] = {}
    for tie in ties:
        merged: list[Field] = []
        for field in tie:
            merged += [f for f in home.get(field, [field]) if f not in merged]
        for field in merged:
            home[field] = merged
    return list(dict.fromkeys(tuple(members) for members in home.values()))
