"""Algebraic conjugates of a formula with radicals: its values on other branches of the roots.

All conjugates are analytic between the walls. Where their product, the norm, vanishes, one of them vanishes throughout
a cell, and one sample point decides which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import lcm, prod
from typing import Any

import flint
import sympy as sp

from derive.algebra.polynomials import is_root
from derive.cells.balls import decided, enclosure, power

MOST_CONJUGATES = 16
"""Maximal number of conjugates: that of four square roots. More make norms too large."""


class NoNorm(Exception):
    """Raised for formulas with too many radicals, or with functions other than radicals and absolute values."""


@dataclass(frozen=True)
class RootConjugates:
    """A formula with its radicals replaced by symbols. `roots` lists radicand and degree, inner radicals first.

    The same radical has the same symbol in every formula.
    """

    formula: sp.Expr
    roots: tuple[tuple[sp.Symbol, sp.Expr, int], ...]

    @staticmethod
    def of(expression: sp.Expr) -> RootConjugates:
        """Return the conjugates of an expression.

        Raises:
            NoNorm: the expression has too many radicals, or functions other than absolute values.
        """
        roots: dict[sp.Symbol, tuple[sp.Expr, int]] = {}

        def root(base: sp.Expr, degree: int) -> sp.Symbol:
            symbol = sp.Symbol(f"_root_{degree}({base})")
            roots.setdefault(symbol, (base, degree))
            return symbol

        def walk(node: sp.Expr) -> sp.Expr:
            if not node.args:
                return node
            if is_root(node):
                return root(sp.together(walk(node.base)), int(node.exp.q)) ** int(node.exp.p)
            if isinstance(node, sp.Abs):
                return root(sp.together(walk(node.args[0]) ** 2), 2)
            if not (node.is_Add or node.is_Mul or node.is_Pow and node.exp.is_Integer):
                raise NoNorm
            return node.func(*map(walk, node.args))

        formula = walk(expression)
        if prod(degree for _, degree in roots.values()) > MOST_CONJUGATES:
            raise NoNorm
        return RootConjugates(formula, tuple((symbol, base, degree) for symbol, (base, degree) in roots.items()))

    def norm(self) -> sp.Expr:
        """Return the numerator of the norm, the product of all conjugates: a polynomial without radicals."""
        numerator = sp.expand(sp.fraction(sp.together(self.formula))[0])
        for symbol, base, degree in reversed(self.roots):
            parts = [sp.S.Zero] * degree
            for (exponent,), coefficient in sp.Poly(numerator, symbol).terms():
                parts[exponent % degree] += coefficient * base ** (exponent // degree)
            rows = [[parts[i - j] * (base if j > i else 1) for j in range(degree)] for i in range(degree)]
            numerator = sp.expand(sp.fraction(sp.together(sp.Matrix(rows).det(method="berkowitz")))[0])
        return numerator

    def vanishes(self, values: dict[sp.Symbol, Any]) -> bool | None:
        """Return whether the formula itself vanishes at a point where the norm is zero; None if undecided."""
        first, *others = self._values(values)
        if not first.contains(0):
            return False
        return True if not any(other.contains(0) for other in others) else None

    @cached_property
    def _branches(self) -> list[tuple[int, ...]]:
        """The branches of the radicals that give distinct formulas, the principal ones first."""
        kept: list[tuple[int, ...]] = []
        for branches in product(*(range(degree) for _, _, degree in self.roots)):
            if not any(self._equal(branches, other) for other in kept):
                kept.append(branches)
        return kept

    def _equal(self, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
        """Return whether two choices of branches give the same formula, by algebra."""
        order, unit = lcm(*(degree for _, _, degree in self.roots)), sp.Symbol("_unit")
        sides = []
        for branches in (first, second):
            turned = zip(branches, self.roots, strict=True)
            sides.append(self.formula.subs({s: unit ** (order // degree * k) * s for k, (s, _, degree) in turned}))
        numerator = sp.expand(sp.fraction(sp.together(sides[0] - sides[1]))[0])
        for symbol, base, degree in reversed(self.roots):
            top, bottom = sp.fraction(sp.together(base))
            numerator = _remainder(numerator, bottom * symbol**degree - top, symbol)
        return bool(_remainder(numerator, sp.cyclotomic_poly(order, unit), unit) == 0)

    def _values(self, values: dict[sp.Symbol, Any]) -> Iterator[flint.acb]:
        """Yield enclosures of the formula and its conjugates, the formula first."""
        for branches in self._branches:
            enclosures = dict(values)
            for branch, (symbol, base, degree) in zip(branches, self.roots, strict=True):
                turn = enclosure(sp.exp(2 * sp.pi * sp.I * sp.Rational(branch, degree)), {})
                enclosures[symbol] = turn * power(enclosure(base, enclosures), sp.Rational(1, degree))
            yield enclosure(self.formula, enclosures)

    def decide(self, values: Any) -> bool:
        """Return `vanishes` at a sufficient precision; `values` gives balls at the working precision."""
        return decided(lambda: self.vanishes(values()))


def _remainder(numerator: sp.Expr, modulus: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    return sp.expand(sp.prem(numerator, sp.expand(modulus), symbol)) if numerator.has(symbol) else numerator
