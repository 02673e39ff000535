"""The derivation as a whole: the training level once, each probed matrix on top of it, and how both grow."""

from __future__ import annotations

import cProfile
from collections import Counter
from dataclasses import replace

import pytest
import sympy as sp
from conftest import derivation_of, model_named

from derive import (
    Eq,
    Model,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    pipeline,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)
from derive.codegen import solver_files
from derive.errors import DeclarationError
from derive.pipeline import derive_model
from derive.printing import text_of_record
from derive.records.system import DisorderRule
from derive.stages.pencil import reduce_blocks
from numerics.solver import load_solver, solve


def learned_sum() -> Model:
    """K^T K / N + M M, both learned: two groups of unknowns that feed a third one, with scalars off the diagonal."""
    nu = parameter("nu", default=2.0, domain=positive)
    eta = parameter("eta", default=1.0, domain=positive)
    steps = parameter("T", default=3, domain=whole_positive)
    d, n = sectors("D", N=nu)
    t = training_clock("t", steps=steps)
    first, second = gaussian("K0", n, d), goe("M0", d)
    k, m = weights("K", n, d, t), weights("M", d, d, t)
    x, a, h = normal("x", d), field("a", d, t), field("h", n, t)
    return Model(
        parameters=(nu, eta, steps),
        equations=[
            Eq(a(0), x),
            Eq(a(t + 1), m(t) @ a(t)),
            Eq(h(t), k(t) @ a(t) / sp.sqrt(d)),
            Eq(k(0), first),
            Eq(k(t + 1), k(t) + eta / sp.sqrt(d) * outer(h(t), a(t))),
            Eq(m(0), second),
            Eq(m(t + 1), m(t) + eta / d * outer(a(t), a(t))),
        ],
        observe={"size": mean(a(t) ** 2)},
        probe=spectrum(k(steps).T @ k(steps) / n + m(steps) @ m(steps)),
        name="learned_sum",
    )


def test_the_training_level_and_causality_are_derived_once(monkeypatch):
    calls: Counter[str] = Counter()

    def counted(name: str):
        stage = getattr(pipeline, name)

        def call(*records):
            calls[name] += 1
            return stage(*records)

        return call

    for name in ("expand_declaration", "order_in_time", "average_disorder", "take_saddle_point", "project_probe"):
        monkeypatch.setattr(pipeline, name, counted(name))
    derivation = derive_model(model_named("deep_linear", L=3))
    assert list(derivation.probes) == ["0", "1", "2"]
    assert calls["expand_declaration"] == calls["order_in_time"] == 1
    assert calls["average_disorder"] == calls["take_saddle_point"] == 4
    assert calls["project_probe"] == 3


def test_a_stage_is_kept_and_eliminations_wait_until_they_are_asked_for(monkeypatch):
    asked = []
    found = pipeline.find_bulk
    monkeypatch.setattr(pipeline, "find_bulk", lambda probe: (asked.append(probe), found(probe))[1])
    probed = derive_model(model_named("spiked_wigner")).first
    assert not asked
    assert probed.bulk is probed.bulk and len(asked) == 1


@pytest.mark.parametrize("name", ["deep_linear", "anti_hebbian", "coupled_spikes_tanh", "wide_network"])
def test_training_and_spectral_terms_are_those_of_the_joined_action(name):
    """The average is a square: n uses of a matrix give n^2 products of bilinears, twice as many if it is symmetric."""
    derivation = derivation_of(name)
    for probed in derivation.probes.values():
        assert not any(f.field.role == "spectral" for f in derivation.system.fields)
        assert probed.system.fields[: len(derivation.system.fields)] == derivation.system.fields
        uses = Counter(f.rule.matrix for f in probed.system.fields if isinstance(f.rule, DisorderRule))
        terms = Counter(term.matrix for term in probed.record("average").terms)
        assert terms == {matrix: n * n * (2 if matrix.symmetric else 1) for matrix, n in uses.items()}
        roles = [{leg.field.role for leg in (*t.left, *t.right)} for t in probed.average.terms]
        assert all("spectral" in role for role in roles)


def test_a_vector_that_only_a_later_probe_uses_is_a_source():
    p = parameter("p", default=2.0, domain=positive)
    d = sectors("D")
    m, v = goe("M", d), normal("v", d)
    model = Model(
        parameters=(p,), probe={"plain": spectrum(m), "spiked": spectrum(m + p / d * outer(v, v))}, name="two_probes"
    )
    derivation = derive_model(model)
    assert derivation.system.sources == (v,)
    solver = load_solver(solver_files(model, derivation))
    assert not len(solve(solver, {"p": 2.0}, layers=("plain",)).outliers)
    assert solve(solver, {"p": 2.0}, layers=("spiked",)).outliers == pytest.approx([2.5], abs=1e-12)


def test_what_cannot_be_derived_is_refused_at_once():
    d = sectors("D")
    one = parameter("one", default=1.0, domain=positive)
    a = gaussian("A", d, d, variance=one / d)
    with pytest.raises(DeclarationError, match="not symmetric"):
        derive_model(Model(parameters=(one,), probe={"good": spectrum(a.T @ a), "bad": spectrum(a @ a)}))
    with pytest.raises(DeclarationError, match="declares no probe"):
        _ = derive_model(Model(parameters=(one,), equations=[Eq(field("x", d), a @ normal("v", d))])).first


def test_pencil_of_coupled_groups_shows_every_row_that_is_solved():
    """Rows of psi1 carry one scalar each and lead back to themselves through rows that do not."""
    probed = derive_model(learned_sum()).first
    assert len(probed.blocks.labels) == 6 and probed.pencil.rest == tuple(range(6))
    assert probed.pencil.cycles == () and probed.pencil.idle == ()
    shown = " ".join(text_of_record(probed.pencil).split())
    assert "(1 - R[psi0, K0^T psi1](z)/nu) C[psi1,h](z) = (eta C[h,h] + R[h, K0 a]) C[psi0,a](z)" in shown
    assert "(1 - R[psi0, K0^T psi1](z)/nu) R[psi1, K0 a](z) = eta R[h, K0 a]^T C[psi0,a](z)" in shown
    assert "6 unknowns, 6 T numbers" in shown and "6 T by 6 T" in shown


def test_rows_that_nothing_leads_back_to_are_listed_with_the_reason():
    blocks = derive_model(learned_sum()).first.blocks
    row = blocks.labels.index("C_psi1_h")
    cut = replace(blocks, blocks=tuple((at, b) for at, b in blocks.blocks if at[0] != row or at[1] == row))
    pencil = reduce_blocks(cut)
    assert pencil.idle == (row,) and row not in pencil.rest and len(pencil.rest) == 5
    shown = " ".join(text_of_record(pencil).split())
    assert "C[psi1,h](z) (fed by none; it lies on no cycle)" in shown
    assert "no outlier comes from them" in shown


def test_rings_say_how_large_their_matrix_is():
    shown = " ".join(text_of_record(derivation_of("deep_linear").first.pencil).split())
    assert "is free of z, 2 C T by 2 C T; s is an eigenvalue" in shown


@pytest.mark.long_cases("6")
@pytest.mark.slow
@pytest.mark.parametrize("depth", [3, 6])
def test_derivation_and_code_grow_like_the_depth(depth):
    """Twice the layers in at most three times the calls and the text; `derive bench` has the times."""

    def work(layers: int) -> tuple[int, int]:
        model, profile = model_named("deep_linear", L=layers), cProfile.Profile()
        files = profile.runcall(solver_files, model)
        return sum(entry.callcount for entry in profile.getstats()), sum(map(len, files.values()))

    work(2)  # what is imported and compiled once
    shallow, deep = work(depth), work(2 * depth)
    assert all(two <= 3 * one for one, two in zip(shallow, deep, strict=True)), (shallow, deep)
