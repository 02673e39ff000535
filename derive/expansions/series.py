"""Puiseux series of a root of a polynomial F(e, x), with exact coefficients in all other symbols.

The Newton polygon gives the first term, a root of its characteristic polynomial selects the branch, and once that root
is simple Hensel lifting gives every further coefficient. A numerical value of the branch at small e selects the root;
no numerical value enters a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import mpmath
import sympy as sp

from derive.algebra.quotients import Quotient, RationalFunctions
from derive.errors import DeriveError, NumericalError

Element = tuple[Quotient, ...]
"""The coefficients of c_0 + c_1 theta + ... in an extension by theta."""
DIGITS = 80
"""Decimal digits of the numbers that select a branch."""
MOST_STEPS = 12
"""Maximal number of Newton polygons before a branch must be simple."""
MOVES = (0, 1, -1, 2, -2)
"""Shifts by multiples of theta that are tried until the norm is squarefree."""
ROOT = sp.Symbol("theta")
"""An algebraic number without a formula in square roots."""


class MoreRoots(DeriveError):
    """Raised if the coefficients do not lie in an extension by one algebraic number."""


@dataclass(frozen=True)
class PuiseuxSeries:
    """sum of coefficient * e**power; `minimal` is the minimal polynomial of ROOT, if coefficients contain it."""

    powers: tuple[sp.Rational, ...]
    coefficients: tuple[sp.Expr, ...]
    next_power: sp.Rational
    minimal: sp.Expr | None = None
    root_near: str | None = None
    ends: bool = False

    def with_root(self, symbol: sp.Symbol) -> PuiseuxSeries:
        """Return the series with another symbol for ROOT, for printing."""
        renamed = tuple(c.xreplace({ROOT: symbol}) for c in self.coefficients)
        minimal = None if self.minimal is None else self.minimal.xreplace({ROOT: symbol})
        return replace(self, coefficients=renamed, minimal=minimal)

    def times(self, power: int) -> PuiseuxSeries:
        """Return the series times a power of the small parameter."""
        return replace(self, powers=tuple(p + power for p in self.powers), next_power=self.next_power + power)

    def numbers(self, point: dict[sp.Symbol, Any]) -> list[Any]:
        """Return the coefficients at values of the parameters, to many digits."""
        with mpmath.workdps(DIGITS):
            values = dict(point)
            if self.minimal is not None and self.root_near is not None:
                poly = sp.Poly(self.minimal, ROOT)
                roots = _finite_roots([_number(c, point) for c in poly.all_coeffs()], maxsteps=500, extraprec=500)
                near = mpmath.mpf(self.root_near)
                values[ROOT] = sp.Float(str(mpmath.re(min(roots, key=lambda r: abs(r - near)))), DIGITS)
            return [_number(c, values) for c in self.coefficients]

    def value(self, small: mpmath.mpf, point: dict[sp.Symbol, Any]) -> mpmath.mpf:
        """Return the truncated series as a number."""
        total = mpmath.mpf(0)
        for power, c in zip(self.powers, self.numbers(point), strict=True):
            total += c * mpmath.mpf(small) ** (mpmath.mpf(int(power.p)) / int(power.q))
        return total


def _finite_roots(coefficients: list[Any], maxsteps: int, extraprec: int) -> list[Any]:
    """Return the roots of a polynomial, highest coefficient first, without those at infinity: a coefficient may vanish
    at the values of the parameters at which it is evaluated."""
    least = mpmath.mpf(10) ** (-DIGITS // 2) * max(map(abs, coefficients))
    while coefficients and abs(coefficients[0]) <= least:
        coefficients = coefficients[1:]
    roots = mpmath.polyroots(coefficients, maxsteps=maxsteps, extraprec=extraprec, error=False) if coefficients else []
    return list(roots)


# -- polynomials in theta over quotients


class _Algebra:
    """Arithmetic in an algebraic extension: elements c_0 + c_1 theta + ... as tuples of quotients."""

    def __init__(self, field: RationalFunctions, minimal: list[Quotient] | None = None):
        self.field = field
        self.minimal = minimal
        self.size = 1 if minimal is None else len(minimal) - 1
        self.zero = (field.quotient(field.context.constant(0)),) * self.size
        self.one = (field.quotient(field.one), *self.zero[1:])

    def scalar(self, q: Quotient) -> Element:
        return (q, *self.zero[1:])

    def theta(self) -> Element:
        assert self.minimal is not None
        if self.size == 1:
            return (-(self.minimal[0] / self.minimal[1]),)
        return (self.zero[0], self.one[0], *self.zero[2:])

    def add(self, a: Element, b: Element) -> Element:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    def negative(self, a: Element) -> Element:
        return tuple(-x for x in a)

    def times(self, a: Element, b: Element) -> Element:
        if self.size == 1:
            return (a[0] * b[0],)
        wide = [self.zero[0]] * (2 * self.size - 1)
        for i, x in enumerate(a):
            if x.is_zero:
                continue
            for j, y in enumerate(b):
                if not y.is_zero:
                    wide[i + j] = wide[i + j] + x * y
        assert self.minimal is not None
        for k in range(len(wide) - 1, self.size - 1, -1):
            lead = wide[k] / self.minimal[-1]
            if not lead.is_zero:
                for j in range(self.size):
                    wide[k - self.size + j] = wide[k - self.size + j] + -(lead * self.minimal[j])
        return tuple(wide[: self.size])

    def is_zero(self, a: Element) -> bool:
        return all(x.is_zero for x in a)

    def inverse(self, a: Element) -> Element:
        """Return 1/a by solving a * b = 1 in the power basis of theta."""
        if self.size == 1:
            return (self.one[0] / a[0],)
        basis = []
        power = self.one
        for _ in range(self.size):
            basis.append(self.times(a, power))
            power = self.times(power, self.theta())
        rows = [[basis[c][r] for c in range(self.size)] + [self.one[r]] for r in range(self.size)]
        for i in range(self.size):
            pivot = next((r for r in range(i, self.size) if not rows[r][i].is_zero), None)
            if pivot is None:
                raise NumericalError("a coefficient of the expansion is not invertible")
            rows[i], rows[pivot] = rows[pivot], rows[i]
            scale = rows[i][i]
            rows[i] = [x / scale for x in rows[i]]
            for r in range(self.size):
                if r != i and not rows[r][i].is_zero:
                    factor = rows[r][i]
                    rows[r] = [x + -(factor * y) for x, y in zip(rows[r], rows[i], strict=True)]
        return tuple(row[-1] for row in rows)

    def trimmed(self, polynomial: list[Element]) -> list[Element]:
        """Return coefficients, lowest first, without leading zeros."""
        last = max((i for i, value in enumerate(polynomial) if not self.is_zero(value)), default=-1)
        return polynomial[: last + 1]

    def gcd(self, first: list[Element], second: list[Element]) -> list[Element]:
        """Return the greatest common divisor of two polynomials, up to a factor."""
        first, second = self.trimmed(first), self.trimmed(second)
        while second:
            inverse = self.inverse(second[-1])
            while len(first) >= len(second):
                factor, start = self.negative(self.times(first[-1], inverse)), len(first) - len(second)
                lower = [self.add(v, self.times(factor, w)) for v, w in zip(first[start:-1], second[:-1], strict=True)]
                first = self.trimmed([*first[:start], *lower])
            first, second = second, first
        return first

    def multiplicity(self, polynomial: list[Element], root: Element) -> int:
        """Return the multiplicity of a root of a polynomial, by division."""
        left, count = self.trimmed(polynomial), 0
        while len(left) > 1:
            quotient, carried = list[Element](), self.zero
            for value in reversed(left):
                carried = self.add(self.times(carried, root), value)
                quotient.append(carried)
            if not self.is_zero(quotient.pop()):
                break
            left, count = quotient[::-1], count + 1
        return count


# -- the expansion


def expand_root(
    polynomial: sp.Expr,
    x: sp.Symbol,
    e: sp.Symbol,
    order: sp.Rational,
    near: Callable[[Any], Any],
    point: dict[sp.Symbol, Any],
) -> PuiseuxSeries:
    """Return the root of polynomial(e, x) closest to `near(e)`, through e**order.

    Args:
        point: rational values of all other symbols, at which `near` is computed.

    Symbols known to be positive may appear under square roots.
    """
    try:
        return _expanded(polynomial, x, e, order, near, point, 2)
    except MoreRoots:
        return _expanded(polynomial, x, e, order, near, point, 4)


def _expanded(
    polynomial: sp.Expr,
    x: sp.Symbol,
    e: sp.Symbol,
    order: sp.Rational,
    near: Callable[[Any], Any],
    point: dict[sp.Symbol, Any],
    degree: int,
) -> PuiseuxSeries:
    """Return the expansion with a new symbol for each root (of the given degree) of a non-negative symbol."""
    roots = {s: sp.Symbol(f"_root_{s.name}", positive=True) for s in sorted(polynomial.free_symbols - {x, e}, key=str)}
    roots = {s: r for s, r in roots.items() if s.is_nonnegative}
    raised = sp.expand(polynomial.xreplace({s: r**degree for s, r in roots.items()}))
    values = {roots.get(s, s): (sp.root(v, degree) if s in roots else v) for s, v in point.items()}
    back = {r: sp.root(s, degree) for s, r in roots.items()}
    others = sorted(raised.free_symbols - {x, e}, key=str)
    expansion = _Puiseux(RationalFunctions(others), raised, x, e, near, {s: values[s] for s in others})
    with mpmath.workdps(DIGITS):
        return expansion.run(sp.Rational(order), back)


class _Puiseux:
    """The Newton-Puiseux algorithm for one branch of a polynomial F(e, x)."""

    def __init__(
        self,
        field: RationalFunctions,
        polynomial: sp.Expr,
        x: sp.Symbol,
        e: sp.Symbol,
        near: Callable[[Any], Any],
        values: dict[sp.Symbol, Any],
    ) -> None:
        self.field, self.near, self.values = field, lru_cache(maxsize=None)(near), values
        self.algebra = _Algebra(field)
        _, poly = sp.Poly(polynomial, x, e, *field.symbols, domain="QQ").clear_denoms(convert=True)
        grouped: dict[tuple[int, int], dict[tuple[int, ...], int]] = {}
        for (i, j, *others), c in poly.terms():
            grouped.setdefault((i, j), {})[tuple(others) or (0,)] = int(c)
        self.table: dict[tuple[int, int], Element] = {
            key: self.algebra.scalar(field.quotient(field.context.from_dict(terms))) for key, terms in grouped.items()
        }
        self.minimal: Any = None
        self.theta_value: Any = None

    def run(self, order: sp.Rational, back: dict[sp.Symbol, Any]) -> PuiseuxSeries:
        """Return the series: Newton polygon while the root is multiple, then Hensel lifting."""
        if min(i for i, _ in self.table) > 0 and all(
            abs(self.near(t)) < mpmath.mpf(10) ** -40 for t in self._smalls(1)
        ):
            return PuiseuxSeries((sp.S.Zero,), (sp.S.Zero,), sp.Rational(order) + 1, ends=True)
        done: list[tuple[Fraction, Element]] = []
        ramification, offset = 1, Fraction(0)
        ends = False
        for step in range(MOST_STEPS + 1):
            if step == MOST_STEPS:
                raise NumericalError(
                    "the branch remains multiple: its expansion could not be separated from another one"
                )
            if done and min(i for i, _ in self.table) > 0:
                ends = True
                break
            slope, c, multiplicity = self._first_term(ramification, offset, done)
            done.append((offset + slope / ramification, c))
            offset, ramification = done[-1][0], ramification * slope.denominator
            self._shift(slope, c)
            if multiplicity == 1:
                break
        top = Fraction(int(order.p), int(order.q))
        if not ends:
            count = max(0, int((top - offset) * ramification) + 1)
            tail, ends = self._lift(count + 1)
            done += [(offset + Fraction(k + 1, ramification), y) for k, y in enumerate(tail)]
        kept = [(p, c) for k, (p, c) in enumerate(done) if (p <= top or k == 0) and not self.algebra.is_zero(c)]
        top = max(top, kept[-1][0])
        later = [p for p, c in done if p > top and not self.algebra.is_zero(c)]
        following = later[0] if later else top + Fraction(1, ramification)
        hidden = self.minimal is None or self._square is not None
        return PuiseuxSeries(
            tuple(sp.Rational(p.numerator, p.denominator) for p, _ in kept),
            tuple(self._decoded(c, back) for _, c in kept),
            sp.Rational(following.numerator, following.denominator),
            None if hidden else self.minimal.xreplace(back),
            None if hidden else mpmath.nstr(self.theta_value, 12),
            ends and not later,
        )

    # the polygon

    def _first_term(
        self, ramification: int, offset: Fraction, done: list[tuple[Fraction, Element]]
    ) -> tuple[Fraction, Element, int]:
        """Return the slope, its coefficient, and the coefficient's multiplicity in the characteristic polynomial."""
        lowest: dict[int, int] = {}
        for i, j in self.table:
            lowest[i] = min(lowest.get(i, j), j)
        best = None
        with mpmath.workdps(DIGITS):
            for slope, members in _lower_hull(lowest):
                if slope <= 0 and done:
                    continue
                phi = {i: self.table[i, lowest[i]] for i in members}
                for guess, rest in self._matches(phi, slope, ramification, offset, done):
                    if best is None or rest < best[0]:
                        best = (rest, slope, phi, guess)
        if best is None or best[0] > mpmath.mpf("0.2"):
            raise DeriveError(
                "no branch of the polynomial follows the numerical values at small values of the parameter; "
                "fix other parameters with --at, or expand around another value"
            )
        _, slope, phi, guess = best
        return (slope, *self._exact_root(phi, guess))

    def _matches(
        self,
        phi: dict[int, Element],
        slope: Fraction,
        ramification: int,
        offset: Fraction,
        done: list[tuple[Fraction, Element]],
    ) -> Iterator[tuple[mpmath.mpc, mpmath.mpf]]:
        """Yield the numerical roots of a characteristic polynomial with their relative distances to the branch."""
        shift = min(phi)
        coefficients = [self._value(phi[i]) if i in phi else mpmath.mpf(0) for i in range(shift, max(phi) + 1)]
        roots = _finite_roots(coefficients[::-1], maxsteps=2000, extraprec=2000)
        scales = []
        for small in self._smalls(ramification):
            place = self.near(small)
            if place is None:
                raise DeriveError(
                    "the quantity cannot be separated from the bulk near this value of the parameter; "
                    "expand around another value"
                )
            left = place - sum(self._value(c) * _power(small, p) for p, c in done)
            scales.append(left / _power(small, offset + slope / ramification))
        for root in roots:
            distances = [abs(s - root) / (abs(root) or 1) for s in scales]
            if distances[1] < distances[0] * mpmath.mpf("0.9") or distances[1] < mpmath.mpf(10) ** -20:
                yield root, distances[1]

    def _smalls(self, ramification: int) -> tuple[mpmath.mpf, mpmath.mpf]:
        """Return two values of the parameter, powers of two, at which the first term dominates."""
        return mpmath.mpf(2) ** (-20 - 2 * ramification), mpmath.mpf(2) ** (-27 - 4 * ramification)

    def _exact_root(self, phi: dict[int, Element], guess: mpmath.mpf) -> tuple[Element, int]:
        """Return the coefficient as an element of the algebra, which is extended if necessary."""
        c = sp.Symbol("_c")
        shift = min(phi)
        expression = sp.Add(*(self._raw(v) * c ** (i - shift) for i, v in phi.items()))
        numerator = sp.fraction(sp.together(expression))[0]
        if self.algebra.minimal is not None:
            return self._root_in_extension(phi, guess, shift)
        for factor, multiplicity in sp.factor_list(sp.expand(numerator), c)[1]:
            poly = sp.Poly(factor, c)
            value = mpmath.polyval([self._evaluate(k) for k in poly.all_coeffs()], guess)
            size = sum(abs(self._evaluate(k)) * abs(guess) ** n for (n,), k in poly.terms())
            if abs(value) > mpmath.mpf(10) ** -20 * size:
                continue
            if poly.degree() == 1:
                root = -poly.coeff_monomial(1) / poly.coeff_monomial(c)
                return self.algebra.scalar(self.field.convert(root)), multiplicity
            self._extend(poly, guess)
            return self.algebra.theta(), multiplicity
        raise NumericalError("the leading coefficient of the expansion could not be identified")

    def _root_in_extension(self, phi: dict[int, Element], guess: mpmath.mpf, shift: int) -> tuple[Element, int]:
        """Return a root, in the extension, of a polynomial with coefficients in the extension, and its multiplicity
        (Trager's method).

        The norm of the polynomial, shifted by a multiple of theta, has a factor over the rational functions with the
        shifted root as a zero. The gcd of that factor and the polynomial is a power of one linear factor.
        """
        polynomial = [phi.get(i + shift, self.algebra.zero) for i in range(max(phi) - shift + 1)]
        c = sp.Symbol("_c")
        for move in MOVES:
            moved = sp.Add(*(self._raw(v) * (c - move * ROOT) ** i for i, v in enumerate(polynomial)))
            norm = sp.resultant(sp.fraction(sp.together(moved))[0], sp.fraction(sp.together(self.minimal))[0], ROOT)
            place = guess + move * self.theta_value
            for factor, _ in sp.factor_list(sp.expand(norm), c)[1]:
                poly = sp.Poly(factor, c)
                numbers = [self._evaluate(k) for k in poly.all_coeffs()]
                size = sum(abs(k) * abs(place) ** n for n, k in enumerate(reversed(numbers)))
                if abs(mpmath.polyval(numbers, place)) > mpmath.mpf(10) ** -20 * size:
                    continue
                root = self._only_root(self.algebra.gcd(polynomial, self._moved(poly, move)))
                if root is not None and abs(self._value(root) - guess) < mpmath.mpf(10) ** -15 * (1 + abs(guess)):
                    return root, self.algebra.multiplicity(polynomial, root)
        raise MoreRoots(
            "the expansion needs several algebraic numbers; leave positive parameters open, so that their roots are "
            "symbols, or fix them at values with rational roots"
        )

    def _moved(self, poly: sp.Poly, move: int) -> list[Element]:
        """Return the coefficients of a polynomial shifted by move * theta, lowest first."""
        algebra, coefficients = self.algebra, [self.algebra.zero]
        step = algebra.times(algebra.scalar(self.field.convert(sp.Integer(move))), algebra.theta())
        for coefficient in poly.all_coeffs():
            raised = [algebra.times(step, value) for value in coefficients] + [algebra.zero]
            coefficients = [algebra.add(a, b) for a, b in zip(raised, [algebra.zero, *coefficients], strict=True)]
            coefficients[0] = algebra.add(coefficients[0], algebra.scalar(self.field.convert(coefficient)))
        return algebra.trimmed(coefficients)

    def _only_root(self, polynomial: list[Element]) -> Element | None:
        """Return the root of a power of a linear factor; None if the polynomial is not one."""
        algebra, degree = self.algebra, len(polynomial) - 1
        if degree < 1:
            return None
        count = algebra.scalar(self.field.convert(sp.Integer(degree)))
        root = algebra.negative(algebra.times(polynomial[-2], algebra.inverse(algebra.times(polynomial[-1], count))))
        return root if algebra.multiplicity(polynomial, root) == degree else None

    def _extend(self, poly: sp.Poly, guess: mpmath.mpf) -> None:
        """Adjoin a root of an irreducible polynomial."""
        minimal = [self.field.convert(poly.coeff_monomial(poly.gen**k)) for k in range(poly.degree() + 1)]
        self.algebra = _Algebra(self.field, minimal)
        padding = self.algebra.zero[1:]
        self.table = {key: (value[0], *padding) for key, value in self.table.items()}
        self.minimal, self.theta_value = poly.as_expr().subs(poly.gen, ROOT), guess

    def _shift(self, slope: Fraction, c: Element) -> None:
        """Substitute F by F(t^q, t^p (c + x)) divided by its common power of t."""
        p, q = slope.numerator, slope.denominator
        moved: dict[tuple[int, int], Element] = {}
        algebra = self.algebra
        powers = [algebra.one]
        for (i, j), value in self.table.items():
            value = (*value, *algebra.zero[len(value) :])
            while len(powers) <= i:
                powers.append(algebra.times(powers[-1], c))
            for k in range(i + 1):
                binomial = algebra.scalar(self.field.convert(sp.binomial(i, k)))
                part = algebra.times(algebra.times(value, binomial), powers[i - k])
                key = (k, j * q + i * p)
                moved[key] = algebra.add(moved[key], part) if key in moved else part
        moved = {key: v for key, v in moved.items() if not algebra.is_zero(v)}
        lowest = min(j for _, j in moved)
        self.table = {(i, j - lowest): v for (i, j), v in moved.items()}

    # the rest

    def _lift(self, count: int) -> tuple[list[Element], bool]:
        """Return the coefficients of t, t^2, ... of the simple root that vanishes at t = 0, by Hensel lifting."""
        algebra = self.algebra
        degree = max(i for i, _ in self.table)
        slope = algebra.inverse(self.table[1, 0])
        coefficients: list[Element] = []
        for k in range(1, count + 1):
            series = [algebra.zero, *coefficients, algebra.zero]
            total = [algebra.zero] * (k + 1)
            for i in range(degree, -1, -1):
                if i < degree:
                    total = self._product(total, series, k)
                for j in range(k + 1):
                    if (i, j) in self.table:
                        total[j] = algebra.add(total[j], self.table[i, j])
            coefficients.append(algebra.negative(algebra.times(total[k], slope)))
        return coefficients, algebra.is_zero(coefficients[-1]) and self._is_root(coefficients)

    def _is_root(self, coefficients: list[Element]) -> bool:
        """Return whether the series ends with the coefficients found so far."""
        while coefficients and self.algebra.is_zero(coefficients[-1]):
            coefficients = coefficients[:-1]
        degree = max(i for i, _ in self.table)
        top = max(j + i * len(coefficients) for i, j in self.table)
        series = [self.algebra.zero, *coefficients]
        total = [self.algebra.zero] * (top + 1)
        for i in range(degree, -1, -1):
            if i < degree:
                total = self._product(total, series, top)
            for j in range(top + 1):
                if (i, j) in self.table:
                    total[j] = self.algebra.add(total[j], self.table[i, j])
        return all(map(self.algebra.is_zero, total))

    def _product(self, a: list[Any], b: list[Any], top: int) -> list[Any]:
        algebra = self.algebra
        total = [algebra.zero] * (top + 1)
        for i, x in enumerate(a):
            if algebra.is_zero(x):
                continue
            for j in range(min(len(b), top + 1 - i)):
                if not algebra.is_zero(b[j]):
                    total[i + j] = algebra.add(total[i + j], algebra.times(x, b[j]))
        return total

    # to expressions and numbers

    def _raw(self, element: Element) -> sp.Expr:
        return sp.Add(*(self.field.decode(q) * ROOT**k for k, q in enumerate(element)))

    def _decoded(self, element: Element, back: dict[sp.Symbol, Any]) -> sp.Expr:
        padded = (*element, *self.algebra.zero[len(element) :])
        parts = [sp.factor(self.field.decode(q)) for q in padded]
        square = self._square
        if square is None:
            return sp.Add(*(part.xreplace(back) * ROOT**k for k, part in enumerate(parts)))
        if self.algebra.size == 2:
            return self._over_root(parts, square).xreplace(back)
        root = sp.sqrt(self._over_root([sp.S.Zero, sp.S.One], square))
        sign = 1 if mpmath.re(self.theta_value) > 0 else -1
        even, odd = (self._over_root(parts[k::2], square) for k in (0, 1))
        return even.xreplace(back) + sign * odd.xreplace(back) * root.xreplace(back)

    @staticmethod
    def _over_root(parts: list[sp.Expr], square: tuple[sp.Expr, sp.Expr, sp.Expr]) -> sp.Expr:
        """Return c_0 + c_1 u, where u = middle + scale * sqrt(radicand)."""
        middle, scale, inside = square
        return sp.factor(parts[0] + parts[1] * middle) + sp.factor(parts[1] * scale) * sp.sqrt(inside)

    @property
    def _square(self) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
        """The quadratic formula (middle, scale, radicand) of theta, or of theta**2 for an even quartic; else None."""
        if self.minimal is None:
            return None
        poly, value = sp.Poly(self.minimal, ROOT), self.theta_value
        if poly.degree() == 4 and not any(poly.coeff_monomial(ROOT**k) for k in (1, 3)):
            poly, value = sp.Poly(poly.all_coeffs()[::2], ROOT), value**2
        if poly.degree() != 2:
            return None
        a, b, c = poly.all_coeffs()
        inside = sp.factor(b**2 - 4 * a * c)
        with mpmath.workdps(DIGITS):
            for sign in (1, -1):
                middle, scale = sp.factor(-b / (2 * a)), sign / (2 * a)
                apart = abs(self._evaluate(middle + scale * sp.sqrt(inside)) - value)
                if apart < mpmath.mpf(10) ** -15 * (1 + abs(value)):
                    return middle, scale, inside
        raise NumericalError("the square root of the expansion has no definite sign")

    def _evaluate(self, expression: sp.Expr) -> mpmath.mpf:
        return _number(expression, self.values)

    def _value(self, element: Element) -> mpmath.mpf:
        total = mpmath.mpf(0)
        for k, q in enumerate(element):
            if not q.is_zero:
                total += self._evaluate(self.field.decode(q)) * (self.theta_value**k if k else 1)
        return total


def _lower_hull(points: dict[int, int]) -> list[tuple[Fraction, list[int]]]:
    """Return the sides of the Newton polygon: for each, the p in x ~ e^p and the powers of x on it."""
    order = sorted(points)
    sides = []
    here = 0
    while here < len(order) - 1:
        steepest = min(
            Fraction(points[order[k]] - points[order[here]], order[k] - order[here])
            for k in range(here + 1, len(order))
        )
        members = [
            k
            for k in range(here, len(order))
            if points[order[k]] - points[order[here]] == steepest * (order[k] - order[here])
        ]
        sides.append((-steepest, [order[k] for k in members]))
        here = members[-1]
    return sides


def _power(small: mpmath.mpf, power: Fraction) -> mpmath.mpf:
    return mpmath.mpf(small) ** (mpmath.mpf(power.numerator) / power.denominator)


def _number(expression: sp.Expr, values: dict[sp.Symbol, Any]) -> mpmath.mpf:
    """Return an expression as a number with many digits."""
    with mpmath.workdps(DIGITS):
        plain = sp.sympify(expression).xreplace(values) if values else sp.sympify(expression)
        return mpmath.mpmathify(sp.N(plain, DIGITS))
