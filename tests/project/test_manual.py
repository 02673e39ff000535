"""README and manual keep their word: commands run and show something, what follows from the code is up to date."""

from __future__ import annotations

import re
import runpy
import shlex
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from derive.cli import main
from derive.cli.compare import EXIT_CODES
from derive.inputs.loading import setting_names
from derive.inputs.problems import load_grid
from derive.pipeline import STAGES
from derive.sweeps.journal import write_merged
from derive.words import WORDS

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "notebooks" / "manual"
REFERENCE = ("language", "commands", "results", "gallery", "paper")
PAGES = {
    "README": (ROOT / "README.md").read_text(encoding="utf-8"),
    **{path.stem: path.read_text(encoding="utf-8") for path in sorted(MANUAL.glob("*.md")) if path.stem != "README"},
}
FENCES = [
    (name, kind, body)
    for name, text in PAGES.items()
    if name not in REFERENCE
    for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S)
]
FENCED = [line for _, kind, body in FENCES if kind == "sh" for line in body.splitlines()]
IN_TABLES = {
    name: re.findall(r"^\|.*`(derive [^`]+)` \|$", text, flags=re.M)
    for name, text in PAGES.items()
    if name not in REFERENCE
}
OF_FIGURES = IN_TABLES.pop("figures")
COMMANDS = list(
    dict.fromkeys(
        [line for line in FENCED if line.startswith("derive ")]
        + [command for found in IN_TABLES.values() for command in found]
    )
)
ELSEWHERE = (
    "derive bench",
    "derive docs --out site",
    "derive check hebb.py --quick",
    "derive check hebb.py rate=0.5 --quick",
    "derive selftest --quick",
    "derive verify",
    "derive explore anti_hebbian gamma0=4 dt=0.1 T=30",
    "derive build anti_hebbian --target cuda",
    "derive build my_model.py T=50 --target cuda --device a100",
    "derive build my_model.py --target cuda --batch 4096 --devices 4 --json",
)
"""What tests of its own run, and take long."""
NOTHING_SEEN = ("diverged", "no outliers", "doubting the theory", "matrix differ")
"""What a command of the manual must not end with. A difference that chance makes with so few seeds may be seen."""


def set_up_lines() -> list[str]:
    return [line for line in FENCED if line.startswith("python3 -m venv")]


def fenced(page: str, kind: str) -> list[str]:
    return [body for name, of_kind, body in FENCES if (name, of_kind) == (page, kind)]


@cache
def solved_theory() -> str:
    """The theory that one page sets beside measured outliers."""
    return CliRunner().invoke(main, ["solve", "planted.py", "--json"]).stdout


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A directory with what the pages tell their reader to have: declarations, claims, archives and journals."""
    monkeypatch.chdir(tmp_path)
    (claims,) = fenced("check_your_paper", "toml")
    (tmp_path / "my_paper.toml").write_text(claims, encoding="utf-8")
    (claims,) = fenced("notation", "toml")
    (tmp_path / "my_claims.toml").write_text(claims, encoding="utf-8")
    (declaration,) = fenced("README", "python")
    (tmp_path / "hebb.py").write_text(declaration, encoding="utf-8")
    rng = np.random.default_rng(0)
    spike = 0.4 * np.outer(rng.standard_normal(60), rng.standard_normal(80))
    (declaration,), (checkpoint,) = fenced("prediction", "python"), fenced("prediction", "py")
    (tmp_path / "planted.py").write_text(declaration, encoding="utf-8")
    exec(compile(checkpoint, "prediction", "exec"), {})  # noqa: S102
    before = rng.standard_normal((60, 80))
    np.savez(tmp_path / "before.npz", W1=before)
    np.savez(tmp_path / "after.npz", W1=before + spike)
    np.savez(tmp_path / "mine.npz", x=rng.standard_normal((4, 3)), y=np.array([1.0, -1.0, 1.0, -1.0]))
    for shard in (1, 2):
        write_merged(tmp_path / f"part{shard}.journal", {"options": {}}, {f"solve {shard}": "{}"})
    (tmp_path / "theory.json").write_text(solved_theory(), encoding="utf-8")
    assert CliRunner().invoke(main, ["new", "my_model"]).exit_code == 0
    return tmp_path


# -- commands


@pytest.mark.long_cases(
    "compare extensive_two_layer sample=finite alpha=2 nu=1.5 --size 300 --",
    "compare extensive_multilayer L=2 layer=1 nu=1.5 --size 300 --seeds 8",
    "solve wide_network L=2 activation=relu loss=cross_entropy data=mine.np",
    'solve deep_linear L=1 teachers=given "strengths=[1.6,1.35,1.1,0.85,0.6',
    "solve deep_linear L=2 T=30 alpha=2 nu=1 gamma0=5 eta=0.05 sigma=0.3 C=",
    "compare deep_linear L=1 nu=2 gamma0=4 T=20 --size 400 --seeds 10 --plo",
    "stability deep_linear L=1 data=online nu=2 T=6",
    "solve deep_linear L=2 kernel=core gamma0=6 T=6 layer=ntk",
    "compare deep_linear L=1 kernel=sample gamma0=10 T=5 layer=sample --siz",
    "stability deep_linear L=1 kernel=sample gamma0=4 T=4 --curvature sampl",
    "solve wide_network L=3 gamma=4 eta=0.5 P=4 D=10 T=8 --samples 20000",
    "compare wide_network L=2 P=9 B=3 T=6 D=4 eta=0.3 gamma=3 --size 400 --",
    'solve wide_network L=2 activation="x + x**2/9" loss="log(cosh(f - y))"',
    "limit structured_regression spectrum=isotropic alpha=0.25,0.5,0.75,1.2",
    "limit structured_regression spectrum=power_law ridge=0.001,0.01,0.1 et",
    "solve deep_linear L=1 param=ntk nu=0.5,1,2,4 eta=0.02:0.28:14 T=20 dat",
    "stability deep_linear L=1 data=online nu=0.5,1,2 param=mup,ntk T=6",
    "expand extensive_two_layer --of edge --in 1/nu --order 3",
    "expand extensive_two_layer sample=finite --of edge --in 1/alpha --orde",
    "expand coupled_spikes --of outlier --in kappa --at S=2 --order 2",
    "expand coupled_spikes --of threshold --parameter theta --at S=1",
    "expand anti_hebbian --of threshold --parameter gamma0 --in dt --at T=2",
    "stability structured_regression spectrum=isotropic alpha=8 mu=0.9 T=4",
    "compare structured_regression spectrum=power_law mu=0.5 ridge=0.02 T=2",
    "solve structured_regression spectrum=power_law batch=online decay=1.5,",
    "solve structured_regression hessian=yes kappa=5 share=0.3 alpha=2.5 sp",
    "solve deep_linear L=1 nu=0.5,1,2 eta=0.02:0.25:12 T=20 data=online --o",
    "compare my_model.py eta=0.1,0.3 --size 100 --seeds 4 --jobs 2 --out co",
    "compare spiked_wigner gamma0=2 --size 800 --seeds 20 --plot bbp.png",
    "compare anti_hebbian gamma0=6 dt=0.05 T=200 --size 1000 --seeds 10 --p",
    'solve deep_linear L=2 teachers=given "strengths=[1.4,1.2,1,0.8,0.6]" n',
    "compare wide_network L=3 gamma=2.5 P=4 T=10 --size 600 --seeds 6 --sam",
    "compare wide_network L=2 P=8 B=2 T=10 --size 600 --seeds 6 --samples 2",
    'solve deep_linear L=2 layer=0 teachers=given "strengths=[1,0.8,0.6]" n',
    "solve deep_linear L=1 layer=ntk T=30 nu=0.5,1,2,4,8 gamma0=0.25:8:32 -",
    "compare extensive_two_layer nu=5 chi=0.5 gamma=1 --size 400 --seeds 10",
    "compare extensive_two_layer nu=5 chi=4 gamma=2 --size 400 --seeds 10 -",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [c for c in dict.fromkeys([*COMMANDS, *OF_FIGURES]) if c not in ELSEWHERE],
    ids=lambda command: command[7:77],
)
def test_command_runs_and_shows_something(command, workplace):
    arguments = shlex.split(command)[1:]
    if arguments[0] == "new":
        (workplace / "my_model.py").unlink()
    if ">" in arguments:
        *arguments, _, redirected = arguments
    else:
        redirected = None
    result = CliRunner().invoke(main, arguments)
    few_seeds = arguments[0] == "compare" and result.exit_code == EXIT_CODES["cannot tell"]
    assert result.exit_code == 0 or few_seeds, result.output
    ends = re.search(r"\d+ of \d+ points: diverged", result.output)  # a sweep shows where training diverges
    nothing = [word for word in NOTHING_SEEN if not (ends and word == "diverged")]
    assert not [word for word in nothing if word in result.output], result.output
    if redirected:
        (workplace / redirected).write_text(result.stdout)
    for option in ("--plot", "--out", "-o"):
        if option in arguments:
            assert (workplace / arguments[arguments.index(option) + 1]).exists()


def test_every_command_has_an_example():
    assert {command.split()[1] for command in COMMANDS} == set(main.commands)


@pytest.mark.slow
def test_parameters_in_the_commands_exist(workplace):
    for line in [*COMMANDS, *OF_FIGURES, *set_up_lines()]:
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


# -- Python


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README", "python"])
def test_the_lines_of_python_run(page, workplace):
    (lines,) = [body for body in fenced(page, "py") if "\nm = derive.load" in body]
    exec(compile(lines.replace("size=400, seeds=10", "size=40, seeds=2"), page, "exec"), {})  # noqa: S102
    assert (workplace / "run.nc").exists() and (page == "README" or (workplace / "page.html").exists())


def test_walk_shows_the_declaration_as_it_is():
    source = (ROOT / "derive" / "models" / "anti_hebbian.py").read_text(encoding="utf-8")
    for body in fenced("declare", "python"):
        for line in body.splitlines():
            assert line.partition("#")[0].rstrip() in source


# -- pages


def test_the_readme_is_one_page():
    assert len(PAGES["README"].encode()) <= 9000
    assert "Lauditi" in PAGES["README"] and "Outlier Escape" in PAGES["README"]


def test_what_follows_from_the_code_is_up_to_date():
    written = runpy.run_path(str(MANUAL / "reference.py"))["PAGES"]
    assert set(written) == set(REFERENCE)
    for name, page in written.items():
        assert page() == PAGES[name], f"{name}.md is stale; run python notebooks/manual/reference.py"


def test_every_word_and_every_declaration_has_its_place():
    for word in WORDS:
        assert f"\n## {word}\n" in PAGES["language"]
    for path in (ROOT / "tests" / "declarations").glob("*.py"):
        assert f"\n## {path.stem}\n" in PAGES["gallery"] and (MANUAL / "gallery" / f"{path.stem}.png").exists()


def test_links_lead_somewhere():
    pages = {ROOT / "README.md", ROOT / "CONTRIBUTING.md", *MANUAL.glob("*.md")}
    for path in pages:
        text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([\w./-]+)\)", text):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_page_is_listed():
    listed = (MANUAL / "README.md").read_text(encoding="utf-8")
    for path in MANUAL.glob("*.md"):
        assert path.stem == "README" or f"]({path.name})" in listed


def test_picture_shows_every_stage_in_order():
    (picture,) = [body for body in fenced("architecture", "text") if "|  system" in body]
    shown = re.findall(r"^ +\|  ([a-z-]+) ", picture, flags=re.M)
    assert tuple(shown) == STAGES


def test_layout_names_every_package():
    for path in (ROOT / "derive").iterdir():
        if (path / "__init__.py").exists():
            assert f"derive/{path.name} " in PAGES["architecture"]
