"""Roots and values to many digits. They decide which branch is meant; they never enter a result."""

from __future__ import annotations

from typing import Any

import flint
import mpmath
import sympy as sp

DIGITS = 80
PROBE = mpmath.mpf(2) ** -23
"""A small value at which polynomials are told apart."""


def real_roots(polynomial: sp.Expr) -> list[Any]:
    """The real roots of a polynomial with exact coefficients, to many digits."""
    symbols = sorted(polynomial.free_symbols, key=str)
    if len(symbols) != 1:
        return []
    found = []
    with mpmath.workdps(DIGITS):
        for factor, _ in sp.factor_list(sp.nsimplify(polynomial, rational=True))[1]:
            poly = sp.Poly(factor, symbols[0])
            if poly.degree() == 0:
                continue
            if all(c.is_Rational for c in poly.all_coeffs()):
                found += _isolated(poly)
                continue
            for root in all_roots([number(c, {}) for c in poly.all_coeffs()]):
                if abs(mpmath.im(root)) <= mpmath.mpf(10) ** -40 * (1 + abs(root)):
                    found.append(mpmath.re(root))
    return found


def _isolated(poly: sp.Poly) -> list[Any]:
    """Real roots of a polynomial with rational coefficients, by certified isolation."""
    _, cleared = poly.clear_denoms(convert=True)
    integers = flint.fmpz_poly([int(c) for c in reversed(cleared.all_coeffs())])
    before = flint.ctx.prec
    flint.ctx.prec = int(3.4 * DIGITS)
    try:
        middles = [root.real.mid().man_exp() for root, _ in integers.complex_roots() if root.imag == 0]
    finally:
        flint.ctx.prec = before
    return [mpmath.ldexp(mpmath.mpf(int(m)), int(e)) for m, e in middles]


def all_roots(coefficients: list[Any]) -> list[Any]:
    """The complex roots of a polynomial, its coefficients highest first."""
    while coefficients and coefficients[0] == 0:
        coefficients = coefficients[1:]
    if len(coefficients) < 2:
        return []
    found: list[Any] = mpmath.polyroots(coefficients, maxsteps=2000, extraprec=1000)
    return found


def apart(sorted_roots: list[Any]) -> list[Any]:
    """Roots without repetitions."""
    found: list[Any] = []
    for root in sorted_roots:
        if not found or abs(root - found[-1]) > mpmath.mpf(10) ** -40 * (1 + abs(root)):
            found.append(root)
    return found


def exact(small: Any) -> sp.Rational:
    """A number as a fraction, close enough to be the same."""
    if isinstance(small, sp.Rational):
        return small
    mantissa, exponent = mpmath.frexp(small)
    return sp.Rational(int(mantissa * 2**200), 2**200) * sp.Integer(2) ** int(exponent)


def number(expression: sp.Expr, values: dict[Any, Any]) -> mpmath.mpf:
    """An expression at given values of its symbols."""

    def walk(node: sp.Expr) -> mpmath.mpf:
        if node.is_Rational:
            return mpmath.mpf(int(node.p)) / int(node.q)
        if node in values:
            return walk(values[node]) if isinstance(values[node], sp.Expr) else values[node]
        if node.is_Add:
            return mpmath.fsum(map(walk, node.args))
        if node.is_Mul:
            return mpmath.fprod(map(walk, node.args))
        if node.is_Pow:
            return mpmath.power(walk(node.base), int(node.exp) if node.exp.is_Integer else walk(node.exp))
        return mpmath.mpmathify(sp.N(node, DIGITS))

    with mpmath.workdps(DIGITS):
        return walk(sp.sympify(expression))


def vanishes(expression: sp.Expr, values: dict[sp.Symbol, Any]) -> bool:
    """Whether a polynomial, perhaps with roots of numbers, is zero to far more digits than chance allows."""
    fractions = {symbol: value for symbol, value in values.items() if isinstance(value, sp.Rational)}
    plain = sp.expand(expression.subs(fractions))
    terms = [number(term, values) for term in sp.Add.make_args(plain)]
    return bool(abs(sum(terms)) <= sum(map(abs, terms)) * mpmath.mpf(10) ** -30)
