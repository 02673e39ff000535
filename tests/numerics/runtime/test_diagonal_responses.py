"""Responses for each diagonal entry, from moments of sampled sites."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from numerics.runtime import moments
from numerics.runtime.keys import OrderKey


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


@pytest.mark.parametrize("reach", [None, "largest"])
def test_averages_of_sampled_sites_hold_their_law_and_where_it_is_unbounded_its_reach(reach, monkeypatch):
    monkeypatch.setattr(moments, "Sizes", lambda *_: SimpleNamespace())
    asked = SimpleNamespace(correlations=(), channels=(), answers=(), tables=())
    monkeypatch.setattr(moments, "Asked", lambda *_: asked)
    one = SimpleNamespace(sector="D", reach=reach)
    mean = SimpleNamespace(key="M 0")
    training = SimpleNamespace(means=(mean,), sites=(one,), before=lambda p: 2)
    state = {"shares D": "law", "reach D": "ends", "series M 0": np.arange(4.0)}
    found = moments.moments_of(training, None, state)
    known = {OrderKey("S", "D"): "law"} | ({} if reach is None else {OrderKey("S", "D", "reach"): "ends"})
    assert {key: x for key, x in found.items() if key.kind == "S"} == known
    assert found[OrderKey("M", 0)].tolist() == [0, 1]


def test_responses_for_pairs_of_diagonal_entries_take_both_noises(monkeypatch):
    """W[C, R, R]: a table of the responses to two matrices, which is computed once for all pairs of noises."""
    calls = []
    monkeypatch.setattr(moments.diagonals, "twice_by_value", lambda *given: calls.append(given) or {(0, 1): "found"})
    channels = {"g": SimpleNamespace(name="V", products=["g"]), "h": SimpleNamespace(name="W", products=["f", "h"])}
    run = SimpleNamespace(
        _sites=lambda sector: SimpleNamespace(known=False),
        _entries=lambda name, time: name,
        _shares=lambda one: "shares",
        channel_of=channels,
        moments={OrderKey("W", "D", "R V", "R W"): "means", OrderKey("G", "V"): "GV", OrderKey("G", "W"): "GW"},
        tables={},
        times=5,
        tolerance=1e-3,
    )
    for _ in range(2):
        assert moments.OrderFromMoments.by_value(run, "D", "R", "g", "R", "h") == "found"
    assert calls == [("means", "shares", "GV", ("g",), "GW", ("f", "h"), 5, 1e-3)]
