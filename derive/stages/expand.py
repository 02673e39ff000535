"""Declaration -> System: one rule per field, weights as initial matrices plus history, the probe as spectral fields.

After this stage a field is a random matrix applied to another field, a linear combination of fields, or an elementwise
law of fields. The equations are still those of the declaration; nothing has been averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import sympy as sp

from derive.algebra.nodes import at
from derive.algebra.scaling import split_sizes
from derive.algebra.sites import site_values
from derive.equations.axes import broadcast_labels
from derive.equations.field_rules import Applied, FieldRules
from derive.equations.history import History, check_sizes_of_updates, write_out
from derive.equations.moments import check_moments
from derive.equations.probing import Probing, with_diagonal_traits
from derive.equations.rules import Rules
from derive.equations.stopping import stopping
from derive.equations.times import from_time
from derive.equations.wording import as_declared
from derive.errors import DeclarationError, SizeError, blaming, wording
from derive.language.equations import Eq
from derive.language.laws import Drawn
from derive.language.matrices import DisorderAt, WeightsAt
from derive.language.model import Model
from derive.language.symbols import Clock
from derive.language.vectors import Apply, Field, FieldAt, Mean
from derive.records.system import (
    ElementwiseRule,
    LinearRule,
    ProbeTimes,
    Rule,
    SpectralFields,
    System,
    SystemField,
    Term,
)


def expand_declaration(model: Model) -> System:
    """Return the system: weights with their history, a field for every intermediate vector, and the spectral fields."""
    model = broadcast_labels(with_diagonal_traits(model))
    history = write_out(model)
    rules = FieldRules(model)
    with wording(lambda: as_declared(model, rules.rules.values())):
        try:
            times = stopping(model, rules, history)
            probes, traces = _add_fields(model, rules, history, times)
        except SizeError:
            check_sizes_of_updates(model)  # what an update adds shows only where the weights are used
            raise
    fields = tuple(rules.rules.values())
    spectral = [f for probe in (*probes, *traces) for f in probe.fields]
    valued = [v for f in (*fields, *spectral) for v in _rule_values(f)]
    valued += [site.value for site in site_values(valued)]
    used = {v.field for v in valued} | {
        v.field for _, e in (*model.observe, *model.alignments) for v in e.atoms(FieldAt)
    }
    vectors = sorted((x for x in used if x.has_law), key=lambda x: x.name)
    normals = {x: _normals(rules, x) for x in vectors}

    def system(rule: Callable[[Drawn, Sequence[FieldAt], FieldAt], Rule]) -> System:
        drawn = tuple(SystemField(x, rule(x, normals[x], rules.constant(x.sector)())) for x in vectors)
        inside = used | {v.field for f in drawn for v in _rule_values(f)}
        sources = tuple(sorted((x for x in inside if x.role in ("normal", "constant")), key=lambda x: x.name))
        return System(
            model,
            (*drawn, *fields),
            sources,
            history.recurrences,
            probes,
            traces=traces,
            stopping=times,
            assumptions=("all sizes grow together at fixed ratios; times and labels stay finite",),
        )

    expanded = system(_by_moments)
    on_diagonals = {site.value.field for site in site_values(valued)}
    if not expanded.linear or any(x.has_law for x in _ancestors(on_diagonals, fields)):
        expanded = system(_by_law)
    with wording(lambda: as_declared(model, expanded.fields)):
        check_moments(expanded)
    return expanded


def _ancestors(roots: Iterable[Field], fields: Iterable[SystemField]) -> set[Field]:
    """Return the fields and all fields on which their rules depend, directly or indirectly."""
    rules = {f.field: f for f in fields}
    reached: set[Field] = set()
    open_ones = list(roots)
    while open_ones:
        field = open_ones.pop()
        if field not in reached:
            reached.add(field)
            open_ones += [v.field for v in _rule_values(rules[field])] if field in rules else []
    return reached


def _normals(rules: FieldRules, vector: Drawn) -> tuple[FieldAt, ...]:
    """Return the standard normals that represent the entries of a drawn vector."""
    like = {"role": "normal", "timed": vector.timed, "axes": vector.axes}
    fields = (
        rules.new_field(f"{vector}_normal", vector.sector, vector.clock, **like) for _ in range(vector.law.normals)
    )
    return tuple(at(field, vector.clock) for field in fields)


def _by_moments(vector: Drawn, normals: Sequence[FieldAt], constant: FieldAt) -> Rule:
    """Return a drawn vector as its mean plus a normal of its variance, which is exact in a linear model."""
    terms = (Term(vector.law.mean, constant), Term(sp.sqrt(vector.law.variance), normals[0]))
    return LinearRule(tuple(term for term in terms if term.coefficient != 0))


def _by_law(vector: Drawn, normals: Sequence[FieldAt], constant: FieldAt) -> Rule:
    """Return a drawn vector as the function of standard normals that has its law."""
    law = vector.law.of_normals(normals)
    return ElementwiseRule(law) if law.has(FieldAt) else LinearRule((Term(law, constant),))


def _add_fields(
    model: Model, made: FieldRules, history: History, times: ProbeTimes | None
) -> tuple[tuple[SpectralFields, ...], tuple[SpectralFields, ...]]:
    """Add a rule for every field, and return the spectral fields of the probed matrices and the fields for their
    traces.
    """
    rules = Rules(made, history)
    fields = [(e, e.defined) for e in model.equations if e.target.weights is None]
    for take in (_claim_product, partial(_add_equation, rules=rules)):
        for equation, field in fields:
            made.equation = equation
            with blaming(equation):
                take(model, made, equation, field)
    made.equation = None
    probes, traces = [], []
    for label, probe in model.probes:
        with blaming(probe):
            probes.append(Probing(made, rules, history, times).spectral_fields(label, probe.matrix))
            if probe.between:
                traces.append(Probing(made, rules, history, times).spectral_fields(label, probe.matrix, probe.between))
    return tuple(probes), tuple(traces)


def _claim_product(model: Model, made: FieldRules, equation: Eq, field: Field) -> None:
    """Let a field declared as number * W @ x represent that product wherever it occurs."""
    scale, node = equation.value.as_independent(Apply, as_Add=False)
    if node not in equation.value.atoms(Apply) or node.vector not in node.atoms(FieldAt):
        return
    matrix, drawn_at = node.matrix.disorder, node.matrix.time
    argument = node.vector.field
    alone = sum(e.name == equation.name for e in model.equations) == 1
    at_clock = equation.time == (field.clock if field.timed else None)
    same_time = node.vector.time == equation.time and argument.timed == field.timed
    drawn_now = drawn_at is None or drawn_at == equation.time
    number = not split_sizes(scale)[1].free_symbols and not scale.has(Mean, Clock)
    if not (alone and at_clock and same_time and drawn_now and number):
        return
    if matrix is not None and argument.axes == field.axes:
        product = Applied(matrix, node.transposed and not matrix.symmetric, argument)
        if product not in made.products:
            made.add_product(field, product, scale)


def _add_equation(model: Model, made: FieldRules, equation: Eq, field: Field, rules: Rules) -> None:
    if field in made.rules:
        return
    where = f"the equation of {field}"
    if not field.timed:
        made.put(SystemField(field, rules.rule(equation.value, None, field, where)))
        return
    clock = field.clock
    assert equation.time is not None
    if equation.start is not None:
        return
    shift = int(equation.time - clock)
    own = [e for e in model.equations if e.defined == field]
    fixed = [(e.start, e) for e in own if e.start is not None]
    starts = sorted(fixed, key=lambda pair: pair[0])
    if [first for first, _ in starts] != list(range(len(starts))):
        raise DeclarationError(f"{field}: starting values must be given at 0, 1, ... without gaps")
    first_time = len(starts)  # at least the shift, since starting values are given up to there
    rule = rules.rule(from_time(first_time, equation.value.subs(clock, clock - shift), clock), clock, field, where)
    start_rules = []
    for first, start in starts:
        with blaming(start):
            begun = _from_start(start.value, clock, first, where)
            start_rules.append(rules.rule(begun, clock, field, f"the equation of {field}({first})"))
    made.put(SystemField(field, rule, first_time, tuple(start_rules)))


def _from_start(expression: sp.Expr, clock: Clock, first: int, where: str) -> sp.Expr:
    """Return the right-hand side of a starting equation, with its fixed times relative to the clock."""
    timed = [v for v in expression.atoms(FieldAt, WeightsAt, DisorderAt) if v.time is not None]
    for value in sorted(timed, key=sp.default_sort_key):
        if not value.time.is_Integer:
            raise DeclarationError(
                f"{where}: the starting equation uses {value.args[0]}({value.time}); use a fixed time"
            )
    return expression.xreplace({v: v.func(v.args[0], clock + (v.time - first)) for v in timed})


def _rule_values(f: SystemField) -> list[FieldAt]:
    values: list[FieldAt] = []
    for rule in f.rules:
        if rule.product is not None:
            values.append(at(rule.product.argument, f.time))
        for term in rule.terms:
            values += [term.vector, *(term.pair or ()), *sorted(term.coefficient.atoms(FieldAt), key=str)]
        for law in rule.laws:
            values += sorted(law.atoms(FieldAt), key=str)
    return values
