"""Growth of fields with the traits of their site, with noises, draws and means as numbers."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import (
    Eq,
    Model,
    fields,
    goe,
    mean,
    normal,
    parameter,
    past_sum,
    sectors,
    training_clock,
    trait,
    uniform,
    whole_positive,
)
from derive.language.traits import VALUE
from derive.pipeline import derive_model
from derive.program.growth import TIMES, _usual, averages_over_traits

D = sectors("D")
T = parameter("T", default=3, domain=whole_positive)
t = training_clock("t", steps=T)
A, v = goe("A", D), normal("v", D)
x, y = fields("x y", D, t)
s = trait("s", D, density=lambda z: z**-9, low=1, high=sp.oo)


@pytest.mark.parametrize(("low", "high"), [(-sp.oo, sp.oo), (-sp.oo, 3), (-sp.oo, -3), (3, sp.oo), (1, 4), (-4, -1)])
def test_a_usual_value_of_a_density_is_between_its_ends(low, high):
    value = _usual(trait("s", D, density=lambda z: sp.exp(-(z**2)), low=low, high=high))
    assert value.is_finite and low < value < high


def test_a_usual_value_of_a_discrete_law_is_one_of_its_values():
    assert _usual(trait("s", D, values=[5, 7])) in (5, 7)
    assert _usual(trait("s", D, law=uniform(2, 4))) == 3


STARTS = {"drawn": v, "of the trait": s * v, "of its square": s**2 + v}
LAWS = {
    "multiplied": (s * x(t), lambda start, k: start + k),
    "multiplied and pushed": (s * x(t) + A @ x(t), lambda start, k: start + k),
    "pushed after it is multiplied": (A @ x(t) + v, lambda start, k: 0 if k else start),
    "squared": (s * x(t) ** 2, lambda start, k: (1 + start) * 2**k - 1),
    "of a mean": (s**2 * mean(x(t)) + v, lambda start, k: 2 if k else start),
    "delayed": (s * x(t - 1) + v, lambda start, k: (start, 0, start + 1)[k]),
    "summed": (past_sum(lambda z: s * x(z), t + 1) + v, lambda start, k: start + k),
    "summed in time": (s * past_sum(lambda z: z * x(z), t + 1) + v, lambda start, k: (start, 0, 1)[k]),
    "in time": (s**t * v, lambda start, k: (start, 0, 1)[k]),
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("law", LAWS)
def test_the_mean_square_has_twice_the_degree_of_the_field(law, start):
    """The degree in the trait of x at the first times."""
    equation, degree = LAWS[law]
    model = Model((T,), [Eq(x(0), STARTS[start]), Eq(x(t + 1), equation)], {"q": mean(x(t) ** 2)})
    asked = [inside for what, _, inside in averages_over_traits(derive_model(model).layout) if "mean square" in what]
    initial = {"drawn": 0, "of the trait": 1, "of its square": 2}[start]
    assert {sp.degree(sp.expand(e), VALUE) for e in asked} == {
        2 * degree(initial, k) for k in range(TIMES) if degree(initial, k)
    }
