"""The choice of branch, edge or outlier in a claim, decided in every cell of its region.

A selection is constant in each cell between the zeros of the polynomials on which it depends, so one rational sample
point per cell decides it for the whole region. If the decomposition is too large, sample points of the region are tried
instead, and the claim is supported, not proved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.polynomials import TooLarge, common_roots, is_root, rational_factors
from derive.cells.balls import Inconclusive, ball, constant, decided, enclosure, is_positive
from derive.cells.chart import Chart, in_sizes, walls, zero_factors
from derive.cells.conjugates import NoNorm, RootConjugates
from derive.cells.decomposition import Cells, Interval
from derive.cells.region import Point, Region
from derive.cells.signs import sign_inside
from derive.cells.solver import has_no_zero
from derive.cells.spectrum import BulkCurve, CellSpectrum, Roots
from derive.cells.verdicts import PROVED, REFUTED, SUPPORTED, UNDECIDED, ComparisonOutcome
from derive.errors import NumericalError
from derive.language.symbols import Parameter, parameter_values
from derive.records.probe import MAP
from derive.support.bounds import VISITING
from derive.support.plain_words import counted

SAMPLES = 6
"""Number of sample points of a region whose cells are not known."""


@dataclass
class Sites:
    """Sample points of a region; `all_cells` says whether every cell has one.

    Attributes:
        walls: polynomials that vanish between cells.
        variables: coordinates of the cells, the first eliminated last; `chart`: how they rationalise parameters.
        faces: rational points on walls; `all_faces` if they are complete.
        visited: points returned so far.
    """

    points: tuple[Point, ...]
    all_cells: bool
    walls: tuple[sp.Expr, ...] = ()
    faces: tuple[Point, ...] = ()
    all_faces: bool = False
    variables: tuple[sp.Symbol, ...] = ()
    chart: Chart | None = None
    visited: int = 0

    def __iter__(self) -> Iterator[Point]:
        """Yield sample points of cells, as many as time permits."""
        self.visited, start = 0, time.thread_time()
        for point in self.points:
            if time.thread_time() - start > VISITING.most:
                return
            self.visited += 1
            yield point

    def on_walls(self, *formulas: sp.Expr) -> Iterator[Point]:
        """Yield rational points on walls at which the formulas are defined, as many as time permits."""
        start = time.thread_time()
        for point in self.faces:
            if time.thread_time() - start > VISITING.most:
                self.all_faces = False
                return
            if not any(formula.subs(point).has(sp.zoo, sp.nan, sp.oo) for formula in formulas):
                yield point

    @property
    def status(self) -> str:
        """The status of a statement that holds at all visited points, with exact algebra."""
        return PROVED if self.all_cells and self.visited == len(self.points) else SUPPORTED

    @property
    def extent(self) -> str:
        """A description of the points at which a question was decided."""
        if self.status == PROVED:
            return "in the whole region" if self.visited == 1 else f"in each of {self.visited} cells of the region"
        of = f"of {len(self.points)} cells" if self.all_cells else "of the region, whose cells were not found"
        return f"at {counted(self.visited, 'point')} {of}"


class CellSelection:
    """Cells of a region and the spectra at their sample points, each computed once."""

    def __init__(self, region: Region, bulk: BulkCurve | None):
        self.region, self.bulk = region, bulk
        self._spectra: dict[Any, CellSpectrum] = {}
        self._sites: dict[Any, Sites] = {}

    @property
    def singular(self) -> tuple[sp.Expr, ...]:
        """Polynomials in z whose zeros contain the branch points and poles of the resolvent."""
        assert self.bulk is not None
        return self.bulk.singular

    def spectrum(self, point: Point) -> CellSpectrum:
        """Return the bulk at a point of the region."""
        assert self.bulk is not None
        given = ((p, v) for p, v in point.items() if p in self.bulk.symbols)
        key = tuple(sorted(given, key=lambda item: str(item[0])))
        if key not in self._spectra:
            self._spectra[key] = CellSpectrum(self.bulk, point)
        return self._spectra[key]

    def sites(
        self,
        polynomials: Iterable[sp.Expr],
        formulas: Iterable[sp.Expr] = (),
        inner: Sequence[sp.Symbol] = (),
        fixed: Point | None = None,
    ) -> Sites:
        """Return sample points of all cells in which zeros of the polynomials stay apart and formulas are analytic.

        Args:
            inner: symbols that run over all real numbers.
            fixed: parameters with a single value.
        """
        fixed = fixed or {}
        held, analytic = (tuple(sp.sympify(e).subs(fixed) for e in given) for given in (polynomials, formulas))
        key = (held, analytic, tuple(inner), tuple(fixed.items()))
        if key not in self._sites:
            self._sites[key] = self._sample_cells(held, analytic, tuple(inner), fixed)
        return self._sites[key]

    def _sample_cells(
        self,
        polynomials: tuple[sp.Expr, ...],
        formulas: tuple[sp.Expr, ...],
        inner: tuple[sp.Symbol, ...],
        fixed: Point,
    ) -> Sites:
        conditions = tuple(c.subs(fixed) for c in self.region.conditions)
        conditions = tuple(c for c in conditions if c.free_symbols)
        chart = Chart.of((*polynomials, *formulas, *conditions))
        try:
            needed = [*polynomials, *walls(map(chart.apply, formulas)), *walls(conditions), *conditions]
            factors = list(dict.fromkeys(f for p in needed for f in zero_factors(chart.apply(p))))
            box, ends = self._box(chart, factors, inner)
            cells, sample = self._points(chart, [*factors, *ends], box, inner)
        except (TooLarge, NumericalError, sp.PolynomialError, sp.polys.polyerrors.CoercionFailed):
            return Sites(tuple(self.region.points(SAMPLES, fixed)), False)
        completed = ({**self._others(point, inner), **fixed} for point in sample)
        points = [point for point in completed if self._inside(point, fixed)]
        whole = tuple(point for point in points if all(_is_value(p, v) for p, v in point.items()))
        if not whole:
            return Sites(tuple(self.region.points(SAMPLES, fixed)), False)
        back = {symbol: parameter ** sp.Rational(1, degree) for parameter, symbol, degree in chart.powers}
        levels = zip(cells.variables, cells.levels, strict=True)
        between = tuple(f.subs(back) for symbol, level in levels if symbol not in inner for f in level)
        faces, all_faces = self._faces(chart, cells, inner, fixed)
        return Sites(whole, len(whole) == len(points), between, faces, all_faces, cells.variables, chart)

    def _faces(
        self, chart: Chart, cells: Cells, inner: tuple[sp.Symbol, ...], fixed: Point
    ) -> tuple[tuple[Point, ...], bool]:
        """Return rational points of the region on walls, and whether all faces of the cells are among them."""
        faces: list[Point] = []
        try:
            for coordinates in cells.faces(inner, self.region.ends):
                point = {**self._others(chart.point(coordinates), inner), **fixed}
                if (
                    point not in faces
                    and all(_is_value(p, v) for p, v in point.items())
                    and self.region.holds_at(point)
                ):
                    faces.append(point)
        except (TooLarge, NumericalError):  # there are many: those that are found are tried
            return tuple(faces), False
        return tuple(faces), True

    def _points(
        self, chart: Chart, factors: list[sp.Expr], box: dict[sp.Symbol, Interval], inner: Any
    ) -> tuple[Cells, list[Point]]:
        """Return the decomposition and the sample points that belong to the region.

        Polynomials without zeros in the box are dropped. The region's inequalities must not be used to drop them,
        because their own zeros are walls.
        """

        def simple(polynomial: sp.Expr) -> bool:
            return sign_inside(polynomial, box) != 0

        def solved(polynomial: sp.Expr) -> bool:
            return simple(polynomial) or len(polynomial.free_symbols) > 1 and has_no_zero(polynomial, box)

        try:
            cells = Cells.of(factors, box, inner, simple)
            return cells, [chart.point(point) for point in cells.points(inner)]
        except TooLarge:
            cells = Cells.of(factors, box, inner, solved)
            return cells, [chart.point(point) for point in cells.points(inner)]

    def _box(self, chart: Chart, factors: list[sp.Expr], inner: Any) -> tuple[dict[sp.Symbol, Interval], list[sp.Expr]]:
        """Return an interval per coordinate, and polynomials that vanish at endpoints of domains that no interval
        contains.
        """
        box: dict[sp.Symbol, Interval] = {symbol: (None, None) for symbol in inner}
        ends: list[sp.Expr] = []
        used = {s for f in factors for s in f.free_symbols}
        for parameter in self.region.parameters:
            symbol = chart.symbol(parameter)
            low, high = self.region.box[parameter]
            if symbol == parameter:
                box[symbol] = (low, high)
                continue
            box[symbol] = (sp.S.Zero, None)
            if symbol in used:
                ends += [chart.apply(parameter) - end for end in (low, high) if end is not None and end != 0]
        return box, ends

    def _inside(self, point: Point, fixed: Point) -> bool:
        """Return whether a point off the walls belongs to the region; integer parameters count as real.

        Conditions that involve only `fixed` values are known to hold.
        """
        for parameter, value in parameter_values(point).items():
            if not parameter.domain.low <= value <= parameter.domain.high:
                return False
        for condition in self.region.conditions:
            if not condition.free_symbols <= set(point) or condition.free_symbols <= set(fixed):
                continue  # it is about an inner symbol
            if not is_positive(condition, point):
                return False
        return True

    def _others(self, point: Point, inner: Sequence[sp.Symbol]) -> Point:
        """Complete a point by values of the open parameters other than `inner` ones."""
        usual = self.region.typical
        return {**{p: v for p, v in usual.items() if p not in point and p not in inner}, **point}

    def unvisited_zero(self, expressions: Iterable[sp.Expr], sites: Sites, fixed: Point) -> sp.Expr | None:
        """Return a polynomial that may vanish with an expression on a wall without a visited face, or None."""
        fixed_expressions = [sp.sympify(e).subs(fixed) for e in expressions]
        conditions = [c for c in (c.subs(fixed) for c in self.region.conditions) if c.free_symbols]
        chart = sites.chart or Chart.of((*fixed_expressions, *conditions))
        positive = [chart.apply(c) for c in conditions]
        for expression in fixed_expressions:
            try:
                factors = rational_factors(RootConjugates.of(in_sizes(chart.apply(expression))).norm())
            except (NoNorm, TooLarge):
                return expression
            box, _ = self._box(chart, factors, ())
            for factor in (f for f in factors if f.free_symbols):
                last = next((s for s in reversed(sites.variables) if factor.has(s)), None)
                complete = sites.all_faces and factor.free_symbols <= set(sites.variables)
                if sign_inside(factor, box) or complete and sp.degree(factor, last) == 1:
                    continue
                if len(factor.free_symbols) == 1 and not _vanishes_at_zeros(
                    chart.apply(expression), factor, box, positive
                ):
                    continue  # a conjugate vanishes there
                closed = bool(self.region.closed)
                meant = chart.apply(expression)  # with the roots that it has, and not their conjugates
                if not any(has_no_zero(e, box, positive, closed) for e in (factor, meant)):
                    back = {symbol: p ** sp.Rational(1, degree) for p, symbol, degree in chart.powers}
                    return factor.subs(back)
        return None

    # formulas that vanish

    def vanishes(
        self, expression: sp.Expr, above: bool = False, bounds: tuple[sp.Expr, ...] = ()
    ) -> ComparisonOutcome | None:
        """Decide whether an expression in the parameters, z and G, or the map, is zero in the whole region.

        It must vanish at every real z outside the bulk (or every value of the map) where `bounds` are positive. With
        `above` it must vanish above the bulk; the evidence says where it does not vanish below the bulk or in gaps.
        None if the signs of square roots do not decide.
        """
        spectral = self.bulk is not None and bool(expression.free_symbols & {Z, self.bulk.resolvent})
        curve, root = (None, None) if self.bulk is None else (self.bulk.curve, self.bulk.resolvent)
        chart = Chart.of((expression, *((curve,) if spectral else ())))
        try:
            plain = _WithoutSizes(in_sizes(chart.apply(expression)))
            conjugates = RootConjugates.of(plain.formula)
            if not conjugates.roots:
                return ComparisonOutcome(PROVED) if conjugates.formula == 0 else None
            if not _norm_vanishes(conjugates, chart.apply(curve) if spectral else None, root):
                return ComparisonOutcome(REFUTED, "the two sides differ whatever the signs of square roots")
            inner = (Z,) if spectral else (MAP,) if expression.has(MAP) else ()
            between = [*self._without_resolvent(walls([expression])), *(self.singular if spectral else ())]
            limits = tuple(b for b in bounds if b.has(*inner)) if inner else ()
            between += [f for b in limits for f in rational_factors(RootConjugates.of(in_sizes(b)).norm())]
            sites = self.sites(between, (), inner)
        except (NoNorm, TooLarge):
            return None
        beside, compared = False, 0
        for point in sites:
            for place in self._places(between, inner, point):
                at = {**point, **{symbol: sp.Rational(place.numerator, place.denominator) for symbol in inner if place}}
                if not all(is_positive(bound, at) for bound in limits):
                    continue
                compared += 1
                values = self._values(point, place, spectral, chart)
                here = plain.at(values)
                on_curve = chart.apply(curve) if spectral else None
                if _norm_vanishes(here, on_curve, root) and (not here.roots or here.decide(values)):
                    continue
                if above and spectral and place is not None and not self._above(point, place):
                    beside = True
                    continue
                shown = [f"{p} = {v}" for p, v in point.items() if expression.has(p)]
                shown += [] if place is None else [f"{'z' if spectral else 's'} = {place}"]
                return ComparisonOutcome(REFUTED, f"at {', '.join(shown)} the two sides differ", tuple(point.items()))
        if not compared:
            return ComparisonOutcome(
                UNDECIDED, f"no {'z' if spectral else 's'} within the bounds lies outside the bulk"
            )
        evidence = f"with the signs of square roots decided {sites.extent}"
        if beside:
            evidence += "; above the bulk (elsewhere a square root has the other sign)"
        return ComparisonOutcome(sites.status, evidence)

    def _without_resolvent(self, polynomials: list[sp.Expr]) -> list[sp.Expr]:
        """Return polynomials that do not contain the resolvent and vanish wherever given ones vanish on the curve."""
        if self.bulk is None:
            return polynomials
        root, eliminated = self.bulk.resolvent, list[sp.Expr]()
        for polynomial in polynomials:
            eliminated += common_roots(polynomial, self.bulk.curve, root) if polynomial.has(root) else [polynomial]
        return eliminated

    def _places(self, between: list[sp.Expr], inner: tuple[sp.Symbol, ...], point: Point) -> Sequence[Fraction | None]:
        """Return one value of z outside the bulk, or of the map, between any two walls; [None] if neither variable
        occurs.
        """
        if not inner:
            return [None]
        (symbol,) = inner
        walls = [polynomial.subs(point) for polynomial in between]
        places = Roots(tuple(polynomial for polynomial in walls if polynomial.has(symbol)), symbol, ()).separators
        if symbol == MAP:
            return places
        spectrum = self.spectrum(point)
        return [place for place in places if spectrum.outside(constant(place), (_at(place),))]

    def _above(self, point: Point, place: Fraction) -> bool:
        """Return whether a point outside the bulk lies above the whole bulk."""
        spectrum = self.spectrum(point)
        last = spectrum.ends[-1] if spectrum.ends else -1
        interval = spectrum.interval_of(constant(place), (_at(place),))
        return interval is not None and interval > last

    def _values(self, point: Point, place: Any, spectral: bool, chart: Chart) -> Callable[[], dict[sp.Symbol, Any]]:
        """Return enclosures of all symbols at a point: coordinates of the chart, z and the resolvent, or the map."""
        coordinates = chart.coordinates(point)

        def balls() -> dict[sp.Symbol, Any]:
            if place is None:
                return coordinates
            if not spectral:
                return {**coordinates, MAP: ball(place)}
            spectrum = self.spectrum(point)
            return {**coordinates, Z: ball(place), spectrum.resolvent: spectrum.branch.at(place).ball}

        return balls


def _vanishes_at_zeros(
    expression: sp.Expr, factor: sp.Expr, box: dict[sp.Symbol, Interval], positive: list[sp.Expr]
) -> bool:
    """Return whether an expression may vanish at a zero of a univariate polynomial inside an interval."""
    (symbol,) = factor.free_symbols
    low, high = box[symbol]
    roots = Roots((factor,), symbol, ())
    conditions = [c for c in positive if c.free_symbols == {symbol}]

    def differs(index: int) -> bool | None:
        place = roots.balls()[index]
        outside = low is not None and bool(place < ball(low).real) or high is not None and bool(place > ball(high).real)
        outside = outside or any(bool(enclosure(c, {symbol: place}).real < 0) for c in conditions)
        return True if outside or not enclosure(expression, {symbol: place}).contains(0) else None

    try:
        return not all(decided(partial(differs, i)) for i in range(len(roots.separators) - 1))
    except Inconclusive:
        return True


class _WithoutSizes:
    """A formula with its absolute values resolved by the known signs of their arguments."""

    def __init__(self, formula: sp.Expr):
        self.formula = formula
        self._known: dict[tuple[int, ...], RootConjugates] = {}

    def at(self, values: Callable[[], dict[sp.Symbol, Any]]) -> RootConjugates:
        """Return the formula at a point, whose `values` are given at the working precision.

        Absolute values of roots remain, because the roots may be complex.
        """
        plain, signs = self.formula, list[int]()
        while True:
            sizes = [size for size in plain.atoms(sp.Abs) if not any(map(_kept, sp.preorder_traversal(size.args[0])))]
            if not sizes:
                break
            size = min(sizes, key=lambda node: (sp.count_ops(node), str(node)))
            signs.append(1 if is_positive(size.args[0], values) else -1)
            plain = plain.xreplace({size: signs[-1] * size.args[0]})
        return self._known.setdefault(tuple(signs), RootConjugates.of(plain))


def _kept(node: sp.Basic) -> bool:
    return is_root(node) or isinstance(node, sp.Abs)


def _at(place: Fraction) -> sp.Expr:
    """Return a polynomial whose only zero is the given point."""
    return Z - sp.Rational(place.numerator, place.denominator)


def _norm_vanishes(conjugates: RootConjugates, curve: sp.Expr | None, root: sp.Symbol | None) -> bool:
    """Return whether the norm, the product of all conjugates, is zero modulo the curve."""
    norm = conjugates.norm()
    if norm != 0 and curve is not None and norm.has(root):
        norm = sp.expand(sp.prem(norm, sp.expand(sp.fraction(sp.together(curve))[0]), root))
    return bool(norm == 0)


def no_conjugate_vanishes(expression: sp.Expr, curve: sp.Expr | None, root: sp.Symbol | None) -> bool:
    """Return whether no conjugate of an expression vanishes throughout a cell."""
    try:
        conjugates = RootConjugates.of(in_sizes(expression))
    except NoNorm:
        return not walls([expression])  # a function without roots and poles is analytic
    return not conjugates.roots or not _norm_vanishes(conjugates, curve, root)


def _is_value(parameter: sp.Symbol, value: sp.Rational) -> bool:
    """Return whether a parameter may have a value: an integer parameter cannot be a fraction."""
    return not isinstance(parameter, Parameter) or not parameter.domain.whole or bool(value.is_Integer)
