"""The examples that help prints run as they stand on the file that `derive new` writes; those of the manual there."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from test_manual import COMMANDS as OF_THE_MANUAL, ELSEWHERE

from derive.cli import main
from derive.cli.compare import EXIT_CODES

OF_THE_USER = ("SETTING", "my_paper.toml", "weights.", "model.safetensors", "part1.journal")
"""Words that stand for what a user has: a name, claims, a trained network, journals of shards."""
WITHOUT_END = ("bench", "check", "selftest", "build --check", "explore")
"""Examples that take minutes or do not end, and have tests of their own."""
OF_EXTRAS = ("--target",)
"""Options of examples that need what not everybody installs, and have tests of their own."""


def examples(command: click.Command) -> list[str]:
    """The command lines under `Examples:`; two spaces or more end one."""
    lines = (command.help or "").partition("Examples:")[2].splitlines()
    found = [line.strip().partition("  ")[0] for line in lines if line.strip().startswith("derive ")]
    return [*found, *(e for c in getattr(command, "commands", {}).values() for e in examples(c))]


EXAMPLES = [
    e
    for e in dict.fromkeys(examples(main))
    if e not in (*OF_THE_MANUAL, *ELSEWHERE)
    and not any(word in e for word in (*OF_THE_USER, *OF_EXTRAS))
    and not e.startswith(tuple(f"derive {word}" for word in WITHOUT_END))
]
SLOW = ("report", "verify", "compare", "stability", "derive build")


def numbers(node: object) -> list[float]:
    if isinstance(node, dict):
        return [n for value in node.values() for n in numbers(value)]
    if isinstance(node, list):
        return [n for value in node for n in numbers(value)]
    return [node] if isinstance(node, float) else []


@pytest.fixture
def beside_the_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["new", "my_model"]).exit_code == 0
    return tmp_path


def test_there_are_examples_for_every_command():
    for name, command in main.commands.items():
        assert examples(command), name


@pytest.mark.long_cases(
    "derive compare my_model.py --plot out.png",
    "derive report my_model.py -o report.html",
    "derive build",
    "derive docs",
    "derive docs --out pages --no-browser",
    "derive compare my_model.py eta=0.5 --plot my_model.png",
    "derive report my_model.py eta=0.5 --size 500 --seeds 8 -o my_model.html",
)
@pytest.mark.parametrize(
    "line", [pytest.param(e, marks=pytest.mark.slow if any(w in e for w in SLOW) else ()) for e in EXAMPLES]
)
def test_an_example_runs_as_it_stands(line: str, beside_the_template: Path):
    words = shlex.split(line)[1:]
    if words[0] == "new":
        (beside_the_template / "my_model.py").unlink()
    for place in words[words.index("--path") + 1 :][:1] if "--path" in words else ():
        (beside_the_template / place).mkdir()
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0 or (words[0] == "compare" and done.exit_code == EXIT_CODES["cannot tell"]), done.output
    for option in ("--out", "-o", "--plot"):
        if option in words:
            assert Path(words[words.index(option) + 1]).exists()


@pytest.mark.slow
def test_the_template_is_tame(beside_the_template: Path):
    """An outlier that stands clear of the bulk at every rate that the examples ask for, and numbers of order one."""
    for values in ((), ("eta=0.5", "T=4"), ("eta=0.5", "nu=1/2"), ("T=30",), ("eta=1.9", "T=40")):
        done = CliRunner().invoke(main, ["solve", "my_model.py", *values, "--json"])
        assert done.exit_code == 0, done.output
        solved = json.loads(done.stdout)
        (layer,) = solved.get("layers", (solved,))
        high = layer["bulk_edges"][-1]
        high = high[-1] if isinstance(high, list) else high
        assert [o for o in layer["outliers"] if 1.1 * high < o < 3 * high], values
        assert all(abs(n) < 100 for n in numbers(solved["observables"]))
