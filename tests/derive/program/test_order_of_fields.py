"""The order in which a simulation computes fields."""

from __future__ import annotations

from derive import Eq, Model, fields, goe, mean, normal, parameter, sectors, training_clock, whole_positive
from derive.program.simulation_text import write_simulation

D = sectors("D")
A = goe("A", D)
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)
v = normal("v", D)


def test_fields_are_computed_in_an_order_in_which_each_is_known():
    """y = 2 x is declared before x, and is computed after it."""
    model = Model((T,), [Eq(y(t), 2 * x(t)), Eq(x(t), A @ v)], {"q": mean(y(t) ** 2)})
    text = write_simulation(model, (), "numerics.runtime")
    assert text.index(" x = ") < text.index(" y = ")
