"""Multiplicative noise: laws that are linear in fields, with coefficients drawn anew at each step.

A mask s(t) that selects a mini-batch is an example: s(t) e(t) = <s> e(t) + (s(t) - <s>) e(t). Because s(t) is
independent of e(t), the last term is uncorrelated with the past and with itself at other times. For second moments it
is white noise with covariance Var(s) C[e, e](t, t).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import sympy as sp

from derive.language.traits import apart, is_trait
from derive.language.vectors import Field, FieldAt
from derive.records.saddle import TimeOrder


@dataclass(frozen=True)
class NoisyTerm:
    """coefficient * product of noises * value; additive noise if there is no value."""

    coefficient: sp.Expr
    noises: tuple[FieldAt, ...]
    value: FieldAt | None

    @property
    def mean(self) -> sp.Expr:
        """The coefficient averaged over the noises, which are independent of each other."""
        return sp.Mul(self.coefficient, *(noise.field.expectation for noise in self.noises))


def noisy_terms(law: sp.Expr, fields: Collection[Field], noises: Collection[Field]) -> tuple[NoisyTerm, ...] | None:
    """Return a law as a sum of products of at most one field and distinct noises; None if it has another form."""
    terms = []
    for term in sp.Add.make_args(apart(sp.expand, law)):
        inside = sorted(term.atoms(FieldAt), key=sp.default_sort_key)
        if not any(value.field in fields for value in inside):
            terms.append(NoisyTerm(term, tuple(value for value in inside if value.field in noises), None))
            continue
        scale, drawn, values = sp.S.One, [], []
        for factor in sp.Mul.make_args(term):
            if factor in inside and factor.field in noises:
                drawn.append(factor)
            elif factor in inside and factor.field in fields:
                values.append(factor)
            elif all(map(is_trait, factor.atoms(FieldAt))):
                scale *= factor
            else:
                return None
        if len(values) > 1 or len({noise.field for noise in drawn}) < len(drawn):
            return None
        terms.append(NoisyTerm(scale, tuple(drawn), values[0]))
    return tuple(terms)


def covariance_of(first: NoisyTerm, second: NoisyTerm) -> sp.Expr:
    """Return the covariance of the random coefficients of two terms with noises at the same time."""
    mine, others = ({noise.field for noise in term.noises} for term in (first, second))
    factors = [first.coefficient, second.coefficient]
    for noise in sorted(mine | others, key=str):
        mean = noise.expectation
        factors.append(noise.variance + mean**2 if noise in mine & others else mean)
    return sp.factor(sp.Mul(*factors) - first.mean * second.mean) if mine & others else sp.S.Zero


def shortest_delay(order: TimeOrder, field: Field, noise: Field) -> int | None:
    """Return the shortest delay with which a field depends on a noise; None if it never does."""
    steps = ((edge.lag, order.delay(field, edge.target)) for edge in order.edges if edge.source == noise)
    return min((lag + delay for lag, delay in steps if delay is not None), default=None)


def drawn_before(order: TimeOrder, term: NoisyTerm, lag: Callable[[FieldAt], int]) -> FieldAt | None:
    """Return the first noise of a term on which its value may depend; None if it is independent of all of them."""
    if term.value is None:
        return None
    for noise in term.noises:
        delay = shortest_delay(order, term.value.field, noise.field)
        if delay is not None and lag(term.value) + delay <= lag(noise):
            return noise
    return None
