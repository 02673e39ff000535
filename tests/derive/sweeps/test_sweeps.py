"""Sweeps: lists and ranges, one computation for many points, points that diverge, and results as files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import solver_and_values, solver_of, values_of

from derive.cli import main
from derive.errors import NumericalError, ParameterError
from derive.inputs.problems import MOST_POINTS, load_grid, load_problem
from numerics.solver import solve, solve_many


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code == 2 and result.stdout == "", result.output
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    return result.stderr


def points_of(*arguments: str) -> list[dict]:
    result = run("solve", *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["points"]


# Which points there are


def test_a_list_keeps_its_order():
    sweep = load_grid("spiked_wigner", ["gamma0=2,0.5,1/4"])
    assert sweep.axes == (("gamma0", (2.0, 0.5, 0.25)),)
    assert [problem.values["gamma0"] for problem in sweep.problems] == [2.0, 0.5, 0.25]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.1:0.5:9", np.linspace(0.1, 0.5, 9)),
        ("3:1:3", [3, 2, 1]),
        ("1e-3:1:2", [1e-3, 1]),
        (" 1 : 2 : 2 ", [1, 2]),
    ],
)
def test_a_range_has_both_ends(text: str, values):
    found = [problem.values["gamma0"] for problem in load_grid("spiked_wigner", [f"gamma0={text}"]).problems]
    assert found == pytest.approx(list(values), rel=1e-15)


def test_a_grid_has_every_combination_and_the_last_axis_is_fastest():
    sweep = load_grid("deep_linear", ["L=1:3:3", "eta=0.1,0.2", "T=2:4:2", "layer=0"])
    assert [name for name, _ in sweep.axes] == ["L", "eta", "T"]
    found = [(p.values["L"], p.values["eta"], p.values["T"]) for p in sweep.problems]
    assert found == [(L, eta, T) for L in (1, 2, 3) for eta in (0.1, 0.2) for T in (2, 4)]
    assert {p.model.name for p in sweep.problems} == {"deep_linear_L1", "deep_linear", "deep_linear_L3"}
    assert all(isinstance(p.values["T"], int) and p.layers == ("0",) for p in sweep.problems)


def test_words_are_swept_too():
    sweep = load_grid("deep_linear", ["data=full_batch,online", "param=mup,ntk"])
    assert [p.model.name for p in sweep.problems] == [
        "deep_linear",
        "deep_linear_ntk",
        "deep_linear_online",
        "deep_linear_online_ntk",
    ]


def test_one_value_is_no_sweep():
    assert load_grid("spiked_wigner", ["gamma0=2"]).axes == ()
    with pytest.raises(ParameterError, match="sweeps take several"):
        load_problem("spiked_wigner", ["gamma0=1:3:5"])


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        ("eta=0.1:0.5", "low:high:count"),
        ("eta=0.1:0.5:1", "low:high:count"),
        ("eta=0.1:0.5:2.5", "low:high:count"),
        ("eta=0.1:0.5:3:4", "low:high:count"),
        ("eta=a:b:3", "low:high:count"),
        ("eta=0.1:inf:3", "low:high:count"),
        ("eta=0.2:0.2:3", "low:high:count"),
        ("eta=::", "low:high:count"),
        ("eta=0.1:0.5:3,0.7", "low:high:count"),
        ("eta=0.1,,0.2", "empty entry"),
        ("eta=0.1,", "empty entry"),
        ("eta=0.1,0.2,0.1", "0.1 twice"),
        ("eta=0.1,two", "not a number"),
        ("eta=0.1:-0.5:3", "out of range"),
        ("eta=0.1,nan", "not finite"),
        ("T=2:3:3", "whole number"),
        ("L=1:2:3", "whole number"),
        ("L=0:2:3", "out of range"),
        ("data=full_batch,offline", "full_batch or online"),
        ("etta=0.1,0.2", "did you mean eta"),
        ("layer=0,1", "layer=all"),
        (f"eta=0.1:0.5:{MOST_POINTS + 1}", "fewer values"),
        ("eta=0.1:0.5:1000000000000", "fewer values"),
    ],
)
def test_bad_lists_and_ranges_are_refused_in_one_sentence(pair: str, word: str):
    with pytest.raises(ParameterError, match=word) as caught:
        load_grid("deep_linear", [pair])
    assert "\n" not in str(caught.value)


def test_a_grid_that_is_too_large_is_refused():
    with pytest.raises(ParameterError, match="fewer values"):
        load_grid("deep_linear", ["eta=0.1:0.5:1000", "nu=1:2:1000"])


@pytest.mark.parametrize("command", ["report", "show"])
def test_other_commands_take_one_value(command: str):
    assert "take several" in refused(command, "deep_linear", "L=1,2")


# One computation for many points


@pytest.mark.slow
def test_points_side_by_side_are_those_one_by_one(monkeypatch):
    solver, calls = solver_of("deep_linear", L=1), []
    values = [values_of("deep_linear", L=1, T=3, eta=eta, nu=nu) for eta in (0.05, 0.4) for nu in (0.5, 2.0)]
    together = solver.forward_passes

    def counted(*arguments):
        calls.append(arguments)
        return together(*arguments)

    monkeypatch.setitem(solver.__dict__, "forward_passes", counted)
    many = list(solve_many(solver, values, path=True, overlaps=True))
    assert len(calls) == 1
    for point, found in zip(values, many, strict=True):
        alone = solve(solver, point, path=True, overlaps=True)
        assert found.inputs == alone.inputs == point
        for name, series in alone.observables.items():
            assert found.observables[name] == pytest.approx(series, rel=1e-12)
        for one, other in zip(alone.layers, found.layers, strict=True):
            assert np.allclose(one.bulk_edges, other.bulk_edges, rtol=1e-12)
            assert other.outliers == pytest.approx(one.outliers, rel=1e-12)
            assert other.largest_path == pytest.approx(one.largest_path, rel=1e-12)
            assert (one.bbp_time, len(one.outlier_path)) == (other.bbp_time, len(other.outlier_path))
            assert one.overlaps.keys() == other.overlaps.keys()
            for side, squares in one.overlaps.items():
                assert other.overlaps[side] == pytest.approx(squares, rel=1e-9, nan_ok=True)
    assert any(len(found.outliers) for found in many)


@pytest.mark.slow
def test_points_that_do_not_fit_into_memory_together_are_solved_in_groups(monkeypatch):
    import numerics.training.trained

    solver = solver_of("anti_hebbian")
    values = [values_of("anti_hebbian", T=4, gamma0=g) for g in (3.0, 4.0, 5.0)]
    whole = [s.observables for s in solve_many(solver, values)]
    monkeypatch.setattr(numerics.training.trained, "BATCH_BYTES", 1.0)
    assert [len(chunk) for chunk in numerics.training.trained.chunks(solver, values)] == [1, 1, 1]
    for one, other in zip(solve_many(solver, values), whole, strict=True):
        for name in other:
            assert one.observables[name] == pytest.approx(other[name], rel=1e-12)


@pytest.mark.long
@pytest.mark.slow
def test_sampled_points_are_those_one_by_one():
    solver = solver_of("coupled_spikes_tanh")
    values = [values_of("coupled_spikes_tanh", S=2, theta=theta) for theta in (1.5, 2.5)]
    for point, found in zip(values, solve_many(solver, values, samples=2_000, seed=3), strict=True):
        assert np.array_equal(found.outliers, solve(solver, point, samples=2_000, seed=3).outliers)


@pytest.mark.slow
def test_a_point_that_diverges_says_so_and_the_others_go_on():
    solver = solver_of("deep_linear", L=1)
    values = [values_of("deep_linear", L=1, T=3, eta=eta) for eta in (0.05, 1e90, 0.3, 0.4)]
    first, bad, _, last = solve_many(solver, values)
    assert isinstance(bad, NumericalError) and "diverged at step" in str(bad)
    assert np.all(np.isfinite(first.observables["test_loss"])) and len(last.outliers)


def test_nothing_to_solve_is_nothing_solved():
    assert list(solve_many(solver_of("spiked_wigner"), [])) == []


# Commands


@pytest.mark.long
@pytest.mark.slow
def test_a_sweep_over_choices_and_rates(tmp_path: Path):
    """One computation a member; files hold what is printed."""
    lines, table = tmp_path / "sweep.jsonl", tmp_path / "sweep.csv"
    grid = ("deep_linear", "L=1,2", "T=2", "eta=0.4,1e90", "layer=0")
    points = points_of(*grid, "--out", str(lines))
    assert [json.loads(line) for line in lines.read_text().splitlines()] == points
    assert [(p["parameters"]["L"], p["parameters"]["eta"]) for p in points] == [
        (1, 0.4),
        (1, 1e90),
        (2, 0.4),
        (2, 1e90),
    ]
    assert all("diverged at step" in p["error"] and set(p) == {"setting", "parameters", "error"} for p in points[1::2])
    for point in points[::2]:
        assert point["setting"] == "deep_linear" and len(point["train_loss"]) == len(point["test_loss"]) == 3
        assert [layer["layer"] for layer in point["layers"]] == [0]
    alone = solve(*solver_and_values("deep_linear", L=1, T=2, eta=0.4))
    assert points[0]["test_loss"] == pytest.approx(alone.observables["test_loss"], rel=1e-12)
    assert points[0]["outliers"] == pytest.approx(alone.outliers, rel=1e-12)

    points_of(*grid, "--out", str(table))
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert len(rows) == 4 and list(rows[0])[:3] == ["L", "data", "param"] and list(rows[0])[-1] == "trouble"
    for row, point in zip(rows, points, strict=True):
        assert float(row["eta"]) == point["parameters"]["eta"] and int(row["L"]) == point["parameters"]["L"]
        if "error" in point:
            assert row["trouble"] == point["error"] and row["test_loss"] == row["largest_0"] == ""
        else:
            layer = point["layers"][0]
            assert row["trouble"] == "" and float(row["test_loss"]) == point["test_loss"][-1]
            assert float(row["upper_edge_0"]) == layer["bulk_edges"][-1][1]
            assert float(row["lower_edge_0"]) == layer["bulk_edges"][0][0]
            assert [float(row[f"outlier_{k + 1}_0"]) for k in range(len(layer["outliers"]))] == layer["outliers"]
            assert float(row["largest_0"]) == max([layer["bulk_edges"][-1][1], *layer["outliers"]])
            assert float(row["smallest_0"]) == min([layer["bulk_edges"][0][0], *layer["outliers"]])
    assert not [path for path in tmp_path.iterdir() if path not in (lines, table)]


@pytest.mark.slow
def test_a_sweep_over_whole_numbers_for_people():
    result = run("solve", "anti_hebbian", "T=1,2", "gamma0=4,1e200")
    assert result.exit_code == 0 and "4 points" in result.stdout and "activity" in result.stdout
    assert result.stdout.count("diverged") == 3  # a line for each point, and one that says why
    points = points_of("anti_hebbian", "T=1,2", "gamma0=4:5:2")
    assert [(p["parameters"]["T"], p["parameters"]["gamma0"]) for p in points] == [(1, 4), (1, 5), (2, 4), (2, 5)]
    assert [len(p["activity"]) for p in points] == [2, 2, 3, 3]


def test_a_sweep_of_a_model_without_layers(tmp_path: Path):
    table = tmp_path / "sweep.csv"
    points = points_of("spiked_wigner", "gamma0=0.5:2:4", "--out", str(table))
    assert [len(point["outliers"]) for point in points] == [0, 0, 1, 1]
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [float(row["largest"]) for row in rows] == pytest.approx([2, 2, 1.5 + 2 / 3, 2.5], abs=1e-9)
    assert "trouble" not in rows[0] and [row["spike_norm"] for row in rows] == ["1.0"] * 4


def test_one_point_is_written_too(tmp_path: Path):
    lines = tmp_path / "one.jsonl"
    solved = json.loads(run("solve", "spiked_wigner", "gamma0=2", "--out", str(lines), "--json").stdout)
    del solved["digest"]  # of what is printed, for those who read it back
    assert [json.loads(line) for line in lines.read_text().splitlines()] == [solved]


@pytest.mark.slow
def test_paths_on_a_grid_when_asked_for(monkeypatch):
    monkeypatch.setattr("derive.api.solvers.load_solver", lambda files: solver_of("deep_linear", L=1))
    points = points_of("deep_linear", "L=1", "T=3", "eta=0.35,0.4", "gamma0=3,4", "--path")
    for point in points:
        assert len(point["layers"][0]["outlier_path"]) == 4 and point["layers"][0]["bbp_time"] is not None


@pytest.mark.parametrize(
    ("out", "word"), [("sweep.txt", ".jsonl"), ("sweep", ".csv"), ("no/such/place.csv", "cannot be written")]
)
def test_a_file_that_cannot_be_written_is_refused_before_any_work(out: str, word: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert word in refused("solve", "no_such_model.py", "gamma0=1,2", "--out", out)
    (tmp_path / "folder.csv").mkdir()
    assert "cannot be written" in refused("solve", "no_such_model.py", "--out", "folder.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_a_number_that_is_not_finite_at_one_point_spoils_no_other(monkeypatch):
    from dataclasses import replace

    original = solve_many

    def spoilt(*arguments, **options):
        for number, solution in enumerate(original(*arguments, **options)):
            broken = (replace(solution.layers[0], outliers=np.array([np.nan])),)
            yield replace(solution, layers=broken) if number == 1 else solution

    monkeypatch.setattr("numerics.solver.solve_many", spoilt)
    points = points_of("spiked_wigner", "gamma0=2,3,4")
    assert [("error" in point) for point in points] == [False, True, False]
    assert "not a number" in points[1]["error"]
