"""Laws without a mean square, and observables without a mean, are refused; those that only look like it are not."""

from __future__ import annotations

import pytest
import sympy as sp
from sympy import Abs, Heaviside, Max, cosh, coth, exp, log, sin, tan, tanh

from derive import Eq, Model, field, fields, goe, mean, normal, parameter, sectors, training_clock, whole_positive
from derive.errors import DeclarationError
from derive.stages.expand import expand_declaration

T = parameter("T", default=4, domain=whole_positive)
a, p = parameter("a", default=1.0), parameter("p", default=1.0)
D = sectors("D")
t = training_clock("t", steps=T)
M, v, w = goe("M", D), normal("v", D), normal("w", D)
x, h, y = fields("x h y", D, t)


def expanded(law, observe=None, more=()):
    equations = [Eq(x(0), v), Eq(h(t), M @ x(t)), Eq(x(t + 1), law), *more]
    return expand_declaration(Model((T, a, p), equations, observe or {"q": mean(x(t) ** 2)}))


INFINITE = [
    1 / h(t),
    1 / (x(t) + h(t)),
    1 / (h(t) ** 2 - a),
    1 / (h(t) + w**2),
    h(t) ** (-p),
    Abs(h(t)) ** sp.Rational(-1, 2),
    1 / (exp(h(t)) - 1),
    Heaviside(h(t)) / h(t),
    coth(h(t)),
    tan(h(t)),
    tanh(h(t)) / (v + 2),
    1 / (h(t) - 4.96),
    1 / (h(t) + 4.94),
]
FINITE = [
    1 / (1 + h(t) ** 2),
    1 / (a + h(t) ** 2),
    1 / (mean(x(t) ** 2) + h(t) ** 2),
    Abs(h(t)) ** sp.Rational(-1, 3),
    tanh(h(t)) / h(t),
    sin(h(t)) / h(t),
    h(t) / (exp(h(t)) - 1),
    1 / cosh(h(t)),
    1 / Max(h(t), 1),
    log(Abs(h(t))),
    exp(-h(t)),
]


@pytest.mark.parametrize("law", INFINITE, ids=str)
def test_a_law_without_a_mean_square_is_refused(law):
    with pytest.raises(DeclarationError, match="the equation of x: the mean square of .* is infinite"):
        expanded(law)


def test_an_infinite_law_is_shown_at_the_times_at_which_it_is_declared():
    with pytest.raises(DeclarationError, match=r"mean square of 1/h\(t\) is"):
        expanded(1 / h(t))


def test_a_denominator_inside_a_mean_is_not_one_of_the_law():
    number = mean(Abs(h(t) + h(t) ** 3) ** sp.Rational(-1, 3))
    with pytest.raises(DeclarationError, match=r"it is not bounded where sinh\(h\(t\)\) vanishes"):
        expanded(number * coth(h(t)))


@pytest.mark.parametrize("law", FINITE, ids=str)
def test_a_law_with_a_mean_square_goes_through(law):
    assert expanded(law).fields


def test_a_field_between_counts_as_what_it_is():
    assert expanded(1 / y(t), more=[Eq(y(t), exp(h(t)))]).fields
    with pytest.raises(DeclarationError, match="the equation of x"):
        expanded(1 / y(t), more=[Eq(y(t), h(t) + 3)])


def test_a_static_field_is_looked_at_too():
    y = field("y", D)
    assert expanded(tanh(h(t)) * y, more=[Eq(y, 1 / (1 + v**2))]).fields
    with pytest.raises(DeclarationError, match="the equation of y"):
        expanded(tanh(h(t)) * y, more=[Eq(y, 1 / v)])


def test_an_observable_needs_a_mean_only():
    assert expanded(tanh(h(t)), {"root": mean(Abs(v) ** sp.Rational(-3, 4))}).fields
    with pytest.raises(DeclarationError, match="observable worse: the mean of .* is infinite"):
        expanded(tanh(h(t)), {"worse": mean(1 / v**2)})
