"""Edges of the bulk as power series: roots of the edge polynomials on the physical branch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sympy as sp

from derive.algebra.physical import PhysicalPoint
from derive.algebra.polynomials import TooLarge, check_size, eliminate
from derive.cells.region import Point, Region
from derive.cells.selection import CellSelection
from derive.cells.spectrum import BulkCurve
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
