"""Equations of the training level, written as comments of the generated code."""

from __future__ import annotations

from derive.equations.layout import Layout
from derive.language.vectors import Field
from derive.printing import text
from derive.printing.of_training import covariance_line
from derive.printing.statements import remembered
from derive.records.saddle import NoiseKernel
from derive.records.system import Rule, SystemField


def equations_of(layout: Layout, f: SystemField) -> list[str]:
    """Return the single-site equations of a field with their numbers: initial values, then the update rule."""
    times = [*map(str, range(len(f.starts))), str(layout.clock)] if f.field.timed else [""]
    rules = [_right_side(layout, f.field, rule) for rule in (*f.starts, f.rule)]
    numbering = layout.numbering
    tags = [*(numbering.starts[f.field, k] for k in range(len(f.starts))), numbering.laws[f.field]]
    return [
        f"[{tag}] {text(f.field)}{time and f'({time})'} = {right}"
        for tag, time, right in zip(tags, times, rules, strict=True)
    ]


def _right_side(layout: Layout, field: Field, rule: Rule) -> str:
    if rule.product is None:
        return text(rule.expression(layout.clock))
    noise = f"u[{text(field)}]" + (f"({layout.clock})" if field.timed else "")
    return " + ".join([noise, *(text(remembered(m)) for m in layout.memories(field))])


def covariance_of(layout: Layout, covariance: NoiseKernel) -> str:
    """Return the covariance of two noises as a comment with its equation number."""
    line = covariance_line(covariance)
    tag = layout.numbering.covariances[covariance.left, covariance.right]
    return f"[{tag}] {text(line.left)} = {text(line.right)}"
