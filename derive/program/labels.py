"""Numbers with labels as values of a program."""

from __future__ import annotations

import sympy as sp

from derive.language.symbols import labels_along
from derive.language.vectors import LabelSelection, Softmax, Total, axes_of
from derive.program.nodes import Call, Value


def selection(node: LabelSelection) -> Call:
    """Return the 0/1 table that maps labels to labels."""
    places = [node.rows.index(axis) if axis in node.rows else -1 for axis in node.named]
    sizes = (tuple(axis.size for axis in axes) for axes in (node.rows, node.columns))
    return Call("selection", (*sizes, tuple(places)), (labels_along(node.rows), labels_along(node.columns)))


def apart(value: Value, expression: sp.Expr) -> Value:
    """Return the value with its last axis, which runs over all labels, reshaped to one axis per label axis."""
    axes = axes_of(expression)
    return value if len(axes) < 2 else Call("apart", (value, tuple(axis.size for axis in axes)), None)


def around_axis(node: Softmax | Total) -> tuple[sp.Expr, sp.Expr]:
    """Return the number of labels along the axis of a sum, and the number along the axes after it."""
    axes = axes_of(node.expression)
    return node.axis.size, labels_along(axes[axes.index(node.axis) + 1 :])
