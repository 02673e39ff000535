"""Laws that every declaration must obey, on declarations drawn at random; `derive selftest` tries many more.

Laws that need no compiler hold for two declarations each, those that compile solvers for one. The draws are the same in
every run. A violation prints the declarations and the two numbers.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from random import Random

import pytest
from click.testing import CliRunner

from derive.cli import main
from derive.selftest import partners
from derive.selftest.agreement import SIZES, agreement, bound, differences
from derive.selftest.drafts import Draft, pruned
from derive.selftest.drawing import draw, drawn
from derive.selftest.drawing_probes import EARLY
from derive.selftest.engine import Broken, Refused, load, solved
from derive.selftest.laws import (
    ALONE,
    AT_ONCE,
    BROKE,
    HELD,
    SINGLE,
    SYMBOLIC,
    UNDECIDED,
    DeclarationLaw,
    Outcome,
    compared,
    in_exact_arithmetic,
    named_law,
)
from derive.selftest.running import Tally, checks, draft_of, kind_of, run, sentence_of
from derive.selftest.shrinking import shrink, smaller_drafts
from derive.selftest.sketch import LAWS
from derive.selftest.vocabulary import counted, features_of
from derive.selftest.writing import write


def assert_holds(law: DeclarationLaw, count: int, drafted: Callable[[Random], Draft], seeds: str) -> None:
    """Assert that a law holds for `count` drawn declarations before it has met more refusals than that.

    Without such a count a law that never applies, or an engine that refuses without need, goes unnoticed.
    """
    statuses: Counter[str] = Counter()
    for number in range(100):
        source = Random(f"{seeds} {number}")
        outcome = law.check(drafted(source), source)
        assert outcome.status != BROKE, "\n\n".join((f"{law.name}: {outcome.reason}", *outcome.texts))
        statuses[outcome.status] += 1
        if statuses[HELD] == count:
            break
    assert statuses[HELD] == count >= statuses[UNDECIDED] + statuses[ALONE], f"{law.name}: {dict(statuses)}"


@pytest.mark.parametrize("law", (*SYMBOLIC, *SINGLE), ids=lambda law: law.name)
def test_law_holds_in_exact_arithmetic(law):
    assert_holds(law, 2, lambda source: draw(source, linear=law is not SYMBOLIC[0], probes=False), law.name)


COMPILED = (
    "solved, or refused in a sentence",
    "every symbol renamed",
    "exact against sampled",
    "more steps, equal before",
    "W^T W against W W^T",
    "generated code against exact arithmetic",
    "one label for all equivalent ones against every label",
)
"""The laws that say something about compiled code which exact arithmetic does not see; the others are in selftest."""


def shortened(draft: Draft, steps: int) -> Draft:
    """The draft with fewer steps, if it has a clock."""
    return draft if draft.clock is None else draft.with_value(draft.clock.steps, steps)


@pytest.mark.long_cases("one label for all equivalent ones against every label")
@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_law_holds_for_what_is_compiled(name):
    """For the first of a hundred declarations to which it applies."""
    assert_holds(named_law(name), 1, lambda source: shortened(draw(source, linear=True), 2), name)


@pytest.mark.slow
def test_a_nonlinear_law_holds_within_its_errors():
    law = named_law("an intermediate named")
    assert_holds(law, 1, lambda source: shortened(draw(source, linear=False, probes=False), 1), "nonlinear")


# the instrument itself


def test_the_same_seed_draws_the_same_declaration():
    assert write(draft_of(3, 17)) == write(draft_of(3, 17)) != write(draft_of(3, 18))


@pytest.mark.slow
def test_what_is_drawn_is_mostly_accepted():
    """A draw that is always refused would test nothing."""
    accepted = 0
    for number in range(60):
        try:
            load(write(draft_of(0, number)))
            accepted += 1
        except Refused:
            pass
    assert accepted >= 45


@pytest.fixture(scope="module")
def vocabulary():
    return counted(write(draft_of(0, number)) for number in range(400))


def test_every_feature_of_the_language_is_drawn(vocabulary):
    """Every word, optional argument, function of vectors, of parameters and of time, and kind of value."""
    assert not vocabulary.missing


def test_every_function_that_may_be_typed_is_drawn():
    from derive.language.formulas import FUNCTIONS

    typed = {name[0].upper() + name[1:] if name in ("abs", "max", "min") else name for name in FUNCTIONS}
    assert typed <= set(LAWS)


def test_most_pairs_of_features_are_drawn(vocabulary):
    """A draft for each pair in turn: 400 of them meet most of some two thousand pairs."""
    met, every = vocabulary.coverage()
    assert met > 0.75 * every


def test_features_are_read_from_the_text():
    text = """
from sympy import Abs, KroneckerDelta, Rational, tanh
from derive import goe, normal, outer, parameter, sectors, spectrum, training_clock
k = parameter("k", default=-1.5)
T = parameter("T", default=1)
D, N = sectors("D", N=0.1)
t = training_clock("t", steps=T)
v = normal("v", D, t)
S = goe("S", D, variance=k**2)
value = Abs(k) * KroneckerDelta(t, 0) * Rational(0, 1)**t * tanh(v(t))
spectrum(S + outer(v(1), v(T - 1)))
"""
    values = {"a negative parameter", "T = 1", "a huge or tiny ratio", "a variance with a parameter", *EARLY}
    functions = {"Abs of a parameter", "KroneckerDelta of time", "0**t of time", "tanh of a vector"}
    found = features_of(text)
    assert values | functions | {"goe(variance=)", "normal(clock=)"} <= found
    assert not found & {"a parameter at zero", "c**t of time", "goe(latex=)", "field", "Abs of time"}


def test_a_wrong_factor_is_seen_and_shrunk():
    """A partner with another coefficient must break the comparison, and the smallest draft must still hold it."""
    from derive.selftest.drafts import number as value, times

    def wrong(draft):
        spoilt = draft.mapped(lambda n: times(value(2), n) if n.op == "apply" else n)
        return compared(draft, spoilt, 1e-9, True, in_exact_arithmetic)

    for seed in range(50):
        draft = drawn(seed, linear=True, probes=False)
        outcome = wrong(draft)
        if outcome.status == BROKE and "observable" in outcome.reason:
            small = shrink(draft, lambda d: wrong(d).status == BROKE, most=200)
            assert len(write(small)) <= len(write(draft))
            assert wrong(small).status == BROKE and "against" in wrong(small).reason
            return
    raise AssertionError("no draft was spoilt")


def test_shrinking_makes_smaller_declarations():
    draft = draft_of(0, 5)
    assert all(pruned(smaller) == smaller for smaller in smaller_drafts(draft))


@pytest.mark.parametrize("number", range(6))
def test_what_is_smaller_can_be_written(number):
    """Two vectors made one must not take a third one away."""
    assert all(map(write, smaller_drafts(draft_of(1, number))))


def test_ways_to_rewrite_are_tried_one_at_a_time_where_all_at_once_say_nothing(monkeypatch):
    """One partner for all of them where the law holds; where it does not, the one to blame is found."""
    draft = draw(Random(3), linear=True, probes=False)

    def tried(status):
        laws = [DeclarationLaw(law.name, lambda *_, s=status: Outcome(s), False) for law in (*SYMBOLIC, *SINGLE)]
        monkeypatch.setattr("derive.selftest.running.SYMBOLIC", laws[: len(SYMBOLIC)])
        monkeypatch.setattr("derive.selftest.running.SINGLE", laws[len(SYMBOLIC) :])
        return [law.name for law, _, _ in checks(draft, 0, 0, 0)]

    assert tried(HELD) == [law.name for law in SYMBOLIC] and AT_ONCE in tried(HELD)
    assert set(tried(ALONE)) == set(tried(BROKE)) == {law.name for law in (*SYMBOLIC, *SINGLE)}


def test_renaming_keeps_every_place():
    draft = draft_of(0, 4)
    there = {name: f"{name}_there" for name in draft.names()}
    back = {new: old for old, new in there.items()}
    assert partners.with_names(partners.with_names(draft, there), back) == draft


def test_an_exception_is_a_violation_and_a_sentence_is_none():
    with pytest.raises(Refused, match="no MODEL"):
        load("x = 1\n")
    with pytest.raises(Broken, match="TypeError"):
        load("MODEL = 1 + 'a'\n")


@pytest.mark.parametrize("sign", [1, -1])
def test_simulation_sees_a_wrong_theory(sign):
    """The theory of one strength against the simulation of another, above the bulk and below."""
    text = "\n".join(
        [
            "from derive import Model, goe, normal, outer, parameter, sectors, spectrum",
            "g = parameter('g', default=GAMMA)",
            "D = sectors('D')",
            "M, n = goe('M', D), normal('n', D)",
            "MODEL = Model(parameters=(g,), probe=spectrum(M + g / D * outer(n, n)))",
        ]
    )
    right = text.replace("GAMMA", str(3.0 * sign))
    outcome, found = agreement(right, 5)
    assert outcome.status == HELD and [sign * d.theory for d in found] == list(solved(right).spectra[0].outliers)
    (wrong,) = differences(text.replace("GAMMA", str(3.6 * sign)), solved(right), SIZES[1], 5)
    assert wrong.normalised > bound(5000) > bound(1)


@pytest.mark.slow
def test_a_run_counts_and_goes_on():
    whole = run(2, 11, compiled=0, simulate=False, shrinking=0)
    parts: Tally = run(1, 11, compiled=0, simulate=False, shrinking=0)
    run(2, 11, first=1, compiled=0, simulate=False, shrinking=0, tally=parts)
    assert whole.counts == parts.counts and whole.checked == parts.checked == 2


def test_kinds_do_not_depend_on_numbers():
    one = Outcome(BROKE, "observable 1 at time 2: 0.98 against 1.06")
    two = Outcome(BROKE, "observable 3 at time 1: 0.5 against 1.0")
    assert kind_of(one) == kind_of(two) != kind_of(Outcome(BROKE, "KeyError: 3 (a/b.py:3 in f)"))
    assert kind_of(Outcome(BROKE, "TooLarge: 3 (a/b.py:3 in f)")) == kind_of(
        Outcome(BROKE, "TooLarge: 4 (a/b.py:5 in f)")
    )
    assert kind_of(Outcome(ALONE, "one of the two is refused: no")) != kind_of(one)


def test_command_says_what_it_did():
    done = CliRunner().invoke(main, ["selftest", "--declarations", "2", "--quick", "--shrink", "0", "--json"])
    told = json.loads(done.stdout)
    assert done.exit_code == (1 if told["violations"] else 0)
    assert told["checked"] == 2 and set(told["laws"]) >= {law.name for law in SYMBOLIC}
    counts = CliRunner().invoke(main, ["selftest", "--vocabulary", "--declarations", "5", "--json"])
    assert json.loads(counts.stdout)["frequencies"]["sectors"] == 1 and counts.exit_code == 0
    refused = CliRunner().invoke(main, ["selftest", "--declarations", "2", "--first", "2"])
    assert refused.exit_code == 2 and "--first" in refused.stderr


def test_an_interrupted_run_says_how_to_go_on(monkeypatch):
    def interrupted(declarations, seed, *, first, tally, **more):
        tally.checked = 3
        raise KeyboardInterrupt

    monkeypatch.setattr("derive.selftest.running.run", interrupted)
    done = CliRunner().invoke(main, ["selftest", "--seed", "4", "--first", "10", "--declarations", "50"])
    assert done.exit_code == 130
    assert "derive selftest --declarations 50 --seed 4 --first 13" in done.stderr


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_terminated_run_says_what_it_found(number, lost, monkeypatch):
    """`timeout` and batch systems end a run by SIGTERM; what is raised in a callback of the collector may be lost."""

    def terminated(declarations, seed, *, first, tally, tell, **more):
        tally.checked = 3
        tally.refusals["no"] += 2
        with suppress(KeyboardInterrupt) if lost else nullcontext():
            os.kill(os.getpid(), number)
            time.sleep(5)
        tell(2, tally)
        raise AssertionError("it goes on")

    monkeypatch.setattr("derive.selftest.running.run", terminated)
    outside = signal.signal(number, signal.default_int_handler)  # a shell may have started the tests to ignore it
    before = signal.getsignal(number)
    try:
        done = CliRunner().invoke(main, ["selftest", "--declarations", "50", "--json"])
        assert signal.getsignal(number) is before
    finally:
        signal.signal(number, outside)
    assert done.exit_code == 130 and "--first 3" in done.stderr
    told = json.loads(done.stdout)
    assert told["checked"] == 3 and told["refusals"] == {"no": 2}


def test_what_breaks_a_law_is_printed_before_it_is_made_smaller(monkeypatch):
    """Making it smaller may take longer than there is."""

    def interrupted(*given):
        raise KeyboardInterrupt

    breaking = DeclarationLaw(
        "breaks", lambda draft, rng: Outcome(BROKE, "1 against 2", (write(draft),)), compiled=False
    )
    monkeypatch.setattr("derive.selftest.running.SYMBOLIC", (breaking,))
    monkeypatch.setattr("derive.selftest.running.smallest", interrupted)
    done = CliRunner().invoke(main, ["selftest", "--seed", "4", "--declarations", "3", "--laws", "0", "--no-simulate"])
    assert done.exit_code == 130
    for printed in (done.stderr, done.stdout):
        assert "1 against 2" in printed and write(draft_of(4, 0)).strip() in printed


def test_refusals_are_counted_by_their_sentence(monkeypatch):
    draft = draft_of(0, 0)
    names = [v.name for v in draft.fields[:2]]
    said = [f"declaration.py, line {k}: the equation of {name}: {k}.5 is a number" for k, name in enumerate(names, 3)]
    assert len({sentence_of(sentence, draft) for sentence in said}) == 1

    refusing = DeclarationLaw("refuses", lambda draft, rng: Outcome(UNDECIDED, said[0]), compiled=False)
    monkeypatch.setattr("derive.selftest.running.SYMBOLIC", (refusing, refusing))
    tally = run(3, 0, compiled=0, simulate=False)
    assert sum(tally.refusals.values()) == 3  # once per declaration, however many laws met it
