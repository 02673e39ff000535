"""The field of rational functions, with the arithmetic of python-flint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flint
import sympy as sp


class RationalFunctions:
    """The field of rational functions in given symbols."""

    def __init__(self, symbols: Sequence[sp.Symbol]):
        self.symbols = tuple(symbols)
        self.context = flint.fmpz_mpoly_ctx.get([f"x{i}" for i in range(max(1, len(self.symbols)))], flint.Ordering.lex)
        self.one = self.context.constant(1)

    def quotient(self, top: Any, bottom: Any = None) -> Quotient:
        bottom = self.one if bottom is None else bottom
        if bottom == 0:
            raise ZeroDivisionError("the denominator is zero")
        common = top.gcd(bottom) if top != 0 else bottom
        if common != 1 and common != 0:
            top, bottom = top // common, bottom // common
        if bottom.leading_coefficient() < 0:
            top, bottom = -top, -bottom
        return Quotient(self, top, bottom)

    def polynomial(self, expression: sp.Expr) -> Any:
        poly = sp.Poly(expression, *self.symbols, domain="QQ") if self.symbols else None
        if poly is None:
            value = sp.Rational(expression)
            return self.quotient(self.context.constant(int(value.p)), self.context.constant(int(value.q)))
        scale, cleared = poly.clear_denoms(convert=True)
        top = self.context.from_dict({m: int(c) for m, c in cleared.terms() if c != 0})
        return self.quotient(top, self.context.constant(int(scale)))

    def convert(self, expression: sp.Expr) -> Quotient:
        top, bottom = sp.fraction(sp.together(sp.sympify(expression)))
        return self.polynomial(top) / self.polynomial(bottom)

    def decode(self, quotient: Quotient) -> sp.Expr:
        def plain(p: Any) -> Any:
            return sp.Add(
                *(
                    sp.Integer(int(c))
                    * sp.Mul(*(s ** int(e) for s, e in zip(self.symbols, m[: len(self.symbols)], strict=True)))
                    for m, c in p.to_dict().items()
                )
            )

        return plain(quotient.top) / plain(quotient.bottom)


@dataclass(frozen=True, eq=False)
class Quotient:
    """A rational function; NumPy arrays of objects may contain it."""

    field: RationalFunctions
    top: Any
    bottom: Any

    def __add__(self, other: Quotient) -> Quotient:
        if not isinstance(other, Quotient):
            return NotImplemented
        if self.is_zero or other.is_zero:
            return other if self.is_zero else self
        if self.bottom == other.bottom:
            return self.field.quotient(self.top + other.top, self.bottom)
        return self.field.quotient(self.top * other.bottom + other.top * self.bottom, self.bottom * other.bottom)

    def __mul__(self, other: Quotient) -> Quotient:
        if not isinstance(other, Quotient):
            return NotImplemented
        if self.is_zero or other.is_zero:
            return self if self.is_zero else other
        return self.field.quotient(self.top * other.top, self.bottom * other.bottom)

    def __neg__(self) -> Quotient:
        return Quotient(self.field, -self.top, self.bottom)

    def __truediv__(self, other: Quotient) -> Quotient:
        return self.field.quotient(self.top * other.bottom, self.bottom * other.top)

    def __pow__(self, exponent: int) -> Quotient:
        top, bottom = (self.top, self.bottom) if exponent >= 0 else (self.bottom, self.top)
        return self.field.quotient(top ** abs(exponent), bottom ** abs(exponent))

    def __int__(self) -> int:
        """Return this constant as an integer."""
        if self.bottom != 1:
            raise ValueError(f"{self.field.decode(self)} is not an integer")
        return self._number(self.top)

    def __float__(self) -> float:
        """Return this constant as a number."""
        return self._number(self.top) / self._number(self.bottom)

    def _number(self, polynomial: Any) -> int:
        if polynomial.is_zero():
            return 0
        if not polynomial.is_constant():
            raise ValueError(f"{self.field.decode(self)} is not a number")
        return int(polynomial.leading_coefficient())

    @property
    def is_zero(self) -> bool:
        return bool(self.top == 0)
