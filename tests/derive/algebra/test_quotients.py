"""Quotients of polynomials as numbers."""

from __future__ import annotations

import pytest
import sympy as sp

from derive.algebra.quotients import RationalFunctions


def test_only_a_whole_number_is_read_as_one():
    field = RationalFunctions([])
    assert int(field.polynomial(sp.Integer(-3))) == -3
    with pytest.raises(ValueError, match="-3/2"):
        int(field.polynomial(sp.Rational(-3, 2)))
