"""Zeros of functions on panels of the real axis."""

from __future__ import annotations

import numpy as np

from numerics.outliers.panels import ChebyshevPanel, Interval, crossings


def test_a_function_that_vanishes_like_one_over_z_is_zero_at_infinity():
    upwards = ChebyshevPanel(Interval(1.0, np.inf, 1.0), 0.0, 1.0, np.array([0.5, -0.5]))
    assert crossings(lambda z: 1 / z, [0.0], [upwards]) == [[np.inf]]
