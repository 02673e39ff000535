"""The command line: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result

import derive
from derive.cli import main, output
from derive.cli.bench import bench
from derive.errors import NumericalError
from generated.spiked_wigner import SETTING
from numerics.bulk.law import Panelled, SpectralLaw
from numerics.simulation.compare import Row, compare, judge
from numerics.simulation.samples import Samples, SimulatedLayer
from numerics.solution import Layer

COMMANDS = (
    "list",
    "new",
    "show",
    "build",
    "solve",
    "simulate",
    "compare",
    "stability",
    "expand",
    "verify",
    "spectrum",
    "bench",
)
HEAD = (
    "from derive import *\nD, N = sectors('D', N=2)\nT = parameter('T', default=3, domain=whole_positive)\n"
    "t = training_clock('t', steps=T)\n"
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def refused(*arguments: str, code: int = 2) -> str:
    """The sentence with which a command refuses; nothing may reach stdout."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(scope="module")
def starting_point(tmp_path_factory) -> str:
    directory = tmp_path_factory.mktemp("new")
    assert run("new", "my_model", "--path", str(directory)).exit_code == 0
    return str(directory / "my_model.py")


# Help


def test_help_imports_nothing_heavy():
    code = (
        "import sys, derive.cli\ntry:\n    derive.cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'sympy', 'jax', 'numpy', 'rich', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_a_command_there_is_help():
    result = run()
    assert result.exit_code == 0 and "Usage: derive" in result.stdout


def test_python_dash_m_is_the_same_command():
    done = subprocess.run([sys.executable, "-m", "derive", "--version"], capture_output=True, text=True, check=True)
    first, libraries = done.stdout.splitlines()
    assert first.startswith(f"derive {derive.__version__}") and "sympy" in libraries and "jaxlib" in libraries
    assert not (Path(derive.__file__).parents[1] / ".git").exists() or re.search(r", commit [0-9a-f]{10}$", first)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches_by_example(command: str):
    result = run(command, "--help")
    assert result.exit_code == 0 and f"  derive {command}" in result.stdout and "--json" in result.stdout


# Declarations


def test_list_names_every_setting():
    assert all(name in run("list").stdout for name in ("spiked_wigner", "anti_hebbian", "coupled_spikes"))


def test_list_as_json():
    assert {entry["name"] for entry in json.loads(run("list", "--json").stdout)["settings"]} >= {
        "spiked_wigner",
        "coupled_spikes",
    }


def test_list_of_one_setting_shows_its_parameters():
    [entry] = json.loads(run("list", "spiked_wigner", "--json").stdout)["settings"]
    assert entry["parameters"][0]["name"] == "gamma0"


def test_new_refuses_to_overwrite(starting_point: str):
    before = Path(starting_point).read_text()
    assert "not overwritten" in refused("new", "my_model", "--path", str(Path(starting_point).parent))
    assert Path(starting_point).read_text() == before


@pytest.mark.parametrize(
    ("name", "word"), [("my-model", "letters"), ("class", "letters"), ("spiked_wigner", "shipped")]
)
def test_new_refuses_names_that_cannot_be(tmp_path: Path, name: str, word: str):
    assert word in refused("new", name, "--path", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_new_into_a_missing_directory_is_refused(tmp_path: Path):
    assert "make the directory first" in refused("new", "mine", "--path", str(tmp_path / "no"))


def test_show_prints_one_stage():
    text = run("show", "spiked_wigner", "--stage", "bulk").stdout
    assert "Bulk" in text and "Saddle point" not in text


def test_show_prints_all_stages_in_order():
    text = run("show", "spiked_wigner").stdout
    assert 0 < text.index("Martin-Siggia-Rose") < text.index("Saddle point") < text.index("A(z)")


def test_show_as_latex_and_json():
    stages = json.loads(run("show", "spiked_wigner", "--stage", "action", "--format", "latex", "--json").stdout)[
        "stages"
    ]
    assert list(stages) == ["action"] and "\\" in stages["action"]


def test_show_prints_one_equation_by_its_number():
    bare = run("show", "spiked_wigner", "--equation", "G1", "--format", "latex").stdout
    assert bare == "G^{2} - G\\, z + 1 = 0\n"
    assert bare.strip() in Path("generated/spiked_wigner/derivation.md").read_text()
    found = json.loads(run("show", "spiked_wigner", "--stage", "bulk", "--equation", "G1", "--json").stdout)
    assert found["latex"] == bare.strip() and found["equation"] == "G1"
    assert "B1, B2, A1, S1, G1" in refused("show", "spiked_wigner", "--equation", "X1")
    assert "no equation B1 in the stage bulk" in refused("show", "spiked_wigner", "--stage", "bulk", "--equation", "B1")


def test_show_without_a_probe_says_so(tmp_path: Path):
    path = tmp_path / "plain.py"
    path.write_text(
        HEAD + "M0 = goe('M0', D)\nx = field('x', D, t)\na = normal('a', D)\n"
        "MODEL = Model((T,), [Eq(x(0), a), Eq(x(t + 1), M0 @ x(t))], {'size': mean(x(t)**2)})\n"
    )
    assert "no probe" in refused("show", str(path), "--stage", "bulk")
    assert run("show", str(path), "--stage", "saddle").exit_code == 0


# Build


def test_build_of_a_file_goes_where_it_is_told(starting_point: str, tmp_path: Path):
    assert run("build", starting_point, "--out", str(tmp_path)).exit_code == 0
    assert (tmp_path / "my_model" / "__init__.py").is_file()


@pytest.mark.slow
def test_build_check_names_the_files_and_the_remedy(starting_point: str, tmp_path: Path):
    out = str(tmp_path / "out")
    missing = run("build", starting_point, "--check", "--out", out)
    assert (
        missing.exit_code == 1
        and "missing:" in missing.stdout
        and "write it again with: derive build" in missing.stdout
    )
    assert not Path(out).exists()
    run("build", starting_point, "--out", out)
    assert run("build", starting_point, "--check", "--out", out).exit_code == 0
    (Path(out) / "my_model" / "__init__.py").write_text("")
    assert "stale: " in run("build", starting_point, "--check", "--out", out).stdout
    (Path(out) / "my_model" / "more.txt").write_text("")
    assert json.loads(run("build", starting_point, "--check", "--out", out, "--json").stdout)["extra"]


@pytest.mark.slow
def test_the_generated_code_of_the_project_is_up_to_date():
    result = run("build", "--check")
    assert result.exit_code == 0, result.output


def test_a_build_with_one_bad_declaration_writes_nothing(starting_point: str, tmp_path: Path):
    bad = tmp_path / "bad.py"
    bad.write_text("MODEL = 1\n")
    refused("build", starting_point, str(bad), "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_file_may_not_replace_a_shipped_setting(starting_point: str, tmp_path: Path, monkeypatch):
    own = tmp_path / "spiked_wigner.py"
    own.write_text(Path(starting_point).read_text())
    monkeypatch.setattr("derive.codegen.build.project_directory", lambda: tmp_path / "generated")
    monkeypatch.chdir(tmp_path)
    assert "shipped setting" in refused("build", str(own))


# Solve, simulate, compare


def test_solve_prints_exactly_the_promised_keys():
    result = run("solve", "spiked_wigner", "gamma0=2", "--json")
    solved = json.loads(result.stdout)
    assert list(solved) == [
        "setting",
        "parameters",
        "bulk_edges",
        "edge_errors",
        "outliers",
        "outlier_errors",
        "overlaps",
        "alignments",
        "alignment_path",
        "outlier_path",
        "outlier_path_errors",
        "bulk_path",
        "largest_path",
        "bbp_time",
        "atoms",
        "moments",
        "curve",
        "diagnostics",
        "observables",
        "observable_errors",
        "trouble",
        "certificate",
        "method",
        "spike_norm",
        "digest",
    ]
    assert solved["parameters"] == {"gamma0": 2.0}
    assert solved["outliers"] == pytest.approx([2.5], abs=1e-12)
    assert solved["bulk_edges"] == [pytest.approx([-2.0, 2.0], abs=1e-10)]
    assert solved["outlier_errors"] is solved["outlier_path_errors"] is solved["observable_errors"] is None
    assert solved["overlaps"] == [{"right": pytest.approx(0.75, abs=1e-10), "left": None}]
    assert solved["outlier_path"] is solved["largest_path"] is solved["bbp_time"] is None
    assert solved["spike_norm"] == solved["observables"]["spike_norm"] == [1.0]


def test_solve_prints_a_table_for_people():
    text = run("solve", "spiked_wigner", "gamma0=2").stdout
    assert "above the bulk" in text and "2.5" in text and "exact" in text


def test_the_density_is_given_at_listed_points():
    (x, y) = json.loads(run("solve", "spiked_wigner", "--grid", "0.1,0.5", "--json").stdout)["density"].values()
    assert x == [0.1, 0.5] and np.allclose(y, np.sqrt(4 - np.square(x)) / (2 * np.pi))


@pytest.mark.parametrize(
    ("sentence", "in_python"),
    [
        ("fix T with --at", "fix T with at"),
        ("expand --in nu", "expand variable nu"),
        ("take --no-simulation", "take simulation=False"),
        (
            "make it with derive solve SETTING --json; raise --seeds",
            "make it with derive solve SETTING --json; raise seeds",
        ),
    ],
)
def test_python_sees_arguments_where_commands_have_options(sentence: str, in_python: str):
    error = NumericalError(sentence)
    assert str(error) == in_python and error.on_the_command_line == sentence


def test_below_the_threshold_no_outlier_is_printed():
    assert "no outliers" in run("solve", "spiked_wigner", "gamma0=0.5").stdout


def test_the_starting_point_solves(starting_point: str):
    solved = json.loads(run("solve", starting_point, "--json").stdout)
    assert solved["setting"] == "my_model" and solved["outliers"]


def test_simulate_prints_ten_eigenvalues_at_each_end_for_each_seed():
    result = json.loads(run("simulate", "spiked_wigner", "--size", "40", "--seeds", "3", "--json").stdout)
    assert list(result) == ["setting", "parameters", "size", "seeds", "eigenvalues", "observables", "spike_norm"]
    assert result["spike_norm"] == result["observables"]["spike_norm"]
    for end, sign in (("top", -1), ("bottom", 1)):
        rows = np.array(result["eigenvalues"][end])
        assert rows.shape == (3, 10) and (np.diff(sign * rows) >= 0).all()
    assert set(result["observables"]["spike_norm"]) == {"mean", "stderr"}


def test_the_same_seed_gives_the_same_simulation():
    arguments = ("simulate", "spiked_wigner", "--size", "20", "--seeds", "2", "--json", "--seed")
    assert run(*arguments, "5").stdout == run(*arguments, "5").stdout != run(*arguments, "6").stdout


def test_one_seed_has_no_standard_error():
    result = json.loads(run("simulate", "spiked_wigner", "--size", "20", "--seeds", "1", "--json").stdout)
    assert result["observables"]["spike_norm"]["stderr"] is None


def test_compare_agrees_and_draws(tmp_path: Path):
    plot = tmp_path / "plot.png"
    result = run("compare", "spiked_wigner", "gamma0=2", "--size", "300", "--seeds", "6", "--plot", str(plot), "--json")
    compared = json.loads(result.stdout)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert compared["rows"][0]["quantity"] == "outlier 1 above the bulk"
    assert all(row["difference"] is None for row in compared["rows"] if not row["compared"])
    assert compared["within_three_standard_errors"] is True


def test_the_starting_point_agrees_with_its_simulation(starting_point: str):
    result = json.loads(run("compare", starting_point, "--size", "300", "--seeds", "6", "--json").stdout)
    assert result["within_three_standard_errors"], result["rows"]


def test_compare_prints_a_verdict():
    assert "agrees: all" in run("compare", "spiked_wigner", "--size", "200", "--seeds", "5").stdout


@pytest.mark.parametrize(("plot", "word"), [("plot.bmp", ".png"), ("no/such/place.png", "no directory")])
def test_a_plot_that_cannot_be_written_is_refused_first(plot: str, word: str):
    assert word in refused("compare", "spiked_wigner", "--plot", plot)


# Bad input


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("solve", "spiked_wigners"), "did you mean spiked_wigner"),
        (("solve", "no_such_file.py"), "there is no file"),
        (("solve", "spiked_wigner", "gama0=2"), "did you mean gamma0"),
        (("solve", "spiked_wigner", "gamma0=-2"), "out of range"),
        (("solve", "anti_hebbian", "T=2.5"), "whole number"),
        (("solve", "spiked_wigner", "gamma0=two"), "not a number"),
        (("simulate", "spiked_wigner", "--size", "many"), "must be a whole number"),
        (("simulate", "spiked_wigner", "--seeds", "0"), "seeds=0"),
        (("compare", "spiked_wigner", "--seeds", "1"), "at least 2"),
        (("show", "spiked_wigner", "--stage", "end"), "--stage"),
        (("solve",), "Missing argument"),
        (("sovle", "spiked_wigner"), "did you mean solve"),
        (("solve", "spiked_wigner", "--fast"), "--fast"),
        (("sweep", "spiked_wigner"), "eta=0.1:0.5:9"),
        (("solve", "spiked_wigner", "--gamma0", "2"), " gamma0=2 "),
        (("solve", "spiked_wigner", "--gamma0=2"), " gamma0=2 "),
        (("solve", "spiked_wigner", "gamma0=0.2..1.4/7"), "gamma0=0.2:1.4:7"),
        (("solve", "spiked_wigner", "gamma0=0.2-1.4"), "gamma0=0.1:0.5:9"),
        (("solve", "spiked_wigner", "gamma0=linspace(0,1,3)"), "gamma0=0.1:0.5:9"),
        (("solve", "spiked_wigner", "--grid", "0.1,x"), "LOW:HIGH:COUNT"),
        (("stability", "spiked_wigner"), "--of"),
        (("stability", "deep_linear", "--path"), "solve, "),
        (("solve", "deep_linear", "--curvature=0"), "stability has it"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(arguments: tuple[str, ...], word: str):
    assert word in refused(*arguments)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("x = field('x', D)\ny = field('y', D)\nMODEL = Model((), [Eq(x, y)], {'o': mean(x**2)})", "has no equation"),
        (
            "x = field('x', D)\na = normal('a', D)\nMODEL = Model((), [Eq(x, a), Eq(x, 2 * a)], {'o': mean(x**2)})",
            "defined twice",
        ),
        ("x = field('x', D)\nb = normal('b', N)\nMODEL = Model((), [Eq(x, b)], {'o': mean(x**2)})", "sectors"),
        (
            "A = gaussian('A', D, N)\nb = normal('b', D)\nx = field('x', D)\nMODEL = Model((), [Eq(x, A @ b)], {})",
            "check the sectors",
        ),
        (
            "A = goe('A', D)\na = normal('a', D)\nx = field('x', D)\nMODEL = Model((), [Eq(x, (A @ a)**2)], {})",
            "nonlinearly",
        ),
        ("import nothing_of_this_name", "nothing_of_this_name"),
        ("MODEL = ", "SyntaxError"),
    ],
)
def test_a_bad_declaration_is_refused_with_its_place(tmp_path: Path, body: str, word: str):
    path = tmp_path / "mine.py"
    path.write_text(HEAD + body + "\n")
    sentence = refused("build", str(path), "--out", str(tmp_path / "out"))
    assert word in sentence and f"{path}, line" in sentence
    assert not (tmp_path / "out").exists()


def test_an_equal_time_cycle_is_refused(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(
        HEAD + "M0 = goe('M0', D)\nx = field('x', D, t)\ny = field('y', D, t)\na = normal('a', D)\n"
        "MODEL = Model((T,), [Eq(x(t), a + y(t)), Eq(y(t), M0 @ x(t))], {'o': mean(x(t)**2)})\n"
    )
    sentence = refused("solve", str(path))
    assert "x" in sentence and "y" in sentence


# How commands end


@pytest.fixture
def solution_with(monkeypatch):
    """Replace one number of every solution."""
    import numerics.solver

    original = numerics.solver.solve

    def install(outlier: float) -> None:
        from dataclasses import replace

        def spoilt(*args, **options):
            solution = original(*args, **options)
            return replace(solution, layers=[replace(solution.layers[0], outliers=[outlier])])

        monkeypatch.setattr("derive.api.points.solve", spoilt)

    return install


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("style", [(), ("--json",)])
def test_a_nan_is_reported_and_never_printed(solution_with, value: float, style: tuple[str, ...]):
    solution_with(value)
    assert "not a number" in refused("solve", "spiked_wigner", *style, code=3)


def test_divergence_exits_with_three(monkeypatch):
    def diverges(*args, **options):
        raise NumericalError("activity diverged at step 7; take a smaller dt")

    monkeypatch.setattr("derive.api.points.solve", diverges)
    assert "diverged at step 7" in refused("solve", "spiked_wigner", code=3)


def test_an_interrupt_exits_with_130(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("derive.api.points.solve", interrupted)
    result = run("solve", "spiked_wigner")
    assert result.exit_code == 130 and "interrupted" in result.stderr


@pytest.mark.slow
def test_json_keeps_stderr_silent():
    done = subprocess.run(
        [sys.executable, "-m", "derive", "solve", "spiked_wigner", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) and done.stderr == ""


# Claims


def test_a_model_without_claims_says_so(starting_point: str):
    result = run("verify", starting_point)
    assert result.exit_code == 0 and "no claims for my_model: no independent check" in result.stdout


@pytest.mark.slow
def test_verify_of_a_setting_prints_one_line_a_claim():
    result = json.loads(run("verify", "spiked_wigner", "--json").stdout)
    assert result["proved"] == len(result["claims"]) > 0
    assert {claim["setting"] for claim in result["claims"]} == {"spiked_wigner"}


def test_a_missing_claims_file_is_refused():
    assert "no_such_claims" in refused("verify", "--claims", "no_such_claims.py")


CLAIMS = """model = "spiked_wigner"
[[claim]]
name = "edges"
kind = "edges"
value = ["-2", "{upper}"]
"""


@pytest.mark.slow
@pytest.mark.parametrize(("upper", "code"), [("2", 0), ("3", 1)])
def test_a_claim_that_fails_exits_with_one(tmp_path: Path, upper: str, code: int):
    path = tmp_path / "paper.toml"
    path.write_text(CLAIMS.format(upper=upper))
    result = run("verify", "--claims", str(path))
    assert result.exit_code == code
    assert f"{1 - code} of 1 claims proved" in result.stdout


@pytest.mark.slow
def test_claims_are_held_against_the_named_model(tmp_path: Path):
    path = tmp_path / "paper.toml"
    path.write_text(CLAIMS.format(upper="2"))
    result = run("verify", "coupled_spikes", "--claims", str(path))
    assert result.exit_code == 1 and "coupled_spikes: 0 of 1 proved" in result.stdout
    assert "refuted: edges" in result.stdout


# Comparison


def comparison(edges: list, outliers: list[float], eigenvalues: list) -> dict[str, float | None]:
    spectra = [np.array(sorted(e), float) for e in eigenvalues]
    law = SpectralLaw(tuple(map(tuple, edges)), (), Panelled((), ()), 0.0)
    solution = SimpleNamespace(
        layers=[Layer("", law, np.array(outliers), None, {})], observables={}, errors=None, two_time={}
    )
    seen = SimulatedLayer("", spectra, {}, (), [[] for _ in spectra], [None for _ in spectra], len(spectra[0]))
    simulation = Samples({}, 10, (seen,), {}, SETTING)
    return {row.quantity: row.simulation for row in compare(solution, simulation)}


def test_outliers_are_ranked_from_the_top_and_from_the_bottom():
    found = comparison([[-1, 1]], [5, 3, -4], [[-4, -1, 0, 1, 3, 5], [-4.2, -1, 0, 1, 3.2, 5.2]])
    assert found["outlier 1 above the bulk"] == pytest.approx(5.1)
    assert found["outlier 2 above the bulk"] == pytest.approx(3.1)
    assert found["outlier 1 below the bulk"] == pytest.approx(-4.1)
    assert found["upper edge, largest other eigenvalue"] == 1
    assert found["lower edge, smallest other eigenvalue"] == -1


def test_an_exact_null_space_is_no_outlier():
    found = comparison([[2, 4]], [1.0], [[0, 1e-16, 1.1, 2, 3, 4], [0, -1e-16, 0.9, 2, 3, 4]])
    assert found["outlier 1 below the bulk"] == pytest.approx(1.0)


def test_an_outlier_in_a_gap_meets_the_nearest_eigenvalue():
    found = comparison([[-3, -2], [2, 3]], [0.5], [[-3, -2, 0.4, 2, 3], [-3, -2, 0.6, 2, 3]])
    assert found["outlier 1 in a gap"] == pytest.approx(0.5)


def row(difference: float | None) -> Row:
    return Row("x", 1.0, None, 1.0, 0.1, difference, True)


@pytest.mark.parametrize(
    ("difference", "seeds", "outcome"), [(2.9, 5, "agrees"), (3.5, 5, "cannot tell"), (9.0, 50, "disagrees")]
)
def test_the_verdict_says_what_to_try(difference: float, seeds: int, outcome: str):
    found = judge([row(difference)], seeds)
    assert found.outcome == outcome and found.sentence.startswith(outcome)


def test_a_quantity_that_never_varies_must_be_exact():
    assert judge([row(None)], 5).outcome == "disagrees"


# Bench


@pytest.mark.slow
def test_bench_prints_its_figures():
    (figure,) = json.loads(run("bench", "--only", "start-up", "--json").stdout)["figures"]
    assert figure["unit"] == "times" and figure["value"] > 1 and figure["compilation"] is None


def test_bench_prints_each_row_before_the_next_is_measured(monkeypatch, capsys):
    import numerics.bench.run as measured
    from numerics.bench.tools import BenchRow

    seen = []

    def figures(title, references):
        for value in (1.0, 2.0):
            seen.append(capsys.readouterr().out)
            yield BenchRow("row", value, "times", "", 0.5)

    monkeypatch.setattr(measured, "figures", figures)
    monkeypatch.setattr(measured, "titles", lambda only, long: ["title"])
    bench.callback(only="", long=False, listed=False, as_json=False)
    assert "title" in seen[0] and "row" not in seen[0] and "1 times" in seen[1]


def test_the_clock_of_the_bench_counts_work_of_children_and_no_sleep():
    from numerics.bench.tools import cpu_seconds, python

    assert cpu_seconds(lambda: time.sleep(0.2)) < 0.1
    busy = "import time\nwhile time.process_time() < 0.15: pass"
    assert cpu_seconds(lambda: python("-c", busy)) > 0.1


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_table_never_cuts_a_number(width: int, monkeypatch, capsys):
    monkeypatch.setattr(output, "columns", lambda: width)
    numbers = ("0.402511", "0.799122", "125.054", "1.23(4)e-7")
    output.print_table("", ("what it is", "+-", "loss diverges", "size to follow", "x"), [("a word", *numbers)])
    told = capsys.readouterr().out.split()
    assert [word for word in told if word in numbers] == list(numbers)


# -- letters of a source


def test_show_prints_the_table_of_letters_first():
    shown = run("show", "deep_linear", "layer=0", "--stage", "blocks", "--notation", "paper").output
    table, _, rows = shown.partition("A(z)\n====")
    assert "J0^T g1           = gamma0 xi^0" in table and "A[3,2] = -(1/(gamma0 nu)) C_g^1" in rows
    assert "C_g^1" not in run("show", "deep_linear", "layer=0", "--stage", "blocks").output


def test_one_equation_in_the_letters_of_the_source():
    shown = run("show", "spiked_wigner", "--equation", "A1", "--notation", "paper", "--format", "latex").output
    assert shown.strip() == r"\left(z - R_h(z)\right)\, C_{vh}(z) = \gamma_{0}\, C_v\, C_{vh}(z)"


def test_show_says_that_a_model_has_no_letters():
    assert "declares no notation" in refused("show", "structured_regression", "--notation", "paper")


@pytest.mark.slow
def test_build_writes_comments_in_the_letters_of_the_source(tmp_path):
    run("build", "coupled_spikes", "--notation", "paper", "--out", str(tmp_path))
    written = {path.name: path.read_text() for path in (tmp_path / "coupled_spikes").glob("*.*")}
    assert "xi(t) = u^xi(t) + sigma^2 sum_{s<t} R^g(t,s) phi(s)" in written["training.py"]
    assert r"| `R[psi0,xi]` | $\rho_0$ |" in written["derivation.md"] and "rho_0(z)" in written["probe.py"]


@pytest.mark.slow
def test_report_has_the_table_of_letters_first(tmp_path):
    page = tmp_path / "report.tex"
    run("report", "spiked_wigner", "--notation", "paper", "--no-simulation", "-o", str(page))
    text = page.read_text()
    assert text.index("Letters of the source") < text.index("C_{vh}") and "notation=paper" in text
