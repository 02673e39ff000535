"""Which training fields depend on the traits of their site, and how."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from derive.errors import DeclarationError
from derive.language.traits import is_trait, traits_in
from derive.language.vectors import PAST, Field, FieldAt, Mean
from derive.records.system import DisorderRule, ElementwiseRule, LinearRule, Rule, System, SystemField


def trait_factor(system: System, field: Field) -> tuple[sp.Expr, Field]:
    """A training field as a function of the traits of its site times a field that does not depend on them.

    The law of the other field is then the same at all sites, whatever their traits. Refused where there is none.
    """
    rules = {f.field: f for f in system.training}
    factor: sp.Expr = sp.S.One
    while (found := _multiple(rules.get(field))) is not None:
        factor, field = factor * found[0], found[1]
    if field in _depending(system):
        raise DeclarationError(
            f"the probed matrix: {field} depends on traits of sites at which diag(...) stands, otherwise than by a "
            "factor; use spikes that are functions of traits times fields without traits"
        )
    return factor, field


def _multiple(rule: SystemField | None) -> tuple[sp.Expr, Field] | None:
    """(coefficient, other field) if a field is a multiple of another one at the same time, by a function of traits."""
    if rule is None or rule.starts or not isinstance(rule.rule, LinearRule) or len(rule.rule.terms) != 1:
        return None
    (term,) = rule.rule.terms
    vector = term.vector
    now = vector.time is None and not rule.field.timed or vector.time == rule.field.clock and rule.shift == 0
    plain = term.pair is None and term.past is None and term.mixing is None and not term.coefficient.has(Mean, PAST)
    alike = vector.field.timed == rule.field.timed and vector.field.labels == rule.field.labels
    if not (now and plain and alike and traits_in(term.coefficient)):
        return None
    return term.coefficient, vector.field


@lru_cache(maxsize=16)
def _depending(system: System) -> frozenset[Field]:
    """Training fields whose law at a site depends on its traits, also through what returns from random matrices."""
    needs = {f.field: _needed(system, f) for f in system.training}
    found = {f.field for f in system.training if any(map(_has_traits, (f.rule, *f.starts)))}
    while True:
        more = {field for field, others in needs.items() if field not in found and others & found}
        if not more:
            return frozenset(found)
        found |= more


def _has_traits(rule: Rule) -> bool:
    if isinstance(rule, LinearRule):
        return any(traits_in(term.coefficient) for term in rule.terms)
    return isinstance(rule, ElementwiseRule) and bool(traits_in(rule.law))


def _needed(system: System, f: SystemField) -> set[Field]:
    """Fields of the same site that the law of a field holds."""
    found: set[Field] = set()
    for rule in (f.rule, *f.starts):
        if isinstance(rule, LinearRule):
            found |= {term.vector.field for term in rule.terms}
        elif isinstance(rule, ElementwiseRule):
            found |= {v.field for v in _outside_means(rule.law) if not is_trait(v)}
        elif isinstance(rule, DisorderRule):
            back = [
                g.rule for g in system.training if isinstance(g.rule, DisorderRule) and g.rule.matrix == rule.matrix
            ]
            found |= {r.argument for r in back if r.argument.sector == f.field.sector}
    return found


def _outside_means(expression: sp.Basic) -> set[FieldAt]:
    if isinstance(expression, FieldAt):
        return {expression}
    if isinstance(expression, Mean):
        return set()
    return {value for arg in expression.args for value in _outside_means(arg)}
