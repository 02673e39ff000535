"""Signs of polynomials from the signs of their coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp


def sign_inside(polynomial: sp.Expr, intervals: Mapping[sp.Symbol, Any]) -> int:
    """Return 1 or -1 if a polynomial is proved positive or negative on open intervals, else 0.

    Each interval is mapped to the positive half line; coefficients of one sign then decide.
    """
    if polynomial.is_Rational:
        return int(sp.sign(polynomial))
    shifted = {}
    for i, symbol in enumerate(sorted(polynomial.free_symbols, key=lambda s: s.name)):
        low, high = intervals.get(symbol, (None, None))
        t = sp.Symbol(f"_inside{i}", positive=True)
        if low is not None and high is not None:
            shifted[symbol] = (low + high * t) / (1 + t)
        elif low is not None:
            shifted[symbol] = low + t
        elif high is not None:
            shifted[symbol] = high - t
        else:
            return 0
    total = 1
    for part in sp.fraction(sp.together(polynomial.subs(shifted))):
        try:
            coefficients = sp.Poly(part, *part.free_symbols).coeffs() if part.free_symbols else [part]
        except sp.PolynomialError:
            return 0
        signs = {int(sp.sign(c)) if c.is_Rational else 0 for c in coefficients}
        total *= signs.pop() if len(signs) == 1 else 0
    return total
