"""What an installation brings: three packages, claims among them, and nothing that a command writes into them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import derive
from derive.claims.reading import reference_directory
from derive.cli import main
from derive.codegen import build
from derive.errors import ParameterError
from derive.support import places

ROOT = Path(__file__).parents[2]


def test_this_is_a_checkout():
    assert places.checkout() == ROOT and reference_directory() == ROOT / "tests" / "reference_formulas"


@pytest.mark.parametrize("told", [None, '[project]\nname = "another"\n', "project = 1\n", "not TOML", "\xff"])
def test_a_checkout_is_told_by_its_own_name(told: str | None, tmp_path: Path, monkeypatch):
    if told is not None:
        (tmp_path / "pyproject.toml").write_bytes(told.encode("latin-1"))
    monkeypatch.setattr(places, "__file__", str(tmp_path / "derive" / "places.py"))
    assert places.checkout() is None


@pytest.mark.parametrize("words", [[], ["spiked_wigner"], ["spiked_wigner.py"]])
def test_a_build_of_an_installed_copy_asks_where_to_write(words: list[str], tmp_path: Path, monkeypatch):
    shutil.copy(ROOT / "derive" / "models" / "spiked_wigner.py", tmp_path)
    monkeypatch.setattr(build, "checkout", lambda: None)
    monkeypatch.setattr(build, "project_directory", lambda: tmp_path / "installed" / "generated")
    monkeypatch.chdir(tmp_path)
    for told in ([], ["--out", str(tmp_path / "installed" / "generated")] if words != ["spiked_wigner.py"] else []):
        refused = CliRunner().invoke(main, ["build", *words, *told])
        assert refused.exit_code == 2 and "--out" in refused.stderr and refused.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spiked_wigner.py"]
    if words:
        assert CliRunner().invoke(main, ["build", *words, "--out", "solvers"]).exit_code == 0
        assert (tmp_path / "solvers" / "spiked_wigner" / "training.py").is_file()


def test_solvers_are_not_written_among_the_packages(tmp_path: Path, monkeypatch):
    m = derive.load("spiked_wigner")
    places_of_ours = [ROOT / "generated", ROOT / "derive" / "mine", ROOT / "numerics"]
    monkeypatch.setattr(places, "__file__", str(tmp_path / "derive" / "places.py"))
    for directory in (tmp_path, tmp_path / "derive", tmp_path / "new"):
        with pytest.raises(ParameterError, match="installed"):
            m.build(directory)
        refused = CliRunner().invoke(main, ["build", "spiked_wigner", "--out", str(directory)])
        assert refused.exit_code == 2 and "installed" in refused.stderr
    monkeypatch.undo()
    for directory in places_of_ours:
        with pytest.raises(ParameterError, match="contains the code of this project"):
            m.build(directory)
    assert list(tmp_path.iterdir()) == []


WITHOUT_EXTRAS = """
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[1])
from derive.support.extras import EXTRAS

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from click.testing import CliRunner
from derive.cli import main
lines = (
    "solve spiked_wigner gamma0=2 --out s.csv --plot s.png",
    "simulate spiked_wigner --size 20 --seeds 2 --out s.jsonl",
    "solve spiked_wigner --out s.nc",
    "report spiked_wigner --no-simulation -o r.html",
    "explore spiked_wigner",
    "report spiked_wigner --no-simulation -o r.tex",
)
for line in lines:
    done = CliRunner().invoke(main, line.split())
    print(json.dumps([done.exit_code, done.stderr]))
"""


def test_a_solver_needs_no_extra_and_what_does_says_how_to_install_it(tmp_path: Path):
    words = [sys.executable, "-c", WITHOUT_EXTRAS, str(ROOT)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    solve, simulate, netcdf, page, explore, latex = map(json.loads, done.stdout.splitlines())
    assert [solve[0], simulate[0], latex[0]] == [0, 0, 0], done.stdout
    for (code, said), extra in ((netcdf, "files"), (page, "report"), (explore, "explore")):
        assert code == 2 and f"pip install 'two-level-dmft[{extra}]'" in said
    assert not (tmp_path / "s.nc").exists() and not (tmp_path / "r.html").exists()


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The wheel, put where an installation puts it, with nothing of the checkout in sight."""
    pytest.importorskip("hatchling", reason="builds the wheel: pip install -e '.[dev]'")
    made, target = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site-packages")
    building = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)]
    subprocess.run(building, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = made.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def python(installed: Path, directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python process in a directory elsewhere that knows the installed copy only."""
    left_out = ("JAX_", "TWO_LEVEL_DMFT", "XDG_", "PYTHONDONTWRITEBYTECODE")
    known = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    told = {**known, "PYTHONPATH": str(installed), "TWO_LEVEL_DMFT_CACHE": ""}
    told |= {"NOTEBOOK_QUICK": "1", "MPLBACKEND": "agg"}
    return subprocess.run([sys.executable, *words], cwd=directory, env=told, capture_output=True, text=True)


def on_their_own(installed: Path, directory: Path, *lines: str) -> list[tuple[int, str, str]]:
    """Commands of the installed copy, one after the other in one process: how each ended and what it said."""
    done = python(installed, directory, "-c", COMMANDS, str(installed), *lines)
    assert done.returncode == 0, done.stderr
    return [tuple(one) for one in json.loads(done.stdout)]


def files_of(installed: Path) -> dict[Path, int]:
    """The files of the installed copy and when they were written; bytecode is Python's own."""
    files = (path for path in installed.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path: path.stat().st_mtime_ns for path in files}


COMMANDS = """
import contextlib, io, json, sys
from derive.cli import main, __file__ as here

assert here.startswith(sys.argv.pop(1))
ended = []
for line in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(line.split())
        except SystemExit as status:
            code = status.code
    ended.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(ended))
"""


@pytest.mark.slow
def test_the_wheel_adds_three_packages_and_nothing_else(installed: Path):
    added = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert added == {"derive", "numerics", "generated"}
    (metadata,) = installed.glob("*.dist-info")
    assert {path.name for path in metadata.iterdir()} >= {"METADATA", "RECORD", "entry_points.txt", "licenses"}
    shipped = {path.name for path in (ROOT / "tests" / "reference_formulas").glob("*.toml")}
    assert {path.name for path in (installed / "derive" / "claims" / "formulas").glob("*.toml")} == shipped != set()


@pytest.mark.slow
def test_an_installed_copy_verifies_solves_and_stays_as_it_came(installed: Path, tmp_path: Path):
    before = files_of(installed)
    solved = python(installed, tmp_path, "-m", "derive", "solve", "spiked_wigner", "gamma0=2", "--json")
    assert solved.returncode == 0 and not solved.stderr
    assert json.loads(solved.stdout)["outliers"] == pytest.approx([2.5])
    misspelt = python(installed, tmp_path, "-m", "derive", "solve", "spiked_wignr")
    assert misspelt.returncode == 2 and misspelt.stderr.count("\n") == 1 and not misspelt.stdout
    proved, refused, checked, made, built = on_their_own(
        installed,
        tmp_path,
        "verify spiked_wigner --json",
        "build spiked_wigner",
        "build spiked_wigner --check",
        "new mine",
        "build mine.py --out solvers",
    )
    verdicts = json.loads(proved[1])
    assert proved[0] == 0 and verdicts["proved"] == len(verdicts["claims"]) > 0 and not verdicts["without_claims"]
    assert refused[0] == 2 and "--out" in refused[2] and refused[2].count("\n") == 1
    assert [status for status, _, _ in (checked, made, built)] == [0] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "solvers"]
    assert files_of(installed) == before


@pytest.mark.long
@pytest.mark.slow
def test_a_notebook_copied_elsewhere_runs(installed: Path, tmp_path: Path):
    name = "01_first_model"
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / f"{name}.py").write_text("\n\n".join(code), encoding="utf-8")
    done = python(installed, tmp_path, f"{name}.py")
    assert done.returncode == 0 and "standard errors" in done.stdout, done.stderr
