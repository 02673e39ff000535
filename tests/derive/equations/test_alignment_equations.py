"""Which responses a source drives."""

from __future__ import annotations

from types import SimpleNamespace

from derive import field, fields, normal, parameter, sectors, training_clock, whole_positive
from derive.equations.aligning import _response_equations
from derive.records.probe import Unknown

D = sectors("D")
T = parameter("T", default=4, domain=whole_positive)
t = training_clock("t", steps=T)
x = field("x", D, t)
v = normal("v", D)


def test_a_source_drives_responses_through_others():
    """The source drives h, h drives j, and j drives k; nothing drives m."""
    h, j, k, m = (Unknown("R", x, one) for one in fields("h j k m", D, t))
    rows = {k: {j: ()}, j: {h: (), j: ()}, h: {}, m: {}}
    work = SimpleNamespace(
        reachable=lambda: rows, neighbours=lambda: {x: ()}, driven=lambda unknown, probe, field: unknown == h
    )
    assert list(_response_equations(work, (), x, v)) == [k, j, h]
