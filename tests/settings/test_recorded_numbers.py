"""Numbers that commands print are those that were recorded."""

from __future__ import annotations

import json

import pytest
from recorded import PLACE, differences, numbers_of

RECORDED = json.loads(PLACE.read_text())


@pytest.mark.parametrize("command", RECORDED)
def test_a_command_prints_the_recorded_numbers(command):
    assert not differences(numbers_of(command), RECORDED[command])


def test_other_numbers_are_noticed():
    recorded = {"edges": [[2], 3.0, [1.0, 2.0]], "count": 3}
    assert not differences({"edges": [[2], 3.0, [1.0, 2.0 + 1e-9]], "count": 3}, recorded)
    assert differences({"edges": [[2], 3.0, [1.0, 2.0 + 1e-4]], "count": 3}, recorded)
    assert differences({"edges": [[2], 3.0, [1.0, 2.0]], "count": 4}, recorded)
    assert differences({"edges": [[2], 3.0, [1.0, None]], "count": 3}, recorded)
    assert differences({"count": 3}, recorded)
