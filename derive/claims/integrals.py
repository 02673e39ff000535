"""Definite integrals in formulas: SymPy's closed form, confirmed by quadrature."""

from __future__ import annotations

from typing import Any

import mpmath
import sympy as sp

from derive.algebra.physical import sample_point
from derive.errors import NumericalError
from derive.language.symbols import parameter_values

DIGITS, AGREEING = 30, 12
"""Working digits of the quadrature, and digits to which a closed form must agree."""
POINTS = 3
"""Number of parameter points at which a closed form is checked."""


def integrated(integrand: sp.Expr, variable: sp.Symbol, low: sp.Expr, high: sp.Expr) -> sp.Expr:
    """Return the closed form of a definite integral.

    Raises:
        NumericalError: SymPy finds no closed form, or quadrature contradicts it.
    """
    description = f"the integral of {integrand}"
    closed_form = sp.sympify(sp.integrate(integrand, (variable, low, high))).replace(sp.Piecewise, _generic)
    if closed_form.has(sp.Integral, sp.Piecewise, sp.zoo, sp.nan, sp.oo, variable):
        raise NumericalError(f"SymPy finds no closed form of {description} that holds for all parameters")
    for attempt in range(POINTS):
        values = _values({s for e in (integrand, low, high, closed_form) for s in e.free_symbols} - {variable}, attempt)
        with mpmath.workdps(DIGITS):
            ends = [mpmath.mpmathify(sp.N(end.subs(values), DIGITS)) for end in (low, high)]
            summed = mpmath.quad(sp.lambdify(variable, integrand.subs(values), "mpmath"), ends)
            closed = mpmath.mpmathify(sp.N(closed_form.subs(values), DIGITS))
            if not abs(summed - closed) <= mpmath.mpf(10) ** -AGREEING * (1 + abs(closed)):
                raise NumericalError(f"SymPy's closed form of {description} disagrees with quadrature")
    return closed_form


def _generic(*pieces: Any) -> sp.Expr:
    """Return the piece that holds for generic parameters, if there is one."""
    value, condition = pieces[0]
    return value if condition == True or isinstance(condition, sp.Ne) else sp.Piecewise(*pieces)  # noqa: E712


def holds_everywhere(integrand: sp.Expr, variable: sp.Symbol, low: sp.Expr, high: sp.Expr) -> bool:
    """Return whether a closed form needs no numerical check: polynomials, or integrals without parameters."""
    free = (integrand.free_symbols | low.free_symbols | high.free_symbols) - {variable}
    return not free or bool(integrand.is_polynomial(variable))


def _values(symbols: set[sp.Symbol], attempt: int) -> dict[sp.Symbol, Any]:
    """Return parameter values of either sign where the domains allow it, and complex values for other symbols."""
    drawn = {s: v for s, v in sample_point(symbols, attempt).items() if s in symbols}
    if attempt % 2:
        drawn |= {p: -v for p, v in parameter_values(drawn).items() if p.domain.contains(-float(v))}
    return {**{s: sp.Rational(41, 7) + (3 - attempt) * sp.I for s in symbols}, **drawn}
