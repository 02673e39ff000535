"""A run over many random declarations: draw, check, shrink violations, and count.

Every declaration has a random stream of its own, from the seed and its number, so that a run can be resumed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from derive.selftest.agreement import SizeDifference, agreement
from derive.selftest.drafts import Draft
from derive.selftest.drawing import draw
from derive.selftest.engine import forget
from derive.selftest.laws import ALONE, AT_ONCE, BROKE, LAWS, SINGLE, SYMBOLIC, UNDECIDED, DeclarationLaw, Outcome
from derive.selftest.shrinking import shrink
from derive.selftest.vocabulary import wanted_of
from derive.selftest.writing import write

_EXCEPTION = re.compile(r"(\w+(?:Error|Exception))\b")
_RAISED = re.compile(r"(\w+): .*?\((\w+/\w+\.py):\d+ in (\w+)", re.DOTALL)
"""The type and the place of an exception in the message of `engine.Broken`."""
SIMULATION = "theory against simulation"
FORGET_AFTER = 10
"""Number of declarations between two purges of compiled code: trades memory against recompilation."""
COMMON_BIAS = 4.5
"""Bound on the mean difference over all declarations, one each, in standard errors."""


@dataclass(frozen=True)
class Violation:
    """A broken law: the seed and number of the declaration, the smallest one that breaks it, and the outcome."""

    law: str
    declaration: int
    reason: str
    texts: tuple[str, ...]

    @property
    def length(self) -> int:
        return sum(map(len, self.texts))


@dataclass
class Tally:
    """Counts of a run so far."""

    checked: int = 0
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: list[Violation] = field(default_factory=list)
    differences: list[float] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    """Number of refusals by message, without names and numbers."""

    def count(self, law: str, outcome: Outcome) -> bool:
        """Count an outcome; return whether it is a violation of a new kind."""
        self.counts.setdefault(law, Counter())[outcome.status] += 1
        if outcome.status != BROKE:
            return False
        kind = kind_of(outcome)
        failed = _EXCEPTION.match(outcome.reason) or _RAISED.match(outcome.reason)
        key = ("", kind) if failed else (law, kind)  # which law met an exception does not matter
        self.kinds[key] += 1
        return self.kinds[key] == 1

    @property
    def broken(self) -> int:
        return sum(count[BROKE] for count in self.counts.values())

    def bias(self) -> tuple[float, float] | None:
        """Return the mean of the normalised differences in its standard errors, and their spread; None if there are too
        few."""
        n = len(self.differences)
        if n < 20:
            return None
        mean = sum(self.differences) / n
        spread = math.sqrt(sum((d - mean) ** 2 for d in self.differences) / (n - 1))
        return mean * math.sqrt(n) / (spread or 1.0), spread


def kind_of(outcome: Outcome) -> str:
    """Return the equivalence class of a violation: the exception and its place, or the kind of number."""
    reason = re.sub(r"declaration\.py, line \d+: ", "", outcome.reason)
    raised, failed = _RAISED.match(reason), _EXCEPTION.match(reason)
    if raised:
        return f"{raised[1]} in {raised[2]} {raised[3]}"
    if failed:
        return failed[1]
    return " ".join(word for word in reason.split()[:6] if not re.search(r"\d|\[", word))


def sentence_of(refusal: str, draft: Draft) -> str:
    """Return a refusal without line numbers, names of the draft and numbers, so that refusals of one kind are equal."""
    said = re.sub(r"declaration\.py, lines? \d+( and \d+)?: ", "", refusal)
    names = "|".join(map(re.escape, sorted(draft.names(), key=len, reverse=True)))
    return re.sub(rf"\b({names})\b", "_", re.sub(r"-?\b\d+([./]\d+)?\b", "#", said))


def random_of(seed: int, number: int, what: str = "") -> Random:
    """Return the random stream of a declaration for one purpose."""
    return Random(f"{seed}/{number}/{what}")


def draft_of(seed: int, number: int) -> Draft:
    """Return the declaration with this number in the run of a seed; it is drawn for the next pair of features."""
    return draw(random_of(seed, number), wanted=wanted_of(seed, number))


def checks(draft: Draft, seed: int, number: int, compiled: int) -> Iterator[tuple[DeclarationLaw, Outcome, int]]:
    """Yield the laws to check with the seeds of their partners: the first law, then cheap ones and some compiled ones.

    Without compiled laws the first one, which solves the model, is omitted too. All rewritings are checked at once,
    with one partner instead of a dozen, and one by one only if that is undecided.
    """
    rng = random_of(seed, number, "laws")
    first, at_once, *others = (law for law in LAWS if law.compiled)
    chosen = [at_once, *rng.sample(others, min(compiled - 1, len(others)))] if compiled else []
    for law in (*([first] if compiled else []), *SYMBOLIC, *chosen):
        start = rng.randrange(10**6)
        outcome = law.check(draft, Random(start))
        yield law, outcome, start
        if law is first and outcome.status == BROKE:
            return
        if law.name == AT_ONCE and not law.compiled and outcome.status in (BROKE, ALONE):
            for single in SINGLE:
                yield single, single.check(draft, Random(start)), start


def smallest(draft: Draft, law: DeclarationLaw, kind: str, start: int, most: int) -> Outcome | None:
    """Return the outcome of the smallest declaration that breaks a law in the same way; None if it no longer breaks."""

    def broken(smaller: Draft) -> Outcome | None:
        for shift in range(2):
            outcome = law.check(smaller, Random(start + shift))
            if outcome.status == BROKE and kind_of(outcome) == kind:
                return outcome
        return None

    return broken(shrink(draft, lambda smaller: broken(smaller) is not None, most))


def run(
    declarations: int,
    seed: int,
    *,
    first: int = 0,
    compiled: int = 2,
    simulate: bool = True,
    shrinking: int = 120,
    tell: Callable[[int, Tally], None] | None = None,
    tell_broken: Callable[[Violation], None] | None = None,
    tally: Tally | None = None,
) -> Tally:
    """Check the declarations `first` to `declarations` of a seed, and return the tally.

    Args:
        compiled: compiled laws per declaration; 0 for none.
        shrinking: the number of smaller declarations tried for each kind of violation.
        tell: called after every declaration.
        tell_broken: called with a violation before it is shrunk.
        tally: the tally to continue; a new one if None.
    """
    tally = tally if tally is not None else Tally()

    def record(violation: Violation) -> None:
        """Record a violation before it is shrunk, so that an interrupted run keeps it."""
        tally.violations.append(violation)
        if tell_broken is not None:
            tell_broken(violation)

    for number in range(first, declarations):
        draft = draft_of(seed, number)
        broken, refused = False, False
        for law, outcome, start in checks(draft, seed, number, compiled):
            if outcome.status == UNDECIDED and not refused:
                refused = True
                tally.refusals[sentence_of(outcome.reason, draft)] += 1
            broken = broken or (law is LAWS[0] and outcome.status == BROKE)
            if tally.count(law.name, outcome):
                kind = kind_of(outcome)
                record(Violation(law.name, number, outcome.reason, outcome.texts))
                small = smallest(draft, law, kind, start, shrinking) or outcome
                tally.violations[-1] = Violation(law.name, number, small.reason, small.texts)
        if simulate and not broken:
            _simulate(draft, seed, number, declarations, shrinking, tally, record)
        tally.checked += 1
        if tally.checked % FORGET_AFTER == 0:
            forget()
        if tell is not None:
            tell(number, tally)
    bias = tally.bias()
    if bias is not None and abs(bias[0]) > COMMON_BIAS:
        reported = (
            f"the mean of {len(tally.differences)} normalised differences is {bias[0]:+.1f} standard errors from zero"
        )
        tally.count(SIMULATION, Outcome(BROKE, reported))
        record(Violation(SIMULATION, declarations, reported, ()))
    return tally


def _simulate(
    draft: Draft,
    seed: int,
    number: int,
    declarations: int,
    shrinking: int,
    tally: Tally,
    tell: Callable[[Violation], None],
) -> None:
    start = random_of(seed, number, "simulation").randrange(2**31)

    def check(smaller: Draft) -> tuple[Outcome, tuple[SizeDifference, ...]]:
        return agreement(write(smaller), start, declarations)

    outcome, measured = check(draft)
    if measured:
        tally.differences.append(random_of(seed, number, "one").choice(measured).normalised)
    if tally.count(SIMULATION, outcome):
        kind = kind_of(outcome)

        def breaks(smaller: Draft) -> bool:
            again = check(smaller)[0]
            return again.status == BROKE and kind_of(again) == kind

        tell(Violation(SIMULATION, number, outcome.reason, outcome.texts))
        small = check(shrink(draft, breaks, shrinking))[0]
        small = small if small.status == BROKE else outcome
        tally.violations[-1] = Violation(SIMULATION, number, small.reason, small.texts)
