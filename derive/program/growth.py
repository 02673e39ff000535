"""Growth of fields with the traits of their site, which decides whether averages over a density are finite.

One site is followed with its trait as the variable. Products with random matrices, drawn numbers, means and data are
replaced by numbers. The fields at the first times are then formulas of the trait whose second moments must be finite,
and so must the means of the observables. A sampled average would return a number even where the mean is infinite.
"""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp
from sympy.core.function import AppliedUndef

from derive.equations.layout import Layout, lag_of
from derive.language.data import DataAt
from derive.language.traits import VALUE, Trait
from derive.language.traversal import ByKind
from derive.language.vectors import PAST, Field, FieldAt, Mean, Mix, Total, shown
from derive.records.system import Rule

TIMES = 3
"""Number of times that are followed; the growth of a law does not change with time."""
NOISE, DRAWN, NUMBER = sp.Rational(5, 6), sp.Rational(9, 10), sp.Rational(13, 12)
"""Generic values of a noise, of a drawn number, and of means over other sites."""


def averages_over_traits(layout: Layout) -> Iterator[tuple[str, Trait, sp.Expr]]:
    """Yield the quantities whose mean over the density of a trait must be finite: a description, the trait, a
    formula."""
    for trait in layout.system.trained_traits:
        if trait.discrete:
            continue
        site = _Site(layout, trait)
        descriptions: dict[sp.Expr, str] = {}
        for f in layout.fields:
            for time in range(TIMES if f.field.timed else 1):
                descriptions.setdefault(site.value(f.field, time) ** 2, f"the mean square of {f.field}")
        for name, value in layout.system.model.observe:
            for average in sorted(value.atoms(Mean), key=sp.default_sort_key):
                inside = site.at(average.expression, TIMES - 1)
                descriptions.setdefault(inside, f"observable {name}: {shown(average)}")
        for inside, what in descriptions.items():
            if inside.has(VALUE):
                yield f"{what} over trait {trait} (cut its density off with low and high)", trait, inside


class _Site:
    """One site with its trait as a variable and generic numbers for the rest."""

    def __init__(self, layout: Layout, trait: Trait):
        self.layout, self.trait = layout, trait
        self.rules = {f.field: f for f in layout.fields}
        self.known: dict[tuple[Field, int], sp.Expr] = {}

    def value(self, field: Field, time: int) -> sp.Expr:
        if field.role == "trait":
            return VALUE if field == self.trait else _usual(field)
        if field.timed and time < 0:
            return sp.S.Zero
        f = self.rules.get(field)
        if f is None:
            return sp.S.One if field.role == "constant" else DRAWN * field.scale
        time = time if field.timed else 0
        if (field, time) not in self.known:
            self.known[field, time] = sp.S.One  # breaks cycles: its own past does not change its growth with the trait
            starts = f.starts if field.timed else ()
            rule = starts[time] if time < len(starts) else f.rule
            self.known[field, time] = self._rule(field, rule, time)
        return self.known[field, time]

    def _rule(self, field: Field, rule: Rule, time: int) -> sp.Expr:
        if rule.product is not None:
            memories = (m for m in self.layout.memories(field) if m.on in self.rules)
            seen = (self.value(m.on, time - 1 if m.on.timed else 0) for m in memories)
            return NOISE + sp.Add(*dict.fromkeys(seen))
        terms = [self.at(law, time) for law in rule.laws]
        for term in rule.terms:
            when = time - 1 if term.past is not None else time - lag_of(term.vector, self.layout.clock)
            terms.append(self.at(term.coefficient, time) * self.value(term.vector.field, when))
        return sp.Add(*terms)

    @ByKind
    def at(self, expression: sp.Expr, time: int) -> sp.Expr:
        """Return the value of an expression at this site and a time."""
        if expression == PAST:
            return sp.Integer(max(time - 1, 0))
        if expression == self.layout.clock:
            return sp.Integer(time)
        if not expression.args:
            return expression
        return expression.func(*(self.at(arg, time) for arg in expression.args))

    @at.on(FieldAt)
    def _field(self, node: FieldAt, time: int) -> sp.Expr:
        return self.value(node.field, time - lag_of(node, self.layout.clock))

    @at.on(Mean, AppliedUndef, DataAt)
    def _number(self, node: sp.Expr, time: int) -> sp.Expr:
        return NUMBER

    @at.on(Mix)
    def _mix(self, node: Mix, time: int) -> sp.Expr:
        return self.at(node.vector, time)

    @at.on(Total)
    def _total(self, node: Total, time: int) -> sp.Expr:
        return self.at(node.expression, time)


def _usual(trait: Trait) -> sp.Expr:
    """Return a typical value of a trait."""
    if trait.discrete:
        return trait.values[0] if trait.weights else sp.S.One
    low, high = trait.law[1:]
    if low == -sp.oo:
        return sp.S.Zero if high == sp.oo else high - 1
    return low + 1 if high == sp.oo else (low + high) / 2
