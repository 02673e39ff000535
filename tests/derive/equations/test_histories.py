"""Histories of weights that depend on each other."""

from __future__ import annotations

import sympy as sp

from derive.equations.history import _reached


def test_what_is_added_to_weights_reaches_those_that_depend_on_them_through_others():
    """U(t+1) = U + dyad, V(t+1) = V + U, W(t+1) = W + V: a dyad is in W two steps later. X depends on none of them."""
    zero, one = sp.S.Zero, sp.S.One
    matrix = [[one, zero, zero, zero], [one, one, zero, zero], [zero, one, one, zero], [zero, zero, zero, one]]
    assert _reached(matrix, [one, zero, zero, zero], [zero] * 4) == [True, True, True, False]
