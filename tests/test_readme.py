"""The README keeps its word: its commands run, its parameters exist, and its picture shows the stages there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from derive.cli import main
from derive.loading import setting_names
from derive.pipeline import STAGES
from derive.problems import load_grid
from derive.sweeps.journal import write_merged

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.M | re.S)
FENCED = [line for kind, body in FENCES if kind == "sh" for line in body.splitlines()]
COMMANDS = list(
    dict.fromkeys(
        [line for line in FENCED if line.startswith("derive ")]
        + [
            command
            for row in TEXT.splitlines()
            if row.startswith("| `")
            for command in re.findall(r"`(derive [^`]+)`", row)
        ]
    )
)
ELSEWHERE = ("derive bench", "derive selftest --quick", "derive verify")
"""What tests of its own run, and take long."""


def set_up_lines() -> list[str]:
    return [line for line in FENCED if line.startswith("python3 -m venv")]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A directory with what the README tells its reader to have: my_model.py, my_paper.toml, two archives and the
    journals of two shards."""
    monkeypatch.chdir(tmp_path)
    (claims,) = [body for kind, body in FENCES if kind == "toml"]
    (tmp_path / "my_paper.toml").write_text(claims, encoding="utf-8")
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "weights.npz", W1=rng.standard_normal((60, 80)))
    np.savez(tmp_path / "mine.npz", x=rng.standard_normal((4, 3)), y=np.array([1.0, -1.0, 1.0, -1.0]))
    for shard in (1, 2):
        write_merged(tmp_path / f"part{shard}.journal", {"options": {}}, {f"solve {shard}": "{}"})
    assert CliRunner().invoke(main, ["new", "my_model"]).exit_code == 0
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in ELSEWHERE])
def test_command_runs(command, workplace):
    arguments = shlex.split(command)[1:]
    if arguments[0] == "new":
        (workplace / "my_model.py").unlink()
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    for option in ("--plot", "--out", "-o"):
        if option in arguments:
            assert (workplace / arguments[arguments.index(option) + 1]).exists()


def test_every_command_has_an_example():
    assert {command.split()[1] for command in COMMANDS} == set(main.commands)


def test_parameters_in_the_commands_exist(workplace):
    for line in [*COMMANDS, *set_up_lines()]:
        words = shlex.split(line.rpartition("derive ")[2] if "derive " in line else "")
        targets = [word for word in words if word in setting_names() or word.endswith(".py")]
        pairs = [word for word in words if re.fullmatch(r"\w+=[\w./,:-]+", word)]
        if pairs:
            assert load_grid(targets[0], pairs).problems, line


def test_two_lines_set_up_and_run():
    main_job, tests = set_up_lines()
    for line in (main_job, tests):
        assert "pip install -q -c constraints.txt -e" in line
    assert " compare " in main_job and "--plot" in main_job
    assert "-m pytest" in tests


def test_picture_shows_every_stage_in_order():
    (picture,) = [body for kind, body in FENCES if kind == "text" and "|  system" in body]
    shown = re.findall(r"^ +\|  ([a-z-]+) ", picture, flags=re.M)
    assert tuple(shown) == STAGES


def test_walk_shows_the_declaration_as_it_is():
    source = (ROOT / "derive" / "models" / "anti_hebbian.py").read_text(encoding="utf-8")
    for kind, body in FENCES:
        for line in body.splitlines() if kind == "python" else ():
            assert line.partition("#")[0].rstrip() in source


def test_layout_names_every_package():
    for path in (ROOT / "derive").iterdir():
        if (path / "__init__.py").exists():
            assert f"derive/{path.name} " in TEXT


@pytest.mark.slow
def test_the_lines_of_python_run(workplace):
    (lines,) = [body for kind, body in FENCES if kind == "py" and "\nm = derive.load" in body]
    exec(compile(lines.replace("size=400, seeds=10", "size=40, seeds=2"), "README.md", "exec"), {})  # noqa: S102
    assert (workplace / "run.nc").exists() and (workplace / "page.html").exists()
