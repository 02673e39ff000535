"""SaddlePoint -> Conjugates: vary the effective action with respect to the order parameters.

The derivative with respect to a response is its coefficient in the averaged action, which is again a response. The
derivative with respect to a correlation is a mean of two response fields of one site: minus the second derivative of
the generating function Z of the site with respect to two sources. Z is the integral over all values of the site of the
delta functions of its equations, with a source in each. The integral over the values at the last time is done first. If
it depends neither on sources nor on earlier values, the next one can be done, and so on; the derivatives of Z are then
zero. This is consistent: if the conjugates of correlations vanish in the action of a site, their values at the saddle
point vanish.
"""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from derive.algebra.deltas import integrate_deltas
from derive.algebra.nodes import TAU, Noise, at, times_of
from derive.equations.delays import shortest_delays
from derive.errors import DeclarationError, blaming
from derive.language.symbols import EngineSymbol, Parameter, Sector, other_symbols
from derive.language.traversal import outermost
from derive.language.vectors import PAST, Field, FieldAt, Mean, PastSum
from derive.records.saddle import Conjugate, Conjugates, Edge, MemoryKernel, SaddlePoint, SiteIntegral
from derive.records.system import Rule, System, SystemField

Delays = dict[tuple[Field, Field], int]


def find_conjugates(saddle: SaddlePoint) -> Conjugates:
    """Return all order parameters with their conjugates at the saddle point.

    Raises:
        DeclarationError: if the generating function of a site depends on its sources.
    """
    integrals = _integrals(saddle)
    pairs: dict[frozenset[Field], tuple[Field, Field]] = {}
    for c in saddle.covariances:
        pairs.setdefault(frozenset((c.a, c.b)), (c.a, c.b))
    found = []
    for a, b in pairs.values():
        terms = tuple(
            (-c.coefficient / 2 * c.left.sector.ratio / a.sector.ratio, c.left, c.right)
            for c in saddle.covariances
            if {c.a, c.b} == {a, b}
        )
        means = [mean for _, left, right in terms for mean in _second_responses(integrals, left, right)]
        found.append(Conjugate(a, b, False, terms, not any(means)))
    responses = [*((m.a, m.noise) for m in saddle.memories), *((m.on, m.target) for m in saddle.memories)]
    for a, j in dict.fromkeys(responses):  # also those that vanish by causality, whose conjugates do not
        kernels = [m for m in saddle.memories if (m.on, m.target) == (a, j)]
        found.append(Conjugate(a, j, True, tuple((m.coefficient, m.a, m.noise) for m in kernels), not kernels))
    return Conjugates(saddle, tuple(found), integrals, saddle.assumptions)


def _second_responses(integrals: Iterable[SiteIntegral], a: Field, b: Field) -> list[sp.Expr]:
    """Return <hat(a) hat(b)> at all pairs of times: minus the second derivatives of Z with respect to sources, divided
    by Z.
    """
    Z = sp.Mul(*(integral.value for integral in integrals))
    of_a, of_b = (
        [j for integral in integrals for f, j in zip(integral.fields, integral.sources, strict=True) if f == field]
        for field in (a, b)
    )
    return [-sp.diff(Z, j, k) / Z for j in of_a for k in of_b]


def _integrals(saddle: SaddlePoint) -> tuple[SiteIntegral, ...]:
    """Return, for each sector, the integrals over probe fields, later times, the first times, and values without a
    time.
    """
    system, delays = saddle.system, _spectral_delays(saddle.system)
    timed = [f for f in system.training if f.field.timed]
    groups: list[list[tuple[SystemField, Rule]]] = [[(f, f.rule) for f in system.spectral]]
    for start in reversed(range(max((len(f.starts) for f in timed), default=0) + 1)):
        groups.append([(f, f.starts[start] if start < len(f.starts) else f.rule) for f in timed])
    groups.append([(f, f.rule) for f in system.training if not f.field.timed])
    integrals = []
    for group in groups:
        for sector in system.sectors:
            own = [(f, rule) for f, rule in group if f.field.sector == sector]
            if own:
                integrals.append(_integral(saddle, sector, own, delays))
    return tuple(integrals)


def _integral(
    saddle: SaddlePoint, sector: Sector, group: list[tuple[SystemField, Rule]], delays: Delays
) -> SiteIntegral:
    """Return the integral over the values of some fields at one time."""
    now = {at(f.field, f.time): sp.Dummy(f.field.name, real=True) for f, _ in group}
    sources = [sp.Dummy(f"j_{f.field}", real=True) for f, _ in group]
    residuals = []
    for (f, rule), source in zip(group, sources, strict=True):
        right = _right_hand_side(saddle, f, rule, delays)
        means = {mean: sp.Dummy() for mean in outermost(right, (Mean,))}
        residuals.append((at(f.field, f.time) - right.xreplace(means)).xreplace(now) - source)
    value = integrate_deltas(now.values(), residuals)
    if value is None or other_symbols(value, Parameter):
        with blaming(group[0][0].origin):
            raise DeclarationError(
                f"the generating function of a site of {sector} depends on its sources, so probabilities do not add "
                f"up to one; use earlier times where fields at one time depend on each other"
            )
    return SiteIntegral(sector, tuple(f.field for f, _ in group), tuple(sources), value)


def _right_hand_side(saddle: SaddlePoint, f: SystemField, rule: Rule, delays: Delays) -> sp.Expr:
    """Return the right-hand side of an equation of one site; spectral time is discretised in small steps."""
    if f.derivative:
        step = EngineSymbol("dtau", positive=True)
        return _earlier(at(f.field, TAU) + step * rule.expression(TAU))
    if rule.product is None:
        return rule.expression(f.time)
    memories = (_remembered(m, f, delays) for m in saddle.memories if m.target == f.field)
    return sp.Add(Noise(f.field, *times_of(f.field, f.time)), *memories)


def _remembered(m: MemoryKernel, f: SystemField, delays: Delays) -> sp.Expr:
    """Return the contribution of a memory at one time: a sum over earlier times, and the same time if the
    response includes it."""
    body = m.expression()
    if m.on.role == "spectral":
        return _earlier(body) + (body if delays.get((m.a, m.noise)) == 0 else 0)
    if f.field.role == "spectral":
        return body
    same = body.xreplace({PAST: f.time})
    if not (m.on.timed and f.field.timed):
        return same
    return PastSum(body, (PAST, 0, f.time - 1)) + (same if m.lag == 0 else 0)


def _earlier(expression: sp.Expr) -> sp.Expr:
    """Return an expression with the values of spectral fields at an earlier spectral time."""
    spectral = (value for value in expression.atoms(FieldAt) if value.field.role == "spectral")
    return expression.xreplace({value: sp.Dummy(f"earlier {value.field}") for value in spectral})


def _spectral_delays(system: System) -> Delays:
    """Return how many steps of spectral time an impulse takes from the second of two spectral fields to the first."""
    edges = []
    for f in system.spectral:
        arguments = [f.product.argument] if f.product is not None else [term.vector.field for term in f.rule.terms]
        edges += [Edge(f.field, argument, int(f.derivative), False) for argument in arguments]
    fields = tuple(f.field for f in system.spectral)
    return {(a, b): delay for a, b, delay in shortest_delays(fields, edges)}
