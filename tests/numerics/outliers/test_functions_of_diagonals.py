"""Spikes along functions of the field on a diagonal, against one integral over sites."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from sympy import tanh

import derive
from derive import Eq, Model, diag, field, goe, normal, outer, sectors, spectrum

D = sectors("D")
x, y = field("x", D), field("y", D)


def test_a_spike_between_a_field_on_a_diagonal_and_a_function_of_it():
    """S + diag(y) + 2 (y x^T + x y^T)/D with y = tanh(x) has an outlier where 1 = 2 M(z), with the means of (y, x)
    times (x, y) over z - G - y in M."""
    probe = spectrum(goe("S", D) + diag(tanh(x)) + 2 * (outer(y, x) + outer(x, y)) / D)
    model = Model(parameters=(), equations=[Eq(x, normal("v", D)), Eq(y, tanh(x))], probe=probe)
    places, weights = np.polynomial.hermite_e.hermegauss(101)
    sites, weights = np.array([np.tanh(places), places]), weights / weights.sum()

    def determinant(z: float) -> float:
        g = 0.0
        for _ in range(500):
            g = np.sum(weights / (z - g - sites[0]))
        return np.linalg.det(np.eye(2) - 2 * (sites * weights / (z - g - sites[0])) @ sites[::-1].T)

    assert derive.load(model).solve().outliers == pytest.approx([brentq(determinant, 2.8, 4.0)], rel=1e-9)
