"""Outliers and their thresholds as power series: eigenvalues of the pencil, mapped by z(s).

The resultant of a cycle's characteristic polynomial with the relation between z and the map is the polynomial of the
outlier. Its resultant with the polynomial of the map's critical values is that of the threshold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import flint
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.polynomials import TooLarge, common_roots, rational_factors
from derive.algebra.sites import without_averages
from derive.cells.balls import above, below, decided, enclosure, is_zero, real_roots_of_balls
from derive.cells.decomposition import projection
from derive.cells.region import Point, Region
from derive.cells.selection import CellSelection
from derive.cells.spectrum import BulkCurve, CellSpectrum, Roots
from derive.errors import DeriveError, ParameterError
from derive.expansions.branches import Branches
from derive.expansions.cases import Case, ask_for_whole_numbers, check_algebraic
from derive.expansions.edges import filled_curve
from derive.language.symbols import Parameter, parameter_values
from derive.records.probe import MAP, BlockCycle


class Outliers:
    """The outliers of an eigenproblem at a point of the parameters, each as a ball of any precision.

    `solves` are polynomials in z whose zeros include all of them.
    """

    def __init__(self, selection: CellSelection, problem: Eigenproblem, point: Point, solves: Iterable[sp.Expr]):
        self.problem, self.point = problem, point
        self.solves = tuple(polynomial.subs(point) for polynomial in solves)
        self.spectrum: CellSpectrum = selection.spectrum(point)
        self.given = tuple(point.items())

    @property
    def levels(self) -> list[Callable[[], flint.arb]]:
        """The nonzero real eigenvalues."""
        numerator = sp.fraction(sp.together(self.problem.characteristic))[0]
        roots = Roots((numerator,), MAP, self.given)
        count = len(decided(roots.balls))
        return [level for level in map(roots.ball, range(count)) if not is_zero(level)]

    @property
    def places(self) -> list[Callable[[], flint.arb]]:
        """The points outside the bulk where the physical branch of the map equals an eigenvalue."""
        return [place for level in self.levels for place in self.of_level(level)]

    def of_level(self, level: Callable[[], flint.arb]) -> list[Callable[[], flint.arb]]:
        """Return the outliers of one eigenvalue: zeros of the relation on the physical branch of the map."""
        branch = self.spectrum.follow(self.problem.relation, MAP, self.problem.scalar_map)

        def zeros() -> list[flint.arb]:
            return self._zeros(level())

        def zero(index: int) -> Callable[[], flint.arb]:
            return lambda: zeros()[index]

        candidates = map(zero, range(len(decided(zeros))))
        return [
            z for z in candidates if self.spectrum.outside(z, self.solves) and self.spectrum.takes(branch, z, level)
        ]

    def _zeros(self, level: flint.arb) -> list[flint.arb]:
        coefficients = sp.Poly(self.problem.relation, Z).all_coeffs()
        values = {**self.point, MAP: flint.acb(level)}
        return real_roots_of_balls([enclosure(c, values) for c in reversed(coefficients)])


def map_changes(problem: Eigenproblem) -> list[sp.Expr]:
    """Return polynomials in z that vanish where branches of the map meet or diverge."""
    poly = sp.Poly(problem.relation, MAP)
    factors = rational_factors(poly.LC())
    if poly.degree() > 1:
        factors += common_roots(problem.relation, sp.diff(problem.relation, MAP), MAP)
    return [f for f in factors if f.has(Z)]


@dataclass(frozen=True)
class Eigenproblem:
    """One cycle of A(z): its scalar map and its characteristic polynomial, expanded and in factors.

    `relation` is a polynomial in z and MAP; `factors` are irreducible polynomials in MAP.
    """

    scalar_map: sp.Expr
    relation: sp.Expr
    characteristic: sp.Expr
    factors: tuple[sp.Expr, ...]

    @cached_property
    def critical(self) -> list[sp.Expr]:
        """Polynomials in MAP whose roots are the critical values dz/ds = 0, where an outlier meets the bulk."""
        polynomials = common_roots(self.relation, sp.diff(self.relation, MAP), Z)
        return [f for f in polynomials if f.has(MAP) and f != MAP]


BESIDE = 2**12
"""Ratio of the distances to the next critical value and to the threshold where an outlier's edge is identified."""


class CaseSpikes:
    """The outliers of a case."""

    def __init__(self, case: Case):
        self.case = case
        try:
            self.problems = [self._problem(cycle) for cycle in self._cycles()]
        except TooLarge as reason:
            raise self._too_large(reason) from None
        held = [f for p in self.problems for f in (*p.factors, p.relation)]
        check_algebraic(case, (*case.equations, *held))

    # the eigenproblems

    def _cycles(self) -> tuple[BlockCycle, ...]:
        case, pencil = self.case, self.case.probed.pencil
        if not case.probed.blocks.labels:
            raise DeriveError(f"{case.name} has no spikes, so it has no outliers; expand its edge with --of edge")
        if pencil.rest:
            raise DeriveError(
                f"the outliers of {case.name} are zeros of an A(z) that does not reduce to an eigenproblem, so they "
                f"have no exact expansion; solve for numbers with `derive solve`, or expand the edge with --of edge"
            )
        if not pencil.cycles:
            raise DeriveError(f"{case.name} has spikes, but none couples back to itself: there are no outliers")
        return pencil.cycles

    def _problem(self, cycle: BlockCycle) -> Eigenproblem:
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
        factors = dict.fromkeys(f for part in parts for f in rational_factors(part) if f.has(MAP) and f != MAP)
        relation = sp.Mul(*(f for f in rational_factors(case.fill(cycle.relation)) if f.has(MAP)))
        return Eigenproblem(case.fill(scalar_map), sp.expand(relation), sp.Mul(*parts), tuple(factors))

    def _too_large(self, reason: TooLarge) -> DeriveError:
        steps = any(p.domain.whole for p in parameter_values(self.case.substitution))
        fewer = ", or take fewer steps" if steps else ""
        return DeriveError(
            f"the eigenproblem of {self.case.name} is beyond exact algebra ({reason}); {self.case.advice}{fewer}"
        )

    # outliers

    def branches(self, region: Region) -> Branches:
        """Return the largest outlier in each cell of a region."""
        bulk, polynomials, changes = self._held(self.problems)

        def largest(selection: CellSelection, point: Point) -> Any:
            outliers = [z for p in self.problems for z in Outliers(selection, p, point, polynomials).places]
            if not outliers:
                return None
            zeros = Roots(tuple(p.subs(point) for p in polynomials), Z, ())
            return max(outliers, key=lambda z: -1 if (index := zeros.index_of(z)) is None else index)

        return Branches(self.case, region, bulk, (*bulk.singular, *polynomials, *changes), largest)

    def _held(self, problems: list[Eigenproblem]) -> tuple[BulkCurve, list[sp.Expr], list[sp.Expr]]:
        """Return the bulk, polynomials whose zeros include all outliers, and polynomials that vanish at the maps'
        branch points.
        """
        try:
            polynomials = [p for problem in problems for p in self.outlier_polynomials(problem)]
            changes = [p for problem in problems for p in map_changes(problem)]
        except TooLarge as reason:
            raise self._too_large(reason) from None
        return filled_curve(self.case), polynomials, changes

    def outlier_polynomials(self, problem: Eigenproblem) -> list[sp.Expr]:
        """Return polynomials in z, exact in the open parameters, whose roots include every outlier."""
        try:
            polynomials = [p for factor in problem.factors for p in common_roots(factor, problem.relation, MAP)]
        except TooLarge as reason:
            raise self._too_large(reason) from None
        return [p for p in polynomials if p.has(Z)]

    def threshold_polynomials(self, problem: Eigenproblem) -> list[sp.Expr]:
        """Return polynomials in the open parameters that vanish where an eigenvalue is a critical value of the map."""
        try:
            pairs = [(factor, critical) for factor in problem.factors for critical in problem.critical]
            return [p for factor, critical in pairs for p in common_roots(factor, critical, MAP)]
        except TooLarge as reason:
            raise self._too_large(reason) from None

    # thresholds

    def strength(self, wanted: str | None) -> Parameter:
        """Return the parameter of the threshold: the named one, or the only one on which the eigenvalues depend."""
        case = self.case
        open_ones = [
            p for p in case.probed.training.model.parameters if p not in case.substitution and not p.domain.whole
        ]
        if wanted is not None:
            for p in open_ones:
                if p.name == wanted:
                    return p
            left = ", ".join(p.name for p in open_ones) or "none"
            raise ParameterError(f"--parameter {wanted}: its threshold cannot be computed; open parameters are {left}")
        held = [p for p in open_ones if any(f.has(p) for problem in self.problems for f in problem.factors)]
        if len(held) == 1:
            return held[0]
        if held:
            names = ", ".join(p.name for p in held)
            raise ParameterError(
                f"name the parameter of the threshold with --parameter: {names} are open; --at fixes the others"
            )
        advice = "leave one out of --at" if case.limit is None else "leave out --in, or expand in another parameter"
        raise ParameterError(f"no open parameter has a threshold that could be computed in {case.name}; {advice}")

    def thresholds(
        self, parameter: Parameter, region: Region, problems: list[Eigenproblem] | None = None
    ) -> Thresholds:
        """Return the values of a parameter at which an outlier leaves the bulk. `problems` limits the eigenproblems."""
        problems = self.problems if problems is None else problems
        bulk, polynomials, changes = self._held(problems)
        try:
            walls = projection((*bulk.singular, *polynomials, *changes), Z)
        except TooLarge as reason:
            raise self._too_large(reason) from None
        ends = [parameter - end for end in region.box[parameter] if end is not None]
        held = [f for f in (*walls, *ends) if f.has(parameter)]
        beside = tuple(f for f in walls if not f.has(parameter) and f.free_symbols)
        return Thresholds(self.case, tuple(problems), region, bulk, polynomials, parameter, held, beside)


@dataclass(frozen=True)
class Crossing:
    """A threshold: a value of a parameter at which an outlier leaves the bulk, by its rank among all critical values.

    The outlier leaves the `edge`-th of `edges` ends of the support, counted from below, upwards or downwards, as the
    parameter grows or falls beyond the value.
    """

    index: int
    edge: int
    edges: int
    upwards: bool
    growing: bool

    @property
    def edge_in_words(self) -> str:
        """The edge that the outlier leaves, in words."""
        name = f"edge {self.edge + 1} of {self.edges}"
        if self.edge in (0, self.edges - 1) and self.upwards == (self.edge > 0):
            name = "the upper edge" if self.upwards else "the lower edge"
        return f"an outlier leaves {name} {'upwards' if self.upwards else 'downwards'}"


@dataclass(frozen=True)
class Thresholds:
    """All thresholds of a parameter, first that at which the outermost outlier leaves the upper edge.

    `walls` contain the parameter; `beside` are walls of the other parameters alone.
    """

    case: Case
    problems: tuple[Eigenproblem, ...]
    region: Region
    bulk: BulkCurve
    polynomials: list[sp.Expr]
    parameter: Parameter
    walls: list[sp.Expr]
    beside: tuple[sp.Expr, ...]
    _known: dict[Any, list[Crossing]] = field(default_factory=dict, compare=False, repr=False)

    def branches(self, rank: int) -> Branches:
        """Return the threshold of a rank in each cell of the other parameters."""

        def ranked(selection: CellSelection, point: Point) -> Any:
            crossings = self.crossings(selection, point)
            if rank >= len(crossings):
                return None
            roots = self.roots(self.walls, point)
            return roots.ball(crossings[rank].index)

        return Branches(self.case, self.region, self.bulk, (*self.walls, *self.beside), ranked, self.parameter)

    def crossings(self, selection: CellSelection, point: Point) -> list[Crossing]:
        """Return the thresholds at values of the other parameters: those of the upper edge first, then by size.

        Of two that differ in sign the positive one comes first.
        """
        key = tuple(sorted(point.items(), key=lambda item: str(item[0])))
        if key not in self._known:
            self._known[key] = self._ordered(selection, point)
        return self._known[key]

    def _ordered(self, selection: CellSelection, point: Point) -> list[Crossing]:
        roots, sides = self.sides(selection, point)
        crossings = []
        for i in (i for i in sides if i + 1 in sides):
            (before, edges), (after, others) = sides[i], sides[i + 1]
            gaps = range(edges + 1) if edges == others else ()  # where bands merge as well, no edge can be named
            for gap in (gap for gap in gaps if before[gap] != after[gap]):
                growing = after[gap] > before[gap]
                upwards = self._upwards(selection, point, roots, i, gap, edges, growing)
                crossings.append(Crossing(i, gap - 1 if upwards else gap, edges, upwards, growing))
        place = {c.index: float(roots.ball(c.index)().mid()) for c in crossings}
        return sorted(
            crossings,
            key=lambda c: (-c.edge if c.upwards else 0, float(f"{abs(place[c.index]):.12e}"), place[c.index] < 0),
        )

    def roots(self, walls: Sequence[sp.Expr], point: Point) -> Roots:
        """Return the zeros of walls in the parameter at values of the others."""
        return Roots(tuple(f.subs(point) for f in walls), self.parameter, ())

    def sides(self, selection: CellSelection, point: Point) -> tuple[Roots, dict[int, tuple[Counter[int], int]]]:
        """Return the critical values of the parameter, and the counts below each and above the last one."""
        roots = self.roots(self.walls, point)
        values = [sp.Rational(v.numerator, v.denominator) for v in roots.separators]
        return roots, {
            i: self._counts(selection, {**point, self.parameter: value})
            for i, value in enumerate(values)
            if self.parameter.domain.contains(float(value))
        }

    def _counts(self, selection: CellSelection, point: Point) -> tuple[Counter[int], int]:
        """Return the number of outliers in each gap, indexed by the number of edges below it, and that of edges."""
        spectrum, counts = selection.spectrum(point), Counter[int]()
        for place in self._outliers(selection, point):
            before = spectrum.interval_of(place, tuple(p.subs(point) for p in self.polynomials))
            assert before is not None, "an outlier is not a branch point"
            counts[sum(end < before for end in spectrum.ends)] += 1
        return counts, len(spectrum.ends)

    def _outliers(self, selection: CellSelection, point: Point) -> list[Any]:
        return [z for p in self.problems for z in Outliers(selection, p, point, self.polynomials).places]

    def _upwards(
        self, selection: CellSelection, point: Point, roots: Roots, index: int, gap: int, edges: int, growing: bool
    ) -> bool:
        """Return whether an outlier enters a gap from its lower end: near the threshold it is closer to that end."""
        if gap in (0, edges):
            return gap > 0
        place = roots.ball(index)()
        end = roots.separators[index + growing]
        near = above(place) if growing else below(place)
        beside = near + (end - near) / BESIDE
        there = {**point, self.parameter: sp.Rational(beside.numerator, beside.denominator)}
        spectrum = selection.spectrum(there)
        low, high = (float(spectrum.zeros.balls()[spectrum.ends[k]].mid()) for k in (gap - 1, gap))
        inside = [z for z in (float(z().mid()) for z in self._outliers(selection, there)) if low < z < high]
        return min(z - low for z in inside) < min(high - z for z in inside)
