"""Averages of rational functions over sites that differ."""

from __future__ import annotations

import sympy as sp

from derive import sectors, trait
from derive.algebra.nodes import Z
from derive.algebra.sites import TraitAverage, around_averages, at_source, without_averages, written_out

D = sectors("D")
G, R = sp.symbols("G R")


def test_an_expression_with_two_averages_is_expanded_around_them():
    s = sp.sympify(trait("s", D, values=[1, 2])())
    one, two = TraitAverage(1 / (Z - s)), TraitAverage(s / (Z - s))
    assert around_averages(sp.expand, (1 + one) * (1 + two)) == 1 + one + two + one * two
    with_source = TraitAverage(1 / (Z - s + R)) * TraitAverage(s / (Z - s + R))
    assert at_source(G + with_source + R, {R: sp.S.Zero}) == G + one * two


def test_an_average_over_up_to_eight_groups_is_written_as_a_sum():
    """Groups are those of all traits together; more would make elimination slow."""
    two, four = (trait(f"t{k}", D, values=list(range(k)))() for k in (2, 4))
    eight, nine = (sp.sympify(trait(f"s{k}", D, values=list(range(k)))()) for k in (8, 9))
    average = TraitAverage(1 / (Z - eight))
    assert written_out(average) == sp.Add(*(1 / (Z - k) for k in range(8))) / 8
    assert without_averages(G * average) == G * written_out(average)
    assert written_out(TraitAverage(sp.sympify(two * four) * R)) == R * sp.Rational(3, 4)
    assert written_out(TraitAverage(1 / (Z - nine))) is None
    assert without_averages(average + TraitAverage(1 / (Z - nine))) is None
