"""What a shell completes: asked of click as shells ask it, and of Bash itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete, get_completion_class
from conftest import SHIPPED, choices_of, model_named

from derive.cli import completion, main
from derive.inputs.loading import load_declaration

ROOT = Path(__file__).parents[3]
FREE = (
    {("new", "name"), ("bench", "only"), ("solve", "grid"), ("solve", "places"), ("spectrum", "layer")}
    | {(c, option) for c in ("solve", "simulate", "compare") for option in ("align", "kernels", "on", "shard")}
    | {("spectrum", "include"), ("spectrum", "exclude"), ("show", "equation"), ("expand", "named")}
)
"""Words that nobody can know beforehand."""


def completed(line: str) -> list[str]:
    """What is offered for the last word of a line, which is empty if the line ends with a space."""
    *words, last = line.split(" ")
    return [item.value for item in ShellComplete(main, {}, "derive", "_DERIVE_COMPLETE").get_completions(words, last)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "notes.txt", "claims.toml", "arrays.npz", ".hidden.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "other.py").write_text("")
    return tmp_path


def test_commands_and_options(here: Path):
    assert completed("so") == ["solve"]
    assert completed("solve deep_linear --sa") == ["--samples"]
    assert completed("show deep_linear --stage s") == ["system", "saddle", "single-site"]
    assert completed("expand deep_linear --of ") == ["edge", "lower_edge", "outlier", "threshold"]


@pytest.mark.parametrize("command", ["solve", "simulate", "compare", "report", "stability", "show", "expand", "verify"])
def test_settings_and_files(command: str, here: Path):
    assert completed(f"{command} ") == [*SHIPPED, "mine.py", "models/"]
    assert completed(f"{command} d") == ["deep_linear"]
    assert completed(f"{command} models/") == ["models/other.py"]
    assert completed(f"{command} .h") == [".hidden.py"]


def test_several_models_each_with_choices(here: Path):
    assert completed("build deep_linear pa") == ["param=mup", "param=ntk"]
    assert completed("build deep_linear L=2 spiked_wigner pa") == []
    assert completed("list anti") == ["anti_hebbian"]


@pytest.mark.parametrize("name", SHIPPED)
def test_everything_that_a_setting_may_be_given_and_nothing_else(name: str):
    """Parsed, as completion has it, against run, as everything else has it."""
    model, found = model_named(name), completion.declared(name)
    told_of = dict(getattr(load_declaration(name), "choices", ()))
    words = [
        (choice, word) for choice, told in told_of.items() if isinstance(told.allowed, tuple) for word in told.allowed
    ]
    members = [model, *(model_named(name, **{choice: word}) for choice, word in words)]
    parameters = {p.name: p for member in members for p in member.parameters}
    assert {n.name for n in found.choices} == set(choices_of(name))
    assert {n.name: n.doc for n in found.parameters} == {p.name: p.doc for p in parameters.values()}
    assert list(found.layers) == [label for label, _ in model.probes if label]
    assert set(found.observables) == set(dict(model.observe))
    for choice, told in told_of.items():
        (offered,) = (n.values for n in found.choices if n.name == choice)
        assert offered[0] == str(told.default)
        if isinstance(told.allowed, tuple):
            assert offered == told.allowed
    for parameter in parameters.values():
        (offered,) = (n.values for n in found.parameters if n.name == parameter.name)
        assert not offered or float(offered[0]) == parameter.default


def test_values(here: Path):
    words = "L data param spectrum kernel teachers alpha nu gamma0 eta sigma T C kappa share decay cut layer"
    names = [f"{name}=" for name in words.split()]
    assert completed("solve deep_linear ") == names
    assert completed("solve deep_linear nu=2 L=1 ") == [name for name in names if name not in ("nu=", "L=")]
    assert (
        completed("solve deep_linear data")
        == completed("solve deep_linear data=")
        == ["data=full_batch", "data=online"]
    )
    assert completed("solve deep_linear data=on") == ["data=online"]
    assert completed("solve deep_linear data=online,") == ["data=online,full_batch"]
    assert completed("solve deep_linear layer=") == ["layer=0", "layer=1", "layer=all"]
    assert completed("solve wide_network data=") == ["data=arrays.npz", "data=models/"]
    assert "activation=tanh" in completed("solve wide_network activation=")
    assert completed("solve deep_linear nu=2 nu") == [] == completed("solve deep_linear nothing=")


def test_values_of_options(here: Path):
    assert completed("stability deep_linear --of e") == ["eta"]
    assert completed("stability deep_linear --loss ") == ["train_loss", "test_loss"]
    assert completed("expand deep_linear --in 1/n") == ["1/nu"]
    assert completed("expand deep_linear L=2 --at n") == ["nu="]
    assert completed("verify --claims ") == ["claims.toml", "models/"]
    assert completed("build --out ") == ["models/"]


def test_a_declaration_of_ones_own_is_read_and_not_run(here: Path):
    (here / "mine.py").write_text(
        'from derive import *\nopen("was_run", "w")\ng = parameter("g", 2, doc="strength")\nh = parameter(f"h{1}")\n'
        'def f(K, kind): return Model(parameters=(g, h), observe={"a": 1}, probe={"in": 1, 2: 2})\n'
        'MODEL = family(f, K=whole_choice(3), kind=one_of("soft", "hard"))\n'
    )
    assert completed("solve mine.py ") == ["K=", "kind=", "g=", "layer="]
    assert completed("solve mine.py kind=h") == ["kind=hard"]
    assert completed("solve mine.py layer=") == ["layer=in", "layer=2", "layer=all"]
    assert not (here / "was_run").exists()


@pytest.mark.parametrize("text", ["def unfinished(", "\0", "x = " + "(" * 3000, "", "MODEL = parameter()"])
def test_a_file_that_cannot_be_read_completes_to_nothing(text: str, here: Path):
    (here / "mine.py").write_text(text)
    assert completed("solve mine.py ") == completed("solve missing.py ") == completed("solve nowhere ") == []


def test_whatever_a_command_takes_can_be_completed():
    for name, command in main.commands.items():
        for parameter in command.params:
            told = parameter._custom_shell_complete is not None or not isinstance(
                parameter.type, click.types.StringParamType
            )
            flag = isinstance(parameter, click.Option) and parameter.is_flag
            assert told or flag or (name, parameter.name) in FREE, f"{name} {parameter.name}: give it shell_complete="


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_line_switches_it_on_without_what_derives(shell: str, tmp_path: Path):
    run = (
        "import sys; from derive.cli import main\ntry: main()\n"
        "finally: print(sorted({'sympy', 'jax'} & {*sys.modules}))"
    )
    told = {**os.environ, "PYTHONPATH": str(ROOT), "COMP_LINE": "derive solve deep_linear da"}
    for asked, words in (("source", ["complete"]), ("complete", ["data=online"])):
        environment = {**told, "_DERIVE_COMPLETE": f"{shell}_{asked}"}
        if shell != "bash":
            place = "da" if shell == "fish" else "3"
            environment |= {"COMP_WORDS": "derive solve deep_linear da", "COMP_CWORD": place}
        done = subprocess.run(
            [sys.executable, "-c", run], env=environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0 and done.stdout.endswith("[]\n") and done.stderr == "", done.stderr
        assert all(word in done.stdout for word in words)


LINES = [
    ("derive solve deep_linear data=", ["data=full_batch", "data=online"], True),
    ("derive solve deep_linear data=o", ["data=online"], True),
    ("derive solve deep_linear data=online,", ["data=online,full_batch"], True),
    ("derive solve deep_linear L=2 sig", ["sigma="], False),
    ("derive solve wide_network data=sp", ["data=spaced out.npz"], True),
    ("derive solve wide_network data=mod", ["data=models/"], False),
    ("derive sol", ["solve"], True),
]
"""What is typed, what is offered, and whether a space follows."""
BASH = """{script}
compopt() {{ local IFS=' '; echo "compopt $*"; }}
COMP_LINE='{line}' COMP_POINT={point}
_derive_completion ./derive
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """compdef() {{ : }}
{script}
_describe() {{ print -rl -- "${{@[5,-1]}}" "${{(@)${{(P)3}}%%:*}}" }}
compadd() {{ local name=${{@[-1]}}; print -rl -- "${{@[1,-3]}}" "${{(@P)name}}" }}
line='{line}'
words=(${{(z)line}})
CURRENT=$#words
_derive_completion
"""
FISH = "{script}\ncomplete -C '{line}' | string split -f 1 \\t"


ASKED = [
    (shell, *case) for shell, cases in (("bash", LINES), ("zsh", LINES[2:6]), ("fish", LINES[2:4])) for case in cases
]


@pytest.mark.parametrize(("shell", "line", "offered", "space"), ASKED)
def test_shells_themselves(shell: str, line: str, offered: list[str], space: bool, here: Path):
    """Their own scripts, called as they call them."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    completion.switch_on()
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(main, {}, "derive", "_DERIVE_COMPLETE").source()
    (here / "spaced out.npz").write_text("")
    (here / "derive").write_text(f'#!/bin/sh\nexec {sys.executable} -m derive "$@"\n')
    (here / "derive").chmod(0o755)
    asked = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell].format(script=script, line=line, point=len(line))
    told = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{here}:{os.environ['PATH']}"}
    plain = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[shell]
    done = subprocess.run([shell, plain, "-c", asked], env=told, capture_output=True, text=True)
    expected = offered
    if shell == "bash":  # it takes words apart at an equals sign, wants them protected, and is told where no space is
        after = [word.partition("=")[2] or word for word in offered] if "=" in line else offered
        expected = [*(["compopt -o nospace"] * (not space)), *(word.replace(" ", "\\ ") for word in after)]
    found = [word for word in done.stdout.splitlines() if word]
    if shell == "zsh":
        assert ("-S" in found) == (not space)
        found = [word for word in found if word not in ("-U", "-V", "-S", "unsorted")]
    assert found == expected, done.stderr
