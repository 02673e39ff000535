"""Both ends of a simulated spectrum."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from derive.errors import NumericalError
from numerics.simulation.compare import _inwards
from numerics.simulation.samples import KEPT, _early, _symmetric


def test_vectors_before_the_last_step_belong_to_the_eigenvalues_at_both_ends():
    matrix = np.diag(np.arange(3.0 * KEPT))
    kept: dict = {}
    asked = SimpleNamespace(asked={"": ["a direction"]}, keep=lambda label, time, found: kept.update(found))
    eigenvalues = _early("", matrix, None, 1, asked, None)
    (vectors,) = {id(one): one for one in kept.values()}.values()
    assert len(eigenvalues) == 2 * KEPT and np.allclose(matrix @ vectors, vectors * eigenvalues)


def test_an_end_of_a_spectrum_with_a_null_space_says_nothing_about_what_is_behind():
    eigenvalues = np.array([-1e-15, 0.5, 1.0, 3.0, 4.0, 5.0])
    up, down = _inwards(eigenvalues, 0.0, whole=False)
    assert up.tolist() == [] and down.tolist() == [5.0, 4.0, 3.0]


@pytest.mark.parametrize(("time", "told"), [(None, "not finite; the"), (3, "not finite at step 3; the")])
def test_a_matrix_that_diverged_is_told_with_its_step(time, told):
    with pytest.raises(NumericalError, match=told):
        _symmetric(np.array([[1.0, np.nan], [np.nan, 1.0]]), time)
