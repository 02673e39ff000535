"""Powers with symbolic exponents, of sizes and of parameters."""

from __future__ import annotations

import sympy as sp

from derive import sectors
from derive.algebra.generators import Generators, decode
from derive.algebra.scaling import size_free

a, k = sp.symbols("a k", real=True)


def test_a_ratio_of_sizes_may_have_any_exponent():
    base, other = sectors("D", N=2)
    assert size_free((other / base) ** sp.Symbol("k", real=True), "here") == 2 ** sp.Symbol("k", real=True)


def test_a_power_stands_for_itself_where_it_was_not_announced():
    power = (1 + a) ** (2 * k)
    assert decode(Generators.of([]).encode(power)) == power
