"""Generating functions as integrals of delta functions: what normalises them, and what does not."""

from __future__ import annotations

import sympy as sp

from derive.algebra.deltas import integrate_deltas

x, y, j, k, a = sp.symbols("x y j k a", real=True)


def second_response(Z):
    """<hat x hat x> from the generating function, without a source."""
    return sp.simplify((-sp.diff(Z, j, 2) / Z).subs({j: 0, k: 0}))


def test_explicit_equations_are_normalised_for_every_source():
    assert integrate_deltas([x, y], [x - a - j, y - sp.tanh(x) - k]) == 1


def test_a_slope_divides():
    assert integrate_deltas([x, y], [2 * x + y - j, y - 3 * x - k]) == sp.Rational(1, 5)


def test_a_conjugate_of_a_correlation_in_the_action_gives_response_fields_a_mean():
    Z = integrate_deltas([x, y], [x - a - j, y - sp.tanh(x) - k], weight=sp.exp(-(x**2) / 2))
    assert second_response(Z) == sp.expand(1 - a**2)


def test_a_cycle_leaves_a_jacobian_that_depends_on_the_source():
    assert integrate_deltas([x], [x - sp.tanh(x) - j]) is None
    Z = integrate_deltas([x, y], [y * x - a, y - 1 - j])
    assert second_response(Z) == -2
