"""The average of a resolvent over sites."""

from __future__ import annotations

import numpy as np
import pytest

from numerics.runtime import traits


def test_the_average_of_a_resolvent_over_sites():
    z, values, weights = np.array([3.0, 4.0j]), np.array([[1.0], [2.0]]), np.array([0.25, 0.75])
    average = traits.SiteAverage(weights, ((-1, (("z", np.ones((2, 1))), ("1", -values))),))
    assert average.at({"z": z}) == pytest.approx(0.25 / (z - 1) + 0.75 / (z - 2))
