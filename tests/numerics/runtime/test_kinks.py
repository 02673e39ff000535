"""Where integrands with kinks are divided."""

from __future__ import annotations

import numpy as np
import pytest

from numerics.runtime.gaussian import _breaks


def test_kinks_of_two_arguments_cross_where_both_vanish():
    """z0 + z1 = 1 and z0 = z1 cross at z0 = 1/2."""
    planes = [([np.array(1.0), np.array(1.0)], np.array(-1.0)), ([np.array(1.0), np.array(-1.0)], np.array(0.0))]
    assert float(_breaks(planes, 0, [])[-1]) == pytest.approx(0.5)
