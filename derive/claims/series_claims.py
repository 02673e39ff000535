"""Claims about coefficients of expansions."""

from __future__ import annotations

from typing import Any

import sympy as sp
from sympy.core.function import PoleError

from derive.cells.verdicts import UNDECIDED
from derive.claims.reading import Claim
from derive.claims.work import SMALL, Work, shown_formula
from derive.errors import ClaimError, DeriveError
from derive.expansions.limits import SMALL as EPSILON, Limit
from derive.expansions.quantities import expand_quantity
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
    expression = _quantity(work, claim, of)
    if expression is None and of in ("edge upper", "edge lower", "outlier"):
        found: tuple[str, str] = _expanded_coefficient(work, claim, names[variable], replaced, int(order), value)
        return found
    if expression is None:
        return UNDECIDED, f"no closed form of {of} is derived, so its series cannot be taken"
    try:
        lift = max(0, -int(order)) + 1
        lifted = sp.expand(expression.subs(names[variable], replaced) * SMALL**lift)
        expanded = sp.series(lifted, SMALL, 0, int(order) + lift + 1).removeO()
    except (NotImplementedError, ValueError, PoleError):
        return UNDECIDED, f"{of} = {shown_formula(expression)} has no power series there that SymPy finds"
    derived = sp.expand(expanded).coeff(SMALL, int(order) + lift)
    return work.told(work.bench.same(value, derived), value, sp.factor(derived), f"coefficient of x**{order} in {of}")


def _expanded_coefficient(
    work: Work, claim: Claim, parameter: Parameter, replaced: sp.Expr, order: int, value: sp.Expr
) -> Any:
    """A coefficient of an edge or the largest outlier without a closed form, from its exact expansion."""
    base, power = replaced.as_base_exp()
    if base != SMALL or not power.is_Integer or power == 0:
        raise ClaimError(f"{work.place(claim)}: set must be a power of x here, such as x, 1/x or 1/x**2")
    limit = Limit(parameter, EPSILON if power > 0 else 1 / EPSILON)
    of = {"edge upper": "edge", "edge lower": "lower_edge"}.get(claim.get("of"), "outlier")
    wanted = sp.Rational(order, abs(power))
    try:
        found = expand_quantity(work.matrix, of, limit, wanted, {}).expansion
    except DeriveError as error:
        return UNDECIDED, f"{claim.get('of')} could not be expanded: {error}"
    derived = dict(zip(found.powers, found.coefficients, strict=True)).get(wanted, sp.S.Zero)
    return work.told(
        work.bench.same(value, derived),
        value,
        sp.factor(derived),
        f"coefficient of x**{order} in {claim.get('of')}",
    )


def _quantity(work: Work, claim: Claim, of: str) -> sp.Expr | None:
    if of in ("edge upper", "edge lower"):
        edges = work.bulk.edges
        return None if not edges else (edges[-1] if of == "edge upper" else edges[0])
    if of == "resolvent":
        return work.bulk.resolvent
    if of == "outlier":
        cycle = work.cycle(claim)
        return None if cycle.inverse is None or cycle.eigenvalue is None else cycle.inverse.subs(MAP, cycle.eigenvalue)
    if of == "inverse_map":
        return work.cycle(claim).inverse
    raise ClaimError(
        f"{work.place(claim)}: no series of {of!r}; of is edge upper, edge lower, resolvent, outlier or inverse_map"
    )
