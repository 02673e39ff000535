"""The expansion of a resolvent modulo a prime."""

from __future__ import annotations

import pytest
import sympy as sp

from derive.algebra.degrees import MOST_ORDERS, PRIME, NoExpansion, ResolventExpansion
from derive.algebra.nodes import Z

G, R = sp.symbols("G R")


def test_sums_of_products_of_residues_fit_into_whole_numbers_of_64_bits():
    assert MOST_ORDERS * (PRIME - 1) ** 2 < 2**63
    with pytest.raises(NoExpansion, match="more than"):
        ResolventExpansion.of([Z * G - 1 - G**2], [G]).lowest_degrees([(1, MOST_ORDERS // 2)])


def test_a_coefficient_that_is_not_rational_has_no_residue():
    with pytest.raises(NoExpansion, match="not rational"):
        ResolventExpansion.of([Z * G - 1 - G**2, Z * R - 1 - sp.sqrt(2) * R**2], [G, R])
