"""The real axis outside the bulk: which intervals are searched for outliers, and in which variable."""

from __future__ import annotations

import numpy as np
import pytest

from numerics.outliers.panels import ChebyshevPanel, Interval, crossings, intervals_outside, panels, places_of


@pytest.mark.parametrize(
    ("bulk", "gaps"),
    [
        ([(0, 1)], []),
        ([(2, 3), (0, 1)], [(1, 2)]),
        ([(0, 1), (0.5, 2), (3, 4)], [(2, 3)]),
        ([(0, 5), (1, 2), (6, 7)], [(5, 6)]),
        ([(0, 0), (1, 2)], [(0, 1)]),
    ],
)
def test_what_is_searched_are_the_gaps_and_both_sides(bulk, gaps):
    found = [(one.low, one.high) for one in intervals_outside(bulk)]
    low, high = min(a for a, _ in bulk), max(b for _, b in bulk)
    assert found == [(-np.inf, low), *gaps, (high, np.inf)]


def test_each_end_has_the_root_of_its_edge():
    found = intervals_outside([(0, 1), (2, 3)], {0: 3, 1: 4, 2: 5, 3: 6})
    assert [one.roots for one in found] == [(2, 3), (4, 5), (6, 2)]


@pytest.mark.parametrize("first, last", [(2, 2), (3, 2), (2, 3), (4, 3)])
def test_distances_to_edges_are_powers_of_the_variable(first, last):
    small = np.array([1e-3, 2e-3])
    gap = Interval(1.0, 4.0, 2.0, (first, last))
    assert np.log2(np.divide(*(gap.z(small) - 1)[::-1])) == pytest.approx(first, rel=1e-4)
    assert np.log2(np.divide(*(4 - gap.z(1 - small))[::-1])) == pytest.approx(last, rel=1e-2)
    above, below = Interval(1.0, np.inf, 2.0, (first, 2)), Interval(-np.inf, 1.0, 2.0, (2, last))
    assert np.log2(np.divide(*(above.z(small) - 1)[::-1])) == pytest.approx(first, rel=1e-4)
    assert np.log2(np.divide(*(1 - below.z(small))[::-1])) == pytest.approx(last, rel=1e-4)


def test_a_function_takes_a_value_on_both_sides_and_in_a_gap():
    """1/z + 1/(z - 3) is one at (5 +- sqrt(13)) / 2, in the gap between bulks around its poles and above them, and
    minus one at (1 +- sqrt(13)) / 2."""

    def function(z):
        return 1 / z + 1 / (z - 3)

    found = panels(function, intervals_outside([(-0.5, 0.5), (2.5, 3.5)]))
    one, minus = crossings(function, [1.0, -1.0], found)
    assert sorted(one) == pytest.approx([(5 - np.sqrt(13)) / 2, (5 + np.sqrt(13)) / 2], rel=1e-12)
    assert sorted(minus) == pytest.approx([(1 - np.sqrt(13)) / 2, (1 + np.sqrt(13)) / 2], rel=1e-12)


def test_a_value_taken_beyond_the_ends_of_a_panel_is_not_taken_on_it():
    """2.5 x - 2 x^3 is 0.3 once between -1 and 1, and twice outside."""
    panel = ChebyshevPanel(Interval(1.0, 2.0, 1.0), 0.0, 1.0, np.array([0.0, 1.0, 0.0, -0.5]))
    ((_, x),) = places_of(0.3, [panel])
    assert 2.5 * x - 2 * x**3 == pytest.approx(0.3)
