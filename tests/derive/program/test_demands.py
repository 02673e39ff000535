"""What a generated solver demands of parameter values."""

from __future__ import annotations

import sympy as sp

from derive import Eq, Model, field, normal, parameter, sectors, training_clock, trait, whole_positive
from derive.program.module import _demands_in_time, _demands_of_functions, _demands_of_law
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


def test_a_density_needs_an_interval_of_positive_length():
    low, high = parameter("low", default=1.0), parameter("high", default=2.0)

    def demands(**ends):
        return _demands_of_law(trait("a", D, density=lambda a: 1, **ends), PlainNumpyText(ModuleNames(), {}))

    length, integral = demands(low=low, high=high)
    assert "p.high - p.low, 'positive'" in length and "integral" in integral
    assert len(demands(low=1, high=2)) == 1


def test_functions_of_traits_must_be_finite_at_all_their_values():
    shift = parameter("shift", default=1.0)
    a = trait("a", D, values=[-1, shift], weights=[0.5, 0.5])
    model = Model((T, shift), [Eq(x(0), v), Eq(x(t + 1), sp.sqrt(a) * x(t) + sp.log(a) * v)])
    assert len(_demands_of_functions(model, PlainNumpyText(ModuleNames(), {}))) == 2


def test_functions_of_a_trait_with_a_density_must_be_finite_where_it_has_one():
    low = parameter("low", default=-1.0)
    a = trait("a", D, density=lambda a: 1, low=low, high=2.0)
    model = Model((T, low), [Eq(x(0), v), Eq(x(t + 1), sp.sqrt(a) * x(t))])
    (demand,) = _demands_of_functions(model, PlainNumpyText(ModuleNames(), {}))
    assert "density(" in demand
