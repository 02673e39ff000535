"""Equations of the training level, written as comments of the generated code."""

from __future__ import annotations

import sympy as sp

from derive.algebra.nodes import Noise, at, times_of
from derive.equations.layout import Layout
from derive.language.vectors import FieldAt
from derive.printing.documents import comment_of_equation
from derive.printing.of_training import covariance_line
from derive.printing.statements import remembered
from derive.records.saddle import NoiseKernel
from derive.records.system import Rule, SystemField


def equations_of(layout: Layout, f: SystemField) -> list[str]:
    """Return the single-site equations of a field with their numbers: initial values, then the update rule."""
    values = [f.field(first) for first in range(len(f.starts))] if f.field.timed else []
    lines = zip((*values, at(f.field, layout.clock)), (*f.starts, f.rule), strict=True)
    numbering = layout.numbering
    tags = [*(numbering.starts[f.field, k] for k in range(len(f.starts))), numbering.laws[f.field]]
    return [
        f"[{tag}] {comment_of_equation(value, _right_side(layout, value, rule), layout.system)}"
        for tag, (value, rule) in zip(tags, lines, strict=True)
    ]


def _right_side(layout: Layout, value: FieldAt, rule: Rule) -> sp.Expr:
    if rule.product is None:
        return rule.expression(layout.clock)
    noise = Noise(value.field, *times_of(value.field, layout.clock))
    return sp.Add(noise, *(remembered(m) for m in layout.memories(value.field)))


def covariance_of(layout: Layout, covariance: NoiseKernel) -> str:
    """Return the covariance of two noises as a comment with its equation number."""
    line = covariance_line(covariance)
    tag = layout.numbering.covariances[covariance.left, covariance.right]
    return f"[{tag}] {comment_of_equation(line.left, line.right, layout.system)}"
