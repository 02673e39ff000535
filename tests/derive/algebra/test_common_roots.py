"""Resultants and discriminants that vanish identically are refused and never read as "no roots"."""

import pytest
import sympy as sp

from derive.algebra.polynomials import TooLarge, branch_points, common_roots

x, y, z = sp.symbols("x y z")


def test_places_of_common_roots():
    (factor,) = common_roots(x**2 - y, x - z, x)
    assert sp.expand(factor**2 - (y - z**2) ** 2) == 0
    assert common_roots(x - 1, x - 2, x) == []


@pytest.mark.parametrize("other", [x - z, sp.expand((x - y) * (x + z)), (x - y) ** 2])
def test_a_common_factor_is_refused(other):
    with pytest.raises(TooLarge, match="share a factor"):
        common_roots(sp.expand((x - y) * (x - z)), sp.expand(other), x)


def test_a_repeated_factor_has_no_branch_points():
    with pytest.raises(TooLarge, match="coincide everywhere"):
        branch_points(sp.expand((x - y) ** 2 * (x - z)), x)
