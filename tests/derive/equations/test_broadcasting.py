"""Vectors that are repeated along axes of labels."""

from __future__ import annotations

from derive import Eq, Model, axis, field, mean, normal, parameter, sectors, training_clock, whole_positive
from derive.pipeline import derive_model

D = sectors("D")
classes, copies, T = (parameter(name, default=2, domain=whole_positive) for name in ("C", "B", "T"))
t = training_clock("t", steps=T)
label, other = axis("label", classes), axis("other", copies)
x, w = field("x", D, t, axes=label), field("w", D, t, axes=(label, other))


def test_a_repeated_vector_is_a_field_named_by_the_axes_that_it_has_then():
    equations = [Eq(x(t), normal("v", D, axes=label)), Eq(w(t), normal("u", D, axes=(label, other)))]
    layout = derive_model(Model((classes, copies, T), equations, {"product": mean(w(t) * x(t))})).layout
    assert {f.field.name: f.field.axes for f in layout.fields}["x_label_other"] == (label, other)
