"""The laws: changes of a declaration that must not change a number, with their tolerances.

A law takes a draft and reports whether it held, does not apply, was not decided (both declarations are refused, or the
numbers diverge) or broke, with the two declarations and the two numbers. If the partner uses other words of the
language, one of the two may be refused. If only names and order differ, either both or neither may be refused, and both
must have the same set of numbers.

Exact theories are compared to the law's tolerance. Sampled theories share their random numbers only if no drawn object
is added or reordered; they are compared within their standard errors, with a bound for the whole family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from derive.selftest import partners
from derive.selftest.cavity import cavity_disagrees
from derive.selftest.drafts import Draft
from derive.selftest.engine import (
    Broken,
    ProbeNumbers,
    Refused,
    TheoryNumbers,
    edges_in_two_ways,
    exact_observables,
    load,
    solved,
    values_of,
    with_all_labels,
    words_of_code,
)
from derive.selftest.reading import draft_of_model
from derive.selftest.writing import write

HELD, IDLE, UNDECIDED, ALONE, BROKE = "held", "does not apply", "not decided", "one is refused", "broke"
SAMPLED_ERRORS = 12.0
"""Allowed difference of two sampled theories, in standard errors. A Student variable from 10 replicates of each exceeds
it with probability 5e-10, from 10 replicates of one with 8e-7."""
NEAR_EDGE = 1e-3
"""Distance from the bulk, in bulk widths, below which one of two equal computations may miss an outlier."""
ROUNDING = 1e-14
"""Relative rounding error of an eigenvalue per unit condition number."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a law; `texts` are the compared declarations, `reason` their results."""

    status: str
    reason: str = ""
    texts: tuple[str, ...] = ()


Check = Callable[[Draft, Random], Outcome]


@dataclass(frozen=True)
class DeclarationLaw:
    """A law. `check` takes a draft and a random source; `compiled` says whether it compiles solvers."""

    name: str
    check: Check
    compiled: bool = True


Reading = Callable[[str], TheoryNumbers]


class _Inapplicable(Exception):
    """Raised if there is nothing to compare, such as nonlinear laws in exact arithmetic."""


def _solved(text: str) -> TheoryNumbers:
    return solved(text)


def in_exact_arithmetic(text: str) -> TheoryNumbers:
    """Return the observables in exact arithmetic, without spectra."""
    observables = exact_observables(text)
    if observables is None:
        raise _Inapplicable
    return TheoryNumbers(observables, None, ())


def same_numbers(left: TheoryNumbers, right: TheoryNumbers, tolerance: float) -> str:
    """Return where two theories differ by more than the tolerance; empty if they agree.

    The right one may have more observables.
    """
    errors = [n.errors or tuple((0.0,) * len(series) for series in n.observables) for n in (left, right)]
    for k, (a, b) in enumerate(zip(left.observables, right.observables, strict=False)):
        # where a value before the start would enter there is none; a field that is declared has one
        times = [time for time in range(min(len(a), len(b))) if not (math.isnan(a[time]) or math.isnan(b[time]))]
        scale = max([1.0, *(abs(a[time]) for time in times)])
        for time in times:
            spread = SAMPLED_ERRORS * math.hypot(errors[0][k][time], errors[1][k][time])
            floor = tolerance if left.exact and right.exact else max(tolerance, 1e-7)
            if not abs(a[time] - b[time]) <= floor * scale + spread:
                return f"observable {k + 1} at time {time}: {a[time]!r} against {b[time]!r}"
    for one, two in zip(left.spectra, right.spectra, strict=False):
        apart = _same_spectrum(one, two, tolerance)
        if apart:
            return f"probe {one.label or 1}: {apart}"
    return ""


def _same_spectrum(one: ProbeNumbers, two: ProbeNumbers, tolerance: float) -> str:
    width = max((b for _, b in one.edges), default=1.0) - min((a for a, _ in one.edges), default=0.0) or 1.0
    loose = max(tolerance, 1e-9) * max(1.0, width)
    ends = [[(end, e) for pair in _wide(s, loose) for end, e in zip(*pair, strict=True)] for s in (one, two)]
    edges, errors = ([[pair[k] for pair in some] for some in ends] for k in range(2))
    if len(edges[0]) != len(edges[1]) or any(
        abs(a - b) > loose + SAMPLED_ERRORS * math.hypot(e, f) for a, b, e, f in zip(*edges, *errors, strict=True)
    ):
        return f"edges {_list(edges[0])} against {_list(edges[1])}"
    return same_outliers(one, two, tolerance)


def _wide(spectrum: ProbeNumbers, least: float) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Return intervals with the errors of their edges; intervals narrower than the resolution count as point masses."""
    errors = spectrum.edge_errors or ((0.0, 0.0),) * len(spectrum.edges)
    return [(pair, error) for pair, error in zip(spectrum.edges, errors, strict=True) if pair[1] - pair[0] > least]


def same_outliers(one: ProbeNumbers, two: ProbeNumbers, tolerance: float) -> str:
    """Return outliers of one theory that the other lacks, except those near the bulk or a point mass."""
    width = max((b for _, b in one.edges), default=1.0) - min((a for a, _ in one.edges), default=0.0) or 1.0
    far = [_far(s, NEAR_EDGE * width) for s in (one, two)]
    allowed = [tolerance * max(1.0, width, abs(z)) + ROUNDING * max(one.condition, two.condition) for z, _ in far[0]]
    difference = f"outliers {_list(z for z, _ in far[0])} against {_list(z for z, _ in far[1])}"
    if len(far[0]) != len(far[1]):
        spreads = [s.errors or (0.0,) for s in (one, two)]
        close = any(e > NEAR_EDGE * width / SAMPLED_ERRORS for errors in spreads for e in errors)
        return "" if close else difference
    for (z, e), (y, f), room in zip(*far, allowed, strict=True):
        if abs(z - y) > room + SAMPLED_ERRORS * math.hypot(e, f):
            return difference
    return ""


def _far(spectrum: ProbeNumbers, distance: float) -> list[tuple[float, float]]:
    errors = spectrum.errors or (0.0,) * len(spectrum.outliers)
    return [
        (z, e)
        for z, e in zip(spectrum.outliers, errors, strict=True)
        if all(z < a - distance or z > b + distance for a, b in (*spectrum.edges, *((x, x) for x in spectrum.atoms)))
    ]


def _list(values: Iterable[object]) -> str:
    return "[" + ", ".join(f"{v:.12g}" for v in values) + "]"


def compared(left: Draft, right: Draft, tolerance: float, strict: bool, read: Reading = _solved) -> Outcome:
    """Return the outcome for two declarations with equal numbers; `strict`: neither may be refused alone."""
    return judged(lambda one, _: _compared((write(one), write(right)), tolerance, strict, read))(left, Random())


def outcome_of(check: Callable[[], Outcome], text: str) -> Outcome:
    """Return the outcome of a check even if the engine raises: a refusal is undecided, a failure breaks the law.

    `text` is the declaration for failures that do not name one.
    """
    try:
        return check()
    except _Inapplicable:
        return Outcome(IDLE)
    except Refused as refusal:
        return Outcome(UNDECIDED, str(refusal))
    except Broken as failure:
        return Outcome(BROKE, str(failure), (failure.text or text,))


def judged(check: Check) -> Check:
    """Return the check with exceptions of the engine converted to outcomes."""
    return lambda draft, rng: outcome_of(lambda: check(draft, rng), write(draft))


def _compared(texts: tuple[str, str], tolerance: float, strict: bool, read: Reading) -> Outcome:
    theories: list[TheoryNumbers] = []
    refused: list[Refused] = []
    for text in texts:
        try:
            theories.append(read(text))
        except Refused as refusal:
            refused.append(refusal)
    if len(refused) == 2:
        return Outcome(UNDECIDED, str(refused[0]))
    if refused:  # names and order must not decide whether a declaration is refused
        lost = strict or refused[0].numerical
        return Outcome(BROKE if lost else ALONE, f"one of the two is refused: {refused[0]}", texts)
    one, two = theories
    reason = same_numbers(one, two, tolerance)
    return Outcome(BROKE, reason, texts) if reason else Outcome(HELD)


def _partnered(partner: partners.Partner, tolerance: float, strict: bool, read: Reading = _solved) -> Check:
    def check(draft: Draft, rng: Random) -> Outcome:
        other = partner(draft, rng)
        if other is None or other == draft:
            return Outcome(IDLE)
        return compared(draft, other, tolerance, strict, read)

    return check


@judged
def _renamed(draft: Draft, rng: Random) -> Outcome:
    """Return the draft with every symbol renamed, mostly to names that its generated code uses."""
    other = partners.renamed(draft, rng, words_of_code(write(draft)))
    return Outcome(IDLE) if other is None else compared(draft, other, 1e-12, True)


def _rewritten(read: Reading = _solved) -> Check:
    """Return the law that compares a declaration with all rewritings of it in random order.

    Declarations that are compiled get names that occur in their generated code, if there is any.
    """

    @judged
    def check(draft: Draft, rng: Random) -> Outcome:
        try:
            words = words_of_code(write(draft)) if read is _solved else []
        except (Refused, Broken):
            words = []
        other = draft
        for name, partner, _, _ in rng.sample(_SAME, len(_SAME)):
            partner_draft = partners.renamed(other, rng, words) if name == RENAMED else partner(other, rng)
            other = partner_draft or other
        texts = write(draft), write(other, family=rng.random() < 0.3)
        return _compared(texts, 1e-9, False, read)

    return check


def _of_family(read: Reading = _solved) -> Check:
    """Return the law that compares a declaration with itself as the first member of a family."""
    return judged(lambda draft, rng: _compared((write(draft), write(draft, family=True)), 1e-12, True, read))


def _read_back(read: Reading = _solved) -> Check:
    """Return the law that compares a declaration with the text written from its model, as in `derive check`."""

    @judged
    def check(draft: Draft, rng: Random) -> Outcome:
        text = write(draft)
        return _compared((text, write(draft_of_model(load(text), values_of(text)))), 1e-9, True, read)

    return check


def _paired(partner: Callable[..., Any], tolerance: float, read: Reading = _solved) -> Check:
    def check(draft: Draft, rng: Random) -> Outcome:
        pair = partner(draft, rng)
        return Outcome(IDLE) if pair is None else compared(pair[0], pair[1], tolerance, False, read)

    return check


@judged
def _other_side(draft: Draft, rng: Random) -> Outcome:
    """Check W^T W against W W^T: equal except at zero, where only one of them may have a point mass."""
    other = partners.other_side(draft, rng)
    if other is None:
        return Outcome(IDLE)
    texts = write(draft), write(other)
    theories = [solved(text) for text in texts]
    for one, two in zip(theories[0].spectra, theories[1].spectra, strict=True):
        tops = [[b for _, b in s.edges] for s in (one, two)]
        if not tops[0] or not tops[1]:
            continue
        if abs(max(tops[0]) - max(tops[1])) > 1e-9 * max(1.0, max(tops[0])):
            return Outcome(BROKE, f"upper edges {max(tops[0])!r} against {max(tops[1])!r}", texts)
        bare = [replace(s, outliers=_above(s.outliers), errors=None) for s in (one, two)]
        if theories[0].exact and (apart := same_outliers(bare[0], bare[1], 1e-9)):
            return Outcome(BROKE, apart, texts)
    return Outcome(HELD)


def _above(outliers: Sequence[float]) -> tuple[float, ...]:
    return tuple(z for z in outliers if z > 1e-9)


@judged
def _longer(draft: Draft, rng: Random) -> Outcome:
    """Check that more steps leave earlier observables and outliers unchanged."""
    other = partners.longer(draft, rng)
    if other is None or draft.clock is None:
        return Outcome(IDLE)
    texts = write(draft), write(other)
    shorter, longer = solved(texts[0]), solved(texts[1], path=True)
    reason = same_numbers(replace(shorter, spectra=()), replace(longer, spectra=()), 1e-9)
    if reason:
        return Outcome(BROKE, reason, texts)
    steps = int(draft.value(draft.clock.steps))
    for short, long in zip(shorter.spectra, longer.spectra, strict=True):
        if long.path is None or not shorter.exact:
            continue
        then = replace(long, outliers=long.path[steps], errors=None)
        if short.edges == long.edges and (apart := same_outliers(short, then, 1e-8)):
            return Outcome(BROKE, f"probe {short.label or 1} at time {steps}: {apart}", texts)
    return Outcome(HELD)


@judged
def _sampled(draft: Draft, rng: Random) -> Outcome:
    """Check the exact pass against the sampled one for linear laws."""
    other = partners.sampled(draft, rng)
    if other is None:
        return Outcome(IDLE)
    texts = write(draft), write(other)
    exact = solved(texts[0])
    return Outcome(IDLE) if not exact.exact else _equal(exact, solved(texts[1]), 1e-6, texts)


@judged
def _other_seed(draft: Draft, rng: Random) -> Outcome:
    """Check a sampled theory against another seed: its standard errors must cover the difference."""
    text = write(draft)
    first = solved(text)
    return Outcome(IDLE) if first.exact else _equal(first, solved(text, seed=1 + rng.randrange(1000)), 1e-6, (text,))


def _equal(one: TheoryNumbers, two: TheoryNumbers, tolerance: float, texts: tuple[str, ...]) -> Outcome:
    reason = same_numbers(one, two, tolerance)
    return Outcome(BROKE, reason, texts) if reason else Outcome(HELD)


@judged
def _cavity(draft: Draft, rng: Random) -> Outcome:
    text = write(draft)
    apart = cavity_disagrees(text)
    return Outcome(BROKE, apart, (text,)) if apart else Outcome(HELD)


@judged
def _exact_quotients(draft: Draft, rng: Random) -> Outcome:
    """Check the generated code against exact arithmetic."""
    text = write(replace(draft, probes=(), observables=partners.without_alignments(draft)))
    return _equal(in_exact_arithmetic(text), solved(text), 1e-10, (text,))


@judged
def _all_labels(draft: Draft, rng: Random) -> Outcome:
    """Check the representative of equivalent labels against every label by itself."""
    if not draft.axes:
        return Outcome(IDLE)
    text = write(draft)
    whole = with_all_labels(text)
    return Outcome(IDLE) if whole is None else _equal(solved(text), whole, 1e-10, (text,))


@judged
def _two_ways_to_edges(draft: Draft, rng: Random) -> Outcome:
    """Check the bulk computed from its curve, in exact arithmetic, against the bulk from the response equations."""
    text = write(draft)
    pairs = edges_in_two_ways(text)
    for one, two in pairs:
        ends = [[e for pair in some for e in pair] for some in (one, two)]
        scale = max([1.0, *map(abs, ends[0])])
        if len(ends[0]) != len(ends[1]) or any(abs(a - b) > 1e-8 * scale for a, b in zip(*ends, strict=True)):
            return Outcome(BROKE, f"edges {_list(ends[0])} by the curve and {_list(ends[1])} without it", (text,))
    return Outcome(HELD if pairs else IDLE)


@judged
def _certified(draft: Draft, rng: Random) -> Outcome:
    """Check that every certificate of a solution passes."""
    text = write(draft)
    failed = solved(text).failed
    return Outcome(BROKE, failed[0], (text,)) if failed else Outcome(HELD)


@judged
def _no_traceback(draft: Draft, rng: Random) -> Outcome:
    """Check that the declaration is solved or refused with an error message."""
    solved(write(draft))
    return Outcome(HELD)


CERTIFIED = "the certificate of the solution"
RENAMED = "every symbol renamed"
TINY = "a parameter at zero against a tiny one"
SEEN_OF_TINY = 1e-4
"""Relative tolerance between a parameter at zero and a tiny one: results may depend on its square root."""
_SAME = (
    (RENAMED, partners.renamed, 1e-12, True),
    ("equations, parameters and terms reordered", partners.reordered, 1e-12, True),
    ("an intermediate named", partners.named, 1e-9, False),
    ("a field written out", partners.inlined, 1e-9, False),
    ("a product with a sum split", partners.split, 1e-9, False),
    ("a copy of a field used", partners.copied, 1e-9, False),
    ("a Gaussian matrix as the sum of two", partners.two_matrices, 1e-9, False),
    ("a variance moved into a factor", partners.variance_moved, 1e-9, True),
    ("another sector as the base", partners.other_base, 1e-9, True),
    ("the transpose declared", partners.transposed, 1e-9, False),
    ("a group of sites split in two", partners.groups_split, 1e-9, True),
    ("numbers instead of some parameters", partners.some_numbers, 1e-9, False),
)
_PAIRS = (
    ("a parameter at zero against the term left out", partners.zero_parameter, 1e-9),
    ("one class against no classes", partners.one_class, 1e-9),
    ("a trait with one value against the number", partners.one_value, 1e-9),
    ("a law against its mean and variance in linear laws", partners.by_moments, 1e-9),
    ("functions of time written out step by step", partners.steps_written_out, 1e-9),
    (TINY, partners.near_zero, SEEN_OF_TINY),
)

READ = "read as a model, and rewritten"
NUMBERS = "numbers instead of parameters"
AT_ONCE = "rewritten in all these ways at once"

LAWS = (
    DeclarationLaw("solved, or refused in a sentence", _no_traceback),
    DeclarationLaw(CERTIFIED, _certified),
    DeclarationLaw(AT_ONCE, _rewritten()),
    DeclarationLaw(RENAMED, _renamed),
    *(DeclarationLaw(name, _partnered(partner, tolerance, strict)) for name, partner, tolerance, strict in _SAME[1:]),
    *(DeclarationLaw(name, _paired(partner, tolerance)) for name, partner, tolerance in _PAIRS),
    DeclarationLaw("a member of a family", _of_family()),
    DeclarationLaw(READ, _read_back()),
    DeclarationLaw(NUMBERS, _partnered(partners.numbers, 1e-9, False)),
    DeclarationLaw("exact against sampled", _sampled),
    DeclarationLaw("other random numbers, the same within errors", _other_seed),
    DeclarationLaw("more steps, equal before", _longer),
    DeclarationLaw("W^T W against W W^T", _other_side),
    DeclarationLaw("the curve of the bulk against its equations", _two_ways_to_edges),
    DeclarationLaw("the averaged action against the cavity argument", _cavity, compiled=False),
    DeclarationLaw("generated code against exact arithmetic", _exact_quotients),
    DeclarationLaw("one label for all equivalent ones against every label", _all_labels),
)
"""Every law; those that compare numbers use compiled solvers."""

SYMBOLIC = (
    DeclarationLaw("the averaged action against the cavity argument", _cavity, compiled=False),
    DeclarationLaw(AT_ONCE, _rewritten(in_exact_arithmetic), False),
    DeclarationLaw(NUMBERS, _partnered(partners.numbers, 1e-9, False, in_exact_arithmetic), False),
    DeclarationLaw(READ, _read_back(in_exact_arithmetic), False),
    *(DeclarationLaw(name, _paired(p, tolerance, in_exact_arithmetic), False) for name, p, tolerance in _PAIRS),
)
"""The laws that need no compiler: observables of linear laws in exact arithmetic."""

SINGLE = (
    *(
        DeclarationLaw(name, _partnered(p, tolerance, strict, in_exact_arithmetic), False)
        for name, p, tolerance, strict in _SAME
    ),
    DeclarationLaw("a member of a family", _of_family(in_exact_arithmetic), False),
)
"""The rewritings of `AT_ONCE` one by one, tried if all at once break a law or are refused."""


def named_law(name: str) -> DeclarationLaw:
    """Return the law of a name."""
    return next(law for law in LAWS if law.name == name)
