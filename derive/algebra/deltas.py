"""Integrals of products of delta functions: the generating function of equations of motion with sources."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp


def integrate_deltas(
    variables: Iterable[sp.Symbol], residuals: Iterable[sp.Expr], weight: sp.Expr = sp.S.One
) -> sp.Expr | None:
    """Return the integral over the variables of a weight times one delta function per residual, as many as variables.

    Each step integrates over one variable x by a delta function of k x + r with k and r free of x, which leaves 1/|k|
    and substitutes x = -r/k elsewhere. A variable that occurs nowhere else is integrated first.

    Returns:
        the integral, or None if no residual is linear in one of the remaining variables.
    """
    left, deltas = list(variables), list(residuals)
    while left:
        found = _next(left, deltas, weight)
        if found is None:
            return None
        x, delta, slope, rest = found
        left.remove(x)
        deltas.remove(delta)
        value = {x: -rest / slope}
        deltas, weight = [other.xreplace(value) for other in deltas], weight.xreplace(value) / sp.Abs(slope)
    return weight


def _next(
    variables: list[sp.Symbol], deltas: list[sp.Expr], weight: sp.Expr
) -> tuple[sp.Symbol, sp.Expr, sp.Expr, sp.Expr] | None:
    """Return a variable on which the argument of a delta function depends linearly, its slope, and the rest of that
    argument.
    """
    choices = []
    for x in variables:
        inside = [delta for delta in deltas if delta.has(x)]
        for delta in inside:
            rest, linear = sp.expand(delta).as_independent(x, as_Add=True)
            slope = sp.cancel(linear / x)
            if not slope.has(x):
                choices.append((len(inside) - 1 + weight.has(x), x, delta, slope, rest))
    return min(choices, key=lambda choice: choice[0])[1:] if choices else None
