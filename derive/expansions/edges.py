"""Edges of the bulk as power series, roots of the edge polynomials on the physical branch, and its point masses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint
from derive.algebra.polynomials import TooLarge, check_size, eliminate
from derive.cells.region import Point, Region
from derive.cells.selection import CellSelection
from derive.cells.spectrum import BulkCurve, Roots
from derive.errors import DeriveError
from derive.expansions.branches import Branches
from derive.expansions.cases import Case, check_algebraic
from derive.expansions.limits import SMALL


class Edges:
    """The edges of a case."""

    def __init__(self, case: Case):
        self.case = case
        check_algebraic(case, case.equations)

    def branches(self, upper: bool, region: Region) -> Branches:
        """Return the upper or lower end of the support in each cell of a region."""

        def end(selection: CellSelection, point: Point) -> Any:
            spectrum = selection.spectrum(point)
            return spectrum.zeros.ball(spectrum.ends[-1 if upper else 0]) if spectrum.ends else None

        bulk = filled_curve(self.case)
        return Branches(self.case, region, bulk, bulk.singular, end)


def filled_curve(case: Case) -> BulkCurve:
    """Return the bulk of a case, with its fixed values and its small parameter substituted."""
    projected = case.bulk.projected
    if case.bulk.curve is not None:
        whole = BulkCurve.of(case.bulk)
        curve, *singular = (
            sp.expand(sp.fraction(sp.together(case.fill(e)))[0]) for e in (whole.curve, *whole.singular)
        )
        held = tuple(f for f in singular if f.free_symbols)
        return BulkCurve(case.equations, case.unknowns, projected.resolvent, curve, held)
    others = [s for s in case.unknowns if s != projected.resolvent]
    try:
        check_size(others)
    except TooLarge as reason:
        raise DeriveError(
            f"the bulk is too large to eliminate ({reason}), so its edges have no exact expansion; solve for edges "
            "at several values with `derive solve`"
        ) from None
    try:
        middle = {**case.sampled(()), SMALL: sp.Rational(3, 29)}
        physical = PhysicalPoint.at(tuple(case.equations), case.unknowns, middle)
        curve = eliminate(list(case.equations), others, physical)
        bulk = BulkCurve(case.equations, case.unknowns, projected.resolvent, curve, ())
        return replace(bulk, singular=bulk.branch_points())
    except TooLarge as reason:
        raise DeriveError(f"the bulk is too large to eliminate ({reason}); {case.advice}") from None


WEIGHT = sp.Symbol("weight")


class AtomPosition:
    """A point mass of a case at a position, which may depend on the parameters."""

    def __init__(self, case: Case, position: sp.Expr):
        self.case, self.position = case, position.subs(case.substitution)
        check_algebraic(case, (*case.equations, self.position))

    def branches(self, region: Region) -> Branches:
        """Return the weight in each cell of a region."""
        bulk = filled_curve(self.case)
        leading = leading_mass(sp.Poly(bulk.curve, bulk.resolvent), self.position, WEIGHT)

        def mass(selection: CellSelection, point: Point) -> Any:
            place, remaining = self.position.subs(point), leading.subs(point)
            if not place.is_Rational:
                raise DeriveError(
                    f"{self.position} is not rational at a point of each cell; take an atom at a fraction"
                )
            index = selection.spectrum(point).residue(Fraction(int(place.p), int(place.q)), WEIGHT, remaining)
            return Roots((remaining,), WEIGHT, ()).ball(index)

        return Branches(self.case, region, bulk, (leading, WEIGHT), mass, WEIGHT)


def leading_mass(poly: sp.Poly, position: sp.Expr, weight: sp.Symbol) -> sp.Expr:
    """Return the leading coefficient of the curve as z goes to the position with G = weight / (z - position)."""
    distance = sp.Symbol("distance")
    terms: dict[int, sp.Expr] = {}
    for (power,), coefficient in poly.terms():
        for (shift,), scale in sp.Poly(sp.expand(coefficient.subs(Z, position + distance)), distance).terms():
            terms[shift - power] = terms.get(shift - power, sp.S.Zero) + scale * weight**power
    return next(terms[order] for order in sorted(terms) if sp.expand(terms[order]) != 0)
