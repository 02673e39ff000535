"""Training at several points at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from numerics.runtime.keys import OrderKey
from numerics.runtime.operators import operator
from numerics.training import ensemble, trained


def test_points_that_fill_up_a_batch_are_no_results(monkeypatch):
    def settled(_, kind, count):
        return ({}, {"x": np.arange(float(count))[:, None]}, np.ones(count)), [{"point": k} for k in range(count)]

    monkeypatch.setattr(trained, "settle", settled)
    monkeypatch.setattr(trained, "integrals_of", lambda training: None)
    monkeypatch.setattr(trained, "check_memory", lambda solver, values: 1)
    solver = SimpleNamespace(quadrature=True, training=None, point=lambda values: values)
    (one,) = trained.train_together(solver, [{"a": 1.0}], batch=3)
    assert one.method == {"point": 0}


def test_columns_of_noises_are_spread_over_the_whole_matrix():
    value = np.arange(1.0, 5.0).reshape(2, 2)
    found = ensemble._spread(value, np.array([3, 1]), (2, 5))
    assert np.array_equal(found, [[0, 2, 0, 1, 0], [0, 4, 0, 3, 0]])
    assert ensemble._spread(value, None, (2, 2)) is value
    assert ensemble._spread(value, np.array([0, 1]), (2, 2)) is value


def test_a_moment_of_a_sum_of_passes_is_the_sum_of_their_moments():
    """2 m(0) - 3 m(1) + a mean of passes; a pass that cancels is not asked for, and nothing is zero."""
    key = OrderKey("C", "x", "x")
    moments = {k: np.full((2, 3), 10.0**k) for k in range(3)}

    class OfMean:
        def moments(self, keys):
            return {one: np.full((2, 3), 0.5) for one in keys}

    run = SimpleNamespace(matrix=lambda one, asked: operator(moments[one]), shapes=((key, (2, 3)),))
    terms = [(1.0, 0), (-3.0, 1), (4.0, OfMean()), (5.0, 2), (1.0, 0), (-5.0, 2)]
    del moments[2]
    found = ensemble.Ensemble.sum_of(run, terms, key)
    assert np.array_equal(found.array(np), np.full((2, 3), 2 - 30 + 2.0))
    empty = ensemble.Ensemble.sum_of(run, [(1.0, 0), (-1.0, 0)], key)
    assert empty.shape == (2, 3) and not np.any(empty.array(np))
