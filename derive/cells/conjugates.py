"""A formula with square roots, and the formulas that it becomes when roots change their signs.

All of them are analytic between the walls. Where their product vanishes, one of them vanishes throughout a cell; which
one, a single point tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import flint
import sympy as sp

from derive.cells.balls import decided, enclosure, square_root
from derive.cells.chart import is_root

MOST_ROOTS = 4
"""The most independent square roots of one formula."""


class NoNorm(Exception):
    """The formula has roots that are not square roots, or too many of them."""


@dataclass(frozen=True)
class Conjugates:
    """A formula in which symbols stand for square roots; `roots` gives what is under each, inner ones first."""

    formula: sp.Expr
    roots: tuple[tuple[sp.Symbol, sp.Expr], ...]

    @staticmethod
    def of(expression: sp.Expr) -> Conjugates:
        """NoNorm where the expression has roots of higher order or functions other than absolute values."""
        roots: dict[sp.Expr, sp.Symbol] = {}

        def walk(node: sp.Expr) -> sp.Expr:
            if not node.args:
                return node
            if is_root(node):
                if node.exp.q != 2:
                    raise NoNorm
                base = sp.together(walk(node.base))
                symbol = roots.setdefault(base, sp.Symbol(f"_conjugate{len(roots)}"))
                return symbol ** int(node.exp.p)
            if isinstance(node, sp.Abs):
                base = sp.together(walk(node.args[0]) ** 2)
                return roots.setdefault(base, sp.Symbol(f"_conjugate{len(roots)}"))
            if not (node.is_Add or node.is_Mul or node.is_Pow and node.exp.is_Integer):
                raise NoNorm
            return node.func(*map(walk, node.args))

        formula = walk(expression)
        if len(roots) > MOST_ROOTS:
            raise NoNorm
        return Conjugates(formula, tuple((symbol, base) for base, symbol in roots.items()))

    def norm(self) -> sp.Expr:
        """The numerator of the product of all conjugates: a polynomial without roots."""
        numerator = sp.expand(sp.fraction(sp.together(self.formula))[0])
        for symbol, base in reversed(self.roots):
            even = odd = sp.S.Zero
            for (power,), coefficient in sp.Poly(numerator, symbol).terms():
                if power % 2:
                    odd += coefficient * base ** (power // 2)
                else:
                    even += coefficient * base ** (power // 2)
            numerator = sp.expand(sp.fraction(sp.together(even**2 - odd**2 * base))[0])
        return numerator

    def vanishes(self, values: dict[sp.Symbol, Any]) -> bool | None:
        """Whether the formula is the conjugate that vanishes at a point where the product of all is zero.

        None if the working precision does not tell.
        """
        first, *others = self._values(values)
        if not first.contains(0):
            return False
        return True if not any(other.contains(0) for other in others) else None

    @cached_property
    def _signs(self) -> list[tuple[int, ...]]:
        """The signs of the roots that give different formulas, the principal ones first."""
        kept: list[tuple[int, ...]] = []
        for signs in product((1, -1), repeat=len(self.roots)):
            if not any(self._equal(signs, other) for other in kept):
                kept.append(signs)
        return kept

    def _equal(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """Whether the formula is the same for two choices of signs, by algebra."""
        symbols = [symbol for symbol, _ in self.roots]
        sides = [
            self.formula.subs({s: sign * s for s, sign in zip(symbols, signs, strict=True)}) for signs in (one, other)
        ]
        numerator = sp.expand(sp.fraction(sp.together(sides[0] - sides[1]))[0])
        for symbol, base in reversed(self.roots):
            top, bottom = sp.fraction(sp.together(base))
            if numerator.has(symbol):
                numerator = sp.expand(sp.prem(numerator, sp.expand(bottom * symbol**2 - top), symbol))
        return bool(numerator == 0)

    def _values(self, values: dict[sp.Symbol, Any]) -> Iterator[flint.acb]:
        """The formula and its conjugates as balls, the formula itself first."""
        for signs in self._signs:
            known = dict(values)
            for sign, (symbol, base) in zip(signs, self.roots, strict=True):
                known[symbol] = sign * square_root(enclosure(base, known))
            yield enclosure(self.formula, known)

    def decide(self, values: Any) -> bool:
        """The same with as many digits as it takes; `values` gives balls at the working precision."""
        return decided(lambda: self.vanishes(values()))
