"""The training level as mathematics: equations, action and average, saddle point and single site, order in time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp

from derive.algebra.nodes import (
    Correlation,
    Hat,
    Noise,
    Response,
    Source,
    TauDerivative,
    at,
    noise,
    times_of,
)
from derive.language.traits import VALUE, Trait
from derive.language.vectors import PAST, Field
from derive.printing.layout import tidy
from derive.printing.names import Names
from derive.printing.plain import TextPrinter
from derive.printing.statements import Section, Statement, matrix_law, recurrence_lines, remembered
from derive.records.action import Action, AveragedAction, Leg, clock_of
from derive.records.saddle import Covariance, SaddlePoint, SingleSite, TimeOrder
from derive.records.system import DisorderRule, System, SystemField


def system_sections(record: System) -> tuple[Section, ...]:
    """Random matrices, equations of the fields, coefficients of weights, class labels."""
    printer = TextPrinter(Names())

    def plain(field: Field) -> str:
        return str(printer.doprint(tidy(field)))

    recurrences = tuple(line for r in record.recurrences for line in recurrence_lines(r, record.model))
    random = [Statement(sp.Function("variance")(m), m.variance, remark=matrix_law(m)) for m in record.disorder]
    random += [
        Statement(
            sp.Function("variance")(at(x, x.clock)),
            x.scale**2,
            remark=f"independent Gaussian entries over {x.sector}",
        )
        for x in record.sources
        if x.role == "normal"
    ]
    random += [Statement(sp.Function("law")(trait()), remark=trait_law(trait, printer)) for trait in record.traits]
    owners: dict[Any, Any] = {}
    for f in record.fields:
        if f.field.labelled:
            owners.setdefault(f.field.labels, []).append(plain(f.field))
    every = len(owners) == 1 and sum(map(len, owners.values())) == len(record.training)
    labels = [
        Statement(
            remark=f"{'every field' if every else ', '.join(names)} "
            f"{'has' if every or len(names) == 1 else 'have'} one copy for each of {count} labels, and "
            "sums over earlier times run over the labels too"
        )
        for count, names in owners.items()
    ]
    parts = [
        Section("random matrices and vectors", tuple(random)),
        Section("training fields", field_lines(record.training)),
        Section("spectral fields", field_lines(record.spectral)),
        Section("coefficients", recurrences),
        Section("class labels", tuple(labels)),
    ]
    return tuple(part for part in parts if part.statements)


def trait_law(trait: Trait, printer: TextPrinter) -> str:
    """The law of a trait in words."""
    if not trait.discrete:
        low, high = (printer.doprint(end) for end in trait.law[1:])
        formula = printer.doprint(trait.density)
        return (
            f"a trait of the sites of {trait.sector}, of density {formula} in {VALUE} from {low} to {high}, normalised"
        )
    if not trait.weights:
        return f"a trait of the sites of {trait.sector}, with the values that are given, in equal shares"
    shares = (
        f"{printer.doprint(value)} at {printer.doprint(weight)} of them"
        for value, weight in zip(trait.values, trait.weights, strict=True)
    )
    return f"a trait of the sites of {trait.sector}: {', '.join(shares)}"


def field_lines(fields: Iterable[SystemField]) -> tuple[Statement, ...]:
    """The equations of some fields, each with its starting values."""
    found = []
    for f in fields:
        value = at(f.field, f.time)
        right = f.rule.expression(f.time) + (Source() if f.derivative else 0)
        found.append(
            Statement(
                TauDerivative(value) if f.derivative else value,
                right,
                remark=f"for {f.time} >= {f.shift}" if f.shift else "",
            )
        )
        for first, rule in enumerate(f.starts):
            start = rule.expression(sp.Integer(first)).subs(f.time, first)
            found.append(Statement(f.field(first), start))
    return tuple(found)


def spectral_sections(saddle: SaddlePoint) -> tuple[Section, ...]:
    """What the spectral fields of one probed matrix add to the training level: equations, noises and memory."""
    return (Section("spectral fields", field_lines(saddle.system.spectral)), *saddle_sections(saddle))


def action_sections(record: Action) -> tuple[Section, ...]:
    """The deterministic part, and what multiplies each random matrix."""
    deterministic, linear = [], []
    for f in record.system.fields:
        value = at(f.field, f.time)
        left = TauDerivative(value) if f.derivative else value
        right = sp.S.Zero if isinstance(f.rule, DisorderRule) else f.rule.expression(f.time)
        right += Source() if f.derivative else 0
        deterministic.append(Statement(Hat(value), left - right, relation="i dot"))
    for c in record.couplings:
        name = sp.Symbol(f"X_{c.matrix}")
        hat, argument = Leg(c.field, True).value(clock_of(c.field)), Leg(c.argument, False).value(clock_of(c.argument))
        pair = (argument, hat) if c.transposed else (hat, argument)
        linear.append(Statement(name, sp.Function("outer")(*pair) * c.coefficient, relation="contains"))
    disorder = "disorder part: -i times the trace of W.T X for each random matrix W, with X summed over times"
    return (
        Section("deterministic part, summed over times", tuple(deterministic)),
        Section(disorder, tuple(linear)),
    )


def average_sections(record: AveragedAction) -> tuple[Section, ...]:
    """The quartic terms, matrix by matrix."""
    found = []
    for matrix in record.system.disorder:
        lines = tuple(Statement(term.expression()) for term in record.terms if term.matrix == matrix)
        fresh = ", equal times only (drawn afresh)" if matrix.fresh is not None else ""
        found.append(Section(f"from {matrix}, summed over both times{fresh}", lines))
    return tuple(found)


def saddle_sections(record: SaddlePoint) -> tuple[Section, ...]:
    """Order parameters, noises, memory, and what vanishes."""
    correlations = {(c.a, c.b): None for c in record.covariances}
    responses = {(m.a, m.noise): None for m in record.memories}
    order = [
        Statement(
            Correlation(a, b, *times_of(a, clock_of(a)), *times_of(b, PAST)),
            sp.Function("mean")(at(a, clock_of(a)), at(b, PAST)),
        )
        for a, b in correlations
    ]
    order += [
        Statement(
            Response(a, j, *times_of(a, clock_of(a)), *times_of(j, PAST)),
            sp.Function("mean")(sp.Function("d")(at(a, clock_of(a)), noise(j, PAST))),
        )
        for a, j in responses
    ]
    kernels = tuple(
        Statement(noise(m.target, clock_of(m.target)), remembered(m), relation="joined by") for m in record.memories
    )
    return (
        Section("order parameters", tuple(order)),
        Section("covariances of the noises", tuple(covariance_line(c) for c in record.covariances)),
        Section("memory that joins each noise", kernels),
        Section("vanish by causality", tuple(Statement(v, sp.S.Zero) for v in record.vanishing)),
    )


def single_site_sections(record: SingleSite) -> tuple[Section, ...]:
    """The equations of one site of each sector, and its noises."""
    found = []
    for sector in record.system.sectors:
        lines = []
        for f in record.system.fields:
            if f.field.sector != sector:
                continue
            value = at(f.field, f.time)
            if isinstance(f.rule, DisorderRule):
                right: sp.Expr = Noise(f.field, *times_of(f.field, f.time))
                for m in record.memories(f.field):
                    right += remembered(m)
            else:
                right = f.rule.expression(f.time) + (Source() if f.derivative else 0)
            lines.append(Statement(TauDerivative(value) if f.derivative else value, right))
        found.append(Section(f"a site of {sector}", tuple(lines)))
    return (*found, Section("noises", tuple(covariance_line(c) for c in record.saddle.covariances)))


def order_sections(record: TimeOrder) -> tuple[Section, ...]:
    """The sequence within one time, the reach of the responses, and how the equations are solved."""
    sequence = tuple(Statement(at(f, clock_of(f)), remark=f"step {i + 1}") for i, f in enumerate(record.order))
    reach = []
    for a, j, lag in record.lags:
        t = clock_of(a)
        left = Response(a, j, *times_of(a, t), *times_of(j, PAST))
        condition = f"s <= {t}" if lag == 0 else (f"s < {t}" if lag == 1 else f"s <= {t} - {lag}")
        timed = a.timed and j.timed
        reach.append(Statement(left, remark=f"nonzero only for {condition}" if timed else "nonzero"))
    nonlinear = "some laws are nonlinear: integrals where all that enters them is Gaussian, else sampled"
    if record.system.linear:
        groups = ", with rows of its own for every value of the traits" if record.system.traits else ""
        method = f"every law is linear: one exact forward pass in time{groups}"
    elif record.system.model.responses == "pathwise":
        method = f"{nonlinear} forward in time, responses by derivatives along each path"
    else:
        method = f"{nonlinear} forward in time, responses by Stein's lemma"
    return (
        Section("each time is computed in this order", sequence),
        Section("reach of the responses", tuple(reach)),
        Section("method", (Statement(remark=method),)),
    )


def covariance_line(covariance: Covariance) -> Statement:
    """The covariance of two noises."""
    t, s = clock_of(covariance.left), PAST
    value = covariance.coefficient * Correlation(
        covariance.a, covariance.b, *times_of(covariance.a, t), *times_of(covariance.b, s)
    )
    if covariance.fresh:
        value *= sp.KroneckerDelta(t, s)
    return Statement(sp.Function("cov")(noise(covariance.left, t), noise(covariance.right, s)), value)
