"""What a generated solver demands of parameter values."""

from __future__ import annotations

from derive import Eq, Model, field, normal, parameter, sectors, training_clock, whole_positive
from derive.program.module import _demands_in_time
from derive.program.text import ModuleNames, PlainNumpyText

D = sectors("D")
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x = field("x", D, t)
v = normal("v", D)


def test_every_coefficient_in_time_must_be_finite():
    text = PlainNumpyText(ModuleNames(), {})
    model = Model((T,), [Eq(x(0), v), Eq(x(t + 1), x(t) / (t - 1) + v / (t - 2))])
    assert len(_demands_in_time(model, text)) == 2
