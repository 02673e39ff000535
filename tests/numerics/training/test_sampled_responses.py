"""Which responses a sampled pass carries, and over which sites."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from numerics.training import sampling
from numerics.training.ensemble import Resolved, _among


def test_noises_that_carry_no_response_have_a_place_behind_the_others():
    found = _among(np.array([1, 3]), Resolved([(np.array([0, 1, 3, 9]), np.array([0.1, 0.2, 0.3, 0.4]))], None))
    ((places, least),) = found.chosen
    assert places.tolist() == [2, 0, 1, 2] and least.tolist() == [0.0, 0.2, 0.3, 0.0]


def test_the_reach_of_sampled_diagonals_is_that_of_a_pass_over_the_sites_of_the_first_plan(monkeypatch):
    class Asked(Exception):
        pass

    def within(training, p, normals, rank):
        raise Asked(normals, rank)

    monkeypatch.setattr(sampling, "plans_for", lambda *_: [sampling._Plan(16, 2, 4), sampling._Plan(64, 2, 8)])
    monkeypatch.setattr(sampling, "draw", lambda groups, shapes, sites, seed, how, paired: (shapes["J"], sites, seed))
    monkeypatch.setattr(sampling, "_within", within)
    training = SimpleNamespace(ranges=("S",), groups=(("J",),), paired=False, shapes=lambda p, rank: {"J": (rank,)})
    with pytest.raises(Asked) as asked:
        sampling.sampled_pass(training, None, sampling.Sampling(100, seed=3), lambda *_: None)
    assert asked.value.args == (((4,), 16, (3, 0)), 4)
