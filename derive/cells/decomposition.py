"""Cylindrical algebraic decomposition: one rational sample point in each open cell between zeros of polynomials.

A statement is constant inside open cells but may fail on the walls between them: an outlier that touches the bulk at
one parameter value is not an outlier there. `faces` gives rational sample points of the walls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import flint
import sympy as sp

from derive.algebra.polynomials import PolynomialRing, TooLarge, irreducible
from derive.cells.balls import above, below, decided, irreducible_factors, real_roots, simplest_between

MOST_WORK = 60_000
"""Maximal number of terms of a resultant or discriminant: bounds the time of a projection."""
MOST_CELLS = 400
"""Maximal number of cells."""
MOST_FACES = 100
"""Maximal number of sample points on walls."""

Interval = tuple[sp.Rational | None, sp.Rational | None]
"""An open interval; None for an unbounded end."""
Drop = Callable[[sp.Expr], bool]
"""Whether a polynomial is known to have no zero in the region."""


@dataclass(frozen=True)
class Cells:
    """The levels of a decomposition: polynomials in the first variable, in the first two, and so on."""

    variables: tuple[sp.Symbol, ...]
    intervals: tuple[Interval, ...]
    levels: tuple[tuple[sp.Expr, ...], ...]

    @staticmethod
    def of(
        polynomials: Iterable[sp.Expr], box: dict[sp.Symbol, Interval], innermost: Sequence[sp.Symbol], drop: Drop
    ) -> Cells:
        """Return the decomposition of a box. `innermost` variables are eliminated first.

        Raises:
            TooLarge: a projection exceeds its bound.
        """
        ring = PolynomialRing.of(tuple(polynomials))
        encoded = [f for p in polynomials for f in irreducible(ring.encode(p)) if not f.is_constant()]
        unknown = [s for s in ring.symbols if s not in box]
        if unknown:
            raise TooLarge(f"{unknown[0]} is not a variable of the region")
        left = [s for s in ring.symbols if s not in innermost]
        first = [s for s in innermost if s in ring.symbols]
        order: list[sp.Symbol] = []
        levels: list[tuple[sp.Expr, ...]] = []
        current = _kept(ring, encoded, drop)
        while left or first:
            symbol = first.pop() if first else min(left, key=lambda s: _weight(ring, current, s))
            if symbol in left:
                left.remove(symbol)
            here = [f for f in current if ring.degree(f, symbol)]
            order.append(symbol)
            levels.append(tuple(ring.decode(f) for f in here))
            free = [f for f in current if not ring.degree(f, symbol)]
            current = _kept(ring, [*free, *_projected(ring, here, symbol), *_at_ends(ring, here, symbol, box)], drop)
        order.reverse()
        levels.reverse()
        return Cells(tuple(order), tuple(box[s] for s in order), tuple(levels))

    def points(self, inner: Sequence[sp.Symbol] = ()) -> Iterator[Any]:
        """Yield a rational point of each cell, without the `inner` variables, which were eliminated first."""
        yield from self._lifted({}, 0, len([s for s in self.variables if s not in inner]), [0])

    def faces(self, inner: Sequence[sp.Symbol], ends: Mapping[sp.Symbol, list[sp.Rational]]) -> Iterator[Any]:
        """Yield rational points at which a polynomial vanishes or a variable is at an end of its interval.

        Every piece of a wall whose polynomial is linear in its last variable has one.

        Raises:
            TooLarge: there are too many, or a polynomial vanishes on a whole wall, so that its zeros there are unknown.
        """
        count, lost = [0], list[sp.Expr]()

        def lifted(point: dict[sp.Symbol, sp.Rational], level: int, on_wall: bool) -> Iterator[Any]:
            if level == len(self.variables) or self.variables[level] in inner:
                if on_wall:
                    lost.extend(f for above in self.levels[level:] for f in above if sp.expand(f.subs(point)) == 0)
                    count[0] += 1
                    if count[0] > MOST_FACES:
                        raise TooLarge(f"there are more than {MOST_FACES} points on walls")
                    yield point
                return
            symbol = self.variables[level]
            lost.extend(f for f in self.levels[level] if on_wall and sp.expand(f.subs(point)) == 0)
            arguments = (self.levels[level], symbol, point, self.intervals[level])
            on = list(dict.fromkeys([*rational_zeros(*arguments), *ends.get(symbol, ())]))
            for value in on:
                yield from lifted({**point, symbol: value}, level + 1, True)
            for value in between_zeros(*arguments):
                yield from lifted({**point, symbol: value}, level + 1, on_wall)

        yield from lifted({}, 0, False)
        if lost:
            raise TooLarge(f"{lost[0]} vanishes on a whole wall")

    def _lifted(self, point: dict[sp.Symbol, sp.Rational], level: int, top: int, count: list[int]) -> Iterator[Any]:
        if level == top:
            count[0] += 1
            if count[0] > MOST_CELLS:
                raise TooLarge(f"there are more than {MOST_CELLS} cells")
            yield point
            return
        for value in between_zeros(self.levels[level], self.variables[level], point, self.intervals[level]):
            yield from self._lifted({**point, self.variables[level]: value}, level + 1, top, count)


def projection(polynomials: Iterable[sp.Expr], symbol: sp.Symbol) -> list[sp.Expr]:
    """Return polynomials that vanish where roots of the given ones in a symbol coincide or go to infinity; they are
    free of the symbol.
    """
    ring = PolynomialRing.of(tuple(polynomials))
    encoded = [f for p in polynomials for f in irreducible(ring.encode(p)) if not f.is_constant()]
    here = _kept(ring, (f for f in encoded if ring.degree(f, symbol)), lambda polynomial: False)
    free = [f for f in encoded if not ring.degree(f, symbol)]
    return [ring.decode(f) for f in _kept(ring, [*free, *_projected(ring, here, symbol)], lambda polynomial: False)]


def between_zeros(
    polynomials: Iterable[sp.Expr], symbol: sp.Symbol, point: dict[sp.Symbol, sp.Rational], interval: Interval
) -> list[sp.Rational]:
    """Return one rational value between any two neighbouring zeros of polynomials in an interval."""
    factors = irreducible_factors(univariate(polynomial.subs(point), symbol) for polynomial in polynomials)
    low, high = (None if end is None else Fraction(int(end.p), int(end.q)) for end in interval)

    def separated() -> list[sp.Rational]:
        ends: list[tuple[Fraction | None, Fraction | None]] = [(low, low)]
        for root in real_roots(factors):
            left, right = below(root), above(root)
            if (low is not None and right <= low) or (high is not None and left >= high):
                continue
            ends.append((left, right))
        ends.append((high, high))
        values = [simplest_between(a, b) for (_, a), (b, _) in zip(ends, ends[1:], strict=False)]
        return [sp.Rational(v.numerator, v.denominator) for v in values]

    return decided(separated)


def rational_zeros(
    polynomials: Iterable[sp.Expr], symbol: sp.Symbol, point: dict[sp.Symbol, sp.Rational], interval: Interval
) -> list[sp.Rational]:
    """Return the rational zeros of polynomials in an open interval, at values of the other symbols."""
    low, high = interval
    zeros = []
    for factor in irreducible_factors(univariate(polynomial.subs(point), symbol) for polynomial in polynomials):
        if factor.degree() == 1:
            value = sp.Rational(-int(factor[0]), int(factor[1]))
            if (low is None or value > low) and (high is None or value < high):
                zeros.append(value)
    return zeros


def univariate(expression: sp.Expr, symbol: sp.Symbol) -> flint.fmpz_poly:
    """Return a polynomial over the rationals in one symbol, without denominators; 1 if it vanishes."""
    poly = sp.Poly(sp.expand(expression), symbol, domain="QQ")
    if poly.is_zero:
        return flint.fmpz_poly([1])
    _, cleared = poly.clear_denoms(convert=True)
    return flint.fmpz_poly([int(c) for c in reversed(cleared.all_coeffs())])


def _kept(ring: PolynomialRing, polynomials: Iterable[Any], drop: Drop) -> list[Any]:
    """Return the irreducible polynomials that may vanish somewhere, in a fixed order, distinct up to sign."""
    kept: dict[str, Any] = {}
    for polynomial in polynomials:
        signed = -polynomial if polynomial.leading_coefficient() < 0 else polynomial
        if str(signed) not in kept and not drop(ring.decode(signed)):
            kept[str(signed)] = signed
    return [kept[key] for key in sorted(kept, key=lambda k: (len(k), k))]


def _weight(ring: PolynomialRing, polynomials: list[Any], symbol: sp.Symbol) -> tuple[int, int, str]:
    degrees = [ring.degree(f, symbol) for f in polynomials]
    return max(degrees, default=0), sum(degrees), symbol.name


def _projected(ring: PolynomialRing, polynomials: list[Any], symbol: sp.Symbol) -> Iterator[Any]:
    """Yield the irreducible factors of leading coefficients, discriminants and resultants in a symbol."""
    place, name = ring.symbols.index(symbol), ring.variable(symbol)

    def factors(polynomial: Any) -> Iterator[Any]:
        if not polynomial.is_constant():
            yield from (f for f in irreducible(polynomial) if not f.is_constant())

    for polynomial in polynomials:
        degree = ring.degree(polynomial, symbol)
        yield from factors(_leading(ring, polynomial, place, degree))
        if degree > 1:
            _check(ring, polynomial, polynomial, symbol)
            yield from factors(polynomial.discriminant(name))
    for one, other in combinations(polynomials, 2):
        _check(ring, one, other, symbol)
        yield from factors(one.resultant(other, name))


def _at_ends(
    ring: PolynomialRing, polynomials: list[Any], symbol: sp.Symbol, box: Mapping[sp.Symbol, Interval]
) -> Iterator[Any]:
    """Yield the irreducible factors of polynomials at the ends of a symbol's interval, where zeros enter or leave."""
    for end in (end for end in box[symbol] if end is not None):
        for polynomial in polynomials:
            there = polynomial.resultant(ring.encode(end.q * symbol - end.p), ring.variable(symbol))
            if not there.is_constant():
                yield from (f for f in irreducible(there) if not f.is_constant())


def _leading(ring: PolynomialRing, polynomial: Any, place: int, degree: int) -> Any:
    terms = {(*m[:place], 0, *m[place + 1 :]): c for m, c in polynomial.to_dict().items() if int(m[place]) == degree}
    return ring.context.from_dict(terms)


def _check(ring: PolynomialRing, first: Any, second: Any, symbol: sp.Symbol) -> None:
    place = ring.symbols.index(symbol)
    m, n = (int(f.degrees()[place]) for f in (first, second))
    box = 1
    for i, (a, b) in enumerate(zip(first.degrees(), second.degrees(), strict=True)):
        box *= 1 if i == place else int(a) * n + int(b) * m + 1
    if box > MOST_WORK:
        raise TooLarge(f"eliminating {symbol} may need {box} terms")
