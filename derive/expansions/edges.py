"""The ends of the bulk as power series: roots of the derived edge polynomials on the physical branch."""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp

from derive.algebra.many_digits import DIGITS, PROBE, apart, exact, real_roots, vanishes
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint, physical_values
from derive.algebra.polynomials import TooLarge, branch_points, check_size, eliminate, rational_factors
from derive.errors import DeriveError, NumericalError
from derive.expansions.cases import Case, check_algebraic
from derive.expansions.limits import SMALL
from derive.expansions.series import Expansion, expand_root


class Edges:
    """Edges of a case; `point` holds values of the open parameters, at which the branch is identified."""

    def __init__(self, case: Case):
        self.case = case
        check_algebraic(case, case.equations)
        self.point = case.sampled(())

    def expand(self, upper: bool, order: sp.Rational) -> Expansion:
        """The upper or lower end of the support."""
        candidates = self.edge_factors()

        def near(small: mpmath.mpf) -> mpmath.mpf:
            return self.numerical_edge(candidates, small, upper)

        with mpmath.workdps(DIGITS):
            value = near(PROBE)
            found = [f for f in candidates if vanishes(f, {**self._given(exact(PROBE)), Z: value})]
        if not found:
            raise NumericalError("the edge is not a root of a derived polynomial; expand in another parameter")
        return expand_root(found[0], Z, SMALL, order, near, self.point)

    def edge_factors(self) -> list[sp.Expr]:
        """Polynomials in z and SMALL whose roots hold the edges."""
        if self.case.bulk.curve is not None:
            raw = [sp.expand(sp.fraction(sp.together(self.case.fill(f)))[0]) for f in self.case.bulk.edge_factors]
            return list(dict.fromkeys(f for polynomial in raw for f in rational_factors(polynomial) if f.has(Z)))
        projected = self.case.bulk.projected
        others = [s for s in self.case.unknowns if s != projected.resolvent]
        try:
            check_size(others)
        except TooLarge as reason:
            raise DeriveError(
                f"the bulk is too large to eliminate ({reason}), so its edges have no exact expansion; solve for edges "
                "at several values with `derive solve`"
            ) from None
        try:
            middle = {**self.point, SMALL: sp.Rational(3, 29)}
            physical = PhysicalPoint.at(tuple(self.case.equations), self.case.unknowns, middle)
            curve = eliminate(list(self.case.equations), others, physical)
            singular, poles = branch_points(curve, projected.resolvent)
        except TooLarge as reason:
            raise DeriveError(f"the bulk is too large to eliminate ({reason}); {self.case.advice}") from None
        return [f for f in (*singular, *poles) if f.has(Z)]

    def numerical_edge(self, candidates: list[sp.Expr], small: mpmath.mpf, upper: bool) -> mpmath.mpf:
        """The end of the support at one small value, among the real roots of the candidates."""
        point = self._given(exact(small))
        with mpmath.workdps(DIGITS):
            roots = sorted({r for f in candidates for r in real_roots(f.subs(point))}, reverse=upper)
            places = apart(roots)
            for here, following in zip(places, [*places[1:], None], strict=True):
                inner = here + (-1 if upper else 1) if following is None else (here + following) / 2
                if self._dense_at(inner, abs(here - inner), point):
                    return here
        raise NumericalError(f"no edge of the bulk was found {self.case.told}; expand around another value")

    def _dense_at(self, place: Any, distance: Any, point: dict[sp.Symbol, Any]) -> bool:
        """Whether the density is positive: then Im G does not shrink with the distance to the real axis."""
        sizes = []
        for digits in (10, 13):
            at = mpmath.mpc(place, distance * mpmath.mpf(10) ** -digits)
            try:
                values = physical_values(self.case.equations, self.case.unknowns, point, at=at)
            except NumericalError:
                return False
            sizes.append(abs(mpmath.im(values[self.case.bulk.projected.resolvent])))
        return bool(sizes[1] > sizes[0] / 10)

    def _given(self, small: mpmath.mpf) -> dict[sp.Symbol, Any]:
        """All open symbols as numbers at one small value."""
        return {**self.point, SMALL: small}
