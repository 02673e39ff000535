"""Labels of a simulated vector in another order of their axes."""

from __future__ import annotations

import numpy as np

from numerics.runtime.finite_size import in_order


def test_labels_of_a_vector_in_another_order_of_their_axes():
    vector = np.arange(24.0).reshape(4, 6)  # four sites, labels 2 x 3
    assert np.array_equal(in_order(vector, (2, 3), (1, 0)), [row.reshape(2, 3).T.ravel() for row in vector])
