"""Claims about the single-site process: memory kernels and noise covariances."""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from derive.algebra.words import Letter
from derive.cells.verdicts import REFUTED
from derive.claims.context import ClaimContext
from derive.claims.formulas import Carrier, WordSum
from derive.claims.reading import Claim
from derive.errors import ClaimError
from derive.language.vectors import Field
from derive.records.saddle import MemoryKernel


def decide_kernel(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a claim about a memory kernel."""
    reader = replace(context.reader(claim, matrices=True), carriers=tuple(context.fields))
    target = reader.field(claim.get("target"))
    parts = noises_in(context, claim, target)
    derived = WordSum({})
    for field, coefficient in parts.items():
        derived += coefficient * memory_of(context, field)
    claimed = at_once(context, reader.matrix(claim.get("value")))
    what = f"memory of {context.text.name(target)}"
    status, detail = context.same_words(claimed, derived, what)
    memories = [m for m in context.saddle.memories if m.target in parts]
    status, detail = with_lag(claim, memories, status, detail, what)
    return same_time(context, claim, {m.fresh for m in memories}, status, detail)


def memory_of(context: ClaimContext, field: Field) -> WordSum:
    """Return the memory that accompanies the noise of a product with a random matrix."""
    total = WordSum({})
    for m in context.saddle.memories:
        if m.target == field:
            total += WordSum({(Letter.response(m.a, m.noise), Carrier(m.on.name)): m.coefficient})
    return at_once(context, total)


def at_once(context: ClaimContext, total: WordSum) -> WordSum:
    """Return words in which equal-time responses are replaced by their values, where the equations determine them."""
    known = {Letter.response(m.a, m.noise): m.at_once for m in context.saddle.memories if m.at_once is not None}
    done = WordSum({})
    for word, scale in total.terms.items():
        for letter in word:
            scale *= known.get(letter, sp.S.One)
        done += WordSum({tuple(letter for letter in word if letter not in known): scale})
    return done


def with_lag(claim: Claim, memories: list[MemoryKernel], status: str, detail: str, what: str) -> tuple[str, str]:
    """Return the verdict, after a check of the lag if the claim gives one."""
    lag, lags = claim.get("lag"), sorted({m.lag for m in memories if m.lag is not None})
    if status != REFUTED and lag is not None and lags != [lag]:
        reach = ", ".join(map(str, lags))
        return REFUTED, f"derived: the {what} reaches back from s = t - {reach}, claimed lag {lag}"
    return status, detail + (f"; s <= t - {lag}" if lag else "")


def same_time(context: ClaimContext, claim: Claim, derived: set[bool], status: str, detail: str) -> tuple[str, str]:
    """Return the verdict, after a check that kernels of matrices drawn anew act only at equal times."""
    claimed = claim.get("same_time", False)
    if status != REFUTED and derived not in (set(), {claimed}):
        at = "at all times" if claimed else "at equal times only, which same_time = true would state"
        return REFUTED, f"{detail}, but {at}"
    return status, detail + (", at equal times only" if claimed else "")


def noises_in(context: ClaimContext, claim: Claim, target: Field) -> dict[Field, sp.Expr]:
    """Return the products with random matrices whose noises add up to that of a field, with their coefficients.

    Raises:
        ClaimError: there is none.
    """
    found = noise_terms(context, target)
    if not found:
        owners = context.text.names(c.left for c in context.saddle.covariances)
        raise ClaimError(
            f"{context.place(claim)}: the equation of {context.text.name(target)} has no noise; those with one are "
            f"{owners}"
        )
    return found


def noise_terms(context: ClaimContext, target: Field) -> dict[Field, sp.Expr]:
    """Return the products with random matrices in the equation of a field at one time, with their coefficients."""
    owners = {c.left for c in context.saddle.covariances}
    if target in owners:
        return {target: sp.S.One}
    found: dict[Field, sp.Expr] = {}
    for f in context.system.fields:
        for term in f.rule.terms if f.field == target and not f.shift else ():
            alone = term.pair is None and term.past is None and term.mixing is None
            if alone and term.vector.field in owners:
                found[term.vector.field] = found.get(term.vector.field, sp.S.Zero) + term.coefficient
    return found


def decide_covariance(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a claim about a noise covariance."""
    reader = context.reader(claim, matrices=True)
    left, right = (reader.field(name) for name in claim.get("noises"))
    derived, fresh = WordSum({}), set()
    for a, scale in noises_in(context, claim, left).items():
        for b, factor in noises_in(context, claim, right).items():
            for c in context.saddle.covariances:
                if (c.left, c.right) == (a, b):
                    derived += WordSum({(Letter.correlation(c.a, c.b),): scale * factor * c.coefficient})
                    fresh.add(c.fresh)
    names = " and ".join(context.text.noise(f) for f in (left, right))
    status, detail = context.same_words(reader.matrix(claim.get("value")), derived, f"covariance of {names}")
    return same_time(context, claim, fresh, status, detail)
