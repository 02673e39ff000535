"""Claims about the single-site process: memory kernels and noise covariances."""

from __future__ import annotations

from dataclasses import replace

from derive.algebra.words import Letter
from derive.cells.verdicts import REFUTED
from derive.claims.context import ClaimContext
from derive.claims.formulas import Carrier, WordSum
from derive.claims.reading import Claim
from derive.errors import ClaimError
from derive.language.vectors import Field


def decide_kernel(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a claim about a memory kernel."""
    reader = replace(context.reader(claim, matrices=True), carriers=tuple(context.fields))
    target = reader.field(claim.get("target"))
    _owns_noise(context, claim, target)
    memories = [m for m in context.saddle.memories if m.target == target]
    derived = WordSum({})
    for m in memories:
        derived += WordSum({(Letter.response(m.a, m.noise), Carrier(m.on.name)): m.coefficient})
    status, detail = context.same_words(reader.matrix(claim.get("value")), derived, f"memory of {target}")
    lag = claim.get("lag")
    distinct_lags = sorted({m.lag for m in memories if m.lag is not None})
    if status != REFUTED and lag is not None and distinct_lags != [lag]:
        lags = ", ".join(map(str, distinct_lags))
        return REFUTED, f"derived: the memory of {target} reaches back from s = t - {lags}, claimed lag {lag}"
    reach = f"; s <= t - {lag}" if lag else ""
    return same_time(context, claim, {m.fresh for m in memories}, status, detail + reach)


def same_time(context: ClaimContext, claim: Claim, derived: set[bool], status: str, detail: str) -> tuple[str, str]:
    """Return the verdict after checking that kernels of matrices drawn anew act at equal times only."""
    claimed = claim.get("same_time", False)
    if status != REFUTED and derived not in (set(), {claimed}):
        at = "at all times" if claimed else "at equal times only, which same_time = true would state"
        return REFUTED, f"{detail}, but {at}"
    return status, detail + (", at equal times only" if claimed else "")


def _owns_noise(context: ClaimContext, claim: Claim, *fields: Field) -> None:
    owners = list(dict.fromkeys(c.left for c in context.saddle.covariances))
    names = ", ".join(map(str, owners))
    for field in fields:
        if field not in owners:
            raise ClaimError(f"{context.place(claim)}: {field} has no noise of its own; those with one are {names}")


def decide_covariance(context: ClaimContext, claim: Claim) -> tuple[str, str]:
    """Decide a claim about a noise covariance."""
    reader = context.reader(claim, matrices=True)
    left, right = (reader.field(name) for name in claim.get("noises"))
    _owns_noise(context, claim, left, right)
    derived = WordSum({})
    covariances = [c for c in context.saddle.covariances if (c.left, c.right) == (left, right)]
    for c in covariances:
        derived += WordSum({(Letter.correlation(c.a, c.b),): c.coefficient})
    status, detail = context.same_words(
        reader.matrix(claim.get("value")), derived, f"covariance of the noises of {left} and {right}"
    )
    return same_time(context, claim, {c.fresh for c in covariances}, status, detail)
