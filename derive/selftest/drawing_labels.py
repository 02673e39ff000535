"""Random vectors with labels and random arrays of data."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from derive.selftest.drafts import (
    HALF,
    ONE,
    QUARTER,
    DraftAxis,
    DraftData,
    DraftEquation,
    DraftParameter,
    DraftVector,
    Node,
    add,
    at,
    call,
    mean,
    name,
    outer,
    root,
    total,
)
from derive.selftest.sketch import (
    Sketch,
    operators_into,
    rooted,
    symmetric_start,
    usable_values,
    value_of,
    weight_scale,
)

LABELS = ("data", "axis", "each", "total", "softmax", "relabel", "entries", "root", "data(clock=)", "data(optional=)")


def draw_labels(sketch: Sketch) -> list[Node]:
    """Draw labelled vectors and arrays of data into the sketch, and return their observables."""
    rng, timed = sketch.rng, sketch.clock is not None
    wanted = any(word in sketch.wanted for word in ("softmax", "relabel", "entries"))
    for word, value in (("P", 2), ("K", 3))[: 2 if wanted else rng.choice((1, 2))]:
        sketch.parameters.append(DraftParameter(f"{word}1", Fraction(value), "whole_positive"))
        sketch.axes.append(DraftAxis(f"along{value}_{word}1", f"{word}1"))
    labels = [axis.name for axis in sketch.axes]
    first, last = labels[0], labels[-1]
    sectors = [s.name for s in sketch.sectors]
    optional = sketch.chance(0.15, "data(optional=)")
    sketch.data.append(DraftData("b1", (first,), False, 1, optional=optional))
    if timed:
        sketch.data.append(DraftData("b2", (first,), True, 2, optional=optional))
    again = timed and sketch.chance(0.5, "data(clock=)")
    sketch.data.append(DraftData("b3", (first, last), again and first != last, 3, optional=optional))
    sector = rng.choice(sectors)
    for k, label in enumerate(labels):
        sketch.normals.append(DraftVector(f"k{k + 1}", sector, "static", axes=(label,)))
    before = len(sketch.fields)
    kind = "timed" if timed and sketch.chance(0.85) else "static"
    field = DraftVector("f", sector, kind, axes=(first,))
    sketch.equations.append(DraftEquation("f", "t" if kind == "timed" else "", _labelled_side(sketch, field, before)))
    sketch.fields.append(field)
    now = value_of(field, 0)
    if kind == "timed":
        _feed_back(sketch, field)
    observed = rng.choice((now, at("k1", None)))
    numbers = mean(now * observed)
    observables = [numbers, Node("each", (numbers,)), total(_given(sketch) * numbers)]
    if first != last:
        pairs = mean(now * at("k2", None))
        observables += [Node("each", (pairs,)), total(Node("softmax", (pairs, last)) ** 2)]
        table = sketch.data[-1]
        seen = Node("entries", (table.name, 0 if table.timed else None))
        observables.append(total(seen * pairs))
    if sketch.chance(0.15, "relabel"):
        sketch.axes.append(DraftAxis(f"also{first}", "P1"))
        other = Node("relabel", (now, first, f"also{first}"))
        return [*rng.sample(observables, 1), Node("each", (mean(now * other),))]
    if first != last and sketch.chance(0.2, "entries"):
        return observables[-1:]
    return rng.sample(observables, rng.choice((1, 2, 3)))


def _given(sketch: Sketch, static: bool = False) -> Node:
    """Return numbers with labels from data with one axis."""
    fitting = [d for d in sketch.data if len(d.axes) == 1 and not (static and d.timed)]
    chosen = sketch.rng.choice(fitting)
    return Node("data", (chosen.name, sketch.rng.choice((0, 0, 1)) if chosen.timed else None))


def _labelled_side(sketch: Sketch, field: DraftVector, rank: int) -> Node:
    """Return the right-hand side of the equation of a vector with labels: labelled vectors, data, tables, means and
    plain vectors.
    """
    rng, static = sketch.rng, field.kind == "static"
    plain = [v for v in usable_values(sketch, field.sector, rank, static, False) if not _has_labels(sketch, v)]
    own = at("k1", None)
    past = at(field.name, rng.choice((1, 1, 2))) if not static else own
    table = next(d for d in sketch.data if len(d.axes) == 2)
    terms = [own, sketch.coefficient() * past, _given(sketch, static) * own]
    if plain:
        value = rng.choice(plain)
        terms.append(_given(sketch, static) * value)
        terms.append(QUARTER * mean(past * rng.choice(plain)) * value)
    if not (static and table.timed):
        delay = rng.choice((0, 1)) if table.timed else None
        last = [v.name for v in sketch.normals if v.axes == table.axes[1:]]
        terms.append(HALF * Node("mix", (table.name, delay, 0, at(last[-1], None))))
        if table.axes[0] == table.axes[1]:
            how = ("root",) if sketch.chance(0.3, "root") else ()
            terms.append(QUARTER * Node("mix", (table.name, delay, 1, past, *how)))
    if any(v.name == "k2" for v in sketch.normals):
        terms += _along_two_axes(own, past, sketch.data[-1].axes[1])
    operators = [o for o in operators_into(sketch, field.sector, static) if o[1] == field.sector]
    if operators:
        matrix, _, scale = rng.choice(operators)
        inner = rng.choice((own, past, own + past))
        terms.append(sketch.coefficient() * scale * (matrix @ inner))
    if not sketch.linear:
        terms.append(sketch.coefficient() * sketch.law(own + past))
        terms.append(call("tanh", _given(sketch, static) * own))
    return add(*rng.sample(terms, min(len(terms), rng.choice((2, 2, 3)))))


def _along_two_axes(own: Node, past: Node, axis: str) -> list[Node]:
    """Return vectors along one axis, built from numbers along two axes and vectors along the other."""
    other = at("k2", None)
    outputs = mean(past * other)
    shares = Node("softmax", (mean((own + past) * other), axis))
    return [
        HALF * Node("total_over", (shares * other, axis)),
        QUARTER * Node("total_over", (outputs**2, axis)) * own,
        QUARTER * Node("total_over", (outputs * own, axis)),
    ]


def _has_labels(sketch: Sketch, value: Node) -> bool:
    """Return whether a value has labels."""
    return any(v.axes and v.name == value.leaf for v in (*sketch.fields, *sketch.normals))


def _feed_back(sketch: Sketch, field: DraftVector) -> None:
    """Add sums over labels to the equation of a plain field, and outer products with labels to an update."""
    rng = sketch.rng
    late = at(field.name, 1)
    plain = {v.name for v in sketch.fields if v.sector == field.sector and v.kind == "timed" and not v.axes}
    for k, e in enumerate(sketch.equations):
        if e.target in plain and e.time == "t" and sketch.chance(0.5):
            inner = rng.choice((late, _given(sketch) * late, mean(late**2) * late))
            value = rng.choice((total(inner), total(mean(late * at("k1", None))) * at(e.target, 1)))
            sketch.equations[k] = replace(e, value=e.value + QUARTER * value)
            break
    square = [w for w in sketch.weights if w.rows == w.columns == field.sector and rooted(sketch, w.name)]
    for w in square:
        if symmetric_start(sketch, w) or sketch.chance(0.3):
            continue
        small = weight_scale(sketch, w) == ONE
        scale = ONE / name(w.columns) if small else ONE / root(name(w.columns))
        now = at(field.name, 0)
        weight = rng.choice((ONE, mean(now**2), total(mean(now**2)), _given(sketch)))
        spike = QUARTER * weight * scale * outer(now, at("k1", None))
        for k, e in enumerate(sketch.equations):
            if e.target == w.name and e.time == "t + 1":
                sketch.equations[k] = replace(e, value=e.value + spike)
