"""Pencil -> Bulk: eliminate the responses to one curve P(z, G) = 0; edges are roots of its discriminant."""

from __future__ import annotations

import mpmath
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.physical import evaluated, physical_values, sample_point, vanishes
from derive.algebra.polynomials import discriminant, eliminate, factors
from derive.records.probe import Bulk, Pencil


def find_bulk(pencil: Pencil) -> Bulk:
    """The curve, its edge polynomial, and closed forms where the degree allows them."""
    projected = pencil.blocks.projected
    equations, resolvent = projected.bulk_equations, projected.resolvent
    unknowns = projected.bulk_symbols
    point = sample_point(equations)
    values = physical_values(equations, unknowns, point)
    others = [s for s in unknowns if s != resolvent]
    curve = eliminate(list(equations), others, lambda f: vanishes(f, values, point))
    curve = sp.collect(sp.expand(curve), resolvent)
    poly = sp.Poly(curve, resolvent)
    singular = discriminant(curve, resolvent) if poly.degree() > 1 else sp.S.One
    candidates = [f for f in factors(singular * poly.LC()) if f.has(Z)]
    closed = []
    for factor in candidates:
        if factor != Z and sp.Poly(factor, Z).degree() <= 2 and sp.Poly(singular, Z).rem(sp.Poly(factor, Z)).is_zero:
            closed += [sp.factor(sp.simplify(root)) for root in sp.roots(sp.Poly(factor, Z))]
    return Bulk(pencil, curve, tuple(candidates), tuple(sorted(closed, key=lambda e: (_value(e, point), str(e)))),
                _closed_resolvent(poly, values, point), (*pencil.assumptions, "the support ends where the physical branch turns"))


def _value(expression: sp.Expr, point: dict) -> float:
    return float(sp.re(sp.N(expression.subs(point))))


def _closed_resolvent(poly: sp.Poly, values: dict, point: dict) -> sp.Expr | None:
    """The root that the physical values satisfy, for curves of degree two or less.

    The square root is written as sqrt(z - e1) sqrt(z - e2) with the edges e1, e2, whose principal values make the
    formula right in the whole complex plane.
    """
    if poly.degree() > 2:
        return None
    if poly.degree() == 1:
        return sp.factor(-poly.coeff_monomial(1) / poly.LC())
    a, b, c = poly.all_coeffs()
    inside = sp.factor(b**2 - 4 * a * c)
    root = sp.sqrt(inside)
    if sp.Poly(inside, Z).degree() == 2:
        ends = sp.roots(sp.Poly(inside, Z), multiple=True)
        if len(ends) == 2:
            lead = sp.Poly(inside, Z).LC()
            root = sp.sqrt(lead) * sp.sqrt(Z - sp.factor(ends[0])) * sp.sqrt(Z - sp.factor(ends[1]))
    for sign in (-1, 1):
        candidate = (-b + sign * root) / (2 * a)
        value = evaluated(candidate, values, point)
        if mpmath.almosteq(value, values[poly.gen], rel_eps=mpmath.mpf(10) ** -12):
            return sp.simplify(candidate) if root.has(Z) else candidate
    return None
