"""Errors of outliers that are close to each other."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from numerics.outliers import replicas
from numerics.outliers.errors import _apart
from numerics.outliers.following import Lost
from numerics.outliers.replicas import AGREE, agree


def test_outliers_whose_distance_is_half_noise_have_half_of_their_own_error():
    """Distances of 0.1 as they are seen are 0.2 without bias: squares of errors of an outlier alone, 0.1, and of the
    mean and of distances, 0.3 and 0.4, count alike."""
    errors = {1.1: 0.3, -0.1: 0.4, 0.1: 0.4, 1.0: 0.1, 1.2: 0.1}
    nearby = SimpleNamespace(
        estimate=lambda value, others: (value, errors[round(value, 6)]), added_by_noise=lambda *_: 0.0, unbiased={}
    )
    found = _apart([0, 1], [1.0, 1.2], [[0.9], [1.3]], nearby)
    assert found == [(pytest.approx(1.1 + far), pytest.approx(np.sqrt((0.01 + 0.25) / 2))) for far in (-0.2, 0.2)]


@pytest.mark.parametrize("infinite", [1.1, -0.1, 1.0, 1.2])
def test_outliers_that_are_close_have_no_error_if_their_mean_a_distance_or_one_of_them_has_none(infinite):
    nearby = SimpleNamespace(
        estimate=lambda value, others: (value, np.inf if round(value, 6) == infinite else 0.1),
        added_by_noise=lambda *_: 0.0,
        unbiased=None,
    )
    assert _apart([0, 1], [1.0, 1.2], [[0.9], [1.3]], nearby) == [(1.0, np.inf), (1.2, np.inf)]


def test_a_replica_that_was_followed_agrees_with_one_that_has_as_many_outliers_close_to_its_own():
    """Replicas are 0.1 apart, so that 1e-6 is close and 0.1 is not."""

    def points(values):
        return [[value] for value in values]

    followed = [[1.0], [1.1], [0.9]]
    assert agree(points, followed, 0, [1.0 + 1e-6])
    assert not agree(points, followed, 0, [1.1])
    assert not agree(points, followed, 0, [1.0, 2.0])


@pytest.mark.parametrize(
    ("again", "off"),
    [([2.0, 1.3], 0.0), ([2.0, 1.3 + 0.02 * AGREE], 0.2), ([2.0, 1.3 - 0.2 * AGREE], None), ([2.0], None)],
)
def test_of_replicas_that_were_followed_the_farthest_is_solved_again(again, off, monkeypatch):
    """Errors are 0.1. The last replica is three of them away, the others one at most; what is solved for may be off by
    a share of an error."""
    asked = []
    monkeypatch.setattr(replicas, "outlier_positions", lambda order: asked.append(order) or again)
    nearby = SimpleNamespace(orders=("one", "two", "three"), estimate=lambda value, others: (value, 0.1))
    problem = SimpleNamespace(with_order=lambda order: order)
    followed = [[2.0, 1.0], [2.1, 1.0], [2.0, 1.3]]
    if off is None:
        with pytest.raises(Lost):
            replicas._check(problem, [2.0, 1.0], followed, nearby)
    else:
        assert replicas._check(problem, [2.0, 1.0], followed, nearby) == pytest.approx(off * AGREE, abs=1e-12)
    assert asked == ["three"]


def test_a_replica_with_another_number_of_outliers_is_solved_again(monkeypatch):
    """Also where they coincide, and so agree with the one that was followed."""
    monkeypatch.setattr(replicas, "outlier_positions", lambda order: [2.0, 2.0])
    nearby = SimpleNamespace(orders=("one",), estimate=lambda value, others: (value, 0.1))
    with pytest.raises(Lost, match="number"):
        replicas._check(SimpleNamespace(with_order=lambda order: order), [2.0], [[2.0]], nearby)
