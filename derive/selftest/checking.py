"""The laws on one declaration at given values: `derive check` on a user's file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from derive.selftest import partners
from derive.selftest.agreement import agreement
from derive.selftest.drafts import Draft
from derive.selftest.engine import TheoryNumbers, solved
from derive.selftest.laws import (
    AT_ONCE,
    BROKE,
    CERTIFIED,
    HELD,
    LAWS,
    NUMBERS,
    READ,
    SEEN_OF_TINY,
    TINY,
    DeclarationLaw,
    Outcome,
    compared,
    judged,
    named_law,
    same_numbers,
)
from derive.selftest.writing import write

AS_WRITTEN = "the file as it is, and rewritten"
SIMULATION = "theory against simulations at two sizes"
NOT_TRIED = "not tried"
QUICK_SECONDS = 50.0
"""Time budget of a quick check, in seconds: a law that compiles a solver starts only if one as long as the longest so
far would fit."""
CAVITY = "the averaged action against the cavity argument"
ALWAYS = (CAVITY, SIMULATION, CERTIFIED)
"""Laws that share one solver; a quick check always tries them."""
NEXT = (NUMBERS, "functions of time written out step by step", AT_ONCE)
"""Laws of a quick check that need further solvers."""
LAST = ("the curve of the bulk against its equations", "other random numbers, equal within errors")


@dataclass(frozen=True)
class Subject:
    """A declaration to check: its draft, and its numbers by the solver of the file itself."""

    draft: Draft
    own: Callable[[], TheoryNumbers]


def laws_for(subject: Subject, quick: bool, simulate: bool) -> tuple[DeclarationLaw, ...]:
    """Return the laws to try on a declaration, in order; a quick check starts with the most informative."""
    zeros = [DeclarationLaw(f"{TINY}: {word}", _near_zero(word), True) for word in partners.through_zero(subject.draft)]
    simulation = [DeclarationLaw(SIMULATION, _simulated)] if simulate else []
    own = [named_law(CERTIFIED), DeclarationLaw(AS_WRITTEN, _as_written(subject))]
    first = [named_law(CAVITY), *simulation, *own, *map(named_law, NEXT)]
    if quick:
        return (*first, *map(named_law, LAST), *zeros[:1])
    listed = {law.name for law in first} | {TINY, READ, LAWS[0].name}
    return (*first, *zeros, *(law for law in LAWS if law.name not in listed))


def try_laws(
    laws: tuple[DeclarationLaw, ...], draft: Draft, seed: int, quick: bool
) -> Iterator[tuple[DeclarationLaw, Outcome, float]]:
    """Yield each law with its outcome and its seconds."""
    began, longest = time.monotonic(), 0.0
    for law in laws:
        start = time.monotonic()
        if quick and law.name not in ALWAYS and start - began + longest > QUICK_SECONDS:
            yield law, Outcome(NOT_TRIED, "no time is left in a quick check"), 0.0
            continue
        outcome = law.check(draft, Random(f"{seed}/{law.name}"))
        seconds = time.monotonic() - start
        longest = max(longest, seconds)
        yield law, outcome, seconds


def _as_written(subject: Subject) -> Callable[[Draft, Random], Outcome]:
    """Return the law that compares the numbers of the file itself with those of its draft."""

    @judged
    def check(draft: Draft, rng: Random) -> Outcome:
        text = write(draft)
        reason = same_numbers(subject.own(), solved(text), 1e-9)
        return Outcome(BROKE, reason, (text,)) if reason else Outcome(HELD)

    return check


def _near_zero(word: str) -> Callable[[Draft, Random], Outcome]:
    def check(draft: Draft, rng: Random) -> Outcome:
        zero, tiny = partners.at_zero(draft, word)
        return compared(zero, tiny, SEEN_OF_TINY, False)

    return check


def _simulated(draft: Draft, rng: Random) -> Outcome:
    return agreement(write(draft), rng.randrange(2**31))[0]
