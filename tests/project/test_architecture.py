"""What the project promises about itself: who imports whom, what lies where, and that its tools find nothing."""

from __future__ import annotations

import ast
import graphlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {
    "pyproject.toml",
    "derive",
    "numerics",
    "generated",
    "tests",
    "notebooks",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "constraints.txt",
    "LICENSE",
}
SETTINGS = sorted(path.stem for path in (ROOT / "derive" / "models").glob("*.py") if path.stem != "__init__")


def tool(*command: str) -> subprocess.CompletedProcess:
    """Run an installed tool of this environment in the project's directory."""
    program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or shutil.which(command[0])
    assert program is not None, f"{command[0]} is not installed; install the dev extra"
    return subprocess.run([program, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)


def tracked() -> list[Path]:
    """The files under version control, or all files that are not ignored by rule of thumb where there is no git."""
    done = (
        subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if shutil.which("git")
        else None
    )
    if done is None or done.returncode != 0:
        pytest.skip("not a git checkout: what is tracked cannot be told")
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def rooms_of_numerics() -> set[str]:
    found = {path for path in (ROOT / "numerics").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    return {f"numerics.{path.stem}" for path in found} - {"numerics.__init__"}


def _modules(room: str) -> list[Path]:
    return [path for path in (ROOT / "numerics" / room).glob("*.py") if path.stem != "__init__"]


def test_import_contracts_hold():
    done = tool("lint-imports", "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_contract_has_been_dropped():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    bans = {
        (source, banned)
        for c in contracts
        if c["type"] == "forbidden"
        for source in c["source_modules"]
        for banned in c["forbidden_modules"]
    }
    modules = {
        path.stem for path in (ROOT / "derive").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    modules -= {"__init__", "__main__", "cli"}
    trying = {"selftest", "api", "explore"}  # a verb tries the laws, and pages call verbs
    assert all((f"derive.{module}", "derive.selftest") in bans for module in modules - trying)
    assert ("derive.selftest", "derive.api") in bans
    modules -= {"selftest", "api", "explore", "results", "sweeps"}  # like the command line, they run the numerics
    for module in modules:
        assert (f"derive.{module}", "jax") in bans and (f"derive.{module}", "numerics") in bans
        assert module == "claims" or (f"derive.{module}", "derive.claims") in bans
    assert {("generated", "sympy"), ("generated", "derive"), ("numerics", "sympy"), ("numerics", "derive")} <= bans
    for banned in {"sympy", "scipy", "derive", "generated", *(rooms_of_numerics() - {"numerics.runtime"})}:
        assert ("numerics.runtime", banned) in bans, banned
    assert any(c["type"] == "independence" and c["modules"] == ["derive.stages.*"] for c in contracts)


def test_the_floors_are_one_above_the_other():
    """What a reader relies on: prose above records, records above algebra, algebra above the language."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (floors,) = (c["layers"] for c in contracts if c["type"] == "layers" and "derive.cli" in c["layers"])
    order = ["cli", "report", "codegen", "printing", "pipeline", "stages", "records", "algebra", "language", "errors"]
    places = [next(i for i, floor in enumerate(floors) if f"derive.{name}" in floor.split(" | ")) for name in order]
    assert places == sorted(set(places))


def test_the_floors_of_the_numerics_hold_all_their_rooms():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (floors,) = (c["layers"] for c in contracts if c["type"] == "layers" and "numerics.solver" in c["layers"])
    rooms = {room for floor in floors for room in floor.split(" | ")}
    several = {"numerics.limit", "numerics.support"}  # their modules stand on several floors
    parts = {f"numerics.{path.parent.name}.{path.stem}" for name in ("limit", "support") for path in _modules(name)}
    assert rooms == rooms_of_numerics() - several | parts
    order = ["plots", "solver", "outliers", "bulk", "support.progress", "runtime"]
    places = [next(i for i, floor in enumerate(floors) if f"numerics.{name}" in floor.split(" | ")) for name in order]
    assert places == sorted(set(places))


def test_no_modules_import_each_other_in_a_circle():
    """Imports inside functions and those for types alone count too."""
    graph = grimp.build_graph("derive", "numerics", cache_dir=None)
    graphlib.TopologicalSorter({m: graph.find_modules_directly_imported_by(m) for m in graph.modules}).prepare()


STARTING = {"__main__", "api", "cli", "codegen", "inputs", "models", "results", "selftest", "sweeps", "version"}
"""Rooms of derive/ that the command line enters first: they wait with SymPy, and with what derives, until needed. A
worker of a sweep must say how many threads it takes before NumPy and JAX are there."""


def inside_functions(path: Path) -> list[ast.Import | ast.ImportFrom]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [i for f in functions for i in ast.walk(f) if isinstance(i, ast.Import | ast.ImportFrom)]


@pytest.mark.slow
def test_nothing_is_imported_inside_a_function():
    """But in the rooms that must start fast."""
    for path in sorted((ROOT / "derive").rglob("*.py")):
        if path.relative_to(ROOT / "derive").with_suffix("").parts[0] not in STARTING:
            inside = inside_functions(path)
            assert not inside, f"{path.relative_to(ROOT)}, line {inside[0].lineno}"


def test_the_numerics_wait_with_libraries_only():
    """What draws and what is rarely used is loaded late; the project's own modules never are."""
    for path in sorted((ROOT / "numerics").rglob("*.py")):
        for node in inside_functions(path):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or "."]
            libraries = {name.split(".")[0] for name in names}
            assert libraries <= {"jax", "matplotlib", "scipy"}, f"{path.relative_to(ROOT)}, line {node.lineno}"


def test_both_packages_say_that_they_are_typed():
    assert (ROOT / "derive" / "py.typed").is_file() and (ROOT / "numerics" / "py.typed").is_file()
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert mypy["strict"]
    assert not [m for o in mypy["overrides"] for m in o["module"] if m.split(".")[0] in ("derive", "numerics")]


def test_records_hold_data_and_no_prose():
    for path in sorted((ROOT / "derive" / "records").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert "def sections" not in text and "Statement" not in text, path.name


def test_what_all_solvers_share_imports_jax_and_numpy_alone():
    """A copy of it stands beside solvers outside the project, so that it names itself by relative imports only."""
    for path in sorted((ROOT / "numerics" / "runtime").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            else:
                continue
            others = {name.split(".")[0] for name in names} - {"jax", "numpy", *sys.stdlib_module_names}
            assert not others, f"{path.name} imports {others}"


def test_command_line_imports_the_numerics_only_inside_commands():
    for path in sorted((ROOT / "derive" / "cli").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
            )
            heavy = [n for n in names if n.split(".")[0] in ("numerics", "jax", "sympy", "numpy", "matplotlib")]
            heavy = [n for n in heavy if n != "numerics.options"]  # plain records, which load nothing
            assert not heavy, f"{path.name} imports {heavy} when it is loaded"


def test_ruff_finds_nothing():
    done = tool("ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_types_are_consistent():
    done = tool("mypy")  # which keeps its cache from one run to the next
    assert done.returncode == 0, done.stdout + done.stderr


def test_top_level_holds_what_it_should():
    tops = {path.relative_to(ROOT).parts[0] for path in tracked()}
    assert {name for name in tops if not name.startswith(".")} <= TOP_LEVEL
    assert not TOP_LEVEL - tops


def test_no_file_names_a_machine():
    places = "|".join(("work", "root", "home", "Users", "tmp"))
    hosts = "|".join(
        ("pypi" + r"\.org", "python" + "hosted", "usercontent" + r"\.com", "local" + r"host\b", r"127\.0\.0")
    )
    pattern = re.compile(rf"(?<![\w.)\]}}>])/(?:{places})/\w|{hosts}|[A-Z]:\\\\\w")
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in pattern.finditer(text)]
    assert not found


def test_engine_names_no_setting():
    """One engine: nothing in derive/ outside the declarations knows a setting by name."""
    pattern = re.compile(r"\b(" + "|".join(SETTINGS) + r")\b")
    for path in sorted((ROOT / "derive").rglob("*.py")):
        if path.parent.name != "models":
            found = pattern.findall(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)} names {found[0]}"


def test_stages_are_functions_of_records():
    """Each stage module offers one public function, of the records that it reads; the pipeline calls nothing else."""
    for path in sorted((ROOT / "derive" / "stages").glob("*.py")):
        if path.stem != "__init__":
            body = ast.parse(path.read_text(encoding="utf-8")).body
            public = [n for n in body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")]
            called = [n for n in public if f"import {n.name}" in (ROOT / "derive" / "pipeline.py").read_text()]
            assert len(called) == len(public) == 1, path.name
            assert all(argument.annotation is not None for argument in called[0].args.args), path.name


def test_constraints_hold_names_and_versions_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    for line in lines:
        assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*( ?; .+)?", line), line


def test_constraints_cover_what_is_installed_here():
    """Every requirement, direct or not, of the package and its extras is pinned."""
    from importlib.metadata import PackageNotFoundError, requires

    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {plain(line.split("==")[0]) for line in text.splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    seen: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if "extra ==" in requirement or "sys_platform ==" in requirement or "python_version <" in requirement:
            continue
        name = plain(re.match(r"[A-Za-z0-9._-]+", requirement)[0])
        if name in seen or name == plain(project["name"]):
            continue
        try:
            waiting += requires(name) or []
        except PackageNotFoundError:
            continue
        seen.add(name)
        assert name in pinned, f"{name} is not in constraints.txt"
    assert {"sympy", "jax", "pytest"} <= seen


def test_ci_runs_the_test_line_of_the_readme_and_the_long_tier():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in text and [line for line in text.splitlines() if "pytest" in line] == [
        "long=(.venv/bin/python -m pytest -q -n 2 --dist loadscope -m long)"
    ]


def test_no_two_classes_have_one_name():
    names = [
        node.name
        for package in ("derive", "numerics")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_no_text_is_computed_and_dropped():
    """A text without parentheses that goes on in a new line is a statement of its own, which does nothing."""
    dropped = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for package in ("derive", "numerics")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr)
        and any(isinstance(part, ast.JoinedStr) for part in (node.value, getattr(node.value, "body", None)))
    ]
    assert not dropped
