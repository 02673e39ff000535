"""Claims about outliers, the thresholds at which they leave the bulk, and the maps behind them."""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp

from derive.algebra.many_digits import exact, vanishes
from derive.algebra.nodes import Z
from derive.algebra.physical import physical_values
from derive.algebra.sites import without_averages
from derive.claims.equality import FAILED, PROVED, UNDECIDED, WORKING_DIGITS, close, number
from derive.claims.reading import Claim
from derive.claims.region import POINTS, Point
from derive.claims.work import MORE_POINTS, Work, shown_formula, shown_point
from derive.errors import ClaimError, DeriveError, NumericalError
from derive.expansions.cases import Case
from derive.expansions.spikes import Eigenproblem, Spikes
from derive.language.symbols import Parameter
from derive.records.probe import MAP, Cycle


def decide_outlier(work: Work, claim: Claim) -> tuple[str, str]:
    value = work.reader(claim).scalar(claim.get("value"))
    fixed = work.fixed(claim, work.reader(claim))
    value = value.subs(fixed)
    if not work.matrix.pencil.cycles and "eigenproblem" not in dict(claim.keys):
        return (
            UNDECIDED,
            "outliers are zeros of det A(z) that no eigenproblem gives, so none is known in closed form",
        )
    cycle = work.cycle(claim)
    if cycle.eigenvalue is not None and cycle.inverse is not None:
        derived = sp.factor(cycle.inverse.subs(MAP, cycle.eigenvalue).subs(fixed))
        result = work.bench.same(value, derived)
        if result.status == FAILED or not claim.region:
            return work.told(result, value, derived, "z")
    try:
        spikes = _spikes(work, fixed)
        problems = _problems(work, claim, spikes)
        polynomials = [p for problem in problems for p in spikes.outlier_polynomials(problem)]
    except ClaimError:
        raise
    except DeriveError as error:
        return UNDECIDED, f"no closed form of the outliers was found: {error}"
    best = work.best([work.bench.same(p.subs(Z, value), sp.S.Zero) for p in polynomials])
    seen, tried = 0, 0
    for point in work.bench.region.points(POINTS + MORE_POINTS, fixed):
        if seen and tried >= POINTS and not claim.region:
            break  # without a region a claim is about the outlier near the defaults
        tried += 1
        wrong = _wrong_outlier(spikes, problems, value, point)
        if wrong is None:
            seen += 1
        elif wrong or claim.region:
            told = wrong or f"at {shown_point(point, *polynomials, value)} there is no such outlier: it is in the bulk"
            return FAILED, f"claimed {shown_formula(value)}; {told}"
    told = f"z is a root of {' or '.join(map(shown_formula, polynomials))}"
    if best.status == FAILED:
        return FAILED, f"claimed {shown_formula(value)}; {told}: {best.evidence}"
    if not seen:
        return UNDECIDED, f"{told}; none of {tried} points has such an outlier: give a region that does"
    told += f", outside the bulk at {seen} of {tried} points"
    return best.status, told if best.status == PROVED else f"{told}; {best.evidence}"


def _spikes(work: Work, fixed: Point) -> Spikes:
    """The eigenproblems, exact in all parameters that are not fixed; found once."""
    key = tuple(fixed.items())
    if key not in work.spikes:
        work.spikes[key] = Spikes(Case.of(work.matrix, None, fixed))
    return work.spikes[key]


def _problems(work: Work, claim: Claim, spikes: Spikes) -> list[Eigenproblem]:
    """The eigenproblem that a claim names, or all of them."""
    if claim.get("eigenproblem") is None:
        return spikes.problems
    work.cycle(claim)
    return [spikes.problems[claim.get("eigenproblem") - 1]]


def _wrong_outlier(spikes: Spikes, problems: list[Eigenproblem], value: sp.Expr, point: Point) -> str | None:
    """None where the claimed value is an outlier at the point, a counterexample where it contradicts one.

    Empty where the point says nothing: the eigenvalue to which the value belongs gives no outlier there.
    """
    with mpmath.workdps(WORKING_DIGITS):
        return _outlier_at(spikes, problems, value, point)


def _outlier_at(spikes: Spikes, problems: list[Eigenproblem], value: sp.Expr, point: Point) -> str | None:
    claimed = number(value, point)
    if mpmath.isnan(claimed) or abs(mpmath.im(claimed)) > mpmath.mpf(10) ** -40 * (1 + abs(claimed)):
        return ""
    real, everything, contradicted, belongs = mpmath.re(claimed), [], False, False
    for problem in problems:
        for level in (s for factor in problem.factors for s in spikes.levels(problem, factor, point)):
            places = spikes.outliers_at(problem, level, point)
            everything += places
            if any(close(place, real, 25) for place in places):
                return None
            if vanishes(problem.relation, {**point, Z: real, MAP: level}):
                belongs, contradicted = True, contradicted or bool(places)
    if belongs and not contradicted:
        return ""
    there = ", ".join(mpmath.nstr(z, 8) for z in sorted(everything, reverse=True)) or "none"
    at = shown_point(point, value, *(f for p in problems for f in (*p.factors, p.relation)))
    return f"{f'at {at} ' if at else ''}it is {mpmath.nstr(real, 8)}, the outliers are {there}"


def _mapped(work: Work, cycle: Cycle, point: dict[sp.Symbol, Any], z: mpmath.mpc) -> mpmath.mpc:
    """The scalar map on the physical branch at a point."""
    projected = work.bulk.projected
    try:
        values = physical_values(projected.algebraic, projected.bulk_symbols, point, at=z)
    except (NumericalError, ZeroDivisionError):
        return None
    return number(without_averages(cycle.scalar_map), {**point, **values})


def decide_threshold(work: Work, claim: Claim) -> tuple[str, str]:
    value = work.reader(claim).scalar(claim.get("value"))
    names = {p.name: p for p in work.parameters}
    if claim.get("parameter") not in names:
        raise ClaimError(
            f"{work.place(claim)}: there is no parameter {claim.get('parameter')}; they are {', '.join(names)}"
        )
    parameter = names[claim.get("parameter")]
    fixed = work.fixed(claim, work.reader(claim))
    value = value.subs(fixed)
    if not work.matrix.pencil.cycles and "eigenproblem" not in dict(claim.keys):
        return UNDECIDED, "outliers are zeros of det A(z) that no eigenproblem gives: no threshold in closed form"
    if parameter in fixed or value.has(parameter):
        raise ClaimError(f"{work.place(claim)}: {parameter} is what the threshold is of; leave it out of the value")
    points = work.bench.region.points(POINTS + MORE_POINTS, fixed)
    cycle = work.cycle(claim)
    if cycle.eigenvalue is not None and cycle.critical:
        critical = ", ".join(map(shown_formula, cycle.critical))
        known = f"derived: the eigenvalue {shown_formula(cycle.eigenvalue)} must be one of {critical}"
        there = cycle.eigenvalue.subs(fixed).subs(parameter, value)
        results = [work.bench.same(there, c.subs(fixed).subs(parameter, value)) for c in cycle.critical]
    else:
        try:
            spikes = _spikes(work, fixed)
            problems = _problems(work, claim, spikes)
            polynomials = [p for problem in problems for p in spikes.threshold_polynomials(problem)]
        except ClaimError:
            raise
        except DeriveError as error:
            return UNDECIDED, f"no closed form of the threshold was found: {error}"
        known = f"derived: an eigenvalue is critical where {' or '.join(map(shown_formula, polynomials))} vanishes"
        results = [work.bench.same(p.subs(parameter, value), sp.S.Zero) for p in polynomials]
        for point in points:
            place = number(value, point)
            if not _inside(parameter, place):
                continue
            with mpmath.workdps(WORKING_DIGITS):
                given = {**point, parameter: exact(mpmath.re(place))}
            if not any(spikes.meets_bulk(problem, given) for problem in problems):
                at = shown_point({p: v for p, v in given.items() if p != parameter}, value, *polynomials)
                return FAILED, (
                    f"{known}; {f'at {at} ' if at else ''}no eigenvalue is critical on the physical branch at "
                    f"{parameter} = {mpmath.nstr(mpmath.re(place), 8)}"
                )
    for point in points:
        place = number(value, point)
        if not _inside(parameter, place):
            at = shown_point(point, value)
            return FAILED, (
                f"{known}; {parameter} = {shown_formula(value)} lies outside the domain of {parameter}: "
                f"{f'at {at} ' if at else ''}it is {mpmath.nstr(place, 8)}"
            )
    best = work.best(results)
    if best.status == PROVED:
        return PROVED, known
    return best.status, f"{known}; at {parameter} = {shown_formula(value)}: {best.evidence}"


def _inside(parameter: Parameter, place: Any) -> bool:
    """Whether a number with many digits is a value of the parameter."""
    return not mpmath.isnan(place) and mpmath.im(place) == 0 and parameter.domain.contains(float(mpmath.re(place)))


def decide_inverse_map(work: Work, claim: Claim) -> tuple[str, str]:
    value = work.reader(claim, "s").scalar(claim.get("value"))
    cycle = work.cycle(claim)
    if cycle.inverse is not None:
        return work.told(work.bench.same(value, cycle.inverse), value, cycle.inverse, "z")
    if cycle.relation is None:
        return UNDECIDED, "no polynomial relates z to the map"
    result = work.bench.same(cycle.relation.subs(Z, value), sp.S.Zero)
    if result.status != FAILED:
        for point in work.bench.points:
            z = mpmath.mpc(1000 * (1 + sum(abs(v) for v in point.values())), 1)
            mapped = _mapped(work, cycle, point, z)
            if mapped is None:
                return UNDECIDED, f"the map could not be followed on the physical branch to z = {mpmath.nstr(z, 6)}"
            found = number(value, {**point, MAP: mapped})
            if not close(found, z, 10):
                at = ", ".join(filter(None, (shown_point(point, value), f"s = {mpmath.nstr(mapped, 8)}")))
                return FAILED, (
                    f"{shown_formula(value)} is a root of {shown_formula(cycle.relation)}, but not z at large s: "
                    f"at {at} it is {mpmath.nstr(found, 8)}, on the physical branch z = {mpmath.nstr(z, 8)}"
                )
    return work.told(result, value, cycle.relation, "relation")


def decide_scalar_map(work: Work, claim: Claim) -> tuple[str, str]:
    value = work.reader(claim, "z", "G").scalar(claim.get("value"))
    derived = without_averages(work.cycle(claim).scalar_map)
    return work.told(work.bench.same(value, derived), value, derived, "s", "modulo the bulk equations")


def decide_critical(work: Work, claim: Claim) -> tuple[str, str]:
    reader = work.reader(claim)
    return work.same_sets(
        [reader.scalar(text) for text in claim.get("value")], work.cycle(claim).critical, "critical values"
    )
