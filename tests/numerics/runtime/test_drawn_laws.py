"""The laws that a simulation draws traits from, by their means and variances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numerics.runtime.finite_size import drawn_from

DRAWS = 20_000


@pytest.mark.parametrize(
    ("law", "mean", "variance"),
    [
        (("uniform", -1.0, 3.0), 1.0, 16 / 12),
        (("exponential", 2.0), 2.0, 4.0),
        (("half_normal", 2.0), 2 * math.sqrt(2 / math.pi), 4 * (1 - 2 / math.pi)),
        (("log_normal", 0.1, 0.5), math.exp(0.225), math.expm1(0.25) * math.exp(0.45)),
        (("normal_law", 1.0, 0.5), 1.0, 0.25),
        (("discrete", (1.0, 3.0), (-1.0, 2.0)), 1.25, 27 / 16),
        (("mixture", (1.0, 1.0), (("normal_law", 0.0, 1.0), ("uniform", 2.0, 4.0))), 1.5, 2 / 3 + 9 / 4),
    ],
    ids=lambda law: law[0] if isinstance(law, tuple) else "",
)
def test_a_law_is_drawn_with_its_mean_and_variance(law: tuple, mean: float, variance: float):
    """Means to five standard errors, variances to ten percent, which is as much for the law with the longest tail."""
    values = drawn_from(np.random.default_rng(0), np, law, DRAWS // 2, 2)
    assert values.shape == (DRAWS // 2, 2)
    assert np.mean(values) == pytest.approx(mean, abs=5 * math.sqrt(variance / DRAWS))
    assert np.var(values) == pytest.approx(variance, rel=0.1)
