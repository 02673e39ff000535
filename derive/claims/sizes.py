"""Comparison of words whose coefficients contain sizes, with one form for products of brackets and response fields."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.claims.context import ClaimContext
from derive.claims.formulas import Bracket, Words, WordSum
from derive.language.vectors import Field
from derive.printing.lettering import entered_once
from derive.records.action import Leg
from derive.records.system import System


def same_sizes(context: ClaimContext, claimed: WordSum, derived: WordSum, what: str) -> tuple[str, str]:
    """Compare sums of words whose coefficients contain sizes, all of which are multiples of one size."""
    sectors = context.system.sectors
    base = next((s for s in sectors if s.ratio == 1), sp.Symbol("size", positive=True))
    sizes = {sector: sector.ratio * base for sector in sectors}
    claimed, derived = (
        WordSum({word: scale.xreplace(sizes) for word, scale in total.terms.items()}) for total in (claimed, derived)
    )
    return context.same_words(claimed, derived, what)


def joined(context: ClaimContext, total: WordSum) -> WordSum:
    """Return a sum of products of brackets or order parameters in which terms that differ only in the names of times or
    their order are merged, and response fields that are multiples of each other have one form."""
    merged: Words = {}
    total = total if context.source is None else context.source.same(total)
    for word, scale in total.terms.items():
        parts = []
        for bracket in word:
            if not isinstance(bracket, Bracket):  # an order parameter
                parts.append(bracket)
                continue
            (left, a), (right, b) = (_response(context.system, leg) for leg in (bracket.left, bracket.right))
            parts.append(replace(bracket, left=left, right=right))
            scale *= a * b
        word = tuple(parts)
        mirrored = tuple(letter.T for letter in word)
        key = min((word, word[::-1], mirrored, mirrored[::-1]), key=repr)
        merged[key] = merged.get(key, sp.S.Zero) + scale
    return WordSum(merged)


def _response(system: System, leg: Leg) -> tuple[Leg, sp.Expr]:
    """Return the first of the response fields that are multiples of one, and the ratio of the two.

    A product p with a random matrix that enters one equation only, that of f at the same time as c p, can be integrated
    over: hat p = c hat f.
    """
    if not leg.hatted:
        return leg, sp.S.One
    entering = _entering(system)
    f, ratio = entering.get(leg.field, (leg.field, sp.S.One))
    first, scale = next(((p, c) for p, (user, c) in entering.items() if user == f), (f, sp.S.One))
    return replace(leg, field=first), ratio / scale


def _entering(system: System) -> dict[Field, tuple[Field, sp.Expr]]:
    """Return the products with random matrices that enter one equation, with its field and their coefficient."""
    shifted = {s.field for s in system.fields if s.shift}
    found = {s.field: entered_once(system, s.field) for s in system.fields if s.product is not None}
    return {p: user for p, user in found.items() if user is not None and user[0] not in shifted and user[1] != 0}
