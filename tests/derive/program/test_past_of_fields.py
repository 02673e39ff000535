"""Which fields a forward pass remembers."""

from __future__ import annotations

import pytest

from derive import Eq, Model, fields, normal, parameter, sectors, training_clock, whole_positive
from derive.algebra.words import Letter
from derive.equations.needs import Needs
from derive.pipeline import derive_model
from derive.program.lowering import forward_pass

D = sectors("D")
T = parameter("T", default=3, domain=whole_positive)
t = training_clock("t", steps=T)
x, y = fields("x y", D, t)


@pytest.mark.parametrize(
    ("letters", "kept"),
    [
        ((), ()),
        ((Letter.correlation(x, x),), (x,)),
        ((Letter.correlation(x, y),), (x, y)),
        ((Letter.response(x, y),), (x,)),
    ],
)
def test_a_correlation_needs_the_past_of_both_fields_and_a_response_that_of_one(letters, kept):
    equations = [Eq(x(0), normal("v", D)), Eq(y(0), normal("w", D)), Eq(x(t + 1), x(t) / 2), Eq(y(t + 1), y(t) / 3)]
    assert forward_pass(derive_model(Model((T,), equations)).layout, Needs(letters)).remembered == kept
