"""Families of models: which member is meant, what it is called, and several probed matrices."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import model_named, solver_of, values_of

from derive import Model, family, goe, one_of, parameter, sectors, spectrum, whole_choice
from derive.cli import main
from derive.codegen import generate_files
from derive.errors import DeclarationError, ParameterError
from derive.inputs.loading import load_declaration, load_model
from derive.inputs.problems import load_problem
from numerics import runtime
from numerics.solver import load_solver, solve

PLANTED = '''"""K planted directions, added to a symmetric matrix or taken from it."""
from derive import Model, family, goe, mean, normal, one_of, outer, parameter, positive, sectors, spectrum, whole_choice

gamma0 = parameter("gamma0", default=2.0, domain=positive)
D = sectors("D")


def declare(K, sign):
    planted = [normal(f"v{k}", D) for k in range(K)]
    factor = gamma0 / D if sign == "plus" else -gamma0 / D
    matrix = goe("M0", D)
    for v in planted:
        matrix = matrix + factor * outer(v, v)
    return Model(parameters=(gamma0,), observe={"norm": mean(planted[0] ** 2)}, probe=spectrum(matrix))


MODEL = family(declare, K=whole_choice(1, high=3, doc="how many"), sign=one_of("plus", "minus"))
'''


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == "", result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def planted(declared) -> str:
    return str(declared(PLANTED, "planted.py"))


# Members


@pytest.mark.parametrize(
    ("chosen", "name"),
    [
        ({}, "deep_linear"),
        ({"L": 2, "data": "full_batch"}, "deep_linear"),
        ({"L": 1}, "deep_linear_L1"),
        ({"L": "3", "data": "online"}, "deep_linear_L3_online"),
        ({"param": "ntk"}, "deep_linear_ntk"),
    ],
)
def test_a_member_is_named_after_what_is_not_the_default(chosen: dict, name: str):
    model = load_model("deep_linear", chosen)
    assert (model.name, model.setting) == (name, "deep_linear")
    assert dict(model.choices).keys() == {"L", "data", "param", "spectrum", "kernel", "teachers"}


def test_a_word_of_two_choices_is_told_apart_in_the_name():
    both = family(
        lambda first, second: one(),
        first=one_of("no", "yes"),
        second=one_of("no", "yes"),
    )
    names = {both.member({"first": a, "second": b}).name for a in ("no", "yes") for b in ("no", "yes")}
    assert names == {"model", "model_first_yes", "model_second_yes", "model_first_yes_second_yes"}


def test_members_have_fingerprints_and_layers_of_their_own():
    from derive.codegen import declaration_digest

    members = [model_named("deep_linear", **c) for c in ({}, {"L": 1}, {"data": "online"}, {"param": "ntk"}, {"L": 3})]
    assert len({declaration_digest(model) for model in members}) == len(members)
    assert [label for label, _ in members[-1].probes] == ["0", "1", "2"]


@pytest.mark.slow
def test_a_file_with_a_family_is_solved_member_by_member(planted: str):
    for K, sign, side in ((1, "plus", 1), (2, "plus", 1), (2, "minus", -1)):
        found = json.loads(run("solve", planted, f"K={K}", f"sign={sign}", "gamma0=2", "--json").stdout)
        assert found["setting"] == "planted"
        assert found["parameters"] == {"K": K, "sign": sign, "gamma0": 2.0}
        assert found["outliers"] == pytest.approx([side * 2.5] * K, abs=1e-10)


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        ("K=0", "out of range"),
        ("K=4", "out of range"),
        ("K=two", "whole number"),
        ("K=1.5", "whole number"),
        ("K=", "whole number"),
        ("sign=times", "plus or minus"),
        ("sing=plus", "did you mean sign"),
        ("k=2", "its parameters are K, sign, gamma0"),
        ("K", "write K=VALUE"),
        ("gamma0", "write gamma0=VALUE"),
        ("layer=0", "no parameter 'layer'"),
    ],
)
def test_bad_choices_are_refused_in_one_sentence(planted: str, pair: str, word: str):
    assert word in refused("solve", planted, pair)


def test_a_choice_given_twice_is_refused(planted: str):
    assert "twice" in refused("solve", planted, "K=1", "K=2")


@pytest.mark.parametrize(("pair", "word"), [("layer=2", "layers are 0, 1"), ("layer=ntk", "layers are 0, 1")])
def test_a_layer_that_is_not_there_is_refused(pair: str, word: str):
    with pytest.raises(ParameterError, match=word):
        load_problem("deep_linear", [pair])


def test_layers_are_picked():
    assert load_problem("deep_linear", ["L=3"]).layers == ("0", "1", "2")
    assert load_problem("deep_linear", ["L=3", "layer=all"]).layers == ("0", "1", "2")
    assert load_problem("deep_linear", ["layer=2", "L=3"]).layers == ("2",)
    assert load_problem("deep_linear", ["layer=ntk", "L=1"]).layers == ("ntk",)


# Declarations of families


def one(**choices):
    return Model(parameters=(parameter("L", default=1.0),), probe=spectrum(goe("M0", sectors("D"))))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: family(one), "nothing to choose"),
        (lambda: family(one, L=3), "whole_choice"),
        (lambda: family(lambda L: None, K=whole_choice(1)), "takes no argument 'K'"),
        (lambda: whole_choice(0), "its default 0"),
        (lambda: whole_choice(5, high=4), "its default 5"),
        (lambda: one_of("alone"), "two or more words"),
        (lambda: one_of("a b", "c"), "two or more words"),
        (lambda: family(lambda L: None, L=whole_choice(1)).member({}), "return Model"),
        (lambda: family(lambda L: one(), L=whole_choice(1)).member({}), "both a choice and a parameter"),
    ],
)
def test_a_bad_family_says_what_is_wrong(make, word: str):
    with pytest.raises(DeclarationError, match=word):
        make()


def test_an_error_inside_a_member_is_a_sentence(declared):
    text = PLANTED.replace('"""K planted', '"""Broken: K planted').replace("spectrum(matrix)", "spectrum(planted[0])")
    assert "spectrum" in refused("solve", str(declared(text, "broken.py")))


PROBES = """from derive import *
D = sectors("D")
M, v = goe("M", D), normal("v", D)
x = field("x", D)
MODEL = Model((), [Eq(x, v)], {"norm": mean(x**2)}, probe=%s)
"""


@pytest.mark.parametrize(
    ("probe", "word"),
    [
        ("{}", "names no matrix"),
        ("{0: M}", "is not a spectrum"),
        ("{0: spectrum(M), '0': spectrum(M)}", "two matrices have the label 0"),
        ("{'a b': spectrum(M)}", "letters, digits and underscores"),
        ("spectrum(M, plus='size')", "no observable of that name"),
    ],
)
def test_bad_probes_are_refused(declared, probe: str, word: str):
    with pytest.raises(DeclarationError, match=word):
        load_model(str(declared(PROBES % probe)))


MOVED_AT_ALL_TIMES = """from derive import *
T = parameter("T", default=3, domain=whole_positive)
D, t = sectors("D"), training_clock("t", steps=T, endpoint=%s)
M0, v = goe("M0", D), normal("v", D)
x, M = field("x", D, t), weights("M", D, D, t)
MODEL = Model(
    (T,),
    [Eq(x(t), (t + 1) * v), Eq(M(0), M0), Eq(M(t + 1), M(t) + outer(x(t), x(t)) / D)],
    {"norm": mean(x(t)**2), "fixed": 9 * mean(v**2)},
    probe=spectrum(M(T), plus="%s"),
)
"""


@pytest.mark.parametrize(("endpoint", "plus"), [(True, "norm"), (True, "fixed"), (False, "fixed")])
def test_plus_moves_the_spectrum_at_every_time(declared, endpoint: bool, plus: str):
    """M(t) has a semicircle of radius two, and norm(t) = (t + 1)^2; without a time the shift is the same throughout."""
    files = generate_files(load_model(str(declared(MOVED_AT_ALL_TIMES % (endpoint, plus)))))
    (layer,) = solve(load_solver(files), {"T": 3}, path=True).layers
    shifts = [1, 4, 9, 16] if plus == "norm" else [9, 9, 9, 9]
    assert np.allclose([layer.bulk_at(time) for time in range(4)], [[[x - 2, x + 2]] for x in shifts], rtol=1e-6)
    strengths = [0, 1, 5, 14]
    above = [[x + k + 1 / k] if k > 1 else [] for x, k in zip(shifts, strengths, strict=True)]
    assert [np.round(now, 6).tolist() for now in layer.outlier_path] == [np.round(now, 6).tolist() for now in above]


def test_an_observable_without_a_last_value_moves_no_spectrum(declared):
    with pytest.raises(DeclarationError, match="endpoint=False that observable ends at T - 1"):
        load_model(str(declared(MOVED_AT_ALL_TIMES % (False, "norm"))))


def test_plus_moves_the_whole_spectrum(declared):
    text = (
        PROBES % "{'bare': spectrum(M + 2 / D * outer(x, x)), 'moved': spectrum(M + 2 / D * outer(x, x), plus='norm')}"
    )
    files = generate_files(load_model(str(declared(text.replace("Eq(x, v)", "Eq(x, 2 * v)")))))
    assert {name for name in files if name.startswith("probe")} == {"probe_bare.py"}, "equal matrices share their code"
    solution = solve(load_solver(files), {})
    bare, moved = solution.layers
    assert np.allclose(bare.bulk_edges, [[-2, 2]], rtol=1e-6) and np.allclose(moved.bulk_edges, [[2, 6]], rtol=1e-6)
    assert bare.outliers == pytest.approx([8.125]) and moved.outliers == pytest.approx([12.125])
    assert solution.density([0.5], "bare") == pytest.approx(solution.density([4.5], "moved"))


@pytest.mark.slow
def test_kernel_is_the_first_layer_plus_the_readout():
    solution = solve(solver_of("deep_linear", L=1), values_of("deep_linear", L=1, T=3, eta=0.3))
    first, kernel = solution.layer("0"), solution.layer("ntk")
    shift = solution.observables["readout_norm"][-1]
    assert first.outliers and shift > 0.1
    assert kernel.outliers == pytest.approx([z + shift for z in first.outliers], rel=1e-14)
    assert kernel.bulk_edges == pytest.approx(first.bulk_edges + shift, rel=1e-14)


# Commands


def test_choices_and_layers_are_listed():
    [entry] = json.loads(run("list", "deep_linear", "--json").stdout)["settings"]
    chosen = {
        "L": 2,
        "data": "full_batch",
        "param": "mup",
        "spectrum": "isotropic",
        "kernel": "shift",
        "teachers": "alike",
    }
    assert [(c["name"], c["default"]) for c in entry["choices"]] == list(chosen.items())
    assert entry["choices"][1]["allowed"] == "full_batch or online" and all(c["meaning"] for c in entry["choices"])
    assert entry["layers"] == ["0", "1"] and entry["observables"] == ["train_loss", "test_loss"]
    assert "T" in {p["name"] for p in entry["parameters"]} and "L" not in {p["name"] for p in entry["parameters"]}
    text = run("list", "deep_linear").stdout
    assert "full_batch or online" in text and "layers: 0, 1" in text


def test_a_model_that_is_no_family_lists_no_choices():
    [entry] = json.loads(run("list", "spiked_wigner", "--json").stdout)["settings"]
    assert entry["choices"] == entry["layers"] == []


def test_show_of_a_layer_of_a_member():
    shown = json.loads(run("show", "deep_linear", "L=3", "layer=2", "--stage", "blocks", "--json").stdout)
    assert shown["setting"] == "deep_linear_L3"
    text = shown["stages"]["blocks"]
    assert "C[h2,h2]" in text and "C[g3,g3]" in text and "C[h0,h0]" not in text
    first = run("show", "deep_linear", "L=3", "--stage", "blocks").stdout
    assert "C[h0,h0]" in first and "C[h2,h2]" not in first


def test_show_takes_one_value():
    assert "take several" in refused("show", "deep_linear", "L=1,2")


@pytest.mark.long
@pytest.mark.slow
def test_build_of_a_member_goes_where_it_is_told(tmp_path: Path, monkeypatch):
    out = str(tmp_path / "out")
    assert run("build", "deep_linear", "L=3", "--out", out).exit_code == 0
    built = tmp_path / "out" / "deep_linear_L3"
    names = {path.name for path in built.iterdir()}
    assert names == {"__init__.py", "training.py", "simulation.py", "derivation.md", "runtime"} | {
        f"{kind}_{label}.py" for kind in ("probe", "bulk") for label in range(3)
    }
    assert "derive build deep_linear L=3 data=full_batch param=mup" in (built / "training.py").read_text()
    shared = Path(runtime.__file__).parent
    assert {path.name: path.read_text() for path in (built / "runtime").iterdir()} == {
        path.name: path.read_text() for path in shared.glob("*.py")
    }
    monkeypatch.syspath_prepend(out)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    setting = importlib.import_module("deep_linear_L3").SETTING
    for stem in ("training", "simulation", *(stem for probe in setting.probes for stem in (probe.probe, probe.bulk))):
        importlib.import_module(f"deep_linear_L3.{stem}")
    for name in [name for name in sys.modules if name.split(".")[0] == "deep_linear_L3"]:
        del sys.modules[name]
    assert dict(setting.choices)["L"] == 3 and setting.steps == "T" and setting.labels == ("C",)
    assert run("build", "deep_linear", "L=3", "--check", "--out", out).exit_code == 0
    (built / "training.py").write_text("")
    stale = run("build", "deep_linear", "L=3", "--check", "--out", out)
    assert stale.exit_code == 1 and "write it again with: derive build deep_linear L=3 --out" in stale.stdout


def test_two_members_are_built_side_by_side_and_not_among_the_shipped(planted: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("build", planted, "K=2", planted, "K=3", "sign=minus").exit_code == 0
    assert {path.name for path in (tmp_path / "generated").iterdir() if path.is_dir()} == {
        "planted_K2",
        "planted_K3_minus",
    }


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (("L=3",), "name the model first"),
        (("deep_linear", "K=3"), "no choice 'K'"),
        (("deep_linear", "T=3"), "no choice 'T'"),
        (("deep_linear", "L=0"), "out of range"),
        (("spiked_wigner", "L=2"), "one model"),
    ],
)
def test_bad_choices_are_refused_by_build(words: tuple[str, ...], word: str, tmp_path: Path):
    assert word in refused("build", *words, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_family_in_a_file_is_found_as_one(planted: str):
    assert [name for name, _ in load_declaration(planted).choices] == ["K", "sign"]
    assert load_declaration(planted).doc.startswith("K planted")
