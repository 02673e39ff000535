"""Vectors over sampled sites: what factors and tables along labels do to their values and slopes."""

from __future__ import annotations

import numpy as np

from numerics.runtime.labels import LabelComponents
from numerics.runtime.samples import SampledClosure, Values

RNG = np.random.default_rng(0)


def test_a_factor_for_each_site_multiplies_values_and_slopes():
    values, slopes, factor = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3, 2)), RNG.normal(size=(4, 3))
    found = Values(None, values, slopes) * factor
    assert np.allclose(found.values, values * factor) and np.allclose(found.slopes, slopes * factor[:, :, None])
    assert np.allclose((Values(None, values, slopes) * 2.0).slopes, 2 * slopes)


def test_a_table_along_labels_acts_on_each_site():
    values, table = RNG.normal(size=(4, 3)), RNG.normal(size=(2, 3))
    for acting, transposed in ((table, 0), (table.T, 1)):
        found = SampledClosure.mixed(None, acting, Values(None, values), transposed)
        assert np.allclose(found.values, [table @ site for site in values])


def test_a_vector_with_labels_beside_one_without_overlaps_in_the_sum_over_labels():
    """The sum over labels divided by the root of their number is the first component; with signs there is none."""
    table = RNG.normal(size=(5, 2, 5, 1))
    found = LabelComponents(3, 2).expand(table, True, False)
    assert found.shape == (5, 3, 5, 1) and np.allclose(found, table[:, :1] / np.sqrt(3))
    assert not np.any(LabelComponents(3, 1).expand(table[:, :1], True, False))
