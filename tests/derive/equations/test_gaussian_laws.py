"""Nonlinear laws of Gaussian arguments: the combinations they depend on, their numbers and kinks."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import Eq, Model, field, fields, gaussian, mean, normal, parameter, sectors, training_clock, whole_positive
from derive.equations.gaussian_laws import Laws, _kinks, _reduce_arguments
from derive.pipeline import derive_model

D = sectors("D")
a, b, k = sp.symbols("a b k", real=True)
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)
v = normal("v", D)


def test_a_law_that_changes_in_time_takes_the_time_as_a_number():
    h, W = field("h", D, t), gaussian("W", D, D)
    equations = [
        Eq(x(0), v),
        Eq(h(t), W @ x(t) / sp.sqrt(D)),
        Eq(x(t + 1), sp.tanh((1 + t) * h(t))),
        Eq(y(t), sp.tanh(h(t))),
    ]
    laws = Laws(derive_model(Model((T,), equations, {"q": mean(x(t) * y(t))})).layout, (), ())
    numbers = {str(law.expression): tuple(map(str, law.numbers)) for law in laws.laws.values()}
    assert numbers == {"tanh(u0)": (), "tanh(n0*u0)": ("t",)}


@pytest.mark.parametrize(
    ("law", "count"),
    [
        (sp.tanh(a + k * b), 1),
        (sp.tanh(a + 2 * b) * sp.sin(2 * a + 4 * b), 1),
        (sp.tanh(a + 2 * b) * sp.sin(2 * a + 3 * b), 2),
        (sp.exp(a + b + sp.tanh(2 * a + 2 * b)), 1),
        (sp.exp(1 + a + b + sp.tanh(k * (a + b) + 3)), 1),
    ],
)
def test_a_law_in_combinations_of_its_arguments_is_the_same_function(law, count):
    reduced, combinations = _reduce_arguments(law, [a, b])
    values = {sp.Symbol(f"u{i}", real=True): sp.Add(*(c * u for u, c in one)) for i, one in enumerate(combinations)}
    assert len(combinations) == count
    assert sp.expand(reduced.xreplace(values if count == 1 else {}) - law) == 0


def test_a_mean_may_multiply_the_argument_of_an_absolute_value():
    """Numbers of a law are real, so that an absolute value of their products with fields has a slope."""
    h, W = field("h", D, t), gaussian("W", D, D)
    law = sp.Abs(mean(x(t) ** 2) * h(t) - 1)
    equations = [Eq(x(0), v), Eq(h(t), W @ x(t) / sp.sqrt(D)), Eq(x(t + 1), law)]
    (found,) = Laws(derive_model(Model((T,), equations, {"q": mean(x(t))})).layout, (), ()).laws.values()
    assert found.straight and len(found.numbers) == 1 and not found.slopes[0].has(sp.re)


def test_the_larger_of_two_arguments_has_a_kink_where_they_are_equal():
    assert _kinks(sp.Max(a, 3 * b), [a, b], "here") in ((a - 3 * b,), (3 * b - a,))
