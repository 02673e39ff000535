"""Vectors with labels of their own and arrays of data, drawn at random."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from derive.selftest.drafts import (
    ONE,
    Data,
    Equation,
    Node,
    Parameter,
    Vector,
    add,
    apply,
    at,
    call,
    mean,
    name,
    number,
    outer,
    over,
    power,
    root,
    times,
    total,
)
from derive.selftest.sketch import (
    LAWS,
    Sketch,
    operators_into,
    rooted,
    symmetric_start,
    usable_values,
    value_of,
    weight_scale,
)


def draw_labels(sketch: Sketch) -> list[Node]:
    """Vectors with labels of their own and arrays of data, in equations and updates; what is observed of them."""
    rng, timed = sketch.rng, sketch.clock is not None
    for word, value in (("P", 2), ("K", 3))[: rng.choice((1, 2))]:
        sketch.parameters.append(Parameter(f"{word}1", Fraction(value), "whole_positive"))
    labels = [p.name for p in sketch.parameters if p.name in ("P1", "K1")]
    sectors = [s.name for s in sketch.sectors]
    sketch.data.append(Data("b1", ("P1",), False, 1))
    if timed:
        sketch.data.append(Data("b2", ("P1",), True, 2))
    sketch.data.append(Data("b3", ("P1", labels[-1]), timed and sketch.chance(0.5), 3))
    sector = rng.choice(sectors)
    for k, label in enumerate(labels):
        sketch.normals.append(Vector(f"k{k + 1}", sector, "static", labels=label))
    known = len(sketch.fields)
    kind = "timed" if timed and sketch.chance(0.85) else "static"
    field = Vector("f", sector, kind, labels="P1")
    sketch.equations.append(Equation("f", "t" if kind == "timed" else "", _labelled_side(sketch, field, known)))
    sketch.fields.append(field)
    now = value_of(sketch, field, 0)
    if kind == "timed":
        _feed_back(sketch, field)
    observed = rng.choice((now, at("k1", None)))
    numbers = mean(times(now, observed))
    found = [numbers, Node("each", (numbers,)), total(times(_given(sketch), numbers))]
    if "K1" in labels:
        pairs = mean(times(now, at("k2", None)))
        found += [Node("each", (pairs,)), total(power(Node("softmax", (pairs, "K1")), 2))]
    return rng.sample(found, rng.choice((1, 2, 3)))


def _given(sketch: Sketch, static: bool = False) -> Node:
    """A number per label, from the data with one axis."""
    fitting = [d for d in sketch.data if len(d.axes) == 1 and not (static and d.timed)]
    chosen = sketch.rng.choice(fitting)
    return Node("data", (chosen.name, sketch.rng.choice((0, 0, 1)) if chosen.timed else None))


def _labelled_side(sketch: Sketch, field: Vector, rank: int) -> Node:
    """The equation of a vector with labels: of others with labels, data, tables, means and plain vectors."""
    rng, static = sketch.rng, field.kind == "static"
    plain = [v for v in usable_values(sketch, field.sector, rank, static, False) if not _has_labels(sketch, v)]
    own = at("k1", None)
    past = at(field.name, rng.choice((1, 1, 2))) if not static else own
    table = next(d for d in sketch.data if len(d.axes) == 2)
    terms = [own, times(sketch.coefficient(), past), times(_given(sketch, static), own)]
    if plain:
        value = rng.choice(plain)
        terms.append(times(_given(sketch, static), value))
        terms.append(times(number(Fraction(1, 4)), mean(times(past, rng.choice(plain))), value))
    if not (static and table.timed):
        delay = rng.choice((0, 1)) if table.timed else None
        last = [v.name for v in sketch.normals if v.labels == table.axes[1]]
        terms.append(times(number(Fraction(1, 2)), Node("mix", (table.name, delay, 0, at(last[-1], None)))))
        if table.axes[0] == table.axes[1]:
            terms.append(times(number(Fraction(1, 4)), Node("mix", (table.name, delay, 1, past))))
    if any(v.labels == "K1" for v in sketch.normals):
        terms += _along_two_axes(own, past)
    operators = [o for o in operators_into(sketch, field.sector, static) if o[1] == field.sector]
    if operators:
        matrix, _, scale = rng.choice(operators)
        inner = rng.choice((own, past, add(own, past)))
        terms.append(times(sketch.coefficient(), scale, apply(matrix, inner)))
    if not sketch.linear:
        terms.append(times(sketch.coefficient(), call(rng.choice(LAWS), add(own, past))))
        terms.append(call("tanh", times(_given(sketch, static), own)))
    return add(*rng.sample(terms, min(len(terms), rng.choice((2, 2, 3)))))


def _along_two_axes(own: Node, past: Node) -> list[Node]:
    """Vectors along P1 made of numbers along P1 and K1, and of vectors along K1 alone."""
    other = at("k2", None)
    outputs = mean(times(past, other))
    shares = Node("softmax", (mean(times(add(own, past), other)), "K1"))
    return [
        times(number(Fraction(1, 2)), Node("total_over", (times(shares, other), "K1"))),
        times(number(Fraction(1, 4)), Node("total_over", (power(outputs, 2), "K1")), own),
        times(number(Fraction(1, 4)), Node("total_over", (times(outputs, own, ONE), "K1"))),
    ]


def _has_labels(sketch: Sketch, value: Node) -> bool:
    """Whether a value has labels of its own."""
    return any(v.labels and v.name == value.leaf for v in (*sketch.fields, *sketch.normals))


def _feed_back(sketch: Sketch, field: Vector) -> None:
    """Sums over labels in the equation of a plain field, and outer products with labels in an update."""
    rng = sketch.rng
    late = at(field.name, 1)
    plain = {v.name for v in sketch.fields if v.sector == field.sector and v.kind == "timed" and not v.labels}
    for k, e in enumerate(sketch.equations):
        if e.target in plain and e.time == "t" and sketch.chance(0.5):
            inner = rng.choice((late, times(_given(sketch), late), times(mean(power(late, 2)), late)))
            value = rng.choice((total(inner), times(total(mean(times(late, at("k1", None)))), at(e.target, 1))))
            sketch.equations[k] = replace(e, value=add(e.value, times(number(Fraction(1, 4)), value)))
            break
    square = [w for w in sketch.weights if w.rows == w.columns == field.sector and rooted(sketch, w.name)]
    for w in square:
        if symmetric_start(sketch, w) or sketch.chance(0.3):
            continue
        small = weight_scale(sketch, w) == ONE
        scale = over(ONE, name(w.columns)) if small else over(ONE, root(name(w.columns)))
        now = at(field.name, 0)
        weight = rng.choice((ONE, mean(power(now, 2)), total(mean(power(now, 2))), _given(sketch)))
        spike = times(number(Fraction(1, 4)), weight, scale, outer(now, at("k1", None)))
        for k, e in enumerate(sketch.equations):
            if e.target == w.name and e.time == "t + 1":
                sketch.equations[k] = replace(e, value=add(e.value, spike))
