"""Thresholds of models with gaps: against free convolution, and all of them against bisection of the solver."""

from __future__ import annotations

import numpy as np
import pytest
from bisect_thresholds import MODELS, Gapped, difference, expanded, wigner

import derive


@pytest.mark.slow
def test_thresholds_of_two_groups_are_those_of_a_subordination(tmp_path):
    """z = u + g(u) with g(u) = sum w/(u - d) turns where g' = -1, and an outlier of strength k has k g(u) = 1."""
    places, weights = np.array([3.0, 0.0]), np.array([2.0, 1.0]) / 3
    path = tmp_path / "model.py"
    path.write_text(wigner([3, 0], [2, 1]))
    found = expanded(derive.load(str(path)), Gapped("", ""))
    square = np.polysub(np.poly(np.repeat(places, 2)), _sum(weights, np.repeat(places, 2).reshape(2, 2)))
    turning = np.real([u for u in np.roots(square) if abs(u.imag) < 1e-9])
    levels = sorted(1 / np.sum(weights / (u - places)) for u in turning)
    assert np.allclose([value for value, _ in found], levels, rtol=1e-8)


def _sum(weights: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The numerator of sum w/(u - d)^2 for two groups."""
    return weights[0] * np.poly(places[1]) + weights[1] * np.poly(places[0])


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_all_thresholds_are_where_the_solver_counts_other_outliers(model: Gapped, tmp_path):
    assert not difference(model, tmp_path)
