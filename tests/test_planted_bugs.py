"""The harness that plants bugs: what it changes, and that a seed draws the same bugs."""

from __future__ import annotations

import ast

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
