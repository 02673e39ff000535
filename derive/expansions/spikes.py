"""Outliers and their thresholds as power series: eigenvalues of the pencil, seen through the scalar map.

The characteristic polynomial of a ring's constant matrix and the relation between z and the map have one polynomial
for the outlier in common, by a resultant; so have the characteristic polynomial and the map's critical values for the
threshold.
"""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp

from derive.algebra.many_digits import DIGITS, PROBE, all_roots, exact, number, real_roots, vanishes
from derive.algebra.nodes import Z
from derive.algebra.physical import physical_values
from derive.algebra.polynomials import TooLarge, common_roots, rational_factors
from derive.algebra.sites import without_averages
from derive.cells.region import Point, Region
from derive.cells.selection import Selection
from derive.cells.spectrum import Roots
from derive.errors import DeriveError, NumericalError, ParameterError
from derive.expansions.branches import Branches
from derive.expansions.cases import Case, ask_for_whole_numbers, check_algebraic
from derive.expansions.edges import filled_curve
from derive.expansions.eigenproblems import Eigenproblem
from derive.expansions.limits import SMALL
from derive.expansions.outliers import Outliers, map_changes
from derive.expansions.series import Expansion, expand_root
from derive.language.symbols import Parameter
from derive.records.probe import MAP, Cycle


class Spikes:
    """Outliers of a case; `point` holds values of the open parameters, at which the branch is identified."""

    def __init__(self, case: Case):
        self.case = case
        try:
            self.problems = [self._problem(cycle) for cycle in self._cycles()]
        except TooLarge as reason:
            raise self._too_large(reason) from None
        held = [f for p in self.problems for f in (*p.factors, p.relation)]
        check_algebraic(case, (*case.equations, *held))
        self.point = case.sampled(held)

    # the eigenproblems

    def _cycles(self) -> tuple[Cycle, ...]:
        case, pencil = self.case, self.case.probed.pencil
        if not case.probed.blocks.labels:
            raise DeriveError(f"{case.name} has no spikes, so it has no outliers; expand its edge with --of edge")
        if pencil.rest:
            raise DeriveError(
                f"the outliers of {case.name} are zeros of det A(z) that no eigenproblem gives, so they have no exact "
                "expansion; solve for numbers with `derive solve`, or expand the edge with --of edge"
            )
        if not pencil.cycles:
            raise DeriveError(f"{case.name} has spikes, but none feeds back on itself: there are no outliers")
        return pencil.cycles

    def _problem(self, cycle: Cycle) -> Eigenproblem:
        case = self.case
        if cycle.eigenvalue is not None:
            parts: tuple[sp.Expr, ...] = (case.fill(MAP - cycle.eigenvalue),)
        elif not case.probed.training.system.linear:
            raise DeriveError(
                f"{case.name} has nonlinear laws: its order parameters are sampled, so its outliers have no exact "
                "expansion; solve for numbers with `derive solve`, or expand the edge with --of edge"
            )
        elif case.whole:
            raise ask_for_whole_numbers(case)
        else:
            parts = case.training.characteristic(cycle)
        scalar_map = without_averages(cycle.scalar_map)
        if cycle.relation is None or scalar_map is None:
            raise DeriveError(
                f"no polynomial relates the outliers of {case.name} to its order parameters, so they have no exact "
                "expansion; solve for numbers with `derive solve`"
            )
        found = dict.fromkeys(f for part in parts for f in rational_factors(part) if f.has(MAP) and f != MAP)
        relation = sp.Mul(*rational_factors(case.fill(cycle.relation)))
        return Eigenproblem(case.fill(scalar_map), sp.expand(relation), sp.Mul(*parts), tuple(found))

    def _too_large(self, reason: TooLarge) -> DeriveError:
        steps = any(p.domain.whole for p in self.case.substitution if isinstance(p, Parameter))
        fewer = ", or take fewer steps" if steps else ""
        return DeriveError(
            f"the eigenproblem of {self.case.name} is too large for exact algebra ({reason}); {self.case.advice}{fewer}"
        )

    # outliers

    def branches(self, region: Region) -> Branches:
        """The largest outlier in each cell of a region."""
        try:
            polynomials = [p for problem in self.problems for p in self.outlier_polynomials(problem)]
            changes = [p for problem in self.problems for p in map_changes(problem)]
        except TooLarge as reason:
            raise self._too_large(reason) from None

        def largest(selection: Selection, point: Point) -> Any:
            found = [z for p in self.problems for z in Outliers(selection, p, point, polynomials).places]
            if not found:
                return None
            zeros = Roots(tuple(p.subs(point) for p in polynomials), Z, ())
            return max(found, key=lambda z: -1 if (index := zeros.index_of(z)) is None else index)

        return Branches(self.case, region, filled_curve(self.case), (*polynomials, *changes), largest)

    def outlier_polynomials(self, problem: Eigenproblem) -> list[sp.Expr]:
        """Polynomials in z, exact in the open parameters, that hold every outlier of an eigenproblem as a root."""
        try:
            found = [p for factor in problem.factors for p in common_roots(factor, problem.relation, MAP)]
        except TooLarge as reason:
            raise self._too_large(reason) from None
        return [p for p in found if p.has(Z)]

    def threshold_polynomials(self, problem: Eigenproblem) -> list[sp.Expr]:
        """Polynomials in the open parameters that vanish where an eigenvalue has a critical value of the map."""
        try:
            pairs = [(factor, critical) for factor in problem.factors for critical in problem.critical]
            return [p for factor, critical in pairs for p in common_roots(factor, critical, MAP)]
        except TooLarge as reason:
            raise self._too_large(reason) from None

    def _places(self, problem: Eigenproblem, level: Any, given: dict[sp.Symbol, Any], tolerance: Any) -> list[Any]:
        """Real z at which the map has a given value on the physical branch."""
        poly = sp.Poly(problem.relation.subs(given), Z)
        found = []
        for root in all_roots([number(c, {MAP: level}) for c in poly.all_coeffs()]):
            if abs(mpmath.im(root)) > mpmath.mpf(10) ** -30 * (1 + abs(root)):
                continue
            at = mpmath.mpc(mpmath.re(root), mpmath.mpf(10) ** -20)
            try:
                values = physical_values(self.case.equations, self.case.unknowns, given, at=at)
            except NumericalError:
                continue
            mapped = number(problem.scalar_map, {**given, **values})
            if abs(mapped - level) < tolerance * (1 + abs(level)):
                found.append(mpmath.re(root))
        return found

    def _given(self, small: mpmath.mpf) -> dict[sp.Symbol, Any]:
        """All open symbols as numbers at one small value."""
        return {**self.point, SMALL: exact(small)}

    # thresholds

    def strength(self, wanted: str | None) -> Parameter:
        """The parameter whose threshold is sought: the one that is named, or the only one of the eigenvalues."""
        case = self.case
        open_ones = [
            p for p in case.probed.training.model.parameters if p not in case.substitution and not p.domain.whole
        ]
        if wanted is not None:
            for p in open_ones:
                if p.name == wanted:
                    return p
            left = ", ".join(p.name for p in open_ones) or "none"
            raise ParameterError(f"--parameter {wanted}: its threshold cannot be sought; open parameters are {left}")
        held = [p for p in open_ones if any(f.has(p) for problem in self.problems for f in problem.factors)]
        if len(held) == 1:
            return held[0]
        if held:
            names = ", ".join(p.name for p in held)
            raise ParameterError(f"say whose threshold is wanted with --parameter: {names} are open; --at fixes others")
        advice = "leave one out of --at" if case.limit is None else "leave out --in, or expand in another parameter"
        raise ParameterError(f"no parameter is left whose threshold could be sought in {case.name}; {advice}")

    def threshold(self, parameter: Parameter, order: sp.Rational) -> tuple[Expansion, dict[sp.Symbol, Any]]:
        """The smallest value, in size, at which an outlier leaves the upper edge; a lower edge if none leaves there."""
        point = {p: v for p, v in self.point.items() if p != parameter}
        try:
            options = [
                (problem, critical, polynomial)
                for problem in self.problems
                for critical in problem.critical
                for factor in problem.factors
                for polynomial in common_roots(factor, critical, MAP)
                if polynomial.has(parameter)
            ]
        except TooLarge as reason:
            raise self._too_large(reason) from None

        def found(option: Any, small: mpmath.mpf) -> list[Any]:
            problem, _, polynomial = option
            given = {**point, SMALL: exact(small)}
            ranked = []
            for root in real_roots(polynomial.subs(given)):
                if parameter.domain.contains(float(root)):
                    here = {**given, parameter: exact(root)}
                    ranked += [
                        (rank, root)
                        for rank, level in enumerate(self._edges(problem, here))
                        if vanishes(problem.characteristic, {**here, MAP: level})
                    ]
            return ranked

        with mpmath.workdps(DIGITS):
            ranked = [(rank, root, option) for option in options for rank, root in found(option, PROBE)]
        if not ranked:
            raise DeriveError(
                f"no value of {parameter} in its domain ({parameter.domain}) lets an outlier leave the bulk "
                f"{self.case.told}; name another with --parameter, or give other values with --at"
            )
        rank = min(r for r, _, _ in ranked)
        best = _smallest([root for r, root, _ in ranked if r == rank])
        option = next(o for r, root, o in ranked if r == rank and root == best)

        def near(small: mpmath.mpf) -> mpmath.mpf:
            same = [root for r, root in found(option, small) if r == rank]
            return _smallest(same) if same else None

        return expand_root(option[2], parameter, SMALL, order, near, point), point

    def _edges(self, problem: Eigenproblem, given: dict[sp.Symbol, Any]) -> list[Any]:
        """Critical values of the map on the physical branch, those of the upper edge first.

        The map may take such a value at a regular point too; only where dz/ds = 0 does the bulk end.
        """
        slope = sp.diff(problem.relation, MAP)
        found = []
        for critical in problem.critical:
            for level in real_roots(critical.subs(given)):
                places = self._places(problem, level, given, mpmath.mpf(10) ** -7)
                found += [(z, level) for z in places if vanishes(slope, {**given, MAP: level, Z: z})]
        return [level for _, level in sorted(found, reverse=True)]


def _smallest(values: list[Any]) -> Any:
    """The smallest in size; of two that differ in sign the positive one."""
    size = min(map(abs, values))
    return max(v for v in values if abs(v) <= size * (1 + mpmath.mpf(10) ** -25))
