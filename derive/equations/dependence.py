"""How training fields depend on the traits of their site."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import sympy as sp

from derive.algebra.sites import SiteValue, site_values
from derive.language.traits import is_trait, traits_in
from derive.language.vectors import PAST, Field, FieldAt, Mean, values
from derive.records.saddle import TimeOrder
from derive.records.system import Rule, System, SystemField, Term

Parts = tuple[tuple[sp.Expr, Field], ...]


def site_parts(system: System, order: TimeOrder, field: Field, held: frozenset[FieldAt] | None) -> Parts | None:
    """Return a training field as a sum of functions of the site, each times a field that does not depend on the site.

    Args:
        held: the fields on the diagonal of this sector, or None.

    Returns:
        the pairs (function, field), or None if the field has no such decomposition.
    """
    return trait_parts(system, field) if held is None else normal_parts(system, order, field, held)


def trait_parts(system: System, field: Field) -> Parts | None:
    """Return a training field as a sum of functions of traits, each times a field independent of the traits.

    The law of each such field is then the same at all sites. None if there is no such decomposition.
    """
    if field not in _trait_dependent(system):
        return ((sp.S.One, field),)
    rule = next(f for f in system.training if f.field == field)
    terms = rule.rule.terms if not rule.starts and rule.shift == 0 else ()
    if not terms or not all(_at_the_same_time(term, field) for term in terms):
        return None
    return _combine((term.coefficient, trait_parts(system, term.vector.field)) for term in terms)


def _combine(terms: Iterable[tuple[sp.Expr, Parts | None]]) -> Parts | None:
    """Return a linear combination of decompositions; None if one of them is None."""
    totals: dict[Field, sp.Expr] = {}
    for coefficient, parts in terms:
        if parts is None:
            return None
        for factor, part in parts:
            totals[part] = totals.get(part, sp.S.Zero) + coefficient * factor
    return tuple((factor, part) for part, factor in totals.items())


def normal_parts(system: System, order: TimeOrder, field: Field, held: frozenset[FieldAt]) -> Parts | None:
    """Return a training field as a sum of functions of its site, each times a centred Gaussian field or the constant.

    The functions depend on the traits of the site and on the fields `held` fixed there. None if there is no such
    decomposition.
    """
    if field.role in ("normal", "constant") or field in _normal(order) - _trait_dependent(system):
        return ((sp.S.One, field),)
    multiples = _multiples(system, order, field, held)
    if multiples is None:
        return None
    constant: Parts = ((sp.S.One, _constant(system, field)),)
    return _combine(
        (coefficient, constant if vector is None else normal_parts(system, order, vector, held))
        for coefficient, vector in multiples
    )


def of_normals(system: System, order: TimeOrder, value: FieldAt) -> sp.Expr | None:
    """Return a training field as a function of Gaussian fields and traits of its site; None if it is not one."""
    field, time = value.field, value.time
    if field.role == "constant":
        return sp.S.One
    if field.role == "normal" or field in _normal(order) - _trait_dependent(system):
        return SiteValue(value)()
    rule = next(f for f in system.training if f.field == field)
    if not rule.starts and rule.shift == 0 and not field.labelled:
        now = field.clock if field.timed else None
        law = rule.rule.expression(field.clock) if rule.product is None else None
        inside = [] if law is None else [v for v in values(law) if not is_trait(v)]
        if law is not None and not law.has(Mean, PAST, sp.Sum) and all(v.time in (None, now) for v in inside):
            forms = {v: of_normals(system, order, v.field(time) if v.field.timed else v.field()) for v in inside}
            return None if any(form is None for form in forms.values()) else law.xreplace(forms)
    return None


def _multiples(
    system: System, order: TimeOrder, field: Field, held: frozenset[FieldAt]
) -> list[tuple[sp.Expr, Field | None]] | None:
    """Return a field as a linear combination of fields at the same time, with functions of its site as coefficients.

    A term without a field is a constant. None if the field is not linear in the others.
    """
    rule = next(f for f in system.training if f.field == field)
    if not rule.starts and rule.shift == 0:
        linear = not rule.rule.laws and rule.product is None
        if linear and all(_at_the_same_time(term, field) for term in rule.rule.terms):
            return [(term.coefficient, term.vector.field) for term in rule.rule.terms]
        for law in rule.rule.laws:
            if law.has(Mean, PAST) or field.labelled:
                continue
            reduced = law.xreplace(_functions_of_held(system, order, law, held))
            others = [v for v in values(reduced) if not is_trait(v)]
            slopes = _slopes(reduced, others)
            if not others:
                return [(reduced, None)]
            now = all(v.time == (field.clock if field.timed else None) for v in others)
            if slopes is not None and now:
                return [(slope, value.field) for slope, value in zip(slopes, others, strict=True)]
    return None


def _functions_of_held(
    system: System, order: TimeOrder, law: sp.Expr, held: frozenset[FieldAt]
) -> dict[FieldAt, sp.Expr]:
    """Return the values in a law that are functions of the held fields, with those functions."""
    functions: dict[FieldAt, sp.Expr] = {}
    for value in values(law):
        written = None if is_trait(value) else of_normals(system, order, value)
        if written is not None:
            made_of = {site.value for site in site_values(traits_in(written))}
            if made_of <= held:
                functions[value] = written
    return functions


def _slopes(law: sp.Expr, vectors: list[FieldAt]) -> list[sp.Expr] | None:
    """Return the coefficient of each vector in a law that is linear in them; None if it is not linear."""
    marks = [sp.Dummy() for _ in vectors]
    marked = law.xreplace(dict(zip(vectors, marks, strict=True)))
    slopes = [sp.diff(marked, mark) for mark in marks]
    rest = sp.expand(marked - sp.Add(*(slope * mark for slope, mark in zip(slopes, marks, strict=True))))
    return None if rest != 0 or any(slope.has(*marks) for slope in slopes) else slopes


def _constant(system: System, field: Field) -> Field:
    constants = (source for source in system.sources if source.role == "constant" and source.sector == field.sector)
    return next(constants, Field(f"one_{field.sector}", field.sector, role="constant"))


@lru_cache(maxsize=16)
def _normal(order: TimeOrder) -> frozenset[Field]:
    """Return the centred Gaussian training fields: linear in normals and in random matrices applied to any vector."""
    system = order.system
    needs = {f.field: _site_inputs(system, f, order) for f in system.training}
    other = {
        f.field
        for f in system.training
        if any(rule.laws for rule in f.rules) or any(need.role == "constant" for need in needs[f.field])
    }
    while True:
        more = {field for field, others in needs.items() if field not in other and others & other}
        if not more:
            return frozenset(needs) - other
        other |= more


def _at_the_same_time(term: Term, field: Field) -> bool:
    """Return whether a term is another field at the same time, times a function of traits and parameters."""
    vector = term.vector
    now = vector.time == (field.clock if field.timed else None) and vector.field.timed == field.timed
    plain = term.pair is None and term.past is None and term.mixing is None and not term.coefficient.has(Mean, PAST)
    return bool(now and plain and vector.field.axes == field.axes)


@lru_cache(maxsize=16)
def _trait_dependent(system: System) -> frozenset[Field]:
    """Return the training fields whose law at a site depends on its traits, possibly through memory."""
    needs = {f.field: _site_inputs(system, f) for f in system.training}
    depending = {f.field for f in system.training if any(map(_has_traits, (f.rule, *f.starts)))}
    while True:
        more = {field for field, others in needs.items() if field not in depending and others & depending}
        if not more:
            return frozenset(depending)
        depending |= more


def _has_traits(rule: Rule) -> bool:
    return any(map(traits_in, (*(term.coefficient for term in rule.terms), *rule.laws)))


def _site_inputs(system: System, f: SystemField, order: TimeOrder | None = None) -> set[Field]:
    """Return the fields of the same site that enter the law of a field.

    A random matrix contributes fields through its memory. If the order in time is given, only fields with a nonzero
    response are included.
    """
    needed: set[Field] = set()
    for rule in f.rules:
        needed |= {term.vector.field for term in rule.terms}
        needed |= {v.field for law in rule.laws for v in values(law) if not is_trait(v)}
        if (product := rule.product) is not None:
            back = [
                g.product
                for g in system.training
                if g.product is not None
                and g.product.matrix == product.matrix
                and (order is None or order.delay(product.argument, g.field) is not None)
            ]
            needed |= {r.argument for r in back if r.argument.sector == f.field.sector}
    return needed
