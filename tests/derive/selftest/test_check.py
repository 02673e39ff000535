"""Laws on a user's own declaration: every model can be written out anew, and wrong numbers of the past are seen."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import derive
from derive.cli import main
from derive.inputs.loading import load_model, setting_names
from derive.selftest import checking
from derive.selftest.engine import load
from derive.selftest.laws import ALONE, BROKE, HELD, IDLE, NUMBERS, UNDECIDED, DeclarationLaw, Outcome, named_law
from derive.selftest.partners import steps_written_out, with_numbers
from derive.selftest.reading import draft_of_model
from derive.selftest.writing import write

DECLARATIONS = Path(__file__).parents[2] / "declarations"
STEPS = "functions of time written out step by step"
SPIKE = """
from sympy import Abs, Heaviside, Max, Min, Piecewise, sign, sqrt
from derive import Domain, Model, gaussian, goe, normal, outer, parameter, sectors, spectrum

k = parameter("k", default=-1.5)
a = parameter("a", default=-0.5, domain=Domain(-1, 1))
D, N = sectors("D", N=2)
g, S, W = normal("g", N), goe("S", N), gaussian("W", N, D)
MODEL = Model(parameters=(k, a), probe=spectrum(PROBE))
"""
TRAINED = """
from sympy import Abs, KroneckerDelta, Min, sqrt
from derive import Eq, Model, gaussian, goe, normal, outer, parameter, positive, sectors, spectrum, training_clock
from derive import weights, whole_positive

nu = parameter("nu", default=1.5, domain=positive)
T = parameter("T", default=2, domain=whole_positive)
D, N = sectors("D", N=nu)
t = training_clock("t", steps=T)
x, y, z, B = normal("x", D), normal("y", N), normal("z", N), goe("B", D)
W = weights("W", N, D, t)
MODEL = Model(
    parameters=(nu, T),
    equations=[Eq(W(0), gaussian("W0", N, D)), Eq(W(t + 1), UPDATE)],
    probe=spectrum(PROBE),
)
"""


def spiked(probe: str) -> str:
    return SPIKE.replace("PROBE", probe)


def trained(update: str, probe: str = "W(T).T @ W(T) / N") -> str:
    return TRAINED.replace("UPDATE", update).replace("PROBE", probe)


ONCE_WRONG = {
    "absolute value": (NUMBERS, spiked("S + Abs(k)/D * outer(g, g) + 0*a*S")),
    "root of a square": (NUMBERS, spiked("S + sqrt(k**2)/D * outer(g, g)")),
    "sign": (NUMBERS, spiked("S + 2*sign(k)/D * outer(g, g)")),
    "step": (NUMBERS, spiked("S + (1 + Heaviside(k))/D * outer(g, g)")),
    "largest": (NUMBERS, spiked("S + Max(k, 1)/D * outer(g, g)")),
    "cases": (NUMBERS, spiked("S + Piecewise((k, k > 0), (2, True))/D * outer(g, g)")),
    "root of a sum": (NUMBERS, spiked("sqrt(1 + a)*S + 2/D * outer(g, g)")),
    "root of a difference": (NUMBERS, spiked("sqrt(1 - a**2)*S + 2/D * outer(g, g)")),
    "sign of a product": (NUMBERS, spiked("sign(k)*W.T @ W / N")),
    "first step": (STEPS, trained("W(t) + (2*KroneckerDelta(t, 0)*outer(y, x) + 0.7*outer(z, x))/sqrt(N)")),
    "first step alone": (STEPS, trained("W(t) + 2*KroneckerDelta(t, 0)/sqrt(N) * outer(y, x)")),
    "power of zero": (STEPS, trained("W(t) + 2*0**t/sqrt(N) * outer(y, x)")),
    "bounded time": (STEPS, trained("W(t) + 2*Abs(t - 1)*Min(t, 1)/sqrt(N) * outer(y, x)")),
    "ratio as a parameter": (NUMBERS, trained("0.9*W(t) + 2/sqrt(D)*outer(y, x)", "W(T).T @ W(T)/N + B")),
}
"""Declarations that had a wrong number or a traceback once, and the law that saw it."""


@pytest.mark.long_cases("root of a square", "sign", "step", "largest", "cases", "root of a difference", "bounded time")
@pytest.mark.slow
@pytest.mark.parametrize("case", ONCE_WRONG)
def test_what_was_wrong_once_holds(case):
    name, text = ONCE_WRONG[case]
    model = load(text)
    draft = draft_of_model(model, {p.name: p.default for p in model.parameters})
    outcome = named_law(name).check(draft, Random(0))
    assert outcome.status == HELD, outcome.reason


@pytest.mark.parametrize(
    "target", [*setting_names(), *(str(path) for path in sorted(DECLARATIONS.glob("*.py"))[::4])], ids=lambda t: t[-20:]
)
def test_any_model_can_be_written_out_anew(target):
    """The text that a draft of it is written as declares the same model."""
    model = load_model(target)
    values = {p.name: p.default for p in model.parameters}
    arrays = {} if model.arrays is None else model.arrays(values)
    again = load(write(draft_of_model(model, {**values, **arrays})))
    assert sorted(map(str, again.equations)) == sorted(map(str, model.equations))
    assert [str(probe) for _, probe in again.probes] == [str(probe) for _, probe in model.probes]
    observed = [[(label, str(value)) for label, value in (*m.observe, *m.alignments)] for m in (again, model)]
    assert observed[0] == observed[1]


def test_functions_of_time_are_polynomials_through_their_values():
    """At every step the coefficient that is written out has the value that was declared."""
    model = load(trained("W(t) + 2*Min(t, 1)/sqrt(N) * outer(y, x)").replace("default=2", "default=3"))
    short, written = steps_written_out(draft_of_model(model, {"nu": 1.5, "T": 3}), Random(0))
    updates = [load(write(draft)).equations[1].value.terms for draft in (short, written)]
    (clock,) = model.equations[1].target.symbol.time.free_symbols
    for step in range(4):
        before, after = ({str(part): scale.subs(clock, step) for scale, part in terms} for terms in updates)
        assert before == after


def test_numbers_stand_for_parameters_everywhere():
    """In a ratio and in a coefficient; what counts steps stays."""
    model = load(trained("W(t) + 2/sqrt(N) * outer(y, x)"))
    filled = with_numbers(draft_of_model(model, {"nu": 1.5, "T": 2}), {"nu"})
    assert [p.name for p in filled.parameters] == ["T"] and "N=1.5" in write(filled)


def _law(status: str) -> DeclarationLaw:
    return DeclarationLaw(
        status, lambda draft, rng: Outcome(status, "1 against 2" * (status == BROKE), (write(draft),))
    )


@pytest.mark.parametrize("broken", [False, True])
def test_the_command_prints_what_broke_and_ends_with_one(broken, monkeypatch, tmp_path):
    statuses = [HELD, IDLE, UNDECIDED, ALONE, *([BROKE] if broken else [])]
    monkeypatch.setattr(checking, "laws_for", lambda *_: tuple(map(_law, statuses)))
    path = tmp_path / "spike.py"
    path.write_text(spiked("S + k/D * outer(g, g) + a*S"), encoding="utf-8")
    done = CliRunner().invoke(main, ["check", str(path), "k=-2.5"])
    assert done.exit_code == int(broken)
    assert all(status in done.stdout for status in statuses) and "% " in done.stderr
    assert ("parameter('k', default=-2.5)" in done.stdout) == broken == ("1 against 2" in done.stdout)
    told = json.loads(CliRunner().invoke(main, ["check", str(path), "--json"]).stdout)
    assert [law["status"] for law in told["laws"]] == statuses


def test_a_quick_check_begins_no_law_when_its_time_is_over(monkeypatch):
    monkeypatch.setattr(checking, "laws_for", lambda *_: tuple(map(_law, (HELD, HELD))))
    monkeypatch.setattr(checking, "QUICK_SECONDS", -1.0)
    check = derive.load(load(spiked("S + k/D * outer(g, g) + a*S"))).check(quick=True)
    assert {law.status for law in check} == {checking.NOT_TRIED} and check


def test_what_shares_the_first_solver_is_tried_whatever_the_time(monkeypatch):
    laws = tuple(
        DeclarationLaw(name, lambda draft, rng: Outcome(HELD)) for name in ("another", *checking.ALWAYS, "more")
    )
    monkeypatch.setattr(checking, "QUICK_SECONDS", -1.0)
    found = {law.name: outcome.status for law, outcome, _ in checking.try_laws(laws, None, 0, True)}
    assert [name for name, status in found.items() if status == HELD] == list(checking.ALWAYS)


def test_members_of_families_and_layers_are_checked_as_chosen(monkeypatch):
    """What is checked is the member and the matrix that were asked for, at the values that were given."""
    seen = []
    law = DeclarationLaw("seen", lambda draft, rng: seen.append(draft) or Outcome(HELD))
    monkeypatch.setattr(checking, "laws_for", lambda *_: (law,))
    assert derive.load("deep_linear", L=1, data="online").check(T=2, nu=0.5, layer="0")
    (draft,) = seen
    assert [label for label, _ in draft.probes] == ["0"] and draft.value("nu") == 0.5
    assert any(m.kind == "fresh" for m in draft.matrices)


@pytest.mark.slow
def test_a_wrong_solver_is_seen(monkeypatch):
    """A theory that differs from what the declaration says breaks the comparison with it."""
    from derive.selftest import engine

    theory = derive.load(load(spiked("S + k/D * outer(g, g) + a*S")))
    own = engine.numbers_of

    def wrong(solver, model, values, **options):
        shifted = {**values, "k": values["k"] - 0.5} if "labels" in options else values
        return own(solver, model, shifted, **options)

    monkeypatch.setattr(engine, "numbers_of", wrong)
    check = theory.check(quick=True, simulate=False)
    assert [law.law for law in check.broken] == [checking.AS_WRITTEN]
