"""Normal form of radicals of parameters, so that algebra recognises equal formulas.

A positive parameter under a root becomes a power of a symbol, and a radicand is split into factors whose sign is proved
throughout the region. A factor of unknown sign remains under its root.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import mpmath
import sympy as sp

from derive.algebra.polynomials import is_root
from derive.cells.decomposition import Interval
from derive.cells.signs import sign_inside
from derive.language.symbols import Parameter

LARGEST = 400
"""Number of terms above which a radicand is not factored."""


def tidy_roots(expressions: tuple[sp.Expr, ...], box: Mapping[Parameter, Interval]) -> tuple[sp.Expr, ...]:
    """Return the expressions with radicals split and extracted as far as signs are proved in the box."""
    degrees: dict[Parameter, int] = {}
    for node in (n for e in expressions for n in sp.preorder_traversal(e) if is_root(n)):
        for p in (p for p in node.base.atoms(Parameter) if p.is_positive):
            degrees[p] = math.lcm(degrees.get(p, 1), int(node.exp.q))
    intervals: dict[sp.Symbol, Interval] = dict(box)
    powers = {}
    for p, degree in sorted(degrees.items(), key=lambda item: item[0].name):
        root = sp.Symbol(f"_root_{p.name}", positive=True)
        powers[p] = root**degree
        low, high = box.get(p, (None, None))
        intervals[root] = (_root_bound(low, degree, 0), _root_bound(high, degree, 1))
    return tuple(_Roots(intervals).tidy(e.subs(powers)) for e in expressions)


def _root_bound(end: sp.Rational | None, degree: int, side: int) -> sp.Rational | None:
    """Return a rational bound on the root of a parameter: a lower one (side 0) or an upper one; None at infinity."""
    if end is None or end < 0:
        return sp.S.Zero if side == 0 else None
    exact = sp.root(end, degree)
    if exact.is_Rational:
        return exact
    with mpmath.workdps(40):
        scaled = mpmath.root(mpmath.mpf(int(end.p)) / int(end.q), degree) * 10**9
        return sp.Rational(int(mpmath.floor(scaled)) + side, 10**9)


class _Roots:
    """Rewriting of radicals within intervals of the parameters."""

    def __init__(self, intervals: Mapping[sp.Symbol, Interval]):
        self.intervals = dict(intervals)
        self.masks: dict[sp.Expr, sp.Symbol] = {}

    def tidy(self, node: sp.Expr) -> sp.Expr:
        if not node.args:
            return node
        args = [self.tidy(arg) for arg in node.args]
        if is_root(node):
            return self._root(args[0], args[1])
        if isinstance(node, sp.Abs):
            sign = sign_inside(self._masked(sp.factor(args[0])), self.intervals)
            return sign * args[0] if sign else node.func(*args)
        return node.func(*args)

    def _root(self, base: sp.Expr, exponent: sp.Rational) -> sp.Expr:
        """Return base**exponent with positive factors extracted; the principal value is preserved."""
        masked = self._masked(base)
        unmask = {symbol: node for node, symbol in self.masks.items()}
        try:
            top, bottom = sp.fraction(sp.together(masked))
            parts = [(sp.factor_list(top), 1), (sp.factor_list(bottom), -1)]
        except sp.PolynomialError:
            return sp.Pow(base, exponent)
        sign, outside, inside = 1, sp.S.One, sp.S.One
        for (constant, factors), side in parts:
            if not constant.is_Rational or any(len(sp.Add.make_args(sp.expand(f))) > LARGEST for f, _ in factors):
                return sp.Pow(base, exponent)
            sign *= int(sp.sign(constant))
            outside *= sp.Pow(abs(constant), side * exponent)
            for factor, multiplicity in factors:
                proved_sign = sign_inside(factor, self.intervals)
                if proved_sign == 0:
                    inside *= factor ** (side * multiplicity)
                    continue
                sign *= proved_sign**multiplicity
                positive = sp.expand(proved_sign * factor).xreplace(unmask)
                outside *= sp.Pow(positive, side * multiplicity * exponent)
        return sp.Pow((sign * inside).xreplace(unmask), exponent) * outside

    def _masked(self, expression: sp.Expr) -> sp.Expr:
        """Return the expression with inner roots as symbols, positive where their radicands are."""
        roots = sorted((n for n in sp.preorder_traversal(expression) if is_root(n)), key=sp.default_sort_key)
        for node in roots:
            if node not in self.masks:
                symbol = sp.Symbol(f"_inner{len(self.masks)}")
                self.masks[node] = symbol
                if node.base.is_positive or sign_inside(self._masked(node.base), self.intervals) > 0:
                    self.intervals[symbol] = (sp.S.Zero, None)
        unit = {n: s for n, s in self.masks.items() if n in roots}
        return expression.xreplace(unit)
