"""The weight of a point mass of the bulk: a root of the leading coefficient of the curve at its position."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy as sp

from derive.algebra.nodes import Z
from derive.cells.region import Point, Region
from derive.cells.selection import CellSelection
from derive.cells.spectrum import Roots
from derive.errors import DeriveError
from derive.expansions.branches import Branches
from derive.expansions.cases import Case, check_algebraic
from derive.expansions.edges import filled_curve

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
