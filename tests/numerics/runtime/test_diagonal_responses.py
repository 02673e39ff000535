"""Responses for each diagonal entry, from moments of sampled sites."""

from __future__ import annotations

from types import SimpleNamespace

from numerics.runtime import moments


def test_responses_for_each_diagonal_entry_are_those_of_the_times_and_the_tolerance_of_the_others(monkeypatch):
    monkeypatch.setattr(moments.diagonals, "responses_by_value", lambda *given: [None, given])
    run = SimpleNamespace(
        _sites=lambda sector: SimpleNamespace(known=False),
        _entries=lambda name, time: (name, time),
        channel_of={"h": SimpleNamespace(name="W", products=["g", "h"])},
        moments={("W", "D", "C x", "R W"): "means", ("G", "W"): "covariances"},
        tables={},
        times=5,
        tolerance=1e-3,
    )
    found = moments.OrderFromMoments.by_value(run, "D", "C", "x", "R", "h")
    assert found == ("means", "covariances", (("g", 0), ("h", 0)), 5, 1e-3)
