"""Writing generated code: all or nothing, and the same bytes every time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SHIPPED, solver_of, values_of

from derive.codegen import build as building, generate_files
from derive.codegen.build import compare_tree, generate_tree, write_tree
from derive.errors import DeclarationError, DeriveError
from derive.inputs.loading import load_model
from numerics.solver import solve

TREE = {"first": {"__init__.py": "a = 1\n", "deep/notes.md": "one\n"}, "second": {"__init__.py": "b = 2\n"}}


def snapshot(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_the_tree_is_written_as_it_stands(tmp_path: Path):
    write_tree(TREE, tmp_path / "out")
    assert snapshot(tmp_path / "out") == {
        "first/__init__.py": b"a = 1\n",
        "first/deep/notes.md": b"one\n",
        "second/__init__.py": b"b = 2\n",
    }


def test_what_was_written_is_up_to_date(tmp_path: Path):
    write_tree(TREE, tmp_path, whole=True)
    assert not compare_tree(TREE, tmp_path, whole=True)


def test_files_of_an_earlier_build_are_dropped(tmp_path: Path):
    write_tree({"first": {"old.py": ""}}, tmp_path)
    write_tree(TREE, tmp_path)
    assert "first/old.py" not in snapshot(tmp_path)


def test_other_directories_are_left_alone(tmp_path: Path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("keep")
    write_tree(TREE, tmp_path, whole=True)
    assert (tmp_path / "other" / "mine.txt").read_text() == "keep"


def test_stale_missing_and_extra_files_are_named(tmp_path: Path):
    write_tree(TREE, tmp_path, whole=True)
    (tmp_path / "first/__init__.py").write_text("a = 3\n")
    (tmp_path / "second/__init__.py").unlink()
    (tmp_path / "first/more.py").write_text("")
    (tmp_path / "third").mkdir()
    difference = compare_tree(TREE, tmp_path, whole=True)
    assert difference.stale == ("first/__init__.py",)
    assert difference.missing == ("second/__init__.py",)
    assert difference.extra == ("first/more.py",)
    assert difference.foreign == ("third",)


def test_bytecode_is_ignored(tmp_path: Path):
    write_tree(TREE, tmp_path, whole=True)
    for directory in (tmp_path, tmp_path / "first"):
        (directory / "__pycache__").mkdir()
        (directory / "__pycache__" / "x.pyc").write_bytes(b"")
    assert not compare_tree(TREE, tmp_path, whole=True)


def test_a_missing_directory_is_all_missing(tmp_path: Path):
    assert len(compare_tree(TREE, tmp_path / "nowhere").missing) == 3


def test_a_derivation_that_fails_midway_writes_nothing(tmp_path: Path):
    models = [load_model("spiked_wigner"), load_model("anti_hebbian")]

    def fails_at_the_second(model):
        if model.name == "anti_hebbian":
            raise DeclarationError("no")
        return {"__init__.py": ""}

    with pytest.raises(DeclarationError):
        write_tree(generate_tree(models, fails_at_the_second), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("failing", range(4))
def test_a_swap_that_fails_midway_leaves_everything_as_it_was(tmp_path: Path, monkeypatch, failing: int):
    write_tree({"first": {"__init__.py": "old"}, "second": {"__init__.py": "old"}}, tmp_path)
    before = snapshot(tmp_path)
    calls = iter(range(100))
    replace = os.replace

    def breaks_once(source, target):
        if next(calls) == failing:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(building.os, "replace", breaks_once)
    with pytest.raises(DeriveError, match="nothing was changed"):
        write_tree(TREE, tmp_path)
    assert snapshot(tmp_path) == before
    assert not list(tmp_path.glob(".building-*"))


def test_an_interrupt_leaves_everything_as_it_was(tmp_path: Path, monkeypatch):
    write_tree({"first": {"__init__.py": "old"}}, tmp_path)
    before = snapshot(tmp_path)

    def interrupted(source, target):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(building.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_tree(TREE, tmp_path)
    assert snapshot(tmp_path) == before


def test_a_new_directory_is_not_left_behind_by_a_failure(tmp_path: Path, monkeypatch):
    def breaks(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(building.os, "replace", breaks)
    with pytest.raises(DeriveError):
        write_tree(TREE, tmp_path / "deep" / "out")
    assert not (tmp_path / "deep").exists()


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path):
    (tmp_path / "out").write_text("")
    with pytest.raises(DeriveError, match="is a file"):
        write_tree(TREE, tmp_path / "out")


def test_two_models_of_one_name_are_refused():
    model = load_model("spiked_wigner")
    with pytest.raises(DeriveError, match="two declarations"):
        generate_tree([model, model], lambda model: {})


def test_generated_code_holds_no_absolute_path():
    for text in generate_files(load_model("spiked_wigner")).values():
        assert str(Path.cwd()) not in text and str(Path.home()) + "/" not in text


@pytest.mark.parametrize("name", SHIPPED)
def test_generated_code_cites_equations_by_their_numbers_in_the_derivation(name):
    """Each number stands in the document once; rows of A(z), equations of the bulk, maps and curves are all cited."""
    place = Path(__file__).parents[3] / "generated" / name
    tags = re.findall(r"\\tag\{([A-Z]\d+(?:\.\w+)?)\}", (place / "derivation.md").read_text(encoding="utf-8"))
    code = "".join(path.read_text(encoding="utf-8") for path in place.glob("*.py"))
    cited = set(re.findall(r"\[([A-Z]\d+(?:\.\w+)?)\]", code))
    assert tags and len(tags) == len(set(tags))
    assert cited <= set(tags) and {tag for tag in tags if tag[0] != "E"} <= cited


def test_laws_of_the_limit_and_of_the_recursion_stand_once():
    text = (Path(__file__).parents[3] / "generated/structured_regression/linear.py").read_text(encoding="utf-8")
    assert text.count("LinearSitesOf(") == 1 and text.count("**vars(SITES)") == 2


ALONE = """
import json, sys
for name in ("derive", "numerics", "generated", "sympy"):
    sys.modules[name] = None  # as if it were not installed: importing it is an error
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from coupled_spikes import SETTING
from coupled_spikes.bulk import BULK
from coupled_spikes.probe import PROBE
from coupled_spikes.runtime.passes import pass_of
from coupled_spikes.runtime.point import Point
from coupled_spikes.simulation import SIMULATION
from coupled_spikes.training import TRAINING

p = Point(**{q.name: q.default for q in SETTING.parameters})
order, observables, finite = jax.jit(pass_of(TRAINING).forward_pass)(p)
(cycle,) = PROBE.cycles
s = np.linalg.eigvals(np.asarray(cycle.pencil(p, order).array(np)))
places = [float(cycle.inverse(p, x)) for x in s[np.abs(s.imag) < 1e-9].real if x != 0]
r = np.full(len(BULK.responses), 0.1)
matrices, spikes, sampled = SIMULATION.simulate(p, 40, np.random.default_rng(1))
print(json.dumps({
    "places": places,
    "observables": {name: np.asarray(series).tolist() for name, series in observables.items()},
    "finite": int(finite),
    "equations": [float(x) for x in BULK.residual(p, 5.0, r)],
    "rows": PROBE.a_matrix(p, 5.0, r, order).shape[0],
    "size": len(matrices[""]),
    "sampled": sorted(sampled),
}))
"""


@pytest.mark.slow
def test_a_solver_outside_the_project_stands_alone(tmp_path: Path):
    """Run without this package: the same numbers as inside it."""
    build = [sys.executable, "-m", "derive", "build", "coupled_spikes", "--out", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    values = values_of("coupled_spikes")
    here = solve(solver_of("coupled_spikes"), values)
    assert len(here.outliers)
    for z in here.outliers:
        assert min(abs(z - place) for place in found["places"]) < 1e-12 * abs(z)
    for name, series in here.observables.items():
        assert found["observables"][name] == pytest.approx(series, rel=1e-12)
    assert found["finite"] == values["S"] and found["rows"] == 4 * values["S"] and found["size"] == 40
    assert found["sampled"] == sorted(here.observables)
    # by hand, at z = 5, all responses 0.1, sigma = 1, alpha = 2
    assert found["equations"] == pytest.approx([-0.51, -0.905, -0.51])
