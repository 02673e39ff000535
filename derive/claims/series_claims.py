"""Claims about coefficients of expansions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import sympy as sp
from sympy.core.function import PoleError

from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint
from derive.algebra.polynomials import TooLarge, eliminate
from derive.algebra.sites import without_averages
from derive.cells.balls import enclosure
from derive.cells.chart import in_sizes, zero_factors
from derive.cells.region import Point
from derive.cells.selection import CellSelection, Sites
from derive.cells.verdicts import PROVED, REFUTED, SUPPORTED, UNDECIDED, ComparisonOutcome, weakest
from derive.claims.context import SMALL, ClaimContext, shown_formula, shown_point
from derive.claims.reading import Claim
from derive.errors import ClaimError, DeriveError, NumericalError
from derive.expansions.infinity import series_at_infinity
from derive.expansions.limits import SMALL as EPSILON, ParameterLimit
from derive.expansions.quantities import NoOutlier, Quantity, QuantitySeries, expand_atom, expand_quantity
from derive.language.symbols import Parameter, parameter_values
from derive.records.probe import MAP

MOST_OF_MAP, MARGIN = 8, 3
"""Highest order of a series of a map, and number of additional orders of the responses that it needs."""


def decide_series(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a coefficient of an expansion."""
    of = claim.get("of")
    order = context.reader(claim).scalar(claim.get("order"))
    if not order.is_Integer:
        raise ClaimError(f"{context.place(claim)}: order must be a whole number; set the parameter to a power of x")
    value = context.reader(claim, "G").scalar(claim.get("value"))
    if of == "resolvent" and claim.get("in", "z") == "z":
        if claim.get("set", "1/x").replace(" ", "") != "1/x" or not 0 <= order <= 25:
            raise ClaimError(f"{context.place(claim)}: the resolvent is expanded in x = 1/z to order 25 at most")
        derived = context.moments(int(order) - 1)[int(order) - 1] if order else sp.S.Zero
        return context.conclude(
            context.comparator.same(value, derived), value, sp.factor(derived), f"coefficient of 1/z**{order}"
        )
    responses = {symbol.name: symbol for symbol in context.bulk.projected.bulk_symbols}
    responses |= {f"R[{letter.a},{letter.b}]": symbol for letter, symbol in context.responses.items()}
    if of == "z" or of in responses and of != "resolvent":
        return _at_fixed_resolvent(context, claim, int(order), responses.get(of, Z))
    if of == "scalar_map" or of == "inverse_map" and context.cycle(claim).inverse is None:
        return _map_at_infinity(context, claim, int(order), value)
    names = {p.name: p for p in context.parameters}
    if of == "inverse_map":
        names["s"] = MAP
    variable = claim.get("in")
    if variable not in names:
        raise ClaimError(f"{context.place(claim)}: in must be one of {', '.join(names)}, not {variable!r}")
    replaced = context.reader(claim, "x").scalar(claim.get("set", "x"))
    if of in _OF:
        return _expanded_coefficient(context, claim, names[variable], replaced, int(order), value)
    expression = _quantity(context, claim, of)
    if expression is None:
        return UNDECIDED, f"no closed form of {of} is derived, so its series cannot be taken"
    try:
        lift = max(0, -int(order)) + 1
        lifted = sp.expand(expression.subs(names[variable], replaced) * SMALL**lift)
        expanded = sp.series(lifted, SMALL, 0, int(order) + lift + 1).removeO()
    except (NotImplementedError, ValueError, PoleError):
        return UNDECIDED, f"{of} = {shown_formula(expression)} has no power series there that SymPy finds"
    derived = sp.expand(expanded).coeff(SMALL, int(order) + lift)
    result = context.comparator.same(value, derived)
    if of == "resolvent":  # the sign of the root in its closed form was chosen at one point
        result = replace(result, status=weakest([result.status, SUPPORTED]))
    return context.conclude(result, value, sp.factor(derived), f"coefficient of x**{order} in {of}")


_OF = {
    "edge upper": "edge",
    "edge lower": "lower_edge",
    "outlier": "outlier",
    "threshold": "threshold",
    "atom": "atom",
}
"""Names in `derive expand` of the quantities that are roots of derived polynomials."""


def _at_fixed_resolvent(context: ClaimContext, claim: Claim, order: int, of: sp.Symbol) -> tuple[str, str]:
    """Decide a coefficient of z, or of a response of the bulk, as a function of G."""
    names, variable = {p.name: p for p in context.parameters}, claim.get("in")
    if variable not in names or order < 0:
        raise ClaimError(f"{context.place(claim)}: in must be one of {', '.join(names)}, and order at least 0")
    replaced = context.reader(claim, "x").scalar(claim.get("set", "x"))
    value = context.reader(claim, "G").scalar(claim.get("value"))
    projected, shift = context.bulk.projected, sp.Symbol("_shift")
    root, symbols = projected.resolvent, projected.bulk_symbols
    try:
        physical = PhysicalPoint.of(projected.algebraic, symbols)
        rest = [s for s in (Z, *symbols) if s not in (of, root)]
        relation = eliminate(list(projected.algebraic), rest, physical)
        far = series_at_infinity(projected.algebraic, symbols, 1)
    except (TooLarge, NumericalError, sp.PolynomialError):
        return UNDECIDED, f"no polynomial relation between {of} and G is derived"
    start = (1 + shift) / root if of == Z else far[of][0].subs(names[variable], replaced) + shift
    derived = _branch_at_zero(context, relation.subs(names[variable], replaced), (of, root, start, shift), order)
    if derived is None:
        return UNDECIDED, f"{of} is not a power series in x whose first term is a rational function of G"
    derived = sp.diff(derived, root, claim.get("derivative", 0))
    free = sp.Symbol("G", real=True)  # not joined with z by the equations of the bulk
    value, derived = value.subs(root, free), derived.subs(root, free)
    what = f"coefficient of x**{order} in {context.text.plain(of)} at fixed {context.text.order_parameter(root)}"
    return context.conclude(context.comparator.same(value, derived), value, sp.factor(derived), what)


def _branch_at_zero(
    context: ClaimContext, relation: sp.Expr, branch: tuple[sp.Symbol, sp.Symbol, sp.Expr, sp.Symbol], order: int
) -> sp.Expr | None:
    """Return a coefficient in x of the solution of a relation with G; None if it is not decided.

    `branch` contains the unknown, G, and the unknown as a function of a shift that vanishes at G = 0 on the physical
    branch. If the derivative of the relation with respect to the shift is nonzero there and at x = 0, the shift is the
    only such power series in G, and its coefficients are regular at x = 0.
    """
    of, root, start, shift = branch
    powers = sp.Poly(sp.fraction(sp.cancel(sp.together(relation)))[0], SMALL)
    relation = sp.expand(powers.as_expr() / SMALL ** min(powers.monoms())[0])
    near = sp.Poly(sp.fraction(sp.cancel(sp.together(relation.subs(of, start))))[0], root)
    lowest = near.coeff_monomial(root ** min(near.monoms())[0])
    slope = sp.diff(lowest, shift).subs({shift: 0, SMALL: 0})
    if sp.expand(lowest.subs(shift, 0)) != 0 or not context.comparator.differs_from_zero(slope):
        return None
    linear = [f for f, _ in sp.factor_list(relation.subs(SMALL, 0))[1] if f.has(of) and sp.degree(f, of) == 1]
    offset = sp.solve(start - of, shift)[0].subs(SMALL, 0)
    firsts = [v for f in linear for v in sp.solve(f, of) if sp.limit(offset.subs(of, v), root, 0) == 0]
    if len(firsts) != 1:
        return None
    coefficient = total = firsts[0]
    steep = sp.cancel(sp.diff(relation, of).subs(SMALL, 0).subs(of, total))
    for k in range(1, order + 1):
        residual = sp.diff(relation.subs(of, total), SMALL, k).subs(SMALL, 0) / sp.factorial(k)
        coefficient = sp.cancel(sp.together(-residual / steep))
        total += coefficient * SMALL**k
    return coefficient


def _map_at_infinity(context: ClaimContext, claim: Claim, order: int, value: sp.Expr) -> tuple[str, str]:
    """Decide a coefficient of s(z) in 1/z, or of z(s) in 1/s, from the bulk equations."""
    of, variable = claim.get("of"), "z" if claim.get("of") == "scalar_map" else "s"
    if claim.get("in", variable) != variable or claim.get("set", "1/x").replace(" ", "") != "1/x":
        raise ClaimError(f"{context.place(claim)}: {of} is expanded here with in = {variable!r} and set = '1/x' only")
    if not -1 <= order <= MOST_OF_MAP:
        raise ClaimError(f"{context.place(claim)}: {of} is expanded through orders -1 to {MOST_OF_MAP}")
    scalar_map, projected = without_averages(context.cycle(claim).scalar_map), context.bulk.projected
    assert scalar_map is not None, "claims about averages that cannot be written out are refused"
    try:
        series = series_at_infinity(projected.algebraic, projected.bulk_symbols, order + MARGIN)
    except (NumericalError, sp.PolynomialError) as error:
        return UNDECIDED, f"{of} has no power series that follows from the bulk equations: {error}"
    small = {s: sp.Add(*(c * SMALL**k for k, c in enumerate(row))) for s, row in series.items()}
    expanded = sp.series(
        sp.cancel(sp.together(scalar_map.subs(small).subs(Z, 1 / SMALL))), SMALL, 0, order + 1
    ).removeO()
    powers = {k: sp.expand(expanded).coeff(SMALL, k) for k in range(-1, order + 1)}
    if of == "inverse_map" and powers[-1] == 0:
        return UNDECIDED, "the map does not grow as z, so its inverse has no power series in 1/s"
    powers = _inverted(powers) if of == "inverse_map" else powers
    derived = powers[order]
    return context.conclude(
        context.comparator.same(value, derived), value, sp.factor(derived), f"coefficient of x**{order} in {of}"
    )


def _inverted(powers: dict[int, sp.Expr]) -> dict[int, sp.Expr]:
    """Return the coefficients of z in powers of 1/s from those of s in powers of 1/z (series reversion)."""
    last, coefficients = max(powers), {-1: 1 / powers[-1]}
    for k in range(last + 1):
        unknown = sp.Symbol("_unknown")
        z = sp.Add(*(c * SMALL**m for m, c in coefficients.items())) + unknown * SMALL**k
        total = sp.Add(*(c * z ** (-m) for m, c in powers.items() if m <= k))
        term = sp.expand(sp.series(sp.cancel(sp.together(total)), SMALL, 0, k + 1).removeO()).coeff(SMALL, k)
        (coefficients[k],) = sp.solve(term, unknown)
    return coefficients


def _expanded_coefficient(
    context: ClaimContext, claim: Claim, parameter: Parameter, replaced: sp.Expr, order: int, value: sp.Expr
) -> tuple[str, str]:
    """Decide a coefficient of an edge or of the largest outlier in each cell of the region."""
    base, power = replaced.as_base_exp()
    if base != SMALL or not power.is_Integer or power == 0:
        raise ClaimError(f"{context.place(claim)}: set must be a power of x here, such as x, 1/x or 1/x**2")
    limit = ParameterLimit(parameter, EPSILON if power > 0 else 1 / EPSILON)
    of, wanted = claim.get("of"), sp.Rational(order, abs(power))
    region, which = context.comparator.region, claim.get("number", 1) - 1
    position = context.reader(claim).scalar(claim.get("position", "0"))

    def expanded(fixed: Point) -> Quantity:
        if of == "atom":
            return expand_atom(context.matrix, position, limit, wanted, region, fixed)
        strength = claim.get("parameter")
        return expand_quantity(context.matrix, _OF[of], limit, wanted, fixed, strength, region, which)

    try:
        return _decided_in_cells(
            context, _Expanded(f"coefficient of x**{order} in {of}", wanted, limit, expanded), value
        )
    except ClaimError:
        raise
    except DeriveError as error:
        return UNDECIDED, f"{of} could not be expanded: {error}"


@dataclass(frozen=True)
class _Expanded:
    """A coefficient: its description, its power, and the function that expands the quantity at fixed parameters."""

    what: str
    power: sp.Rational
    limit: ParameterLimit
    series: Callable[[Point], Quantity]

    def coefficient(self, series: QuantitySeries) -> sp.Expr:
        """Return the coefficient in one series."""
        expansion = series.expansion
        return dict(zip(expansion.powers, expansion.coefficients, strict=True)).get(self.power, sp.S.Zero)


def _decided_in_cells(
    context: ClaimContext, expanded: _Expanded, value: sp.Expr, fixed: Point | None = None
) -> tuple[str, str]:
    """Decide a coefficient in each cell of the region, and on the walls between them."""
    what, given = expanded.what, f"at {shown_point(fixed, *fixed)}: " if fixed else ""
    try:
        quantity = expanded.series(fixed or {})
    except NoOutlier as error:
        return REFUTED, f"{given}claimed a {what}, but {error}"
    cells, sites = quantity.series, quantity.sites
    visited = [point for series in cells for point in series.points]
    for point in sites.points[: sites.visited]:
        if point not in visited:
            at = shown_point(point, *sites.walls, value)
            return REFUTED, f"{given}at {at} there is nothing to expand for {expanded.limit.in_words}, so no {what}"
    statuses, formulas = [], []
    for series in cells:
        derived = expanded.coefficient(series)
        formulas.append(shown_formula(sp.factor(derived)))
        whole = len(cells) == 1 and not fixed
        result = context.comparator.same(value, derived) if whole else _same_in_cells(context, value, derived, series)
        if result.status == REFUTED:
            return REFUTED, given + context.conclude(result, value, sp.factor(derived), what)[1]
        statuses += [result.status, series.status]
    derivation = f"derived {what} = {' or '.join(formulas)}, on the branch that is physical {sites.extent}"
    if context.comparator.region.closed:
        return weakest(
            [*statuses, SUPPORTED]
        ), f"{derivation}; it was not expanded where an inequality becomes an equality"
    status, evidence = _decided_on_walls(context, expanded, quantity, value, fixed or {})
    return (status, evidence) if status == REFUTED else (weakest([*statuses, status]), derivation + evidence)


def _decided_on_walls(
    context: ClaimContext, expanded: _Expanded, quantity: Quantity, value: sp.Expr, fixed: Point
) -> tuple[str, str]:
    """Decide a coefficient on the walls between cells, where it may differ from its value on both sides."""
    branches, sites, known = quantity.branches, quantity.sites, list[Point]()
    for point in sites.on_walls(value):
        if any(wall.items() <= point.items() for wall in known) or branches.continues_to(point, expanded.power):
            continue
        wall = _wall_through(point, sites, branches.selection)
        if wall is None:
            at = shown_point(point, *sites.walls, value)
            return SUPPORTED, f"; on a wall between cells, as at {at}, it was not expanded"
        known.append(wall)
        try:
            status, detail = _decided_in_cells(context, expanded, value.subs(wall), {**fixed, **wall})
        except DeriveError as error:
            status, detail = UNDECIDED, str(error)
        if status == REFUTED:
            return REFUTED, detail
        if status != PROVED:
            return SUPPORTED, f"; {detail}"
    unvisited = branches.selection.unvisited_zero(sites.walls, sites, {})
    if unvisited is not None:
        return SUPPORTED, f"; where {shown_formula(unvisited)} = 0, on a wall between cells, it was not expanded"
    return PROVED, ""


def _wall_through(point: Point, sites: Sites, selection: CellSelection) -> Point | None:
    """Return the value of a parameter on a wall through a point; None if the wall involves several parameters."""
    for parameter, value in parameter_values(point).items():
        own = [wall for wall in sites.walls if wall.free_symbols == {parameter}]
        at_wall = any(wall.subs(parameter, value) == 0 for wall in own)
        if at_wall or value in selection.region.ends.get(parameter, ()):
            return {parameter: value}
    return None


def _same_in_cells(
    context: ClaimContext, value: sp.Expr, derived: sp.Expr, series: QuantitySeries
) -> ComparisonOutcome:
    """Decide whether two formulas agree in the cells of one series: by algebra, otherwise at sample points."""
    forms = {_by_signs(value - derived, point, series.walls) for point in series.points}
    if all(map(context.comparator.proves_zero, sorted(forms, key=str))):
        return ComparisonOutcome(PROVED)
    for point in series.points:
        if not enclosure(value - derived, point).contains(0):
            numbers = [enclosure(e, point).real.str(8, radius=False) for e in (value, derived)]
            at = shown_point(point, value, derived)
            return ComparisonOutcome(REFUTED, f"at {at} the claim is {numbers[0]}, the derivation {numbers[1]}")
    return ComparisonOutcome(UNDECIDED, "the formulas agree at a point of each cell; no symbolic proof found")


def _by_signs(formula: sp.Expr, point: Point, walls: tuple[sp.Expr, ...]) -> sp.Expr:
    """Return a formula without those absolute values whose arguments have one sign throughout the cell of a point."""
    for size in sorted(in_sizes(formula).atoms(sp.Abs), key=sp.count_ops):
        inside = size.args[0]
        if inside.is_polynomial() and all(f in walls or -f in walls for f in zero_factors(inside)):
            formula = in_sizes(formula).xreplace({size: sp.sign(inside.subs(point)) * inside})
    return formula


def _quantity(context: ClaimContext, claim: Claim, of: str) -> sp.Expr | None:
    if of == "resolvent":
        return context.bulk.resolvent
    if of == "inverse_map":
        return context.cycle(claim).inverse
    raise ClaimError(
        f"{context.place(claim)}: no series of {of!r}; of is {', '.join(_OF)}, resolvent, scalar_map, inverse_map, z "
        "or a response of the bulk"
    )
