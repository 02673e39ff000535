"""Training at several points at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from numerics.training import trained


def test_points_that_fill_up_a_batch_are_no_results(monkeypatch):
    def settled(_, kind, count):
        return ({}, {"x": np.arange(float(count))[:, None]}, np.ones(count)), [{"point": k} for k in range(count)]

    monkeypatch.setattr(trained, "settle", settled)
    monkeypatch.setattr(trained, "integrals_of", lambda training: None)
    monkeypatch.setattr(trained, "check_memory", lambda solver, values: 1)
    solver = SimpleNamespace(quadrature=True, training=None, point=lambda values: values)
    (one,) = trained.train_together(solver, [{"a": 1.0}], batch=3)
    assert one.method == {"point": 0}
