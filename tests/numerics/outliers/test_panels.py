"""Zeros of functions on panels of the real axis."""

from __future__ import annotations

import numpy as np
import pytest

from numerics.outliers.panels import ChebyshevPanel, Interval, crossings, panels, places_of

INTERVALS = [Interval(1.0, np.inf, 1.0), Interval(-np.inf, -2.0, 0.5), Interval(0.5, 3.0, 1.0)]


def test_a_function_that_vanishes_like_one_over_z_is_zero_at_infinity():
    upwards = ChebyshevPanel(Interval(1.0, np.inf, 1.0), 0.0, 1.0, np.array([0.5, -0.5]))
    assert crossings(lambda z: 1 / z, [0.0], [upwards]) == [[np.inf]]


@pytest.mark.parametrize("interval", INTERVALS, ids=str)
def test_an_increasing_function_takes_each_value_once_or_never(interval):
    low, high = (np.clip(end, -1e300, 1e300) for end in (interval.low, interval.high))
    middle = np.mean([max(low, -9.0), min(high, 9.0)])

    def function(z):
        return np.arctan(z - middle)

    goals = [function(x) for x in (middle - 0.3, middle, middle + 0.4)] + [2.0]
    found = crossings(function, goals, panels(function, [interval]))
    assert found[3] == []
    assert np.allclose(np.ravel(found[:3]), [middle - 0.3, middle, middle + 0.4], rtol=0, atol=1e-12)


def test_a_value_beyond_the_largest_coefficients_is_taken_nowhere():
    panel = ChebyshevPanel(Interval(0.0, 1.0, 1.0), 0.0, 1.0, np.array([1.0, 0.5, 0.25]))
    assert places_of(1.76, [panel]) == [] and [x for _, x in places_of(1.75, [panel])] == [1.0]


@pytest.mark.parametrize("unit", [1e-200, 1e-9, 1e9, 1e200])
def test_where_a_function_takes_a_value_does_not_depend_on_its_unit(unit):
    """1 + x/2 + (2 x^2 - 1)/4 is 1 where x = sqrt(3/4) - 1/2; coefficients that are rounding have no roots."""
    coefficients = unit * np.array([1.0, 0.5, 0.25, 1e-17, -1e-16])
    panel = ChebyshevPanel(Interval(0.0, 1.0, 1.0), 0.0, 1.0, coefficients)
    assert [x for _, x in places_of(unit, [panel])] == pytest.approx([0.75**0.5 - 0.5])


@pytest.mark.parametrize("side", [-1, 1])
def test_a_value_beyond_the_end_of_a_panel_by_rounding_is_taken_there(side):
    """Beyond the end of an interval that is infinite points have the other sign."""
    panel = ChebyshevPanel(Interval(0.0, 1.0, 1.0), 0.0, 1.0, np.array([1.0, 0.5]))
    assert [x for _, x in places_of(1.0 + side * (0.5 + 2e-7), [panel])] == [side]
