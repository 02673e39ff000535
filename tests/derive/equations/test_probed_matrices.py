"""Which matrices may be probed: symmetric ones with bounded diagonals and finite averages."""

from __future__ import annotations

import pytest
import sympy as sp

import derive
from derive import (
    Eq,
    Model,
    diag,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    sectors,
    spectrum,
    training_clock,
    trait,
    weights,
    whole_positive,
)
from derive.algebra.quotients import RationalFunctions
from derive.equations.probing import _pole
from derive.errors import DeclarationError
from derive.pipeline import derive_model
from derive.program.growth import averages_over_traits
from derive.program.quotients import Evaluation

D = sectors("D")
T = parameter("T", default=3, domain=whole_positive)
t = training_clock("t", steps=T)
g, h = normal("g", D), normal("h", D)
SYMMETRIC, ANY = goe("A", D), gaussian("B", D, D, variance=1 / D)
W = weights("W", D, D, t)


@pytest.mark.parametrize(
    ("start", "added", "turned", "symmetric"),
    [
        (SYMMETRIC, outer(g, g), 0, True),
        (SYMMETRIC, outer(g, h) + outer(h, g), 0, True),
        (SYMMETRIC, outer(g, h), 0, False),
        (SYMMETRIC, outer(g, h) - outer(h, g), 0, False),
        (ANY, outer(g, g), 0, False),
        (ANY + ANY.T, outer(g, g), 0, True),
        (ANY - ANY.T, outer(g, g), 0, False),
        (ANY, outer(g, h), 1, True),
        (SYMMETRIC, outer(g, h), 1, True),
        (ANY, outer(g, h), -1, False),
        (2 * ANY + ANY.T, outer(g, g), 0, False),
    ],
)
def test_trained_weights_are_probed_only_where_they_are_symmetric(start, added, turned, symmetric):
    """turned: how often their transpose is added."""
    matrix = W(T) + turned * W(T).T if turned else W(T)
    model = Model((T,), [Eq(W(0), start), Eq(W(t + 1), W(t) / 2 + added / D)], probe=spectrum(matrix))
    if symmetric:
        derive_model(model).first.probe  # noqa: B018
    else:
        with pytest.raises(DeclarationError, match="not symmetric"):
            derive_model(model).first.probe  # noqa: B018


@pytest.mark.parametrize(
    ("entries", "place"),
    [
        (lambda s: 1 / (s - 1), 1.0),
        (lambda s: 1 / (1 - s), 1.0),
        (lambda s: s / (2 - s) ** 3, 2.0),
        (lambda s: 1 / (s - 5), None),
        (lambda s: 1 / (5 - s), None),
        (lambda s: 1 / (1 + s**2), None),
        (lambda s: s**2 - 1, None),
        (lambda s: sp.tanh(s) / (1 + sp.exp(s)), None),
        (lambda s: 1 / (s - sp.Rational(1, 2)) + 1 / (s - 20), 0.5),
    ],
)
def test_a_pole_of_a_diagonal_is_found_inside_the_range_of_its_trait(entries, place):
    s = sp.sympify(trait("s", D, density=lambda x: 1, low=0, high=3)())
    found = _pole(sp.sympify(entries(s)), s)
    assert found == (None if place is None else pytest.approx(place, abs=1e-6))
    if place is not None:
        model = Model(equations=[], parameters=(), probe=spectrum(SYMMETRIC + diag(entries(s))))
        with pytest.raises(DeclarationError, match="unbounded next to s"):
            derive_model(model).first.probe  # noqa: B018


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_averages_over_every_density_are_asked_to_be_finite(order):
    """Of two traits one has two values; whichever is declared first, averages over the density are told."""
    kinds = {"values": [1, 2]}, {"density": lambda x: x**-4, "low": 1, "high": sp.oo}
    made = {name: trait(name, D, **kind) for name, kind in zip(order, kinds, strict=True)}
    one, two = made["one"], made["two"]
    x = field("x", D, t)
    law = sp.tanh(x(t)) * one * two + (g if order[0] == "one" else h)
    model = Model((T,), [Eq(x(0), g), Eq(x(t + 1), law)], {"fifth": mean(one * two * x(t) ** 2)})
    asked = list(averages_over_traits(derive_model(model).layout))
    assert asked and {trait.name for _, trait, _ in asked} == {order[1]}
    assert any("observable fifth" in what for what, _, _ in asked)


def test_zero_to_the_power_zero_is_one_and_its_inverse_is_refused():
    field_of = RationalFunctions([sp.Symbol("a")])
    zero, two = field_of.convert(0), field_of.convert(2)
    assert float(Evaluation._power(None, zero, 0)) == 1 and float(Evaluation._power(None, two, -2)) == 0.25
    assert Evaluation._power(None, zero, 3).is_zero
    with pytest.raises(derive.errors.DeriveError, match="divides by zero"):
        Evaluation._power(None, zero, -1)
