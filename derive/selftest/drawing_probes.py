"""Symmetric matrices to probe, drawn at random."""

from __future__ import annotations

from derive.selftest.drafts import ONE, Matrix, Node, add, mean, name, number, outer, over, power, root, times, turned
from derive.selftest.sketch import Sketch, rooted, symmetric_start, value_of, weight_scale


def draw_probes(sketch: Sketch) -> list[Node]:
    """Symmetric matrices made of weights after the last step, or of fixed matrices and spikes."""
    found = []
    for w in sketch.weights:
        if not rooted(sketch, w.name):
            continue
        last = Node("weights", (w.name, "T"))
        size = ONE if weight_scale(sketch, w) == ONE else name(w.columns)
        sector = w.columns
        if w.name in sketch.skewed and sketch.chance(0.5):
            probe = add(last, turned(last))
        elif symmetric_start(sketch, w) and w.name not in sketch.skewed and sketch.chance(0.7):
            probe = last
        elif sketch.chance(0.7):
            probe = over(Node("matmul", (turned(last), last)), size)
        else:
            probe, sector = over(Node("matmul", (last, turned(last))), size), w.rows
        found.append(_with_another(sketch, probe, sector) if sketch.chance(0.15) else probe)
    if not found or sketch.chance(0.15):
        found += [m for m in map(lambda m: _fixed_probe(sketch, m), sketch.matrices) if m is not None][:1]
    return found[: sketch.rng.choice((1, 1, 2))]


def _with_another(sketch: Sketch, probe: Node, sector: str) -> Node:
    """The probe plus another symmetric matrix over its sector, where there is one."""
    others = [Node("matrix", (m.name,)) for m in sketch.matrices if m.kind == "goe" and m.rows == sector]
    others += [
        over(Node("matmul", (turned(Node("matrix", (m.name,))), Node("matrix", (m.name,)))), name(m.rows))
        for m in sketch.matrices
        if m.kind == "gaussian" and m.columns == sector
    ]
    return add(probe, sketch.rng.choice(others)) if others else probe


def _fixed_probe(sketch: Sketch, m: Matrix) -> Node | None:
    if m.kind == "fresh":
        return None
    start = Node("matrix", (m.name,))
    sides = [
        [v for v in (*sketch.fields, *sketch.normals) if v.sector == s and v.kind == "static" and not v.labels]
        for s in (m.rows, m.columns)
    ]
    if all(sides):
        left, right = (value_of(sketch, sketch.rng.choice(side), 0) for side in sides)
        scale = over(ONE, name(m.columns)) if m.kind == "goe" else over(ONE, root(name(m.columns)))
        coefficient = times(number(2), sketch.coefficient(), scale)
        if sketch.chance(0.3):
            coefficient = times(coefficient, mean(power(left, 2)))
        if m.kind == "goe":
            return add(start, times(coefficient, outer(left, left)))
        start = add(start, times(coefficient, outer(left, right)))
    if m.kind == "goe":
        return start
    return over(Node("matmul", (turned(start), start)), name(m.columns))
