"""Claims about the bulk: its resolvent, curve, edges, atoms and moments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mpmath
import sympy as sp

from derive.algebra.many_digits import all_roots
from derive.algebra.nodes import Z
from derive.claims.equality import FAILED, PROVED, UNDECIDED, WORKING_DIGITS, close, follow_branch, number
from derive.claims.reading import Claim
from derive.claims.region import POINTS, Point
from derive.claims.work import MORE_POINTS, Work, shown_formula, shown_point
from derive.errors import ClaimError, NumericalError
from derive.records.probe import Bulk


def decide_resolvent(work: Work, claim: Claim) -> tuple[str, str]:
    value = work.reader(claim, "z").scalar(claim.get("value"))
    root, curve = work.bulk.projected.resolvent, work.curve
    left_of_bulk = True
    for point in work.bench.points:
        size = 50 * (1 + sum(abs(v) for v in point.values()))
        for side in (sp.S.One, sp.Rational(1, 10), sp.S.NegativeOne):
            with mpmath.workdps(WORKING_DIGITS):
                z = mpmath.mpc(int(side * size), int(size) / mpmath.mpf(10**4))
                found, physical = number(value, {**point, Z: z}), follow_branch(curve, root, point, z)
            if close(found, physical) or mpmath.isnan(found):
                continue
            on_curve = close(number(curve.subs(root, value), {**point, Z: z}), mpmath.mpf(0))
            if side > 0 or not on_curve:
                there = ", ".join(filter(None, (f"z = {mpmath.nstr(z, 6)}", shown_point(point, value, curve))))
                return FAILED, (
                    f"derived {_curve_text(work.bulk)}; at {there} "
                    f"the claim is {mpmath.nstr(found, 8)}, the derivation {mpmath.nstr(physical, 8)}"
                )
            left_of_bulk = False
    proved = work.vanishes(curve.subs(root, value)) or sp.simplify(curve.subs(root, value)) == 0
    branch = "the branch that is 1/z at infinity"
    if not left_of_bulk:
        branch += " to the right of the bulk (to its left the principal root has the other sign)"
    if proved:
        return PROVED, f"satisfies {_curve_text(work.bulk)}; {branch}"
    return UNDECIDED, f"agrees to 50 digits with the solution of {_curve_text(work.bulk)}; no symbolic proof found"


def decide_curve(work: Work, claim: Claim) -> tuple[str, str]:
    value = sp.fraction(sp.together(work.reader(claim, "z", "G").scalar(claim.get("value"))))[0]
    root, curve = work.bulk.projected.resolvent, work.curve
    try:
        derived, claimed = sp.Poly(curve, root, Z), sp.Poly(value, root, Z) if value.has(root) else None
    except sp.PolynomialError:
        raise ClaimError(f"{work.place(claim)}: {value} is not a polynomial in z and G") from None
    told = f"derived {_curve_text(work.bulk)}, claimed {sp.expand(value)} = 0"
    if claimed is None or claimed.degree(root) != derived.degree(root):
        return FAILED, f"{told}; the degrees in G differ"
    terms, others = derived.as_dict(), claimed.as_dict()
    lead = next(iter(derived.terms()))[0]
    status, detail = PROVED, f"a multiple of {_curve_text(work.bulk)}"
    for powers in dict.fromkeys((*terms, *others)):
        left = others.get(powers, sp.S.Zero) * terms[lead]
        right = terms.get(powers, sp.S.Zero) * others.get(lead, sp.S.Zero)
        result = work.bench.same(left, right)
        if result.status == FAILED:
            return FAILED, f"{told}; they are no multiples of each other: {result.evidence}"
        if result.status == UNDECIDED:
            status, detail = UNDECIDED, f"{told}; {result.evidence}"
    return status, detail


def decide_equation(work: Work, claim: Claim) -> tuple[str, str]:
    """An expression in z, G and the responses of the bulk that vanishes on the physical branch."""
    reader = work.reader(claim, "z", "G")
    responses = {s.name: s for s in work.bulk.projected.bulk_symbols}
    value = replace(reader, scalars={**responses, **reader.scalars}).scalar(claim.get("value"))
    if not value.free_symbols & {Z, *responses.values()}:
        raise ClaimError(f"{work.place(claim)}: {value} holds no response of the bulk; they are {', '.join(responses)}")
    result = work.bench.same(value, sp.S.Zero)
    return work.told(result, value, sp.S.Zero, "residual", "modulo the bulk equations")


def decide_edges(work: Work, claim: Claim) -> tuple[str, str]:
    reader = work.reader(claim)
    values = [reader.scalar(text) for text in claim.get("value")]
    status, detail = PROVED, ""
    for value in values:
        results = [work.bench.same(factor.subs(Z, value), sp.S.Zero) for factor in work.bulk.edge_factors]
        best = work.best(results)
        if best.status == UNDECIDED:
            status, detail = UNDECIDED, f"; whether {shown_formula(value)} is one of them: {best.evidence}"
    points: list[Point] = []
    for point in work.bench.region.points(POINTS + MORE_POINTS):
        if point not in points:
            points.append(point)
    for point in points:
        wrong = _wrong_edges(work, values, point)
        if wrong:
            hint = "" if claim.region or not point else "; edges of one region only need region = ..."
            return FAILED, f"{_edges_text(work)}; {wrong}{hint}"
    where = f"at {len(points)} points" if len(points) > 1 else "there"
    return status, f"{_edges_text(work)}; the density ends at each, and nowhere else, {where}{detail}"


def _edges_text(work: Work) -> str:
    closed = all(sp.Poly(factor, Z).degree() <= 2 for factor in work.bulk.edge_factors)
    if closed and work.bulk.edges:
        return f"derived edges {', '.join(map(shown_formula, work.bulk.edges))}"
    return f"derived edges among the roots of {' or '.join(map(str, work.bulk.edge_factors))}"


def _wrong_edges(work: Work, values: list[sp.Expr], point: Point) -> str:
    """What is wrong with claimed edges at one point; nothing if the density ends there and nowhere else.

    An end at zero where the density diverges may be claimed or left out.
    """
    at = shown_point(point, work.curve, *values)
    at = f"at {at} " if at else ""
    key = tuple(point.items())
    if key not in work.edges:
        work.edges[key] = [z for z in _candidate_edges(work, point) if _density_ends(work.bulk, point, z)]
    open_ones = list(work.edges[key])
    for value in values:
        claimed = number(value, point)
        if mpmath.isnan(claimed):
            continue
        match = next((e for e in open_ones if abs(e - claimed) < mpmath.mpf(10) ** -12 * (1 + abs(e))), None)
        if match is None:
            there = ", ".join(mpmath.nstr(e, 8) for e in open_ones) or "none"
            return (
                f"{shown_formula(value)} is not among them: {at}it is {mpmath.nstr(claimed, 8)}, the others are {there}"
            )
        open_ones.remove(match)
    left = [e for e in open_ones if abs(e) > mpmath.mpf(10) ** -20]
    return f"the claim leaves out {mpmath.nstr(left[0], 8)}{f' {at.strip()}' if at else ''}" if left else ""


def _candidate_edges(work: Work, point: Point) -> list[Any]:
    """Real roots of all edge factors at given parameters, each once."""
    found: list[Any] = []
    with mpmath.workdps(WORKING_DIGITS):
        for factor in work.bulk.edge_factors:
            for root in all_roots([number(c, point) for c in sp.Poly(factor, Z).all_coeffs()]):
                if abs(mpmath.im(root)) < mpmath.mpf(10) ** -20 * (1 + abs(root)):
                    found.append(mpmath.re(root))
        return _distinct(found)


def decide_atom(work: Work, claim: Claim) -> tuple[str, str]:
    reader = work.reader(claim)
    position, weight = reader.scalar(claim.get("position")), reader.scalar(claim.get("value"))
    fixed = work.fixed(claim, reader)
    root, curve = work.bulk.projected.resolvent, work.curve.subs(fixed)
    position, weight = position.subs(fixed), weight.subs(fixed)
    condition = _residue_condition(sp.Poly(curve, root), position, weight)
    for point in work.bench.region.points(fixed=fixed):
        with mpmath.workdps(WORKING_DIGITS):
            place = number(position, point)
            above = mpmath.mpc(0, mpmath.mpf(10) ** -14)
            try:
                measured = above * follow_branch(curve, root, point, place + above)
            except NumericalError:
                return UNDECIDED, f"the physical branch could not be followed to {mpmath.nstr(place, 6)}"
            expected = number(weight, point)
            if abs(measured - expected) > mpmath.mpf(10) ** -5:
                return FAILED, (
                    f"{shown_point(point, curve, weight)} the derived weight at {mpmath.nstr(place, 6)} is "
                    f"{mpmath.nstr(mpmath.re(measured), 8)}, the claim {mpmath.nstr(expected, 8)}"
                )
    result = work.bench.same(condition, sp.S.Zero)
    if result.status == PROVED:
        return PROVED, f"the residue of the physical branch of {_curve_text(work.bulk)}"
    told = f"{weight} as the residue of {_curve_text(work.bulk)} at {position}"
    return result.status, f"{told}: {result.evidence}"


def decide_moment(work: Work, claim: Claim) -> tuple[str, str]:
    value = work.reader(claim).scalar(claim.get("value"))
    order = claim.get("order")
    if order > 24:
        raise ClaimError(f"{work.place(claim)}: order {order} is beyond 24; claim a lower moment")
    derived = work.moments(order)[order]
    return work.told(work.bench.same(value, derived), value, derived, f"moment {order}")


def _residue_condition(poly: sp.Poly, position: sp.Expr, weight: sp.Expr) -> sp.Expr:
    """What must vanish for G = weight / (z - position) to be the leading behaviour of the curve near the position."""
    distance, unknown = sp.Symbol("distance"), sp.Symbol("weight")
    terms: dict[int, sp.Expr] = {}
    for (power,), coefficient in poly.terms():
        for (shift,), scale in sp.Poly(sp.expand(coefficient.subs(Z, position + distance)), distance).terms():
            terms[shift - power] = terms.get(shift - power, sp.S.Zero) + scale * unknown**power
    leading = next(terms[order] for order in sorted(terms) if sp.expand(terms[order]) != 0)
    return leading.subs(unknown, weight)


def _density_ends(bulk: Bulk, point: dict[sp.Symbol, Any], edge: Any) -> bool:
    """Whether the imaginary part of the physical branch is there on one side of a real point only."""
    with mpmath.workdps(WORKING_DIGITS):
        step, height = mpmath.mpf(10) ** -8, mpmath.mpf(10) ** -24
        curve, root = bulk.curve, bulk.projected.resolvent
        sides = [
            abs(mpmath.im(follow_branch(curve, root, point, mpmath.mpc(mpmath.re(edge) + side * step, height))))
            for side in (-1, 1)
        ]
        return bool(min(sides) < mpmath.mpf(10) ** -6 * max(sides))


def _distinct(values: list[Any]) -> list[Any]:
    """Numbers in ascending order, each once."""
    found: list[Any] = []
    for value in sorted(values):
        if not found or abs(value - found[-1]) > mpmath.mpf(10) ** -20 * (1 + abs(value)):
            found.append(value)
    return found


def _curve_text(bulk: Bulk) -> str:
    return f"{bulk.curve} = 0"
