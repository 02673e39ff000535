"""Plants bugs in the engine one at a time and counts how many the README's test command catches.

    python tests/campaigns/plant_bugs.py cover --count 200 --seed 1    # draw bugs; which test runs which of them
    python tests/campaigns/plant_bugs.py run --count 200 --seed 1      # switch each bug on, and run its tests
    python tests/campaigns/plant_bugs.py score --count 200 --seed 1    # caught and survived, package by package
    python tests/campaigns/plant_bugs.py list --count 200 --seed 1     # the bugs that survived, as pairs of lines

A bug is one small change of one expression or statement: a comparison swapped, a number off by one or ten times as
large, a term or a factor dropped, arguments swapped, a statement removed. A line is drawn first, then a kind and one
bug, so that long expressions do not dominate. The same seed draws the same bugs from the same sources.

All bugs are planted in one copy of the project, each behind a switch. `cover` runs the tests with all switches off and
writes down which test comes by which switch. `run` collects the tests once; for each bug a child of that process turns
its switch on and runs the tests that come by it, the fastest first, until one fails. Each child has a store of derived
code of its own, so that nothing derived without the bug hides it. `run` continues where its ledger ends; `--again`
tries the survivors with the tests that they have not passed; `cover test_lags` runs one file of tests.

Only tests that come by the switch themselves or by a command that they start are tried; what mypy or ruff would notice
does not count, so that a score is a lower bound. A bug that changes no result is equivalent:
`tests/campaigns/equivalent_bugs.toml` lists those that were drawn, and says why.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, islice
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = (
    *(f"derive/{name}" for name in "stages equations algebra program".split()),
    *(f"numerics/{name}" for name in "bulk outliers training simulation runtime".split()),
)
TIERS = {"quick": "not slow", "slow": "slow and not long"}
"""Marks of the tests that count, which are those of the README's command: the inner loop, and the rest."""
SLOWDOWN, SPARE = 5.0, 30.0
"""A bug is caught by hanging if its tests take this many times longer and so many CPU seconds more."""
IDLE = 8.0
"""A process may take so many times its CPU time."""
MEMORY = 8 << 30
"""Bytes of data that the tests of one bug may take."""
COVER, TEST, ACTIVE, PLAN = (f"PLANT_BUGS_{name}" for name in "COVER TEST ACTIVE PLAN".split())
"""Names of environment variables: the file of who came by which switch; the test that runs; the bug that is switched
on; the file with the bugs to judge."""
SWITCHES = '''"""Switches of planted bugs."""
import json, os

ACTIVE = [os.environ.get("PLANT_BUGS_ACTIVE", "")]
_PASSED = set()

def passed(bug):
    pair = os.environ.get("PLANT_BUGS_TEST", ""), bug
    if "PLANT_BUGS_COVER" in os.environ and all(pair) and pair not in _PASSED:
        _PASSED.add(pair)
        with open(os.environ["PLANT_BUGS_COVER"], "a") as out:
            out.write(json.dumps(pair) + "\\n")

def active(bug):
    passed(bug)
    return bug == ACTIVE[0]
'''


# -- inside pytest: `-p plant_bugs` -----------------------------------------------------------------------------------

_FAILED: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Say which test runs, and write down the CPU time of it and of the processes that it starts; -1 if it fails."""
    if COVER not in os.environ:
        return (yield)
    os.environ[TEST] = item.nodeid
    began = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        took = -1.0 if item.nodeid in _FAILED else sum(os.times()[:4]) - began
        _append(Path(os.environ[COVER]), [item.nodeid, round(took, 3)])


def pytest_runtest_logreport(report) -> None:
    if report.failed:
        _FAILED.append(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Judge the bugs of a plan, each in a child of this process, which has collected the tests."""
    if PLAN not in os.environ:
        return None
    plan = json.loads(Path(os.environ[PLAN]).read_text())
    items = {item.nodeid: item for item in session.items}
    gc.collect()
    gc.freeze()
    waiting, running = plan["bugs"], dict[int, dict]()
    while waiting or running:
        while waiting and len(running) < plan["jobs"]:
            bug = waiting.pop(0)
            bug |= {"store": tempfile.mkdtemp(prefix="planted-bug-"), "began": time.monotonic()}
            bug["tests"] = [name for name in bug["tests"] if name in items]
            child = os.fork()
            if child == 0:
                _try_bug(session, bug, [items[name] for name in bug["tests"]])
            running[child] = bug
        for child, bug in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                _append(Path(plan["ledger"]), _outcome(running.pop(child), os.waitstatus_to_exitcode(status)))
            elif time.monotonic() - bug["began"] > IDLE * bug["most"]:
                os.killpg(child, 9)
        time.sleep(0.1)
    return True


def _try_bug(session: pytest.Session, bug: dict, items: Sequence[pytest.Item]) -> None:
    """Run tests with a bug switched on until one fails, and end this process."""
    try:
        import bug_switches

        os.setsid()
        session.config.code_store = os.environ["TWO_LEVEL_DMFT_CACHE"] = bug["store"]
        bug_switches.ACTIVE[0] = os.environ[ACTIVE] = bug["name"]
        resource.setrlimit(resource.RLIMIT_CPU, (bug["most"], bug["most"] + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        out = os.open(os.devnull, os.O_WRONLY)
        os.dup2(out, 1)
        os.dup2(out, 2)
        for item, following in zip(items, [*items[1:], None], strict=True):
            Path(bug["store"], "test").write_text(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if _FAILED:
                break
    except BaseException:
        _FAILED.append("")
    os._exit(bool(_FAILED))


def _outcome(bug: dict, code: int) -> dict[str, object]:
    """The record of a bug whose tests have run. test: the one that fails, or that was killed."""
    place = Path(bug["store"], "test")
    test = place.read_text() if code and place.exists() else ""
    shutil.rmtree(bug["store"], ignore_errors=True)
    took = round(time.monotonic() - bug["began"])
    passed = [*bug["passed"], *bug["tests"]] if code == 0 else []
    status = "survived" if code == 0 else "caught" if code > 0 else "hangs"
    print(f"{status:9} {took:4} s  {bug['name']}  {test}", flush=True)
    return {"name": bug["name"], "status": status, "test": test, "seconds": took, "passed": passed}


def _append(path: Path, record: object) -> None:
    with path.open("a") as out:
        out.write(json.dumps(record) + "\n")


# -- bugs -------------------------------------------------------------------------------------------------------------

OTHER_COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OTHER_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
}
_PAIRS = (
    "min max, any all, minimum maximum, argmin argmax, real imag, floor ceil, left right, sum prod, sin cos, "
    "tril triu, zeros ones, isfinite isnan, nanmax nanmin, append extend, first last, low high, rows columns, exp log"
)
OTHER_NAMES = {a: b for pair in _PAIRS.split(", ") for a, b in (pair.split(), pair.split()[::-1])}


HARMLESS = ("strict", "kind", "check_finite", "overwrite_a", "repr", "maxsize")
"""Keywords that guard, or save time or memory, and change no result."""


@dataclass(frozen=True)
class Bug:
    """One change of one piece of a source: the bytes from start to end become `new`. imported: whether it runs as the
    file is imported, as a constant or the default of an argument does."""

    path: str
    line: int
    kind: str
    start: int
    end: int
    new: str
    imported: bool

    @property
    def package(self) -> str:
        return str(Path(self.path).parent)

    @property
    def key(self) -> tuple[str, str]:
        """File and difference, by which `equivalent_bugs.toml` knows it."""
        return self.path, self.difference((ROOT / self.path).read_bytes()).strip()

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}:{self.start}:{self.end}:{self.new}"

    def planted(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def difference(self, source: bytes) -> str:
        """The lines that change, before and after."""
        before, after = source.decode().splitlines(), self.planted(source).decode().splitlines()
        changed = difflib.unified_diff(before, after, n=0, lineterm="")
        return "\n".join(line for line in changed if line[:2] not in ("--", "++", "@@"))


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Every bug of one expression or statement: its kind, and what stands in the place of the node."""
    match node:
        case ast.Compare(left, [op], [right]):
            for other in OTHER_COMPARISONS[type(op)]:
                yield "comparison", ast.Compare(left, [other()], [right])
        case ast.BinOp(left, op, right) if not _is_text(left) and not _is_text(right):
            if type(op) in OTHER_ARITHMETIC:
                yield "arithmetic", ast.BinOp(left, OTHER_ARITHMETIC[type(op)](), right)
            if isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.MatMult | ast.BitAnd | ast.BitOr | ast.Pow):
                yield "dropped term or factor", left
            if isinstance(op, ast.Add | ast.Mult | ast.MatMult | ast.BitAnd | ast.BitOr):
                yield "dropped term or factor", right
        case ast.BoolOp(op, values):
            yield "and, or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
            for k in range(len(values)):
                rest = values[:k] + values[k + 1 :]
                yield "dropped condition", rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
            yield "dropped sign", operand
        case ast.Constant(bool() as value):
            yield "true, false", ast.Constant(not value)
        case ast.Constant(int() as value):
            yield "off by one", ast.Constant(value + 1)
            if value:
                yield "off by one", ast.Constant(value - 1)
                yield "ten times", ast.Constant(10 * value)
        case ast.Constant(float() as value) if value:
            yield "ten times", ast.Constant(10 * value)
            yield "ten times", ast.Constant(value / 10)
        case ast.Subscript(value, ast.Constant(0), ctx):
            yield "first, last", ast.Subscript(value, ast.UnaryOp(ast.USub(), ast.Constant(1)), ctx)
        case ast.Subscript(value, ast.UnaryOp(ast.USub(), ast.Constant(1)), ctx):
            yield "first, last", ast.Subscript(value, ast.Constant(0), ctx)
        case ast.Subscript(value, ast.Slice(lower, upper, None), ast.Load()) if lower or upper:
            yield "dropped slice", value
        case ast.IfExp(_, body, orelse):
            yield "one branch", body
            yield "one branch", orelse
        case ast.Call(function, arguments, keywords):
            if len(arguments) >= 2 and _may_be_swapped(function, arguments[:2]):
                yield "swapped arguments", ast.Call(function, [arguments[1], arguments[0], *arguments[2:]], keywords)
            for k, keyword in enumerate(keywords):
                if keyword.arg is not None and keyword.arg not in HARMLESS:
                    yield "dropped keyword", ast.Call(function, arguments, keywords[:k] + keywords[k + 1 :])
        case ast.Name(name, ast.Load()) if name in OTHER_NAMES:
            yield "other name", ast.Name(OTHER_NAMES[name], ast.Load())
        case ast.Attribute(value, name, ast.Load()) if name in OTHER_NAMES:
            yield "other name", ast.Attribute(value, OTHER_NAMES[name], ast.Load())
        case ast.Expr(ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign() | ast.Raise():
            yield "removed statement", ast.Pass()
        case ast.Assign([ast.Subscript() | ast.Attribute()]):
            yield "removed statement", ast.Pass()
        case ast.Continue():
            yield "break, continue", ast.Break()
        case ast.Break():
            yield "break, continue", ast.Continue()


def _may_be_swapped(function: ast.expr, pair: Sequence[ast.expr]) -> bool:
    """Not where a swap fails at once: a type, a function or a text beside something else."""
    known = "isinstance issubclass hasattr getattr setattr map filter zip enumerate range reduce partial sorted replace"
    alike = not any(isinstance(one, ast.Starred | ast.Lambda | ast.GeneratorExp) or _is_text(one) for one in pair)
    return alike and not (isinstance(function, ast.Name) and function.id in known.split())


def conditions(node: ast.AST) -> Iterator[ast.expr]:
    """Conditions of branches and of comprehensions, which may be negated."""
    match node:
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            yield test
        case ast.comprehension(ifs=tests):
            yield from tests


def _is_text(node: ast.AST) -> bool:
    match node:
        case ast.Constant(str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left, _, right):
            return _is_text(left) or _is_text(right)
    return False


def without_effect(tree: ast.Module) -> set[ast.AST]:
    """Nodes that no number depends on: annotations, decorators, texts, reports of progress, silenced warnings, what is
    only for type checkers."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(returns=returns, decorator_list=decorators):
                parts = [returns, *decorators]
            case ast.ClassDef(bases=bases, keywords=keywords, decorator_list=decorators):
                parts = [*bases, *keywords, *decorators]
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                parts = [annotation]
            case ast.Raise(exc, cause):
                parts = [exc, cause]
            case (
                ast.JoinedStr() | ast.Assert() | ast.If(ast.Name("TYPE_CHECKING")) | ast.keyword(arg="strict" | "kind")
            ):
                parts = [node]
            case ast.Call(ast.Name("cast" | "TypeVar" | "tell") | ast.Attribute(attr="errstate")):
                parts = [node]
            case ast.Expr(ast.Call(ast.Name("tell"))):
                parts = [node]
            case _:
                parts = []
        found.update(inner for part in parts if part is not None for inner in ast.walk(part))
    return found


def line_starts(source: bytes) -> list[int]:
    return [0, *accumulate(map(len, source.splitlines(keepends=True)))]


def span(node: ast.AST, starts: Sequence[int]) -> tuple[int, int]:
    """Where the text of a node begins and ends, in bytes."""
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


@cache
def bugs_by_line(path: str) -> dict[int, Callable[[], list[Bug]]]:
    """For each line of one file with bugs, what makes all of them, in the order of the text."""
    source = (ROOT / path).read_bytes()
    tree = ast.parse(source)
    starts = line_starts(source)
    ignored = without_effect(tree)
    found: dict[int, list[tuple[ast.AST, str, ast.AST]]] = defaultdict(list)
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    later = {inner for function in functions for statement in function.body for inner in ast.walk(statement)}

    for node in ast.walk(tree):
        if node not in ignored or isinstance(node, ast.Raise):
            for kind, other in changes(node):
                found[node.lineno].append((node, kind, other))
            for test in conditions(node):
                found[test.lineno].append((test, "negated condition", ast.UnaryOp(ast.Not(), test)))

    def made(node: ast.AST, kind: str, other: ast.AST) -> Bug:
        text = ast.unparse(ast.fix_missing_locations(other))
        if isinstance(other, ast.expr) and not isinstance(other, ast.Name | ast.Constant | ast.Attribute):
            text = f"({text})"
        return Bug(path, node.lineno, kind, *span(node, starts), text, node not in later)

    def all_of(line: int) -> list[Bug]:
        return sorted((made(*one) for one in found[line]), key=lambda bug: (bug.start, bug.end, bug.new))

    return {line: partial(all_of, line) for line in found}


def drawn(count: int, seed: int, packages: Sequence[str]) -> list[Bug]:
    """Bugs of distinct lines, each line as likely as any other: the first of a longer draw are those of a shorter, and
    a change of other lines leaves the bugs of a line as they are."""
    lines: dict[tuple[str, str, int], Callable[[], list[Bug]]] = {}
    for package in packages:
        for path in sorted((ROOT / package).glob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            texts, seen = path.read_text().splitlines(), Counter()
            for line, made in sorted(bugs_by_line(name).items()):
                text = texts[line - 1].strip()
                lines[name, text, seen[text]] = made
                seen[text] += 1
    ranks = {place: hashlib.sha256(f"{seed} {place}".encode()).hexdigest() for place in lines}
    places = sorted(lines, key=lambda place: ranks[place])
    return list(islice(filter(None, (_one_of(lines[place](), random.Random(ranks[place])) for place in places)), count))


def _one_of(bugs: Sequence[Bug], chance: random.Random) -> Bug | None:
    """One bug of a line, each kind as likely as any other."""
    kinds = sorted({bug.kind for bug in bugs})
    ordered = (
        bug for kind in chance.sample(kinds, len(kinds)) for bug in chance.sample(bugs, len(bugs)) if bug.kind == kind
    )
    return next(filter(is_bug, ordered), None)


def is_bug(bug: Bug) -> bool:
    """Whether a bug changes what it stands for, and can be read, behind a switch too."""
    source = (ROOT / bug.path).read_bytes()
    try:
        ast.parse(switched(source, [bug]))
        if bug.new in ("pass", "break", "continue"):
            return True
        before, after = (
            ast.dump(ast.parse(b"(%b)" % text)) for text in (source[bug.start : bug.end], bug.new.encode())
        )
        return before != after
    except SyntaxError:
        return False


# -- which test runs which bug ----------------------------------------------------------------------------------------


def switched(source: bytes, bugs: Sequence[Bug]) -> bytes:
    """A source with bugs behind switches. What runs as the file is imported, as a constant or a default, has its switch
    there; tests come by it where the constant is used, in the function with the default, or in any of the file."""
    tree, starts = ast.parse(source), line_starts(source)
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    head = span(future[-1] if future else tree.body[0], starts)[1]
    names = ", ".join(f"{name} as __{name}__" for name in ("active", "passed"))
    texts = [(head, 0, f"; from bug_switches import {names}")]

    def wrap(start: int, end: int, before: str, after: str) -> None:
        texts.extend([(start, -end, before), (end, -start - len(source), after)])

    def enter(function: ast.FunctionDef, call: str) -> None:
        first = next((one for one in function.body if not _is_docstring(one)), function.body[0])
        line = min([first.lineno, *(one.lineno for one in getattr(first, "decorator_list", ()))])
        texts.append((starts[line - 1] + first.col_offset, -len(source), f"{call}\n{' ' * first.col_offset}"))

    for bug in bugs:
        active, passed = f"__active__({bug.name!r})", f"__passed__({bug.name!r})"
        if bug.new == "pass":
            texts.append((bug.start, -bug.end, f"if not {active}: "))
        elif bug.new in ("break", "continue"):
            texts.append((bug.start, -bug.end, f"if {active}: {bug.new}\n{' ' * (bug.start - starts[bug.line - 1])}"))
        else:
            wrap(bug.start, bug.end, f"(({' '.join(bug.new.splitlines())}) if {active} else (", "))")
        if not bug.imported:
            continue
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        bodies = {inner for function in functions for statement in function.body for inner in ast.walk(statement)}
        tops = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _holds(node, bug, starts)]
        around = [top for top in tops if isinstance(top, ast.FunctionDef)]
        targets = {one.id for top in tops if isinstance(top, ast.Assign) for one in ast.walk(top) if _is_stored(one)}
        uses = [one for one in bodies if isinstance(one, ast.Name) and one.id in targets and not _is_stored(one)]
        for use in () if around else uses:
            wrap(*span(use, starts), f"({passed}, ", ")[1]")
        for function in around or ([] if uses else functions):
            enter(function, passed)
    for position, _, text in sorted(texts, reverse=True):
        source = source[:position] + text.encode() + source[position:]
    return source


def _holds(node: ast.stmt, bug: Bug, starts: Sequence[int]) -> bool:
    start, end = span(node, starts)
    return start <= bug.start and bug.end <= end


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def environment(copy: Path, place: Path) -> dict[str, str]:
    """Variables for pytest in a copy of the project: all of its processes import the copy."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PLANT_BUGS")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept | {
        "PYTHONPATH": os.pathsep.join(str(copy / part) for part in ("", "tests", "tests/campaigns")),
        "JAX_COMPILATION_CACHE_DIR": str(place / "compiled"),  # found by what was compiled, so that bugs share it
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
    }


def start_tests(copy: Path, place: Path, log: Path, arguments: Sequence[str], **variables: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "plant_bugs", "-p", "no:cacheprovider", *arguments]
    with log.open("w") as out:
        given = environment(copy, place) | variables
        return subprocess.Popen(command, cwd=copy, env=given, stdout=out, stderr=out, start_new_session=True)


def plant(place: Path, bugs: Sequence[Bug]) -> Path:
    """A copy of the project with all bugs behind switches."""
    copy = place / "copy"
    copy_project(copy)
    (copy / "tests" / "bug_switches.py").write_text(SWITCHES)
    for path in {bug.path for bug in bugs}:
        source = switched((ROOT / path).read_bytes(), [bug for bug in bugs if bug.path == path])
        (copy / path).write_bytes(source)
    return copy


def copy_project(copy: Path) -> None:
    """Copy every file that git knows or would add, as it stands in the work tree."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(lambda name: (ROOT / name).is_file(), listed.splitlines()):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)


def cover(place: Path, bugs: Sequence[Bug], only: Sequence[str], tiers: Sequence[str], jobs: int) -> None:
    """Run the tests with all bugs switched off, and write down which test comes by which and how long it takes."""
    copy, passed = plant(place, bugs), place / "passed.jsonl"
    for tier in tiers:
        names = [path.relative_to(copy).as_posix() for path in sorted((copy / "tests").rglob("test_*.py"))]
        names = [name for name in names if not only or Path(name).stem in only]
        parts = (names[k::jobs] for k in range(jobs))
        processes = [
            start_tests(
                copy, place, place / f"cover-{tier}-{k}.log", ["-m", TIERS[tier], *part], **{COVER: str(passed)}
            )
            for k, part in enumerate(parts)
            if part
        ]
        for process in processes:
            process.wait()


class Coverage:
    """Which tests come by a bug, and the CPU seconds of each test that passes without a bug."""

    def __init__(self, place: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, set[str]] = defaultdict(set)
        path = place / "passed.jsonl"
        for test, what in map(json.loads, path.read_text().splitlines() if path.exists() else ()):
            if isinstance(what, str):
                self.tests[what].add(test)
            elif what >= 0 and (ROOT / test.split("::")[0]).exists():
                self.seconds[test] = what
            else:
                self.seconds.pop(test, None)

    def of(self, bug: Bug) -> list[str]:
        """Tests that run a bug, the fastest first, where the n-th test of a file counts as n times as long."""
        files: Counter[str] = Counter()
        ranked = []
        names = self.tests[bug.name]
        for name in sorted((name for name in names if name in self.seconds), key=lambda name: self.seconds[name]):
            files[name.split("::")[0]] += 1
            ranked.append((files[name.split("::")[0]] * self.seconds[name], name))
        return [name for _, name in sorted(ranked)]

    def within(self, bug: Bug, limit: float, passed: Sequence[str]) -> list[str]:
        """The tests of a bug within a limit of CPU seconds, the first of them in any case. passed: those that are known
        not to notice it."""
        names = [name for name in self.of(bug) if name not in passed]
        spent = accumulate(self.seconds[name] for name in names)
        return [name for k, (name, until) in enumerate(zip(names, spent, strict=True)) if until <= limit or k == 0]


# -- running ----------------------------------------------------------------------------------------------------------


def run(place: Path, ledger: Path, bugs: Sequence[Bug], limit: float, jobs: int, again: bool) -> None:
    """Judge the bugs that the ledger does not have yet, and write each to it."""
    copy, coverage, reasons = plant(place, bugs), Coverage(place), equivalent()
    done = {record["name"]: record for record in read(ledger)}
    together, alone = [], []
    for bug in bugs:
        record = done.get(bug.name, {})
        if bug.key in reasons or record and not (again and record["status"] in SURVIVED):
            continue
        passed = record.get("passed", [])
        names = coverage.within(bug, limit, passed)
        if names:
            most = round(SLOWDOWN * sum(coverage.seconds[name] for name in names) + SPARE)
            job = {"name": bug.name, "tests": names, "passed": passed, "most": most}
            (alone if bug.imported else together).append(job)
        elif not record:
            _append(ledger, {"name": bug.name, "status": "uncovered", "test": "", "seconds": 0, "passed": []})
    for jobs_of_one, active in [(together, "")] + [([job], job["name"]) for job in alone]:
        if jobs_of_one:
            plan = place / "plan.json"
            plan.write_text(json.dumps({"bugs": jobs_of_one, "jobs": jobs, "ledger": str(ledger)}))
            files = sorted({name.split("::")[0] for job in jobs_of_one for name in job["tests"]})
            log = place / "run.log"
            code = start_tests(copy, place, log, ["-s", *files], **{PLAN: str(plan), ACTIVE: active}).wait()
            if code > 1 and not active:  # with no bug switched on, the tests must be collected
                sys.exit(f"pytest ends with code {code}: {log.read_text()[-300:]}")


SURVIVED = ("survived", "uncovered")


def read(ledger: Path) -> list[dict]:
    """The last record of each bug."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return list({record["name"]: record for record in map(json.loads, lines)}.values())


def equivalent() -> dict[tuple[str, str], str]:
    """Why a bug changes no result, by its file and its difference."""
    path = HERE / "equivalent_bugs.toml"
    listed = tomllib.loads(path.read_text()).get("bug", []) if path.exists() else []
    return {(one["path"], one["difference"].strip()): one["why"] for one in listed}


def score(bugs: Sequence[Bug], records: Sequence[dict]) -> str:
    """A table for the manual: bugs drawn, caught and survived in each package."""
    reasons, found = equivalent(), {record["name"]: record["status"] for record in records}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for bug in bugs:
        status = found.get(bug.name)
        caught = status is not None and status not in SURVIVED
        if not caught and bug.key in reasons:
            what = "equivalent"
        elif status is None:
            continue
        else:
            what = "caught" if caught else "survived"
        for package in (bug.package, "all"):
            counts[package][what] += 1
    lines = ["| package | planted | caught | equivalent | survived | score |", "| --- | --- | --- | --- | --- | --- |"]
    for package in [name for name in (*PACKAGES, "all") if name in counts]:
        of = counts[package]
        share = of["caught"] / max(1, of.total() - of["equivalent"])
        cells = (of.total(), of["caught"], of["equivalent"], of["survived"], f"{share:.0%}")
        lines.append(f"| `{package}` | " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def survivors(bugs: Sequence[Bug], records: Sequence[dict], coverage: Coverage) -> str:
    """The bugs that no test notices, each with its difference."""
    reasons, of = equivalent(), {record["name"]: record for record in records}
    found = []
    for bug in bugs:
        record = of.get(bug.name, {"status": ""})
        if record["status"] in SURVIVED:
            why = reasons.get(bug.key)
            passed = f"  {len(record['passed'])} of {len(coverage.of(bug))} tests pass"
            found.append(
                f"{bug.path}:{bug.line} {bug.kind}\n{bug.key[1]}\n{f'  equivalent: {why}' if why else passed}\n"
            )
    return "\n".join(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cover", "run", "score", "list"))
    parser.add_argument("only", nargs="*", help="cover: files of tests to run again, as test_lags")
    parser.add_argument("--packages", default=" ".join(PACKAGES), help="where to draw, as 'numerics/bulk' [all]")
    parser.add_argument(
        "--place", type=Path, default=ROOT / "build" / "planted_bugs", help="directory of copies and coverage"
    )
    parser.add_argument(
        "--ledger", type=Path, help="file of results, one JSON record a line [ledger.jsonl in the place]"
    )
    parser.add_argument("--tier", choices=tuple(TIERS), help="cover: tests of the inner loop, or slower ones [both]")
    parser.add_argument("--count", type=int, default=200, help="bugs to draw [200]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw [1]")
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds of tests for one bug [600]")
    parser.add_argument("--jobs", type=int, default=1, help="bugs, or parts of the tests, at once [1]")
    parser.add_argument("--again", action="store_true", help="try the survivors of the ledger once more")
    asked = parser.parse_args()
    asked.place = asked.place.resolve()
    asked.place.mkdir(parents=True, exist_ok=True)
    ledger = asked.ledger or asked.place / "ledger.jsonl"
    bugs = drawn(asked.count, asked.seed, asked.packages.split())
    if asked.what == "cover":
        cover(asked.place, bugs, asked.only, [asked.tier] if asked.tier else list(TIERS), asked.jobs)
        return
    if asked.what == "run":
        run(asked.place, ledger, bugs, asked.limit, asked.jobs, asked.again)
        return
    names = {bug.name for bug in bugs}
    records = [record for record in read(ledger) if record["name"] in names]
    print(score(bugs, records) if asked.what == "score" else survivors(bugs, records, Coverage(asked.place)))


if __name__ == "__main__":
    main()
