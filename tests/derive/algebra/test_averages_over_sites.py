"""Averages of rational functions over sites that differ."""

from __future__ import annotations

import sympy as sp

from derive import sectors, trait
from derive.algebra.nodes import Z
from derive.algebra.sites import TraitAverage, around_averages, at_source

D = sectors("D")
G, R = sp.symbols("G R")


def test_an_expression_with_two_averages_is_expanded_around_them():
    s = sp.sympify(trait("s", D, values=[1, 2])())
    one, two = TraitAverage(1 / (Z - s)), TraitAverage(s / (Z - s))
    assert around_averages(sp.expand, (1 + one) * (1 + two)) == 1 + one + two + one * two
    with_source = TraitAverage(1 / (Z - s + R)) * TraitAverage(s / (Z - s + R))
    assert at_source(G + with_source + R, {R: sp.S.Zero}) == G + one * two
