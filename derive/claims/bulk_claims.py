"""Claims about the bulk: its resolvent, curve, edges, point masses and moments."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import flint
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.polynomials import rational_factors
from derive.cells.balls import decided, enclosure, is_zero
from derive.cells.decomposition import rational_zeros
from derive.cells.region import Point
from derive.cells.selection import CellSelection, Sites
from derive.cells.spectrum import CellSpectrum, Roots
from derive.cells.verdicts import PROVED, REFUTED, SUPPORTED, UNDECIDED, weakest
from derive.claims.context import ClaimContext, shown_formula, shown_point
from derive.claims.counterexamples import Counterexample, Refuted, floats
from derive.claims.reading import Claim
from derive.errors import ClaimError
from derive.expansions.edges import leading_mass
from derive.records.probe import Bulk


def decide_resolvent(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a closed form of the resolvent."""
    value = context.reader(claim, "z").scalar(claim.get("value"))
    result = context.comparator.same(value, context.bulk.projected.resolvent, above=True)
    if result.status == REFUTED:
        return REFUTED, f"derived {_curve_text(context.bulk)}; {result.evidence}"
    if result.status == UNDECIDED:
        return UNDECIDED, f"derived {_curve_text(context.bulk)}; {result.evidence}"
    branch = f"the branch that is 1/z at infinity{f', {result.evidence}' if result.evidence else ''}"
    return result.status, f"satisfies {_curve_text(context.bulk)}; {branch}"


def decide_curve(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a polynomial equation of the resolvent."""
    value = sp.fraction(sp.together(context.reader(claim, "z", "G").scalar(claim.get("value"))))[0]
    root, curve = context.bulk.projected.resolvent, context.curve
    try:
        derived, claimed = sp.Poly(curve, root, Z), sp.Poly(value, root, Z) if value.has(root) else None
    except sp.PolynomialError:
        raise ClaimError(f"{context.place(claim)}: {value} is not a polynomial in z and G") from None
    both = f"derived {_curve_text(context.bulk)}, claimed {sp.expand(value)} = 0"
    if claimed is None or claimed.degree(root) != derived.degree(root):
        return REFUTED, f"{both}; the degrees in G differ"
    terms, others = derived.as_dict(), claimed.as_dict()
    lead = next(iter(derived.terms()))[0]
    multiple = others.get(lead, sp.S.Zero)
    if multiple != 0 and not context.comparator.differs_from_zero(multiple):
        return UNDECIDED, f"{both}; that {shown_formula(multiple)} differs from 0 is not known, and 0 = 0 says nothing"
    statuses, detail = [PROVED], f"a multiple of {_curve_text(context.bulk)}"
    for powers in dict.fromkeys((*terms, *others)):
        left = others.get(powers, sp.S.Zero) * terms[lead]
        right = terms.get(powers, sp.S.Zero) * multiple
        result = context.comparator.same(left, right)
        if result.status == REFUTED:
            return REFUTED, f"{both}; they are not multiples of each other: {result.evidence}"
        statuses.append(result.status)
        if result.status != PROVED:
            detail = f"{both}; {result.evidence}"
    return weakest(statuses), detail


def decide_equation(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide whether an expression in z, G and the bulk responses vanishes on the physical branch."""
    value = context.spectral_reader(claim).scalar(claim.get("value"))
    responses = context.bulk.projected.bulk_symbols
    if not value.free_symbols & {Z, *responses}:
        names = ", ".join(map(str, responses))
        raise ClaimError(f"{context.place(claim)}: {value} contains no response of the bulk; they are {names}")
    result = context.comparator.same(value, sp.S.Zero)
    return context.conclude(result, value, sp.S.Zero, "residual", "modulo the bulk equations")


def decide_edges(context: ClaimContext, claim: Claim) -> tuple[str, str] | Refuted:
    """Decide closed forms of the edges of the support."""
    reader = context.reader(claim)
    values = [reader.scalar(text) for text in claim.get("value")]
    selection = context.comparator.selection
    factors = [factor for factor in selection.singular if factor.has(Z)]
    results = [context.comparator.is_root(value, Z, factors) for value in values]
    sites = selection.sites(selection.singular, values, (Z,))
    for point in (*sites, *sites.on_walls(*values)):
        wrong = _wrong_edges(selection.spectrum(point), values, point)
        if wrong:
            at = shown_point(point, context.curve, *values)
            hint = "" if claim.region or not at else "; edges of one region only need region = ..."
            spectrum = selection.spectrum(point)
            ends = Counterexample.at(point, "edges", floats(map(spectrum.zeros.ball, spectrum.ends)))
            return Refuted(f"{_edges_text(context)}; {f'at {at} ' if at else ''}{wrong}{hint}", ends)
    for value, result in zip(values, results, strict=True):
        if result.status == REFUTED:
            return REFUTED, f"{_edges_text(context)}; {shown_formula(value)} is not among them: {result.evidence}"
    detail = f"{_edges_text(context)}; the density ends at each, and nowhere else, {sites.extent}"
    status = weakest([sites.status, *(r.status for r in results)])
    meeting = selection.unvisited_zero(_gaps(values, sites.points), sites, {})
    if meeting is not None:  # on a wall two ends are one only where they meet
        status = weakest([status, SUPPORTED])
        detail += f"; whether two of them meet where {shown_formula(meeting)} = 0 is not decided"
    for value, result in zip(values, results, strict=True):
        if result.status != PROVED:
            detail += f"; whether {shown_formula(value)} is one of them: {result.evidence}"
    return status, detail


def _gaps(values: list[sp.Expr], points: tuple[Point, ...]) -> list[sp.Expr]:
    """Return the differences between neighbouring claimed edges at a point."""
    gaps: dict[sp.Expr, None] = {}
    for point in points:
        ordered = sorted(values, key=lambda value: enclosure(value, point).real.mid())
        gaps |= {high - low: None for low, high in zip(ordered, ordered[1:], strict=False)}
    return list(gaps)


def _edges_text(context: ClaimContext) -> str:
    closed = all(sp.Poly(factor, Z).degree() <= 2 for factor in context.bulk.edge_factors)
    if closed and context.bulk.edges:
        return f"derived edges {', '.join(map(shown_formula, context.bulk.edges))}"
    return f"derived edges among the roots of {' or '.join(map(str, context.bulk.edge_factors))}"


def _wrong_edges(spectrum: CellSpectrum, values: list[sp.Expr], point: Point) -> str:
    """Return the error in claimed edges at a point; an empty string if they are the edges of the support.

    An edge at zero, where the density may diverge, may be claimed or omitted.
    """
    ends = list(spectrum.ends)

    def shown(index: int) -> str:
        return str(spectrum.zeros.balls()[index].str(8, radius=False))

    for value in values:
        number = real_number(value, point)
        if number is None:
            return f"{shown_formula(value)} is not real"
        index = spectrum.zeros.index_of(number)
        if index not in ends:
            there = ", ".join(map(shown, ends)) or "none"
            return f"{shown_formula(value)} is {number().str(8, radius=False)}, and the edges left are {there}"
        ends.remove(index)
    left = [index for index in ends if not is_zero(spectrum.zeros.ball(index))]
    return f"the claim leaves out {shown(left[0])}" if left else ""


def real_number(value: sp.Expr, point: Point) -> Callable[[], flint.arb] | None:
    """Return the value of a formula at a point as a ball of any precision; None if it is not real."""

    def real() -> bool:
        return bool(enclosure(value, point).imag.contains(0))

    return (lambda: enclosure(value, point).real) if decided(real) else None


def decide_atom(context: ClaimContext, claim: Claim) -> tuple[str, str] | Refuted:
    """Decide a closed form of the weight of a point mass."""
    reader = context.reader(claim)
    position, weight = reader.scalar(claim.get("position")), reader.scalar(claim.get("value"))
    fixed = context.fixed(claim, reader)
    return _decided_mass(context, position.subs(fixed), weight.subs(fixed), fixed)


def _decided_mass(context: ClaimContext, position: sp.Expr, weight: sp.Expr, fixed: Point) -> tuple[str, str] | Refuted:
    """Decide the weight of a point mass with some parameters fixed, also at points where it obeys another equation."""
    root, curve = context.bulk.projected.resolvent, context.curve.subs(fixed)
    unknown, selection = sp.Symbol("weight"), context.comparator.selection
    general = leading = leading_mass(sp.Poly(curve, root), position, unknown)
    sites = selection.sites((leading, unknown), (position, weight), (unknown,), fixed)
    for point in (*sites, *sites.on_walls(position, weight)):
        place = position.subs(point)
        if not place.is_Rational:
            return (
                UNDECIDED,
                f"{position} is not rational at a point of each cell; claim an atom at a fraction",
            )
        if point in sites.faces:  # there two atoms may be one, and another power of the distance leads
            leading = leading_mass(sp.Poly(curve.subs(point), root), place, unknown)
        limits = Roots((leading,), unknown, tuple(point.items()))
        index = selection.spectrum(point).residue(Fraction(int(place.p), int(place.q)), unknown, leading)
        number = real_number(weight, point)
        if number is None or limits.index_of(number) != index:
            mass = limits.balls()[index].str(8, radius=False)
            at = shown_point(point, context.curve, weight)
            claimed = "not real" if number is None else number().str(8, radius=False)
            counterexample = Counterexample.at(point, "atom", floats([limits.ball(index)]), float(place))
            detail = f"{f'at {at} ' if at else ''}the derived mass at {place} is {mass}, the claim {claimed}"
            return Refuted(detail, counterexample)
    result = context.comparator.same(general.subs(unknown, weight), sp.S.Zero)
    status = weakest([result.status, sites.status])
    detail = f"the residue of the physical branch of {_curve_text(context.bulk)}, decided {sites.extent}"
    lead = sp.expand(sp.Poly(curve, root).LC().subs(Z, position))
    singular = [f.subs(fixed) for f in selection.singular if f.has(Z)]
    changes = [lead] if lead != 0 else [_beside(f, position) for f in singular]  # without a pole there is no mass
    meeting = selection.unvisited_zero(changes, sites, fixed)
    for wall in _vanishing_throughout(general, unknown):  # there the mass has an equation and cells of its own
        values, decided_there = _values_on(wall, selection, fixed)
        for value in values:
            held = position.subs(value), weight.subs(value)
            if any(e.has(sp.zoo, sp.nan, sp.oo) for e in held):
                continue  # nothing is claimed there
            try:
                there = _decided_mass(context, *held, {**fixed, **value})
            except ClaimError:  # no point of the region was found on the wall
                decided_there = False
                continue
            if isinstance(there, Refuted):
                return there
            status = weakest([status, there[0]])
        if not decided_there:
            meeting = meeting or selection.unvisited_zero([wall], Sites((), False), fixed)
    if meeting is not None:  # the weight is continuous unless another zero reaches its position
        status = weakest([status, SUPPORTED])
        detail += f"; whether another atom or band reaches it where {shown_formula(meeting)} = 0 is not decided"
    return status, detail if result.status == PROVED else f"{detail}; {result.evidence}"


def _vanishing_throughout(leading: sp.Expr, unknown: sp.Symbol) -> list[sp.Expr]:
    """Return the factors of a point mass's equation that do not contain its weight; where one vanishes the equation
    says nothing.
    """
    return [f for f in rational_factors(leading) if f.free_symbols and not f.has(unknown)]


def _values_on(wall: sp.Expr, selection: CellSelection, fixed: Point) -> tuple[list[Point], bool]:
    """Return the rational values of a parameter in the region at which a wall vanishes, and whether there are no
    others.
    """
    if len(wall.free_symbols) > 1:
        return [], False
    (parameter,) = wall.free_symbols
    low, high = selection.region.box[parameter]
    values = [{parameter: value} for value in rational_zeros([wall], parameter, {}, (low, high))]
    values += [{parameter: end} for end in selection.region.ends.get(parameter, ()) if wall.subs(parameter, end) == 0]
    return [value for value in values if selection.region.allows({**fixed, **value})], sp.degree(wall, parameter) == 1


def _beside(polynomial: sp.Expr, position: sp.Expr) -> sp.Expr:
    """Return a polynomial that vanishes where a moving zero of a polynomial in z reaches a position."""
    return sp.Poly(sp.expand(polynomial.subs(Z, Z + position)), Z).EC()


def decide_moment(context: ClaimContext, claim: Claim) -> tuple[str, str] | Refuted:
    """Decide a closed form of a moment of the bulk."""
    value = context.reader(claim).scalar(claim.get("value"))
    order = claim.get("order")
    if order > 24:
        raise ClaimError(f"{context.place(claim)}: order {order} is beyond 24; claim a lower moment")
    derived = context.moments(order)[order]
    result = context.comparator.same(value, derived)
    status, detail = context.conclude(result, value, derived, f"moment {order}")
    if status == REFUTED and result.point:
        point = dict(result.point)
        return Refuted(detail, Counterexample.at(point, "moment", [float(derived.subs(point))], order))
    return status, detail


def _curve_text(bulk: Bulk) -> str:
    return f"{bulk.curve} = 0"
