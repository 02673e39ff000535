"""Ball arithmetic: enclosures of exact values, refined until a predicate is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import flint
import sympy as sp

from derive.errors import NumericalError

FIRST_BITS, MOST_BITS = 96, 1536
"""Working precision of the first and of the last attempt, in bits."""
T = TypeVar("T")

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sp.Abs: lambda x: flint.acb(abs(x)),
    sp.sign: lambda x: flint.acb(_sign(x)),
    sp.Heaviside: lambda x, at_zero: (1 + flint.acb(_sign(x))) / 2,
    sp.Max: lambda *values: _extreme(values, "max"),
    sp.Min: lambda *values: _extreme(values, "min"),
    sp.exp: lambda x: x.exp(),
    sp.log: lambda x: x.log(),
    sp.sin: lambda x: x.sin(),
    sp.cos: lambda x: x.cos(),
    sp.tan: lambda x: x.tan(),
    sp.sinh: lambda x: x.sinh(),
    sp.cosh: lambda x: x.cosh(),
    sp.tanh: lambda x: x.tanh(),
    sp.atan: lambda x: x.atan(),
    sp.erf: lambda x: x.erf(),
}


class Inconclusive(NumericalError):
    """Raised if the highest precision does not decide: two numbers are equal or too close to separate."""


def decided(question: Callable[[], T | None]) -> T:
    """Return the value of a predicate, evaluated at increasing precision until it is conclusive."""
    bits = FIRST_BITS
    while bits <= MOST_BITS:
        with flint.ctx.workprec(bits):
            try:
                answer = question()
            except Inconclusive:
                answer = None
        if answer is not None:
            return answer
        bits *= 2
    raise Inconclusive(f"two numbers agree to {MOST_BITS} bits, so their order could not be decided")


def ball(value: Any) -> flint.acb:
    """Return a fraction, a SymPy number or a ball as a complex ball."""
    if isinstance(value, sp.Rational):
        return flint.acb(flint.arb(flint.fmpq(int(value.p), int(value.q))))
    if isinstance(value, Fraction):
        return flint.acb(flint.arb(flint.fmpq(value.numerator, value.denominator)))
    return enclosure(value, {}) if isinstance(value, sp.Expr) else flint.acb(value)


def enclosure(expression: sp.Expr, values: Mapping[sp.Symbol, Any]) -> flint.acb:
    """Return a ball that encloses the principal value of an expression.

    Raises:
        Inconclusive: a denominator may vanish.
    """

    def walk(node: sp.Expr) -> flint.acb:
        if node in values:
            return ball(values[node])
        if node.is_Rational:
            return ball(node)
        if node is sp.pi:
            return flint.acb.pi()
        if node is sp.E:
            return flint.acb(1).exp()
        if node is sp.I:
            return flint.acb(0, 1)
        if node.is_Add:
            return sum((walk(arg) for arg in node.args[1:]), walk(node.args[0]))
        if node.is_Mul:
            product = walk(node.args[0])
            for arg in node.args[1:]:
                product = product * walk(arg)
            return product
        if node.is_Pow:
            return power(walk(node.base), node.exp, walk)
        if node.func in _FUNCTIONS:
            return _FUNCTIONS[node.func](*map(walk, node.args))
        raise NumericalError(f"{node} has no certified value")

    value = walk(sp.sympify(expression))
    if not value.is_finite():
        raise Inconclusive(f"{expression} may divide by zero")
    return value


def _extreme(values: Sequence[flint.acb], which: str) -> flint.acb:
    if not all(value.imag == 0 for value in values):
        raise NumericalError("the largest of complex numbers is not defined")
    extreme = values[0].real
    for value in values[1:]:
        extreme = getattr(extreme, which)(value.real)
    return flint.acb(extreme)


def power(base: flint.acb, exponent: sp.Expr, walk: Callable[[sp.Expr], flint.acb] = ball) -> flint.acb:
    """Return the principal value of a power. `walk` encloses an exponent that is not rational."""
    if exponent.is_Integer:
        if exponent < 0 and base.contains(0):
            raise Inconclusive("a denominator may be zero")
        return base ** int(exponent)
    if exponent.is_Rational and int(exponent.q) == 2:
        root = square_root(base)
        if exponent < 0 and root.contains(0):
            raise Inconclusive("a denominator may be zero")
        return root ** int(exponent.p)
    if base == 0 and exponent.is_positive:
        return flint.acb(0)
    if base.contains(0) or (base.real < 0) is not False and base.imag.contains(0):
        if not (exponent.is_Rational and base.imag == 0 and bool(base.real < 0)):
            raise Inconclusive("the base of a power may be zero or on the branch cut")
    return (base.log() * walk(exponent)).exp()


def square_root(base: flint.acb) -> flint.acb:
    """Return the principal square root of a ball that does not cross the branch cut."""
    if base.imag == 0:
        real = base.real
        if bool(real >= 0):
            return flint.acb(real.sqrt())
        if bool(real < 0):
            return flint.acb(0, (-real).sqrt())
        if real.contains(0):
            bound = flint.arb(0, real.abs_upper().sqrt().abs_upper())
            return flint.acb(bound, bound)
    if base.imag.contains(0) and not bool(base.real > 0):
        raise Inconclusive("a square root may be on its branch cut")
    return base.sqrt()


def _sign(value: flint.acb) -> int:
    if not value.imag.contains(0):
        raise NumericalError("the sign of a complex number is not defined")
    if value.real == 0:
        return 0
    if bool(value.real > 0):
        return 1
    if bool(value.real < 0):
        return -1
    raise Inconclusive("a sign is not decided")


def real_roots(factors: Iterable[flint.fmpz_poly]) -> list[flint.arb]:
    """Return the real roots of distinct irreducible polynomials as disjoint balls, in ascending order."""
    return ascending([root.real for factor in factors for root, _ in factor.complex_roots() if root.imag == 0])


def irreducible_factors(polynomials: Iterable[flint.fmpz_poly]) -> list[flint.fmpz_poly]:
    """Return the distinct irreducible factors of polynomials, without constants."""
    factors: dict[str, flint.fmpz_poly] = {}
    for polynomial in polynomials:
        if polynomial.degree() > 0:
            factors |= {str(factor): factor for factor, _ in polynomial.factor()[1]}
    return list(factors.values())


def real_roots_of_balls(coefficients: list[flint.acb]) -> list[flint.arb]:
    """Return the real roots in ascending order; coefficients are real balls, and all roots are simple."""
    while coefficients and coefficients[-1] == 0:
        coefficients = coefficients[:-1]
    if len(coefficients) < 2:
        return []
    if coefficients[-1].contains(0):
        raise Inconclusive("a leading coefficient may be zero")
    try:
        roots = flint.acb_poly(coefficients).roots(tol=flint.arb(2) ** (-flint.ctx.prec // 2))
    except ValueError:
        raise Inconclusive("the roots of a polynomial are too close to tell apart") from None
    return ascending([root.real for root in roots if root.imag.contains(0)])  # its conjugate overlaps no other root


def ascending(roots: list[flint.arb]) -> list[flint.arb]:
    """Return disjoint balls in ascending order."""
    roots = sorted(roots, key=lambda root: root.mid())
    if any(not bool(a < b) for a, b in zip(roots, roots[1:], strict=False)):
        raise Inconclusive("two real roots are too close to tell apart")
    return roots


def is_zero(number: Callable[[], Any]) -> bool:
    """Return whether a number is exactly zero."""
    return decided(lambda: True if number() == 0 else None if number().contains(0) else False)


def is_positive(expression: sp.Expr, point: Mapping[sp.Symbol, Any] | Callable[[], Mapping[sp.Symbol, Any]]) -> bool:
    """Return whether an expression is real and positive at a point where it does not vanish.

    point: values of symbols, or a function that encloses them at the working precision.
    """
    return decided(lambda: _real_sign(enclosure(expression, point() if callable(point) else point))) > 0


def _real_sign(value: flint.acb) -> int | None:
    """Return the sign of a number, None if undecided; -1 if it is not real, because no inequality holds for it."""
    if not value.imag.contains(0):
        return -1
    if bool(value.real > 0):
        return 1
    return -1 if bool(value.real < 0) else None


def constant(value: Fraction) -> Callable[[], flint.arb]:
    """Return a function that encloses a fraction at the working precision."""
    return lambda: ball(value).real


def below(value: flint.arb) -> Fraction:
    """Return a fraction just below a ball."""
    return _fraction(value.lower())


def above(value: flint.arb) -> Fraction:
    """Return a fraction just above a ball."""
    return _fraction(value.upper())


def _fraction(value: flint.arb) -> Fraction:
    mantissa, exponent = value.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def simplest_between(low: Fraction | None, high: Fraction | None) -> Fraction:
    """Return the fraction with the smallest denominator strictly between two others; None means infinity."""
    if low is None and high is None:
        return Fraction(1)
    if low is None:
        assert high is not None
        return -simplest_between(-high, None)
    if high is None:
        return Fraction(1) if low < 1 and low >= 0 else Fraction(low.__floor__() + 1)
    if low >= high:
        raise Inconclusive("an interval is empty")
    if low < 0 < high:
        return Fraction(0)
    if high <= 0:
        return -simplest_between(-high, -low)
    return _simplest(low, high)


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the simplest fraction strictly between 0 <= low < high, by continued fractions."""
    whole = low.__floor__()
    if whole + 1 < high:
        return Fraction(whole + 1)
    if low == whole:  # high <= whole + 1
        return whole + Fraction(1, (1 / (high - whole)).__floor__() + 1)
    rest = _simplest(1 / (high - whole), 1 / (low - whole))
    return whole + 1 / rest
