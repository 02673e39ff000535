"""Claims about outliers, their thresholds, and the scalar maps s(z) and z(s)."""

from __future__ import annotations

import flint
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.polynomials import TooLarge, common_roots, rational_factors
from derive.algebra.sites import without_averages
from derive.cells.balls import constant, decided, is_positive
from derive.cells.chart import walls, zero_factors
from derive.cells.region import Point, Region
from derive.cells.selection import SAMPLES, CellSelection
from derive.cells.spectrum import Roots
from derive.cells.verdicts import PROVED, REFUTED, SUPPORTED, UNDECIDED, ComparisonOutcome, weakest
from derive.claims.bulk_claims import real_number
from derive.claims.context import ClaimContext, shown_formula, shown_point
from derive.claims.counterexamples import Counterexample, Refuted, floats
from derive.claims.reading import Claim
from derive.errors import ClaimError, DeriveError
from derive.expansions.cases import Case
from derive.expansions.spikes import CaseSpikes, Eigenproblem, Outliers, Thresholds, map_changes
from derive.language.symbols import Parameter, parameter_values
from derive.records.probe import MAP


def decide_outlier(context: ClaimContext, claim: Claim) -> tuple[str, str] | Refuted:
    """Decide a closed form of the outliers."""
    value = context.reader(claim).scalar(claim.get("value"))
    fixed = context.fixed(claim, context.reader(claim))
    value = value.subs(fixed)
    if not context.matrix.pencil.cycles and "eigenproblem" not in dict(claim.keys):
        return (
            UNDECIDED,
            "A(z) does not reduce to an eigenproblem, so no outlier is known in closed form",
        )
    try:
        spikes = _spikes(context, fixed)
        problems = _problems(context, claim, spikes)
        polynomials = [p for problem in problems for p in spikes.outlier_polynomials(problem)]
        changes = [p for problem in problems for p in map_changes(problem)]
    except ClaimError:
        raise
    except DeriveError as error:
        return UNDECIDED, f"no closed form of the outliers was found: {error}"
    derived = f"z is a root of {' or '.join(map(shown_formula, polynomials))}"
    result = context.comparator.is_root(value, Z, polynomials)
    selection = context.comparator.selection
    if result.status == REFUTED:
        detail = f"claimed {shown_formula(value)}; {derived}: {result.evidence}"
        point = _point_of(context, result, fixed)
        outliers = [z for problem in problems for z in Outliers(selection, problem, point, polynomials).places]
        return Refuted(detail, Counterexample.at(point, "outliers", floats(outliers), problems == spikes.problems))
    sites = selection.sites((*selection.singular, *polynomials, *changes), (value,), (Z,), fixed)
    for point in (*sites, *sites.on_walls(value)):
        outliers = [z for problem in problems for z in Outliers(selection, problem, point, polynomials).places]
        number, zeros = real_number(value, point), Roots(tuple(polynomials), Z, tuple(point.items()))
        if number is None or zeros.index_of(number) not in map(zeros.index_of, outliers):
            at = shown_point(point, *polynomials, value)
            claimed = "not real" if number is None else f"{number().str(8, radius=False)}"
            there = ", ".join(sorted((z().str(8, radius=False) for z in outliers), reverse=True)) or "none"
            return Refuted(
                f"claimed {shown_formula(value)}; {f'at {at} ' if at else ''}it is {claimed}, the outliers there are "
                f"{there}",
                Counterexample.at(point, "outliers", floats(outliers), problems == spikes.problems),
            )
    status = weakest([result.status, sites.status])
    detail = f"{derived}, outside the bulk {sites.extent}"
    touching = selection.unvisited_zero([f.subs(Z, value) for f in selection.singular if f.has(Z)], sites, fixed)
    if touching is not None:
        status = weakest([status, SUPPORTED])
        detail += f"; whether it touches the bulk where {shown_formula(touching)} = 0 is not decided"
    return status, detail if result.status == PROVED else f"{detail}; {result.evidence}"


def _point_of(context: ClaimContext, result: ComparisonOutcome, fixed: Point) -> Point:
    """Return the point at which a comparison found a difference, or else any point of the region."""
    return {**context.comparator.points[0], **parameter_values(dict(result.point)), **fixed}


def _spikes(context: ClaimContext, fixed: Point) -> CaseSpikes:
    """Return the eigenproblems, exact in all parameters that are not fixed; they are computed once."""
    key = tuple(fixed.items())
    if key not in context.spikes:
        context.spikes[key] = CaseSpikes(Case.of(context.matrix, None, fixed))
    return context.spikes[key]


def _problems(context: ClaimContext, claim: Claim, spikes: CaseSpikes) -> list[Eigenproblem]:
    """Return the eigenproblem that a claim names, or all of them."""
    if claim.get("eigenproblem") is None:
        return spikes.problems
    context.cycle(claim)
    return [spikes.problems[claim.get("eigenproblem") - 1]]


def decide_threshold(context: ClaimContext, claim: Claim) -> tuple[str, str] | Refuted:
    """Decide a closed form of a threshold."""
    value = context.reader(claim).scalar(claim.get("value"))
    names = {p.name: p for p in context.parameters}
    if claim.get("parameter") not in names:
        raise ClaimError(
            f"{context.place(claim)}: there is no parameter {claim.get('parameter')}; they are {', '.join(names)}"
        )
    parameter = names[claim.get("parameter")]
    fixed = context.fixed(claim, context.reader(claim))
    value = value.subs(fixed)
    if not context.matrix.pencil.cycles and "eigenproblem" not in dict(claim.keys):
        return UNDECIDED, "A(z) does not reduce to an eigenproblem, so no threshold is known in closed form"
    if parameter in fixed or value.has(parameter):
        raise ClaimError(
            f"{context.place(claim)}: {parameter} is the parameter of the threshold; its value may not contain it"
        )
    try:
        spikes = _spikes(context, fixed)
        problems = _problems(context, claim, spikes)
        polynomials = [p for problem in problems for p in spikes.threshold_polynomials(problem) if p.has(parameter)]
        thresholds = spikes.thresholds(parameter, context.comparator.region, problems)
    except ClaimError:
        raise
    except DeriveError as error:
        return UNDECIDED, f"no closed form of the threshold was found: {error}"
    derived = f"derived: an eigenvalue is critical where {' or '.join(map(shown_formula, polynomials))} vanishes"
    result = context.comparator.is_root(value, parameter, polynomials)
    selection = context.comparator.selection
    if result.status == REFUTED:
        detail = f"{derived}; at {parameter} = {shown_formula(value)}: {result.evidence}"
        others = {p: v for p, v in _point_of(context, result, fixed).items() if p != parameter}
        sides = _sides(thresholds, value, others) if real_number(value, others) else ()
        return Refuted(detail, Counterexample.at(others, "threshold", sides, parameter.name))
    sites = selection.sites((*thresholds.walls, *thresholds.beside), (value,), (parameter,), fixed)
    for point in (*sites, *sites.on_walls(value)):
        others = {p: v for p, v in point.items() if p != parameter}
        wrong = _wrong_threshold(selection, thresholds, value, others)
        if wrong:
            at = shown_point(others, value, *polynomials)
            detail = f"{derived}; {f'at {at} ' if at else ''}{wrong}"
            sides = _sides(thresholds, value, others) if wrong.startswith("no outlier") else ()
            return Refuted(detail, Counterexample.at(others, "threshold", sides, parameter.name))
    status = weakest([result.status, sites.status])
    detail = f"{derived}, and an outlier meets the bulk there, {sites.extent}"
    cells = [{p: v for p, v in point.items() if p != parameter} for point in sites.points[: sites.visited]]
    unclear = selection.unvisited_zero(_meetings(thresholds, value, selection, cells), sites, fixed)
    if unclear is not None:
        status = weakest([status, SUPPORTED])
        detail += f"; whether one does where {shown_formula(unclear)} = 0 is not decided"
    return status, detail if result.status == PROVED else f"{detail}; {result.evidence}"


def _meetings(thresholds: Thresholds, value: sp.Expr, selection: CellSelection, points: list[Point]) -> list[sp.Expr]:
    """Return expressions in the other parameters; wherever a threshold meets another wall, one of them vanishes.

    Elsewhere an outlier leaves at the threshold if it does at neighbouring values of the other parameters. Only walls
    at which edges or outliers change are relevant. points: one sample point in each cell of the other parameters.
    """
    parameter, active = thresholds.parameter, dict[sp.Expr, None]()
    for point in points:
        number, (roots, sides) = real_number(value, point), thresholds.sides(selection, point)
        own = None if number is None else roots.index_of(number)  # where it is not real it lies outside the region
        for i in (i for i in sides if i != own and i + 1 in sides and sides[i] != sides[i + 1]):
            here = (w for w in thresholds.walls if thresholds.roots([w], point).index_of(roots.ball(i)) is not None)
            active.update(dict.fromkeys(here))
    expressions = list(thresholds.beside)
    for wall in active:
        at_value = wall.subs(parameter, value)
        same = sp.simplify(at_value) == 0
        expressions.append(sp.diff(wall, parameter).subs(parameter, value) if same else at_value)
    return expressions


def _wrong_threshold(selection: CellSelection, thresholds: Thresholds, value: sp.Expr, others: Point) -> str:
    """Return the error in a claimed threshold at a point; an empty string if an outlier leaves there."""
    parameter, number = thresholds.parameter, real_number(value, others)
    if number is None:
        return f"{shown_formula(value)} is not real"
    shown = f"{parameter} = {number().str(8, radius=False)}"
    if not decided(lambda: _in_domain(parameter, number())):
        return f"{shown} lies outside the domain of {parameter}, {parameter.domain}"
    roots = Roots(tuple(wall.subs(others) for wall in thresholds.walls), parameter, ())
    if not thresholds.region.where(parameter, value).holds_at(others):
        return f"{shown} lies outside the region" if _meets(thresholds.region, parameter, others) else ""
    index = roots.index_of(number)
    if index in [crossing.index for crossing in thresholds.crossings(selection, others)]:
        return ""
    return f"no outlier leaves the bulk at {shown}"


def _meets(region: Region, parameter: Parameter, others: Point) -> bool:
    """Return whether a region contains a value of one parameter, given values of the others."""
    held = [c.subs(others) for c in region.conditions]
    try:
        between = [f for c in held for f in zero_factors(c) if f.has(parameter)]
        ends = [parameter - end for end in region.box[parameter] if end is not None]
        separators = Roots((*between, *ends), parameter, ()).separators
        values = [sp.Rational(value.numerator, value.denominator) for value in separators]
    except (TooLarge, sp.PolynomialError):  # zeros of functions other than polynomials and roots are not known
        values = [point[parameter] for point in region.points(SAMPLES, others)]
    return any(
        parameter.domain.contains(float(value)) and region.contains({**others, parameter: value}) for value in values
    )


def _sides(thresholds: Thresholds, value: sp.Expr, others: Point) -> tuple[float, ...]:
    """Return parameter values on either side of a claimed threshold, with no other critical value between them."""
    number, parameter = real_number(value, others), thresholds.parameter
    assert number is not None
    roots = Roots(tuple(wall.subs(others) for wall in thresholds.walls), parameter, ())
    here = floats([number])[0]
    own, all_walls = roots.index_of(number), floats(map(roots.ball, range(len(roots.separators) - 1)))
    walls = [wall for i, wall in enumerate(all_walls) if i != own]
    away = min([abs(w - here) for w in walls] + [1 + abs(here)]) / 2
    sides = (here - away, here + away)
    return sides if all(map(parameter.domain.contains, sides)) else ()


def _in_domain(parameter: Parameter, value: flint.arb) -> bool | None:
    domain = parameter.domain
    low, high = (flint.arb(end) if abs(end) != float("inf") else None for end in (domain.low, domain.high))
    if (low is not None and bool(value < low)) or (high is not None and bool(value > high)):
        return False
    inside = (low is None or bool(value > low)) and (high is None or bool(value < high))
    if value.is_exact():
        return bool(domain.contains(float(value)))
    return True if inside else None


def decide_inverse_map(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a closed form of z(s)."""
    value = context.reader(claim, "s").scalar(claim.get("value"))
    cycle = context.cycle(claim)
    bounds = context.comparator.bounds
    if cycle.inverse is not None and not bounds:
        return context.conclude(context.comparator.same(value, cycle.inverse), value, cycle.inverse, "z")
    scalar_map = without_averages(cycle.scalar_map)
    if cycle.relation is None or scalar_map is None:
        return UNDECIDED, "no polynomial relates z to the map"
    relation = sp.expand(sp.Mul(*(f for f in rational_factors(cycle.relation) if f.has(MAP))))
    problem = Eigenproblem(scalar_map, relation, sp.S.One, ())
    result = context.comparator.same(relation.subs(Z, value), sp.S.Zero)
    if result.status == REFUTED:
        return context.conclude(result, value, cycle.relation, "relation")
    selection = context.comparator.selection
    try:
        changes = [
            *_changes_in_map(relation),
            *(f for s in selection.singular if s.has(Z) for f in common_roots(relation, s, Z)),
        ]
        sites = selection.sites((*changes, *bounds), (value,), (MAP,))
    except TooLarge as reason:
        return UNDECIDED, f"the branches of z are too many to tell apart ({reason})"
    attained = 0
    for point in sites:
        between = [
            *changes,
            *(f for c in bounds for f in zero_factors(c)),
            MAP,
            *(f for f in walls([value]) if f.has(MAP)),
        ]
        for place in Roots(tuple(between), MAP, tuple(point.items())).separators:
            level = sp.Rational(place.numerator, place.denominator)
            if not all(is_positive(bound, {**point, MAP: level}) for bound in bounds):
                continue
            places = Outliers(selection, problem, point, (relation.subs(MAP, level),)).of_level(constant(place))
            if not places:
                continue
            attained += 1
            number = real_number(value.subs(MAP, level), point)
            zeros = Roots((relation.subs(MAP, level),), Z, tuple(point.items()))
            if number is None or zeros.index_of(number) not in map(zeros.index_of, places):
                at = ", ".join(filter(None, (shown_point(point, value, relation), f"s = {level}")))
                there = ", ".join(z().str(8, radius=False) for z in places)
                claimed = "not real" if number is None else number().str(8, radius=False)
                return REFUTED, (
                    f"{shown_formula(value)} is a root of {shown_formula(cycle.relation)}, but not z on the physical "
                    f"branch: at {at} it is {claimed}, z is {there}"
                )
    if not attained:
        return UNDECIDED, "the map takes no real value outside the bulk at the points that were tried"
    status = weakest([result.status, sites.status])
    detail = f"a root of {shown_formula(cycle.relation)}, on the physical branch {sites.extent}"
    return status, detail if result.status == PROVED else f"{detail}; {result.evidence}"


def _changes_in_map(relation: sp.Expr) -> list[sp.Expr]:
    """Return polynomials in the map's value that vanish where solutions z meet or diverge."""
    poly = sp.Poly(relation, Z)
    factors = rational_factors(poly.LC())
    if poly.degree() > 1:
        factors += common_roots(relation, sp.diff(relation, Z), Z)
    return [f for f in factors if f.has(MAP)]


def decide_scalar_map(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a closed form of s(z)."""
    value = context.reader(claim, "z", "G").scalar(claim.get("value"))
    derived = without_averages(context.cycle(claim).scalar_map)
    return context.conclude(context.comparator.same(value, derived), value, derived, "s", "modulo the bulk equations")


def decide_critical(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide closed forms of the critical values of the map."""
    reader = context.reader(claim)
    return context.same_sets(
        [reader.scalar(text) for text in claim.get("value")], context.cycle(claim).critical, "critical values"
    )
