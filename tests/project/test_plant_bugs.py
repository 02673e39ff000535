"""The harness that plants bugs: what it changes, and that a seed draws the same bugs."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from types import SimpleNamespace

import plant_bugs
import pytest


def others(text: str) -> list[str]:
    """What may stand in the place of an expression or a statement."""
    (statement,) = ast.parse(text).body
    node = (
        statement.value if isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call) else statement
    )
    node = statement.value if text.startswith("std") else node
    return [ast.unparse(ast.fix_missing_locations(other)) for _, other in plant_bugs.changes(node)]


@pytest.mark.parametrize(
    ("text", "bugs"),
    [
        ("a < b", ["a <= b", "a >= b"]),
        ("a + b", ["a - b", "a", "b"]),
        ("a / b", ["a * b", "a"]),
        ("a and b", ["a or b", "b", "a"]),
        ("7", ["8", "6", "70"]),
        ("1e-8", ["1e-07", "1e-09"]),
        ("values[-1]", ["values[0]"]),
        ("values[1:]", ["values"]),
        ("std(x, y, ddof=1)", ["std(y, x, ddof=1)", "std(x, y)"]),
        ("check(x)", ["pass"]),
        ("x if a else y", ["x", "y"]),
    ],
)
def test_bugs_of_an_expression(text: str, bugs: list[str]):
    assert others(text) == bugs


def test_a_seed_draws_the_same_bugs_and_each_is_python():
    bugs = plant_bugs.drawn(6, 3, ["numerics/simulation"])
    assert bugs[:2] == plant_bugs.drawn(2, 3, ["numerics/simulation"])
    assert len({(bug.path, bug.line) for bug in bugs}) == 6
    for bug in bugs:
        source = (plant_bugs.ROOT / bug.path).read_bytes()
        assert ast.dump(ast.parse(bug.planted(source))) != ast.dump(ast.parse(source))


@pytest.mark.parametrize(("on", "value"), [("", 5), ("number", 6), ("statement", 3), ("constant", 15)])
def test_a_bug_is_there_while_its_switch_is_on(monkeypatch, on: str, value: int):
    """Of a number and a statement in a function, and of a constant as the file is imported."""
    source = b'"""A module."""\nSIZE = 2\n\n\ndef f(x):\n    x += SIZE\n    return x + 2\n'
    bugs = {
        "number": plant_bugs.Bug("m.py", 6, "off by one", source.rindex(b"2"), 0, "3", False),
        "statement": plant_bugs.Bug("m.py", 5, "removed statement", source.index(b"x +="), 0, "pass", False),
        "constant": plant_bugs.Bug("m.py", 1, "ten times", source.index(b"2"), 0, "12", True),
    }
    bugs = {name: replace(bug, end=bug.start + (9 if bug.new == "pass" else 1)) for name, bug in bugs.items()}
    passed: list[str] = []
    active = bugs[on].name if on else ""
    switches = SimpleNamespace(active=lambda name: name == active, passed=passed.append)
    monkeypatch.setitem(sys.modules, "bug_switches", switches)
    module: dict = {}
    exec(compile(plant_bugs.switched(source, list(bugs.values())), "m.py", "exec"), module)
    assert module["f"](1) == value
    assert passed == ([] if on == "statement" else [bugs["constant"].name])
