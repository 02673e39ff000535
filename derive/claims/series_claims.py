"""Claims about coefficients of expansions."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp
from sympy.core.function import PoleError

from derive.cells.balls import enclosure
from derive.cells.verdicts import PROVED, REFUTED, SUPPORTED, UNDECIDED, Comparison, weakest
from derive.claims.reading import Claim
from derive.claims.work import SMALL, Work, shown_formula, shown_point
from derive.errors import ClaimError, DeriveError
from derive.expansions.limits import SMALL as EPSILON, Limit
from derive.expansions.quantities import Found, NoOutlier, expand_quantity
from derive.language.symbols import Parameter
from derive.records.probe import MAP


def decide_series(work: Work, claim: Claim) -> tuple[str, str]:
    of = claim.get("of")
    order = work.reader(claim).scalar(claim.get("order"))
    if not order.is_Integer:
        raise ClaimError(f"{work.place(claim)}: order must be a whole number; set the parameter to a power of x")
    value = work.reader(claim).scalar(claim.get("value"))
    if of == "resolvent" and claim.get("in", "z") == "z":
        if claim.get("set", "1/x").replace(" ", "") != "1/x" or not 0 <= order <= 25:
            raise ClaimError(f"{work.place(claim)}: the resolvent is expanded in x = 1/z to order 25 at most")
        derived = work.moments(int(order) - 1)[int(order) - 1] if order else sp.S.Zero
        return work.told(work.bench.same(value, derived), value, sp.factor(derived), f"coefficient of 1/z**{order}")
    names = {p.name: p for p in work.parameters}
    if of == "inverse_map":
        names["s"] = MAP
    variable = claim.get("in")
    if variable not in names:
        raise ClaimError(f"{work.place(claim)}: in must be one of {', '.join(names)}, not {variable!r}")
    replaced = work.reader(claim, "x").scalar(claim.get("set", "x"))
    if of in _OF:
        return _expanded_coefficient(work, claim, names[variable], replaced, int(order), value)
    expression = _quantity(work, claim, of)
    if expression is None:
        return UNDECIDED, f"no closed form of {of} is derived, so its series cannot be taken"
    try:
        lift = max(0, -int(order)) + 1
        lifted = sp.expand(expression.subs(names[variable], replaced) * SMALL**lift)
        expanded = sp.series(lifted, SMALL, 0, int(order) + lift + 1).removeO()
    except (NotImplementedError, ValueError, PoleError):
        return UNDECIDED, f"{of} = {shown_formula(expression)} has no power series there that SymPy finds"
    derived = sp.expand(expanded).coeff(SMALL, int(order) + lift)
    result = work.bench.same(value, derived)
    if of == "resolvent":  # the sign of the root in its closed form was chosen at one point
        result = replace(result, status=weakest([result.status, SUPPORTED]))
    return work.told(result, value, sp.factor(derived), f"coefficient of x**{order} in {of}")


_OF = {"edge upper": "edge", "edge lower": "lower_edge", "outlier": "outlier"}
"""What `derive expand` calls the quantities that are roots of derived polynomials."""


def _expanded_coefficient(
    work: Work, claim: Claim, parameter: Parameter, replaced: sp.Expr, order: int, value: sp.Expr
) -> tuple[str, str]:
    """A coefficient of an edge or of the largest outlier, in each cell of the region."""
    base, power = replaced.as_base_exp()
    if base != SMALL or not power.is_Integer or power == 0:
        raise ClaimError(f"{work.place(claim)}: set must be a power of x here, such as x, 1/x or 1/x**2")
    limit = Limit(parameter, EPSILON if power > 0 else 1 / EPSILON)
    of, wanted = claim.get("of"), sp.Rational(order, abs(power))
    try:
        quantity = expand_quantity(work.matrix, _OF[of], limit, wanted, {}, region=work.bench.region)
    except ClaimError:
        raise
    except NoOutlier as error:
        return REFUTED, f"claimed a coefficient of the outlier, but {error}"
    except DeriveError as error:
        return UNDECIDED, f"{of} could not be expanded: {error}"
    found, sites = quantity.series, quantity.sites
    what = f"coefficient of x**{order} in {of}"
    known = [point for series in found for point in series.points]
    for point in sites.points[: sites.visited]:
        if point not in known:
            return REFUTED, f"at {shown_point(point, *sites.walls, value)} there is no outlier for {limit.told}"
    statuses, told = [], []
    for series in found:
        expansion = series.expansion
        derived = dict(zip(expansion.powers, expansion.coefficients, strict=True)).get(wanted, sp.S.Zero)
        told.append(shown_formula(sp.factor(derived)))
        result = work.bench.same(value, derived) if len(found) == 1 else _same_in_cells(work, value, derived, series)
        if result.status == REFUTED:
            return work.told(result, value, sp.factor(derived), what)
        statuses += [result.status, series.status]
    status = weakest(statuses)
    return status, f"derived {what} = {' or '.join(told)}, on the branch that is physical {sites.told}"


def _same_in_cells(work: Work, value: sp.Expr, derived: sp.Expr, series: Found) -> Comparison:
    """Whether two formulas agree in the cells of one series: by algebra, or else at their points."""
    if work.bench.proves_zero(value - derived):
        return Comparison(PROVED)
    for point in series.points:
        if not enclosure(value - derived, point).contains(0):
            numbers = [enclosure(e, point).real.str(8, radius=False) for e in (value, derived)]
            at = shown_point(point, value, derived)
            return Comparison(REFUTED, f"at {at} the claim is {numbers[0]}, the derivation {numbers[1]}")
    return Comparison(UNDECIDED, "the formulas agree at a point of each cell; no symbolic proof found")


def _quantity(work: Work, claim: Claim, of: str) -> sp.Expr | None:
    if of == "resolvent":
        return work.bulk.resolvent
    if of == "inverse_map":
        return work.cycle(claim).inverse
    raise ClaimError(
        f"{work.place(claim)}: no series of {of!r}; of is edge upper, edge lower, resolvent, outlier or inverse_map"
    )
