"""ProjectedProbe -> Bulk: eliminate the responses to one curve P(z, G) = 0; its edges are roots of the discriminant."""

from __future__ import annotations

from functools import lru_cache, partial

import mpmath
import sympy as sp

from derive.algebra.generators import Generators, decode, hide_functions, roots_of
from derive.algebra.nodes import Z
from derive.algebra.physical import PhysicalPoint, Sample, check_vanishes, physical_samples, plain_names
from derive.algebra.polynomials import TooLarge, branch_points, check_degrees, check_size, eliminate
from derive.algebra.recheck import check_same
from derive.language.symbols import Parameter
from derive.records.base import gathered
from derive.records.probe import Bulk, ProjectedProbe


def find_bulk(projected: ProjectedProbe) -> Bulk:
    """Return the curve, its edge polynomial, and closed forms where the degree admits them.

    There is no curve if the elimination exceeds its size bound, or if averages over sites are not polynomial. The bulk
    then consists of the response equations.
    """
    assumptions = gathered(projected, new="the support ends at turning points of the physical branch")
    if projected.polynomials is None:
        return Bulk(projected, None, (), (), None, assumptions)
    names = plain_names(s for s in projected.bulk_symbols if s != projected.resolvent)
    equations = tuple(e.xreplace(names) for e in projected.polynomials)
    elimination = _eliminated(equations, tuple(names.values()), projected.resolvent)
    if elimination is None:
        return Bulk(projected, None, (), (), None, assumptions)
    return Bulk(projected, *elimination, assumptions)


@lru_cache(maxsize=64)
def _eliminated(
    equations: tuple[sp.Expr, ...], others: tuple[sp.Symbol, ...], resolvent: sp.Symbol
) -> tuple[sp.Expr, tuple[sp.Expr, ...], tuple[sp.Expr, ...], sp.Expr | None] | None:
    """Return the curve, edge factors, edges and resolvent in closed form; None beyond the size bound."""
    try:
        check_size(list(others))
        physical = PhysicalPoint.of(equations, (resolvent, *others))
        check_result = partial(check_degrees, equations, (resolvent, *others))
        curve = sp.collect(sp.expand(eliminate(list(equations), list(others), physical, check_result)), resolvent)
        samples = physical_samples(equations, (resolvent, *others))
        check_vanishes(curve, samples, "bulk", "the curve P(z, G) = 0")
        poly = sp.Poly(curve, resolvent)
        singular, poles = branch_points(curve, resolvent)
    except TooLarge:
        return None
    factors = dict.fromkeys(f for f in (*singular, *poles) if f.has(Z))
    candidates = sorted(factors, key=lambda f: (sp.count_ops(f), str(f)))
    closed = []
    for factor in candidates:
        if factor != Z and sp.Poly(factor, Z).degree() <= 2 and factor in singular:
            closed += [_tidy(root) for root in dict.fromkeys(roots_of(factor, Z))]
    return (
        curve,
        tuple(candidates),
        tuple(sorted(closed, key=lambda e: (_place(e, samples), str(e)))),
        _closed_resolvent(poly, samples),
    )


def _place(edge: sp.Expr, samples: tuple[Sample, ...]) -> float:
    """Return the value of an edge at a generic point of the parameters."""
    return float(mpmath.re(samples[0].value(edge))) if samples else 0.0


def _closed_resolvent(poly: sp.Poly, samples: tuple[Sample, ...]) -> sp.Expr | None:
    """Return the root of a curve of degree at most two that is the Stieltjes transform; None if there is none."""
    if poly.degree() > 2:
        return None
    if poly.degree() == 1:
        return sp.factor(-poly.coeff_monomial(1) / poly.LC())
    a, b, c = poly.all_coeffs()
    root = _analytic_root(b**2 - 4 * a * c)
    if root is None:
        return None
    for sign in (-1, 1):
        candidate = (-b + sign * root) / (2 * a)
        if samples and all(_is_physical(candidate, poly.gen, sample) for sample in samples):
            return candidate
    return None


def _analytic_root(discriminant: sp.Expr) -> sp.Expr | None:
    """Return the square root of a polynomial in z as a product of sqrt(z - e) over its simple roots e.

    With principal values it is analytic outside the intervals between real roots, so it remains on one branch in the
    whole complex plane. None if a root has no closed form by square roots.
    """
    lead, factors = sp.factor_list(Generators.of((discriminant,)).encode(discriminant), Z)
    root = sp.sqrt(sp.factor(decode(lead)))
    for encoded, power in factors:
        factor = decode(encoded)
        root *= factor ** (power // 2)
        if power % 2:
            ends, poly = roots_of(factor, Z), sp.Poly(factor, Z)
            if poly.degree() > 2 or len(ends) != poly.degree():
                return None
            root *= sp.sqrt(poly.LC()) * sp.Mul(*(sp.sqrt(Z - _tidy(end)) for end in ends))
    return root


def _is_physical(candidate: sp.Expr, resolvent: sp.Symbol, sample: Sample) -> bool:
    """Return whether a formula equals the resolvent, or is undefined because its leading coefficient vanishes."""
    try:
        value = mpmath.mpmathify(sample.value(candidate))
    except ZeroDivisionError:
        return True
    return bool(mpmath.isnan(value) or mpmath.almosteq(value, sample.values[resolvent], rel_eps=mpmath.mpf(10) ** -12))


def _tidy(root: sp.Expr) -> sp.Expr:
    """Return a root factorised over the square roots of its parameters, so that perfect squares are recognised."""
    positive = sorted((p for p in root.atoms(Parameter) if p.is_positive), key=lambda p: p.name)
    roots = {p: sp.Symbol(f"root_{p}", positive=True) for p in positive}
    plain = sp.powdenest(hide_functions(root).subs({p: r**2 for p, r in roots.items()}))
    tidied = decode(sp.factor(sp.cancel(plain)).subs({r: sp.sqrt(p) for p, r in roots.items()}))
    check_same(root, tidied, "bulk", "an edge of the bulk")
    return tidied
