"""Numbers with labels as values of a program."""

from __future__ import annotations

import sympy as sp

from derive.language.symbols import labels_along
from derive.language.vectors import LabelSelection, axes_of
from derive.program.nodes import Call, Value


def selection(node: LabelSelection) -> Call:
    """The table of zeros and ones that takes some labels to others."""
    places = [node.rows.index(axis) if axis in node.rows else -1 for axis in node.named]
    sizes = (tuple(axis.size for axis in axes) for axes in (node.rows, node.columns))
    return Call("selection", (*sizes, tuple(places)), (labels_along(node.rows), labels_along(node.columns)))


def apart(value: Value, expression: sp.Expr) -> Value:
    """Numbers whose last axis runs over all labels, with one axis for each that the labels have."""
    axes = axes_of(expression)
    return value if len(axes) < 2 else Call("apart", (value, tuple(axis.size for axis in axes)), None)
