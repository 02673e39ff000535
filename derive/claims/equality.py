"""Equality of two expressions: by algebra where possible, otherwise in high precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import sympy as sp
from sympy.core.function import AppliedUndef

from derive.algebra.generators import Generator, decode
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint, physical_values, sample_point
from derive.algebra.polynomials import TooLarge, is_root, proves_zero, solve_linear_unknowns
from derive.cells.balls import Inconclusive, decided, enclosure, is_positive
from derive.cells.chart import without_extremes, zero_factors
from derive.cells.decomposition import Interval
from derive.cells.region import Point, Region
from derive.cells.selection import CellSelection, no_conjugate_vanishes
from derive.cells.solver import has_no_zero
from derive.cells.spectrum import BulkCurve, Roots
from derive.cells.verdicts import PROVED, REFUTED, SUPPORTED, UNDECIDED, ComparisonOutcome, best
from derive.claims.radicals import tidy_roots
from derive.errors import ClaimError, NumericalError
from derive.language.symbols import Parameter, parameter_values, symbol_order
from derive.records.probe import MAP, Bulk
from derive.support.bounds import EXPONENT
from derive.support.plain_words import counted

WORKING_DIGITS, AGREEING_DIGITS = 70, 50
"""Decimal digits of numerical comparisons, and those in which equal sides must agree."""
FURTHER_POINTS = 12
"""Number of points searched for a counterexample if two sides agree without a proof."""


def number(expression: sp.Expr, values: dict[sp.Symbol, Any]) -> mpmath.mpc:
    """Return the value of an expression with many digits; NaN at a pole."""
    with mpmath.workdps(WORKING_DIGITS):
        try:
            symbols, function = _function(expression)
            arguments = [values[s] if not isinstance(values[s], sp.Basic) else _mp(values[s]) for s in symbols]
            value = mpmath.mpmathify(function(*arguments))
            if mpmath.isfinite(value) and value and abs(mpmath.mag(value)) > EXPONENT.most:
                raise OverflowError
            return value
        except ZeroDivisionError:
            return mpmath.nan
        except (OverflowError, MemoryError):
            raise ClaimError(f"{_printed(expression)} is too large to be evaluated; check the exponents") from None


def _printed(expression: sp.Expr) -> str:
    """Return the text of a formula. SymPy evaluates large exponentials to print them, and may fail."""
    try:
        return str(expression)
    except (OverflowError, ValueError, MemoryError):
        return "a formula"


@lru_cache(maxsize=500)  # a formula is asked for its value at several points
def _function(expression: sp.Expr) -> tuple[list[sp.Symbol], Callable[..., Any]]:
    symbols = sorted(expression.free_symbols, key=lambda s: s.name)
    power = sp.Function("bounded_power")
    bounded = expression.replace(lambda e: e.is_Pow and not e.exp.is_number, lambda e: power(e.base, e.exp))
    return symbols, sp.lambdify(symbols, bounded, [{"exp": _exp, "bounded_power": _power}, "mpmath"])


def _exp(x: Any) -> Any:
    """Return the exponential if the exponent is within a bound."""
    if abs(x) > EXPONENT.most:
        raise OverflowError
    return mpmath.exp(x)


def _power(base: Any, exponent: Any) -> Any:
    return mpmath.power(base, exponent) if not base else _exp(exponent * mpmath.log(base))


def _mp(value: sp.Basic) -> mpmath.mpc:
    rational = sp.Rational(value)
    return mpmath.mpf(int(rational.p)) / int(rational.q)


def close(a: Any, b: Any, digits: int = AGREEING_DIGITS) -> bool:
    """Return whether two numbers agree to a number of digits."""
    with mpmath.workdps(WORKING_DIGITS):
        return bool(abs(a - b) <= mpmath.mpf(10) ** -digits * max(1, abs(a), abs(b)))


def vanishes_identically(
    expression: sp.Expr,
    curve: sp.Expr | None = None,
    root: sp.Symbol | None = None,
    box: dict[Parameter, Interval] | None = None,
) -> bool:
    """Return whether an expression is zero by algebra.

    Radicals become generators; numerators are reduced modulo the generators' defining polynomials and, if given, modulo
    the curve that `root` satisfies. Within `box`, radicals of factors that are positive there are simplified first.
    """
    if box is not None:
        expression, curve = tidy_roots((sp.sympify(expression), sp.S.Zero if curve is None else curve), box)
        curve = None if root is None else curve
    relations: list[tuple[sp.Symbol, sp.Expr, int]] = []
    plain = _without_radicals(sp.sympify(expression), relations)
    numerator = sp.expand(sp.fraction(sp.together(plain))[0])
    for symbol, base, power in reversed(relations):
        top, bottom = sp.fraction(sp.together(base))
        numerator = _remainder(numerator, bottom * symbol**power - top, symbol)
    if curve is not None and numerator.has(root):
        numerator = _remainder(numerator, curve, root)
        for symbol, base, power in reversed(relations):
            top, bottom = sp.fraction(sp.together(base))
            numerator = _remainder(numerator, bottom * symbol**power - top, symbol)
    return bool(numerator == 0)


def _remainder(numerator: sp.Expr, modulus: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    if not numerator.has(symbol):
        return numerator
    try:
        return sp.expand(sp.prem(numerator, sp.expand(modulus), symbol))
    except sp.PolynomialError:  # the symbol is inside a function: nothing is shown
        return numerator


def _without_radicals(node: sp.Expr, relations: list[tuple[sp.Symbol, sp.Expr, int]]) -> sp.Expr:
    if not node.args:
        return node
    args = [_without_radicals(arg, relations) for arg in node.args]
    if node.is_Pow and args[1].is_Rational and not args[1].is_Integer:
        base, exponent = args
        for symbol, known, power in relations:
            if known == base and power % exponent.q == 0:
                return symbol ** (exponent.p * power // exponent.q)
        symbol = sp.Symbol(f"_radical{len(relations)}")
        relations.append((symbol, base, int(exponent.q)))
        return symbol**exponent.p
    return node.func(*args)


class Comparator:
    """Comparison of scalars in z, G, the map s, the parameters and the bulk responses, inside a region."""

    def __init__(self, region: Region, bulk: Bulk | None, bounds: tuple[sp.Expr, ...] = ()):
        """Set up the region and the bulk.

        `bounds` are expressions in z or in the map that are positive where the claim applies.
        """
        self.region, self.bulk, self.bounds = region, bulk, bounds
        self._physical: dict[int, dict[sp.Symbol, Any]] = {}

    @cached_property
    def selection(self) -> CellSelection:
        """The cells of the region; they include the bulk if it has a curve."""
        curve = None if self.bulk is None or self.bulk.curve is None else BulkCurve.of(self.bulk)
        return CellSelection(self.region, curve)

    @cached_property
    def points(self) -> list[Point]:
        """Points at which both sides are evaluated."""
        return self.region.points()

    @cached_property
    def _rational(self) -> list[tuple[sp.Symbol, sp.Expr]]:
        """The other bulk responses as rational functions of z and G, to be substituted in this order."""
        if self.bulk is None:
            return []
        projected, generic = self.bulk.projected, self._generic
        others = [s for s in projected.bulk_symbols if s != projected.resolvent]
        encoded = [generic.generators.encode(equation) for equation in projected.algebraic]
        held = sorted({g for e in encoded for g in e.atoms(Generator)}, key=symbol_order)
        plain = {g: sp.Dummy(g.name) for g in held}  # the defining polynomials of roots must not be used
        back = {symbol: g for g, symbol in plain.items()}
        equations = [equation.xreplace(plain) for equation in encoded]
        solution = solve_linear_unknowns(equations, others, lambda e: generic.accepts(e.xreplace(back)))[2]
        return [(symbol, decode(value.xreplace(back))) for symbol, value in solution]

    @cached_property
    def _generic(self) -> PhysicalPoint:
        """A generic point of the physical branch."""
        assert self.bulk is not None
        return PhysicalPoint.of(self.bulk.projected.algebraic, self.bulk.projected.bulk_symbols)

    def same(self, claimed: sp.Expr, derived: sp.Expr, above: bool = False) -> ComparisonOutcome:
        """Decide whether two expressions are equal: numerically first, which refutes wrong claims fast, then by proof.

        Functions of z are equal if they agree at every real z outside the bulk, or, with `above`, at every z above it.
        If they contain no roots of z, they are analytic and bounds on z do not matter.
        """
        outcome = self._between_zeros_of_signs(claimed, derived, above)
        if outcome.status not in (PROVED, SUPPORTED):
            return outcome
        return self._at_zeros_of_signs(claimed, derived) or outcome

    def _between_zeros_of_signs(self, claimed: sp.Expr, derived: sp.Expr, above: bool) -> ComparisonOutcome:
        above = above and not any(bound.has(Z) for bound in self.bounds)
        functions = sorted((claimed.atoms(AppliedUndef) | derived.atoms(AppliedUndef)), key=str)
        named = {node: sp.Symbol(f"_function{i}") for i, node in enumerate(functions)}
        claimed, derived = (without_extremes(side.xreplace(named)) for side in (claimed, derived))
        difference = claimed - derived
        if difference == 0:
            return ComparisonOutcome(PROVED)
        symbols, compared = claimed.free_symbols | derived.free_symbols, 0
        spectral = {Z} if self.bulk is None else {Z, *self.bulk.projected.bulk_symbols}
        cut = any(_has_sign(node) and node.free_symbols & spectral for node in sp.preorder_traversal(difference))
        by_cells = self._by_cells(difference, above) if cut else None  # a root of z has its sign on the real axis
        if by_cells is not None and (by_cells.status != REFUTED or self.bounds):
            return by_cells
        if cut and by_cells is None and self.bounds:
            return ComparisonOutcome(UNDECIDED, "square roots of z whose signs within the bounds were not decided")
        for values in self.values(symbols):
            left, right = number(claimed, values), number(derived, values)
            if mpmath.isnan(left) or mpmath.isnan(right):
                continue  # a pole at this point decides nothing
            if not close(left, right):
                if cut and by_cells is None:
                    return self._beyond_spectrum(claimed, derived)
                return _differing(values, symbols, left, right)
            compared += 1
        if self.proves_zero(difference):
            vanishing = next((f for f in _signed_denominators(difference) if not self.differs_from_zero(f)), None)
            if vanishing is None:
                return ComparisonOutcome(PROVED)
            return ComparisonOutcome(UNDECIDED, f"{vanishing} may be zero in a part of the region, and divides there")
        by_cells = by_cells or self._by_cells(difference, above)
        if by_cells is not None and by_cells.status != SUPPORTED:
            return by_cells
        against = self._far_and_wide(claimed, derived) or by_cells
        if against is not None:
            return against
        points = counted(compared, "rational point")
        tried = f"agrees to {AGREEING_DIGITS} digits at {points}" if compared else "no point without a pole was found"
        return ComparisonOutcome(UNDECIDED, f"{tried}; no symbolic proof found")

    def _at_zeros_of_signs(self, claimed: sp.Expr, derived: sp.Expr) -> ComparisonOutcome | None:
        """Compare two sides at zeros of arguments of signs, where they may jump; None if there are no zeros or the
        sides agree.
        """
        arguments = {node.args[0] for side in (claimed, derived) for node in side.atoms(sp.sign)}
        for argument in sorted(arguments - {MAP}, key=str):  # the map takes the value 0 nowhere
            undecided = ComparisonOutcome(
                SUPPORTED, f"where {argument} = 0, at which its sign is 0, it was not decided"
            )
            if not argument.free_symbols <= set(self.region.parameters):
                if self._vanishes_outside(argument):
                    return undecided
                continue
            try:
                factors = zero_factors(argument)
            except (TooLarge, sp.PolynomialError):
                return undecided
            for factor in factors:
                if self._has_no_zero(factor):
                    continue
                if not self._agree_where_zero(claimed - derived, argument, factor):
                    return self._differing_on(factor, claimed, derived) or undecided
        return None

    def _has_no_zero(self, expression: sp.Expr) -> bool:
        conditions = [*self.region.conditions, *self.bounds]
        return has_no_zero(expression, self.region.box, conditions, bool(self.region.closed))

    def _agree_where_zero(self, difference: sp.Expr, argument: sp.Expr, factor: sp.Expr) -> bool:
        """Return whether a difference is proved to vanish at the zeros of a factor of a sign's argument."""
        linear = (p for p in self.region.parameters if factor.is_polynomial(p) and sp.degree(factor, p) == 1)
        parameter = next(linear, None)
        if parameter is None:
            return False
        slope, rest = sp.Poly(factor, parameter).all_coeffs()
        there = difference.xreplace({sp.sign(argument): sp.S.Zero}).subs(parameter, -rest / slope)
        return bool(slope.is_Rational) and self.proves_zero(there)

    def _differing_on(self, factor: sp.Expr, claimed: sp.Expr, derived: sp.Expr) -> ComparisonOutcome | None:
        """Return a counterexample at a rational zero of a polynomial in the parameters; None without one."""
        symbols = claimed.free_symbols | derived.free_symbols
        points = [point for point in self.selection.sites((factor,)).on_walls() if factor.subs(point) == 0]
        for values in self.values(symbols, points):
            left, right = (number(side, values) for side in (claimed, derived))
            if not mpmath.isnan(left) and not mpmath.isnan(right) and not close(left, right):
                return _differing(values, symbols, left, right)
        return None

    def _vanishes_outside(self, argument: sp.Expr) -> bool:
        """Return whether an expression in z may vanish at some z outside the bulk."""
        if self._has_no_zero(argument):
            return False
        if not argument.free_symbols <= {Z, *self.region.parameters} or not argument.is_polynomial(Z):
            return True
        sites = self.selection.sites((*self.selection.singular, argument), (), (Z,))
        for point in sites:
            places = Roots((argument,), Z, tuple(point.items()))
            balls = map(places.ball, range(len(places.separators) - 1))
            if any(self.selection.spectrum(point).outside(place, (argument.subs(point),)) for place in balls):
                return True
        return sites.status != PROVED

    def is_root(self, value: sp.Expr, symbol: sp.Symbol, polynomials: list[sp.Expr]) -> ComparisonOutcome:
        """Decide whether a formula is a zero of the polynomials: of the same one everywhere, or of one in each cell."""
        left = [polynomial.subs(symbol, value) for polynomial in polynomials]
        outcome = best([self.same(residual, sp.S.Zero) for residual in left])
        if outcome.status == PROVED or len(left) < 2:
            return outcome
        return best([outcome, self.same(sp.Mul(*left), sp.S.Zero)])

    def differs_from_zero(self, factor: sp.Expr) -> bool:
        """Return whether a factor is proved to have isolated zeros only, so that division by it is allowed."""
        if self.same(factor, sp.S.Zero).status != REFUTED:
            return False
        (plain,) = tidy_roots((factor,), self.region.box)
        for symbol, value in self._rational:
            plain = plain.subs(symbol, value)
        curve, root = (None, None) if self.bulk is None else (self.bulk.curve, self.bulk.projected.resolvent)
        return no_conjugate_vanishes(plain, curve, root)

    def _far_and_wide(self, claimed: sp.Expr, derived: sp.Expr) -> ComparisonOutcome | None:
        """Return a counterexample far from the defaults, for sides that agree near them; None without one."""
        symbols = claimed.free_symbols | derived.free_symbols
        for values in self.values(symbols, self.region.points(FURTHER_POINTS)):
            try:
                left, right = number(claimed, values), number(derived, values)
            except ClaimError:  # too large there
                continue
            if mpmath.isnan(left) or mpmath.isnan(right):
                continue
            if not close(left, right) or _certainly_differ(claimed - derived, values):
                return _differing(values, symbols, left, right)
        return None

    def _beyond_spectrum(self, claimed: sp.Expr, derived: sp.Expr) -> ComparisonOutcome:
        """Compare two sides that contain square roots of z at a real z above the spectrum, where no branch cut is
        crossed.
        """
        open_signs = ComparisonOutcome(UNDECIDED, "square roots of z whose signs on the real axis were not decided")
        if self.bulk is None or self.bulk.curve is None:
            return open_signs
        projected, symbols = self.bulk.projected, claimed.free_symbols | derived.free_symbols
        for values in self.values(symbols):
            parameters = parameter_values(values)
            place = self.selection.spectrum(parameters).size
            beyond = physical_values(
                projected.algebraic, projected.bulk_symbols, parameters, WORKING_DIGITS, mpmath.mpf(place.__ceil__())
            )
            left, right = (number(side, {**values, **beyond}) for side in (claimed, derived))
            if not mpmath.isnan(left) and not mpmath.isnan(right) and not close(left, right):
                return _differing({**values, **beyond}, symbols, left, right)
        return open_signs

    def proves_zero(self, difference: sp.Expr) -> bool:
        """Return whether a difference vanishes by algebra, modulo the bulk equations."""
        if self.bulk is not None and difference.free_symbols & set(self.bulk.projected.bulk_symbols):
            projected = self.bulk.projected
            others = [s for s in projected.bulk_symbols if s != projected.resolvent]
            beside = {**sample_point((difference,)), **self._generic.point}  # parameters of A(z) alone need values too
            if proves_zero(difference, list(projected.algebraic), others, replace(self._generic, point=beside)):
                return True
        for symbol, value in self._rational:
            difference = difference.subs(symbol, value)
        curve, root = (None, None) if self.bulk is None else (self.bulk.curve, self.bulk.projected.resolvent)
        return (
            vanishes_identically(difference, curve, root)
            or vanishes_identically(difference, curve, root, self.region.box)
            or sp.simplify(difference) == 0
        )

    def _by_cells(self, difference: sp.Expr, above: bool) -> ComparisonOutcome | None:
        """Decide whether a difference vanishes from the signs of its square roots in each cell; None if these do not
        decide.
        """
        for symbol, value in self._rational:
            difference = difference.subs(symbol, value)
        try:
            return self.selection.vanishes(difference, above, self.bounds)
        except Inconclusive:
            return None

    def values(self, symbols: set[sp.Symbol], points: list[Point] | None = None) -> list[dict[sp.Symbol, Any]]:
        """Return points of evaluation: parameters, z with the physical bulk, and generic numbers for other symbols."""
        points = self.points if points is None else points
        spectral = self.bulk is not None and bool(symbols & {Z, *self.bulk.projected.bulk_symbols})
        points_and_values = []
        for i, point in enumerate(points):
            values: dict[sp.Symbol, Any] = {**point, **(self.physical(i, point) if spectral else {})}
            others = sorted((s for s in symbols if s not in values), key=lambda s: s.name)
            sign = -1 if i % 2 else 1  # the map takes values of both signs, as any symbol without a domain may
            generic = {s: sign * sp.Rational(17 + 4 * i + 2 * j, 5 + 6 * j) for j, s in enumerate(others)}
            if MAP in generic and any(bound.has(MAP) for bound in self.bounds):
                inside = self._level(point)
                if inside is None:
                    continue
                generic[MAP] = inside
            points_and_values.append({**values, **generic})
        return points_and_values

    def _level(self, point: Point) -> sp.Rational | None:
        """Return a value of the map within its bounds at a point of the parameters; None without one."""
        bounds = [bound for bound in self.bounds if bound.has(MAP)]
        for size in (sp.Rational(17, 5), sp.Rational(3, 7), 29, sp.Rational(1, 31), 997):
            for value in (sp.sympify(size), -sp.sympify(size)):
                if all(is_positive(bound, {**point, MAP: value}) for bound in bounds):
                    return value
        return None

    def physical(self, index: int, point: dict[sp.Symbol, Any]) -> dict[sp.Symbol, Any]:
        """Return z and the bulk responses at a sample point."""
        if self.bulk is not None and index not in self._physical:
            projected = self.bulk.projected
            self._physical[index] = physical_values(projected.algebraic, projected.bulk_symbols, point, WORKING_DIGITS)
        return self._physical.get(index, {})


def _has_sign(node: sp.Basic) -> bool:
    """Return whether a node is a root, an absolute value or a sign."""
    return is_root(node) or isinstance(node, (sp.Abs, sp.sign))


def _signed_denominators(expression: sp.Expr) -> list[sp.Expr]:
    """Return the denominators of an expression that may vanish in a part of the region, as k - Abs(k) does."""
    powers = (node for node in sp.preorder_traversal(expression) if node.is_Pow and node.exp.is_negative)
    inside = (node.base for node in powers if any(map(_has_sign, sp.preorder_traversal(node.base))))
    return list(dict.fromkeys(base for base in inside if base.is_Add))


def _certainly_differ(difference: sp.Expr, values: dict[sp.Symbol, Any]) -> bool:
    """Return whether a difference is nonzero at rational values, by ball arithmetic."""
    if not all(isinstance(values[s], sp.Rational) for s in difference.free_symbols):
        return False
    try:
        return decided(lambda: None if enclosure(difference, values).contains(0) else True)
    except NumericalError:
        return False


def _differing(values: dict[sp.Symbol, Any], symbols: set[sp.Symbol], left: Any, right: Any) -> ComparisonOutcome:
    """Return the counterexample at which two sides have different values."""
    detail = f"the claim is {mpmath.nstr(left, 8)}, the derivation {mpmath.nstr(right, 8)}"
    if close(left, right):
        detail += f", which differ by {mpmath.nstr(abs(left - right), 2)}"
    return ComparisonOutcome(REFUTED, f"{_point_text(values, symbols)} {detail}", tuple(values.items()))


def _point_text(values: dict[sp.Symbol, Any], symbols: set[sp.Symbol]) -> str:
    inside = sorted(symbols, key=lambda s: s.name)
    named = {MAP: "s"}
    parts = [
        f"{named.get(s, s)} = {mpmath.nstr(values[s], 6) if not isinstance(values[s], sp.Basic) else values[s]}"
        for s in inside
        if s in values
    ]
    return f"at {', '.join(parts)}" if parts else "as numbers"
