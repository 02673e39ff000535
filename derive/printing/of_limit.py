"""Print the stationary limit and the recursion of linear training."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.sites import averaged, site_responses
from derive.language.symbols import EngineSymbol
from derive.language.vectors import Field
from derive.printing.statements import Section, Statement
from derive.records.limit import LinearPart, OverlapTerm, Recursion, StationaryLimit
from derive.records.system import Rule

SITES = (
    "The transform $x(z) = \\frac{z}{1+z} \\sum_t x(t) (1+z)^{-t}$ turns linear laws with constant coefficients into "
    "one linear equation per field, which each site inverts; the limit of $x(t)$ is $x(z)$ at $z = 0$. With labels "
    "all symbols are matrices over labels."
)
RESPONSES = "R[a, b] is the mean over sites of the response of a to the noise of b, an entry of the inverse."
CORRELATIONS = "Noises have the covariances of the saddle point, both times at the same $z$."


def limit_sections(record: StationaryLimit) -> tuple[Section, ...]:
    """Return the equations of one site in z, its responses, the covariances of its noises, and the observables."""
    rules = {f.field: f.rule for f in record.system.training}
    sites = tuple(Statement(_at(field), _equation(record, field, rules[field])) for field in record.fields)
    responses = () if record.labelled else tuple(_closed(record))
    noises = tuple(
        Statement(_pair("C", c.left, c.right), c.coefficient * _pair("C", c.a, c.b)) for c in record.covariances
    )
    observables = tuple(
        Statement(value.xreplace(dict(record.mean_symbols)), remark=n) for n, value in record.observables
    )
    sections = (
        Section("one site", sites, SITES),
        Section("responses", responses, RESPONSES),
        Section("noises", noises, CORRELATIONS),
        Section("observables", observables),
    )
    return tuple(section for section in sections if section.statements)


def _closed(record: StationaryLimit) -> Iterator[Statement]:
    """Yield the responses in closed form: averages of rational functions of the responses themselves."""
    rules = {f.field: f.rule for f in record.system.training}
    for sector, pairs in groupby(sorted(record.responses, key=lambda pair: pair[1].sector.name), lambda p: p[1].sector):
        rows = [field for field in record.fields if field.sector == sector]
        equations = [_at(f) - _equation(record, f, rules[f]) for f in rows]
        inverse = site_responses([[sp.expand(e).coeff(_at(f)) for f in rows] for e in equations])
        for a, noise in pairs:
            answer = inverse[rows.index(a), rows.index(noise)] if a in rows else sp.S.Zero
            yield Statement(_pair("R", a, noise), averaged(answer))


RECURSION = (
    "The linear map of one step, with $1/(1+z)$ for a delay by one step: training is stable if the responses have no "
    "singularity outside of the circle $|1+z| = 1$. Constant sources do not matter and are left out."
)
FRESH = "drawn afresh: at equal times only"


def recursion_sections(record: Recursion) -> tuple[Section, ...]:
    """Return the homogeneous equations of one site in z, the covariances of its noises, and overlaps."""
    rules = {f.field: f.rule for f in record.system.training}
    fresh = {m.target for m in record.memories if m.fresh}
    sites = [
        Statement(_at(field), _equation(record, field, rules[field]), remark=FRESH if field in fresh else "")
        for field in record.fields
    ]
    noises = [
        Statement(_pair("C", c.left, c.right), c.coefficient * _pair("C", c.a, c.b), remark=FRESH if c.fresh else "")
        for c in record.covariances
    ]
    sections = (Section("one site", tuple(sites), RECURSION), Section("noises", tuple(noises)))
    return tuple(section for section in sections if section.statements)


def _overlap(term: OverlapTerm) -> sp.Expr:
    overlap = term.overlap
    mean = EngineSymbol(f"mean_{overlap.source}_{overlap.field}", overlap.source, overlap.field)
    return overlap.scale * term.coefficient * mean / (1 + Z) ** overlap.delay * _at(term.source)


def _at(field: Field) -> sp.Symbol:
    return EngineSymbol(f"{field}", field)


def _pair(kind: str, a: Field, b: Field) -> sp.Symbol:
    return EngineSymbol(f"{kind}_{a}_{b}", a, b)


def _equation(record: StationaryLimit | Recursion, field: Field, rule: Rule) -> sp.Expr:
    total = EngineSymbol(f"u_{field}", field) if rule.product else sp.S.Zero
    for term in record.overlap_terms:
        if term.target == field:
            total += _overlap(term)
    for part in (*record.parts, *record.drives):
        if part.target == field:
            total += _term(part)
    for m in record.memories:
        if m.target == field:
            total += m.coefficient * _pair("R", m.a, m.noise) * _at(m.on)
    return total


def _term(part: LinearPart) -> sp.Expr:
    factor = part.coefficient * Z**part.power / (1 + Z) ** part.delay
    if part.mixing is None:
        return factor * _at(part.of)
    mixing = "total" if part.mixing.table is None else str(part.mixing.table) + ("^T" if part.mixing.transposed else "")
    return factor * EngineSymbol(mixing) * _at(part.of)
