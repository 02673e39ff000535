"""Slopes of the polynomial equations of a bulk."""

from __future__ import annotations

import numpy as np

from numerics.bulk.polynomials import PolynomialSystem, Sums


def test_slopes_that_are_not_zero_act_as_their_matrix():
    """Slopes ((2 z, 0, 5), (0, 3, 0), (1, 0, r0)) of three equations by three unknowns."""
    slope = [(0, 2.0, (0,)), (2, 5.0, ()), (4, 3.0, ()), (6, 1.0, ()), (8, 1.0, (1,))]
    none = Sums.of([], 4)
    system = PolynomialSystem(3, none, none, Sums.of(slope, 4))
    z, r = np.array([1.5, -1.0]), np.array([[0.5, 7.0, 9.0], [4.0, 7.0, 9.0]])
    values = system.values(z, r)[2]
    matrices = np.array([[[2 * a, 0, 5], [0, 3, 0], [1, 0, b]] for a, b in zip(z, r[:, 0], strict=True)])
    columns, sizes = np.arange(12.0).reshape(2, 3, 2), np.array([[1.0, 2.0, 3.0], [5.0, 0.1, 0.2]])
    assert np.allclose(system.matrices(values), matrices)
    assert np.allclose(system.times(values, columns), matrices @ columns)
    assert np.allclose(system.widest(values, sizes), np.max(np.abs(matrices) * sizes[:, None, :], axis=-1))
