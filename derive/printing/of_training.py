"""Print the training level: equations, action and average, saddle point and single site, order in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import sympy as sp

from derive.algebra.nodes import Correlation, Dot, Hat, Noise, ProbeSource, Response, TauDerivative, at, noise, times_of
from derive.equations.layout import Numbering
from derive.language.symbols import EngineSymbol, labels_along
from derive.language.traits import VALUE, Trait
from derive.language.vectors import PAST, Field, LabelSelection
from derive.printing.layout import tidy
from derive.printing.names import PrintedNames
from derive.printing.plain import TextPrinter
from derive.printing.statements import Section, Statement, matrix_law, recurrence_lines, remembered
from derive.records.action import Action, AveragedAction, Leg, Quartic, clock_of
from derive.records.method import LabelSymmetry, Method
from derive.records.saddle import Conjugate, Conjugates, NoiseKernel, SaddlePoint, SingleSite, TimeOrder
from derive.records.system import System, SystemField

WRITTEN_OUT = (
    "Weights are replaced by their initial matrix plus the sum of outer products that training has added. Each "
    "product of a random matrix with a vector is a separate field: these products are all that the average below "
    "involves."
)
FLOW = (
    "A vector evolves under the probed matrix in spectral time, driven by a source from zero. Its Laplace transform is "
    "the resolvent of that matrix applied to the source, so its poles are the eigenvalues."
)


def system_sections(record: System) -> tuple[Section, ...]:
    """Return random matrices, equations of the fields, coefficients of weights, and labels."""
    printer = TextPrinter(PrintedNames.of(record))

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
    random += [
        Statement(sp.Function("law")(at(x, x.clock)), remark=f"independent entries over {x.sector}, {x.law}")
        for x in record.drawn
    ]
    owners: dict[Any, Any] = {}
    for f in record.fields:
        if f.field.labelled:
            owners.setdefault(f.field.axes, []).append(plain(f.field))
    every = len(owners) == 1 and sum(map(len, owners.values())) == len(record.training)
    labels = [
        Statement(
            remark=f"{'every field' if every else ', '.join(names)} "
            f"{'has' if every or len(names) == 1 else 'have'} one copy for each of "
            f"{printer.doprint(labels_along(axes))} labels along {', '.join(map(str, axes))}, and "
            "sums over earlier times run over the labels too"
        )
        for axes, names in owners.items()
    ]
    if any(v.has(LabelSelection) for f in record.fields for v in _sides(f)):
        labels.append(
            Statement(
                remark="1[c, p; p] repeats along c what has labels along p, 1[p; c, p] sums over labels along c, and "
                "1[a; b] calls the axis b a"
            )
        )
    parts = [
        Section(
            "random matrices and vectors", tuple(random), "All random quantities; everything else follows from them."
        ),
        Section("training fields", field_lines(record.training, Numbering.of(record, ())), WRITTEN_OUT),
        Section("spectral fields", field_lines(record.spectral), FLOW),
        Section(
            "coefficients",
            recurrences,
            "The fraction of an update that decay and momentum leave at a later time: numbers given by a recurrence.",
        ),
        Section("labels", tuple(labels)),
    ]
    return tuple(part for part in parts if part.statements)


def _sides(f: SystemField) -> list[sp.Expr]:
    return [rule.expression(f.time) for rule in f.rules]


def trait_law(trait: Trait, printer: TextPrinter) -> str:
    """Return the law of a trait in words."""
    if not trait.discrete:
        low, high = (printer.doprint(end) for end in trait.law[1:])
        formula = printer.doprint(trait.density)
        return (
            f"a trait of the sites of {trait.sector}, of density {formula} in {VALUE} from {low} to {high}, normalised"
        )
    if not trait.weights:
        return f"a trait of the sites of {trait.sector}, with the given values, in equal shares"
    shares = (
        f"{printer.doprint(value)} at {printer.doprint(weight)} of them"
        for value, weight in zip(trait.values, trait.weights, strict=True)
    )
    return f"a trait of the sites of {trait.sector}: {', '.join(shares)}"


def field_lines(fields: Iterable[SystemField], numbering: Numbering | None = None) -> tuple[Statement, ...]:
    """Return the equations of some fields, each with its numbered starting values."""
    lines = []
    for f in fields:
        value = at(f.field, f.time)
        right = f.rule.expression(f.time) + (ProbeSource() if f.derivative else 0)
        lines.append(
            Statement(
                TauDerivative(value) if f.derivative else value,
                right,
                remark=f"for {f.time} >= {f.shift}" if f.shift else "",
            )
        )
        for first, rule in enumerate(f.starts):
            start = rule.expression(sp.Integer(first)).subs(f.time, first)
            tag = "" if numbering is None else numbering.starts[f.field, first]
            lines.append(Statement(f.field(first), start, tag=tag))
    return tuple(lines)


def spectral_sections(saddle: SaddlePoint) -> tuple[Section, ...]:
    """Return the contributions of the spectral fields of one probed matrix to the training level: equations, noises and
    memory."""
    return (Section("spectral fields", field_lines(saddle.system.spectral)), *saddle_sections(saddle))


def action_sections(record: Action) -> tuple[Section, ...]:
    """Return the deterministic part of the action, and the couplings of each random matrix."""
    deterministic, linear = [], []
    deterministic += [_delta(f) for f in record.system.fields]
    for c in record.couplings:
        name = sp.Symbol(f"X_{c.matrix}")
        hat, argument = Leg(c.field, True).value(clock_of(c.field)), Leg(c.argument, False).value(clock_of(c.argument))
        pair = (argument, hat) if c.transposed else (hat, argument)
        linear.append(Statement(name, sp.Function("outer")(*pair) * c.coefficient, relation="contains"))
    return (
        Section(
            "deterministic part, summed over times",
            tuple(deterministic),
            r"Each equation is a delta function, $\delta(x) = \int \mathrm{d}\hat{x}\, e^{i \hat{x} x} / 2\pi$, and "
            "each line is its exponent. There is no Jacobian: every value is an explicit function of earlier ones.",
        ),
        Section(
            "disorder part: minus i times the trace of a random matrix with its X, summed over times",
            tuple(linear),
            r"The terms that multiply a random matrix $W$ are collected in $X_{W}$: the exponent is "
            r"$-i\, \mathrm{Tr}\, W^{\top} X_{W}$. It is linear in $W$, so the Gaussian average is exact.",
        ),
    )


def _delta(f: SystemField) -> Statement:
    """Return the exponent of the delta function of an equation, without products with random matrices."""
    value = at(f.field, f.time)
    left = TauDerivative(value) if f.derivative else value
    right = sp.S.Zero if f.product is not None else f.rule.expression(f.time)
    right += ProbeSource() if f.derivative else 0
    return Statement(Hat(value), left - right, relation="i dot")


def average_sections(record: AveragedAction) -> tuple[Section, ...]:
    """Return the quartic terms, matrix by matrix."""
    sections = []
    for matrix in record.system.disorder:
        terms = [term for term in record.terms if term.matrix == matrix]
        lines = tuple(Statement(term.expression()) for term in joined_terms(terms))
        fresh = ", equal times only (drawn afresh)" if matrix.fresh is not None else ""
        why = "Each term couples two uses of the matrix, at two times. " + (
            "A symmetric matrix is also paired with its own transpose. " if matrix.symmetric else ""
        )
        if len(lines) < len(terms):
            why += "Terms that differ only in the names of the times are combined."
        sections.append(Section(f"from {matrix}, summed over both times{fresh}", lines, why.strip()))
    return tuple(sections)


def joined_terms(terms: Iterable[Quartic]) -> list[Quartic]:
    """Merge terms that are equal after exchanging the two times or the two brackets."""
    joined: dict[tuple[tuple[Leg, Leg], tuple[Leg, Leg]], Quartic] = {}
    for term in terms:
        left, right = term.left, term.right
        mirrored = (left[::-1], right[::-1])
        alike = ((left, right), (right, left), mirrored, mirrored[::-1])
        key = next((pair for pair in alike if pair in joined), (left, right))
        equal = joined.get(key)
        joined[key] = term if equal is None else replace(equal, weight=equal.weight + term.weight)
    return list(joined.values())


def each_pair_once(covariances: Iterable[NoiseKernel]) -> tuple[NoiseKernel, ...]:
    """Return the covariances of noises, each pair in one order only."""
    distinct: dict[tuple[Field, Field, Field, Field], NoiseKernel] = {}
    for c in covariances:
        if (c.right, c.left, c.b, c.a) not in distinct:
            distinct[c.left, c.right, c.a, c.b] = c
    return tuple(distinct.values())


def saddle_sections(record: SaddlePoint) -> tuple[Section, ...]:
    """Return order parameters, noises, memory, and the bilinears that vanish."""
    covariances = each_pair_once(record.covariances)
    correlations: dict[tuple[Field, Field], None] = {}
    for c in covariances:
        if (c.b, c.a) not in correlations:
            correlations[c.a, c.b] = None
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
        Section(
            "order parameters",
            tuple(order),
            "A bracket of the averaged action is a sum over all sites, so at large size it does not fluctuate and its "
            "mean takes its place: of two fields a correlation, of a field and a response field a response; of two "
            r"response fields it is zero, because probabilities add up to one. $C_{b a}(s, t) = C_{a b}(t, s)$, so "
            "each pair is listed once.",
        ),
        Section("covariances of the noises", tuple(covariance_line(c) for c in covariances), NOISES),
        Section(
            "memory that accompanies each noise",
            kernels,
            "A term with one response field and one field adds a memory term to the equation of that response "
            "field: a field acts on all other sites, and their reaction returns to it later.",
        ),
        Section(
            "vanish by causality",
            tuple(Statement(v, sp.S.Zero) for v in record.vanishing),
            "By causality, no field responds to an impulse that comes later or cannot reach it.",
        ),
    )


def conjugate_sections(record: Conjugates) -> tuple[Section, ...]:
    """Return the definitions of the order parameters, the effective action, and the conjugates at the saddle point."""
    definitions: list[Statement] = []
    values: list[Statement] = []
    varied: list[Statement] = []
    vanishing: list[Statement] = []
    for c in record.all:
        left = _order_parameter(c)
        bracket = Dot(at(c.a, clock_of(c.a)), Leg(c.b, c.response).value(PAST))
        definitions.append(Statement(left, (-sp.I if c.response else sp.S.One) * bracket / c.a.sector))
        conjugate = sp.Function("conjugate")(left)
        if c.response:
            total = sp.Add(*(scale * sp.Function("transpose")(_turned(a, j)) for scale, a, j in c.terms))
            (vanishing if c.vanishes else values).append(Statement(conjugate, total))
        else:
            means = (scale * _hats(a, j) for scale, a, j in _each_mean_once(c.terms))
            varied.append(Statement(conjugate, sp.Add(*means)))
            vanishing += [Statement(conjugate, sp.S.Zero)] if c.vanishes else []
    integrals = dict.fromkeys((sp.Tuple(*(at(f, clock_of(f)) for f in i.fields)), i.value) for i in record.integrals)
    return (
        Section("definitions", tuple(definitions), "Each is enforced by a delta function with a conjugate field."),
        *_effective_action(record),
        Section(
            "conjugates at the saddle point",
            (*values, *varied),
            "The derivative of the effective action by an order parameter: what multiplies it in the averaged action.",
        ),
        Section(
            "integrals over one time of a site",
            tuple(Statement(sp.Function("integral")(*fields), value) for fields, value in integrals),
            "The generating function Z[j] of a site is the integral over its values of the delta functions of all its "
            "equations, with a source j in each. The integral over the values at the last time comes first, then the "
            "one before. None depends on sources or earlier values, so neither does Z[j]. Means of two response fields "
            "are its second derivatives by sources.",
        ),
        Section(
            "conjugates that vanish",
            tuple(vanishing),
            "Those of correlations by the integrals above; that of a response if what multiplies it is forbidden by "
            "causality.",
        ),
    )


def _effective_action(record: Conjugates) -> Iterator[Section]:
    """Yield the effective action of one site of the base sector, and the exponents of the sites of all sectors."""
    values = {(c.a, c.b, c.response): _order_parameter(c) for c in record.all}
    whole = [
        -c.a.sector.ratio * sp.Function("conjugate")(values[c.a, c.b, c.response]) * values[c.a, c.b, c.response]
        for c in record.all
    ]
    for p in record.products:
        same = sp.KroneckerDelta(clock_of(p.second[0]), PAST) if p.fresh else sp.S.One
        response = Response(*p.second, *times_of(p.second[0], clock_of(p.second[0])), *times_of(p.second[1], PAST))
        whole.append(p.coefficient * sp.Function("transpose")(_turned(*p.first)) * response * same)
    if not whole:
        return
    base = next((s for s in record.system.sectors if s.ratio == 1), record.system.sectors[0])
    sectors = [s for s in record.system.sectors if any(f.field.sector == s for f in record.system.fields)]
    whole += [s.ratio * sp.log(EngineSymbol(f"Z_{s}")) for s in sectors]
    yield Section(
        f"effective action S, divided by {base}, summed over both times",
        tuple(map(Statement, whole)),
        r"The disorder-averaged generating function is the integral of $e^{S}$ over all order parameters and their "
        "conjugates. The sites of a sector are independent, and each contributes one factor Z.",
    )
    for sector in sectors:
        lines = [_delta(f) for f in record.system.fields if f.field.sector == sector]
        for c in each_pair_once(record.saddle.covariances):
            if c.left.sector == sector:
                kernel = covariance_line(c).right
                share = sp.Rational(1, 2) if (c.left, c.a) == (c.right, c.b) else sp.S.One
                hats = Dot(Hat(at(c.left, clock_of(c.left))), Hat(at(c.right, PAST)))
                lines.append(Statement(-share * kernel * hats))
        for q in record.all:
            if q.a.sector == sector:
                pair = Dot(at(q.a, clock_of(q.a)), Leg(q.b, q.response).value(PAST))
                sign = -sp.I if q.response else sp.S.One
                lines.append(Statement(sign * sp.Function("conjugate")(values[q.a, q.b, q.response]) * pair))
        yield Section(
            f"exponent of Z_{sector}, the generating function of one site of {sector}, summed over times",
            tuple(lines),
            "The delta functions of its equations, products of response fields from the average, and the conjugates.",
        )


def _order_parameter(c: Conjugate) -> sp.Expr:
    """Return the order parameter of a conjugate at two times."""
    times = (*times_of(c.a, clock_of(c.a)), *times_of(c.b, PAST))
    return (Response if c.response else Correlation)(c.a, c.b, *times)


def _turned(a: Field, j: Field) -> sp.Expr:
    """Return a response with its times exchanged."""
    return Response(a, j, *times_of(a, PAST), *times_of(j, clock_of(j)))


def _hats(a: Field, b: Field) -> sp.Expr:
    """Return the mean of two response fields at two times."""
    return sp.Function("mean")(Hat(at(a, clock_of(a))), Hat(at(b, PAST)))


def _each_mean_once(terms: Iterable[tuple[sp.Expr, Field, Field]]) -> list[tuple[sp.Expr, Field, Field]]:
    """Return means of two response fields; means that differ only in the order of the fields are added up."""
    joined: dict[frozenset[Field], tuple[sp.Expr, Field, Field]] = {}
    for scale, a, b in terms:
        before, left, right = joined.get(frozenset((a, b)), (sp.S.Zero, a, b))
        joined[frozenset((a, b))] = (before + scale, left, right)
    return list(joined.values())


NOISES = (
    "A term with two response fields is the average over a Gaussian noise whose covariance is the correlation of the "
    "fields (Hubbard-Stratonovich)."
)


def single_site_sections(record: SingleSite) -> tuple[Section, ...]:
    """Return the equations of one site of each sector, and its noises."""
    sections, numbering = [], Numbering.of(record.system, record.saddle.covariances)
    for sector in record.system.sectors:
        lines = []
        for f in record.system.fields:
            if f.field.sector != sector:
                continue
            value = at(f.field, f.time)
            if f.product is not None:
                right: sp.Expr = Noise(f.field, *times_of(f.field, f.time))
                for m in record.memories(f.field):
                    right += remembered(m)
            else:
                right = f.rule.expression(f.time) + (ProbeSource() if f.derivative else 0)
            tag = numbering.laws.get(f.field, "")
            lines.append(Statement(TauDerivative(value) if f.derivative else value, right, tag=tag))
        sections.append(Section(f"a site of {sector}", tuple(lines)))
    noises = tuple(
        replace(covariance_line(c), tag=numbering.covariances.get((c.left, c.right), ""))
        for c in each_pair_once(record.saddle.covariances)
    )
    closed = (
        "Self-consistency: means over many copies of this process are the correlations and responses in its equations."
    )
    return (*sections, Section("noises", noises, closed))


def order_sections(record: TimeOrder) -> tuple[Section, ...]:
    """Return the sequence of computation within one time, and the delays of responses."""
    sequence = tuple(Statement(at(f, clock_of(f)), remark=f"step {i + 1}") for i, f in enumerate(record.order))
    reach = []
    for a, j, lag in record.lags:
        t = clock_of(a)
        left = Response(a, j, *times_of(a, t), *times_of(j, PAST))
        condition = f"s <= {t}" if lag == 0 else (f"s < {t}" if lag == 1 else f"s <= {t} - {lag}")
        timed = a.timed and j.timed
        reach.append(Statement(left, remark=f"nonzero only for {condition}" if timed else "nonzero"))
    return (
        Section(
            "each time is computed in this order",
            sequence,
            "Every value depends only on values above it or at earlier times, so one pass forward in time solves the "
            "equations.",
        ),
        Section(
            "reach of the responses",
            tuple(reach),
            "The delay of the first response to an impulse is where the sums over the past end.",
        ),
    )


RESPONSES = {
    "stein": "responses are estimated by Stein's lemma, from correlations with the noises",
    "pathwise": "responses are averages of derivatives along each path",
}


def method_sections(record: Method) -> tuple[Section, ...]:
    """Return the closure of each sector with its reason, and the estimator of responses."""
    closures = tuple(
        Statement(sp.Function("closure")(sector.sector), remark=f"{sector.closure.value}: {sector.reason}")
        for sector in record.sectors
    )
    sections = [Section("averages over the sites of each sector", closures, CLOSURES)]
    if record.labels is not None:
        sections.append(Section("symmetry of labels", (_symmetry(record.labels),), LABELS))
    if record.sampled:
        sections.append(Section("responses", (Statement(remark=RESPONSES[record.responses]),)))
    return tuple(sections)


def _symmetry(labels: LabelSymmetry) -> Statement:
    return Statement(sp.Function("symmetry")(*labels.axes), remark=f"{labels.group.value}: {labels.reason}")


LABELS = (
    "Permutations of labels that leave the equations as they are make every order parameter with two labels a multiple "
    "of the unit matrix plus a constant; signed ones, a multiple of the unit matrix. One label then represents all."
)
CLOSURES = (
    "Exact: moments of Gaussian fields in closed form. Quadrature: Gaussian integrals, with more nodes until they "
    "converge. Sampled: means over independent sites, with a statistical error."
)


def covariance_line(covariance: NoiseKernel) -> Statement:
    """Return the covariance of two noises."""
    t, s = clock_of(covariance.left), PAST
    value = covariance.coefficient * Correlation(
        covariance.a, covariance.b, *times_of(covariance.a, t), *times_of(covariance.b, s)
    )
    if covariance.fresh:
        value *= sp.KroneckerDelta(t, s)
    return Statement(sp.Function("cov")(noise(covariance.left, t), noise(covariance.right, s)), value)
