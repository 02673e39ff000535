"""The stationary limit of linear training: what of the starting values it takes along, and what it leaves out."""

from __future__ import annotations

import pytest
from sympy import sqrt

from derive import (
    Eq,
    Model,
    axis,
    data,
    field,
    gaussian,
    mean,
    normal,
    parameter,
    sectors,
    training_clock,
    whole_positive,
)
from derive.pipeline import derive_model

D = sectors("D")
T = parameter("T", default=4, domain=whole_positive)
C = parameter("C", default=2, domain=whole_positive)
t, c = training_clock("t", steps=T), axis("c", C)
x, y = field("x", D, t, axes=c), field("y", D, t, axes=c)
v, W, table = normal("v", D, axes=c), gaussian("W", D, D), data("table", c, c)


@pytest.mark.parametrize(
    ("added", "start", "forgotten", "subtracted"),
    [
        (y(t + 1), v, "", "x y"),
        (y(t), v, "", "y"),
        (table @ y(t + 1), v, "y(0) in the equation of x", "y"),
        (table @ y(t), v, "", "y"),
        (y(t), W @ v / sqrt(D), "the start of y", ""),
    ],
    ids=str,
)
def test_a_start_before_an_equation_holds_is_subtracted_or_named(added, start, forgotten, subtracted):
    """x(t + 1) = x(t)/2 + y(t + 1) does not contain y(0). A linear combination of sources is subtracted; what a table
    joins, or is not one of sources, is named."""
    equations = [Eq(y(0), start), Eq(y(t + 1), y(t) / 3), Eq(x(0), 0 * v), Eq(x(t + 1), x(t) / 2 + added)]
    limit = derive_model(Model((T, C), equations, {"q": mean(x(t) ** 2)})).limit
    assert limit.forgotten == forgotten
    drives = {(str(part.target), str(part.of)) for part in limit.drives if part.coefficient}
    assert drives == {(name, "v") for name in subtracted.split()}
