"""Expressions and values that stand in everyday declarations, against closed forms."""

import numpy as np
import pytest
from sympy import Abs, Heaviside, Max, Min, Piecewise, Rational, cos, floor, pi, sign, sqrt, tanh

import derive
from derive import (
    Eq,
    Model,
    diag,
    drawn,
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
    uniform,
    whole_positive,
)

k, a = parameter("k", default=1.5), parameter("a", default=0.5)
D = sectors("D")
B, g = goe("B", D), normal("g", D)


@pytest.mark.parametrize(
    ("strength", "values", "number"),
    [
        (k * Abs(k), {"k": -1.5}, -2.25),
        (3 * sqrt(1 - a**2), {"a": -0.6}, 2.4),
        (sqrt(k**2 + a**2), {"k": -1.5, "a": 2}, 2.5),
        (Min(k, a), {"k": -3, "a": 2}, -3),
        (Max(k, a) + sign(k), {"k": -3, "a": 4}, 3),
        (Piecewise((k, k > 0), (-2 * k, True)), {"k": -1}, 2),
        (3 * Heaviside(k - 1) + floor(a), {"k": 2, "a": -0.5}, 2),
        ((k**2) ** Rational(3, 4) * cos(pi * a), {"k": -4, "a": 1}, -8),
    ],
)
def test_coefficients_are_what_they_are_at_negative_values(strength, values, number):
    """Baik, Ben Arous and Peche: a spike of strength s beside a semicircle has its outlier at s + 1/s."""
    spiked = Model(parameters=(k, a), probe=spectrum(B + strength / D * outer(g, g)))
    np.testing.assert_allclose(derive.load(spiked).solve(**values).outliers, [number + 1 / number], rtol=1e-9)


def test_a_bulk_of_point_masses_alone_has_outliers_beside_and_between():
    """By hand, at k = 0: <1/(z - x)> = z/(z^2 - 1) is 1/2 at 1 + sqrt(2) and 1 - sqrt(2)."""
    x = trait("x", D, values=[-1, 1])
    spiked = derive.load(Model(parameters=(k,), probe=spectrum(k * B + diag(x) + 2 / D * outer(g, g))))
    np.testing.assert_allclose(spiked.solve(k=0).outliers, [1 + 2**0.5, 1 - 2**0.5], rtol=1e-9)


def test_a_term_that_hardly_counts_hides_no_outlier():
    x, W = trait("x", D, values=[-1, 1]), gaussian("W", D, D, variance=1 / D)
    spiked = derive.load(Model(parameters=(k,), probe=spectrum(W.T @ diag(k * x) @ W + B + 2 / D * outer(g, g))))
    np.testing.assert_allclose(spiked.solve(k=1e-6).outliers, [2.5], rtol=1e-9)


def test_a_uniform_law_may_have_no_width():
    """As other laws may: the vector is its middle everywhere."""
    T = parameter("T", default=1, domain=whole_positive)
    t = training_clock("t", steps=T)
    x = field("x", D, t)
    equations = [Eq(x(0), drawn("start", D, uniform(1 - k, 1 + k))), Eq(x(t + 1), tanh(x(t)))]
    both = derive.load(Model(parameters=(k, T), equations=equations, observe={"norm": mean(x(t) ** 2)})).solve(k=0)
    np.testing.assert_allclose(both["norm"], [1, np.tanh(1) ** 2], rtol=1e-9)
