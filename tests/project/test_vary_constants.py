"""The sensitivity campaign reads constants and compares solutions as it says."""

from __future__ import annotations

import pytest
import vary_constants as campaign


def test_constants_are_numbers_in_capitals_at_the_top(tmp_path):
    (tmp_path / "m.py").write_text("A, B = 1e-3, 4\nNAME = 'x'\nlower = 2\nFLAG = True\nif A:\n    INNER = 1\n")
    assert list(campaign.constants(tmp_path / "m.py")) == [("A", 1e-3), ("B", 4)]
    assert campaign.changed(4, 0.1) == 1
    assert campaign.changed(4, 0.6) == 2
    assert campaign.changed(1e-3, 0.25) == 2.5e-4


def test_changes_are_relative_or_in_standard_errors():
    before = {"m": {"outliers ": ([4.0, 2.0], None), "loss": ([1.0], [0.1])}, "refused": "too large"}
    after = {"m": {"outliers ": ([4.0, 2.2], None), "loss": ([0.7], [0.1])}, "refused": "too large"}
    exact, sampled, other = campaign.compare(before, after)
    assert (exact, sampled, other) == (pytest.approx(0.05), pytest.approx(3.0), [])
    lost = campaign.compare(before, {**after, "m": {"outliers ": ([4.0], None)}})[2]
    assert lost == ["m: 1 outliers instead of 2", "m: 0 loss instead of 1"]
    assert campaign.compare(before, {**before, "refused": "other"})[2] == ["refused: other"]
