"""Drafts drawn at random: every word of the language, in combinations that nobody would think of.

Numbers are tame (orders one, few steps), so that what is drawn does not diverge. The source of randomness is whatever
behaves like random.Random, so that a seed, or a property-testing library, can drive it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random

from derive.selftest.drafts import (
    ONE,
    Clock,
    Data,
    Draft,
    Equation,
    Matrix,
    Node,
    Parameter,
    Sector,
    Vector,
    Weights,
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
    pruned,
    root,
    times,
    total,
    turned,
)

VARIANCES = (Fraction(1), Fraction(1), Fraction(1), Fraction(4, 9), Fraction(9, 4), Fraction(1, 4))
RATIOS = (Fraction(1, 2), Fraction(3, 2), Fraction(2), Fraction(1))
COEFFICIENTS = (Fraction(1, 2), Fraction(-1, 2), Fraction(1, 4), Fraction(3, 4), Fraction(-1, 4), Fraction(1))
LAWS = ("tanh", "erf", "relu", "sin")


@dataclass
class _Sketch:
    """What has been drawn so far."""

    rng: Random
    linear: bool
    sectors: list[Sector]
    parameters: list[Parameter]
    clock: Clock | None
    matrices: list[Matrix]
    normals: list[Vector]
    fields: list[Vector]
    weights: list[Weights]
    equations: list[Equation]
    data: list[Data] = field(default_factory=list)
    skewed: set[str] = field(default_factory=set)
    """Weights that begin symmetric and are updated in another way."""

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def coefficient(self) -> Node:
        """A number of order one, sometimes as a parameter."""
        value = self.rng.choice(COEFFICIENTS)
        if not self.chance(0.5):
            return number(value)
        old = [p for p in self.parameters if p.domain == "real"]
        if old and self.chance(0.4):
            return name(self.rng.choice(old).name)
        word = f"c{len(old) + 1}"
        self.parameters.append(Parameter(word, value))
        return name(word)

    def base(self) -> Node:
        return name(self.sectors[0].name)

    def labelled(self) -> bool:
        return self.clock is not None and bool(self.clock.channels)


def draw(rng: Random, linear: bool | None = None, probes: bool = True) -> Draft:
    """A declaration. `linear`: whether all laws are linear, drawn if None; `probes`: whether a matrix is probed."""
    linear = rng.random() < 0.6 if linear is None else linear
    sketch = _Sketch(rng, linear, [Sector("D")], [], None, [], [], [], [], [])
    _draw_sectors(sketch)
    if sketch.chance(0.85):
        _draw_clock(sketch)
    _draw_disorder(sketch)
    _draw_fields(sketch)
    if sketch.clock is not None:
        for word in ("W", "V")[: rng.choice((0, 1, 1, 1, 2))]:
            _draw_weights(sketch, word)
    _draw_equations(sketch)
    observables = _observables(sketch)
    if not sketch.labelled() and sketch.chance(0.3):
        observables += _draw_labels(sketch)
    found = _probes(sketch) if probes else []
    draft = Draft(
        tuple(sketch.sectors),
        tuple(sketch.parameters),
        sketch.clock,
        tuple(sketch.matrices),
        tuple(sketch.normals),
        tuple(sketch.fields),
        tuple(sketch.weights),
        tuple(sketch.equations),
        tuple((f"o{k + 1}", value) for k, value in enumerate(observables)),
        tuple((str(k), value) for k, value in enumerate(found)),
        tuple(sketch.data),
    )
    return pruned(draft)


def _draw_sectors(sketch: _Sketch) -> None:
    for word, ratio in (("N", "nu"), ("P", "alpha"))[: sketch.rng.choice((0, 1, 1, 2))]:
        value = sketch.rng.choice(RATIOS)
        if sketch.chance(0.5):
            sketch.parameters.append(Parameter(ratio, value, "positive"))
            sketch.sectors.append(Sector(word, name(ratio)))
        else:
            sketch.sectors.append(Sector(word, number(value)))


def _draw_clock(sketch: _Sketch) -> None:
    sketch.parameters.append(Parameter("T", Fraction(sketch.rng.choice((2, 2, 3))), "whole_positive"))
    channels = ""
    if sketch.chance(0.2):
        channels = "C"
        sketch.parameters.append(Parameter("C", Fraction(2), "whole_positive"))
    sketch.clock = Clock("t", "T", channels, not sketch.chance(0.15))


def _draw_disorder(sketch: _Sketch) -> None:
    names = [s.name for s in sketch.sectors]
    for word in "ABE"[: sketch.rng.choice((1, 2, 2, 3))]:
        kinds = ("gaussian", "gaussian", "goe") + (("fresh",) if sketch.clock is not None else ())
        kind = sketch.rng.choice(kinds)
        rows, columns = sketch.rng.choice(names), sketch.rng.choice(names)
        variance = sketch.rng.choice(VARIANCES)
        sketch.matrices.append(Matrix(word, kind, rows, rows if kind == "goe" else columns, variance))
    for k, word in enumerate(names):
        kinds = ("static",)
        if sketch.clock is not None:
            kinds += ("timed",)
        if sketch.labelled():
            kinds += ("per_class", "per_class")
        scale = sketch.rng.choice((Fraction(1), Fraction(1), Fraction(1, 2)))
        sketch.normals.append(Vector(f"n{k + 1}", word, sketch.rng.choice(kinds), scale))
    if sketch.chance(0.4):
        sketch.normals.append(Vector(f"n{len(names) + 1}", sketch.rng.choice(names), "static"))


def _draw_fields(sketch: _Sketch) -> None:
    names = [s.name for s in sketch.sectors]
    for word in "xyuvw"[: sketch.rng.choice((2, 3, 3, 4))]:
        kind = "timed" if sketch.clock is not None and sketch.chance(0.85) else "static"
        sketch.fields.append(Vector(word, sketch.rng.choice(names), kind))


def _value(sketch: _Sketch, vector: Vector, delay: int) -> Node:
    return at(vector.name, delay if vector.kind == "timed" else None)


def _usable(sketch: _Sketch, sector: str, rank: int, static: bool, later: bool) -> list[Node]:
    """Values over a sector that an equation may use: earlier fields at t, and any field later by a delay.

    `later`: the equation is at t + 1, so that everything at t is in its past.
    """
    found = [_value(sketch, v, 0) for v in sketch.normals if v.sector == sector and not (static and v.kind != "static")]
    for k, v in enumerate(sketch.fields):
        if v.sector != sector or (static and v.kind != "static"):
            continue
        if k < rank or (later and v.kind == "timed"):
            found += [_value(sketch, v, 0)] * 3
        if not static and v.kind == "timed":
            found.append(_value(sketch, v, sketch.rng.choice((1, 1, 2, 5))))
    return found


def _operators(sketch: _Sketch, sector: str, static: bool) -> list[tuple[Node, str, Node]]:
    """Matrices that give vectors over a sector: the matrix, the sector that it takes, its natural scale."""
    found = []
    for m in sketch.matrices:
        if m.kind == "fresh" and static:
            continue
        node = Node("fresh", (m.name, 0)) if m.kind == "fresh" else Node("matrix", (m.name,))
        if m.rows == sector:
            scale = ONE if m.kind == "goe" else over(ONE, root(name(m.columns)))
            found.append((node, m.columns, scale))
        if m.columns == sector and m.kind != "goe":
            found.append((turned(node), m.rows, over(ONE, root(name(m.rows)))))
    for w in sketch.weights:
        if static or not _rooted(sketch, w.name):
            continue
        node = Node("weights", (w.name, "t"))
        scale = _weight_scale(sketch, w)
        if w.rows == sector:
            found += [(node, w.columns, scale)] * 2
        if w.columns == sector:
            found += [(turned(node), w.rows, scale)] * 2
    return found


def _rooted(sketch: _Sketch, word: str) -> bool:
    """Whether weights begin at a random matrix; momentum does not, and applying it to vectors is nothing new."""
    return any(e.target == word and e.time == "0" and e.value != number(0) for e in sketch.equations)


def _weight_scale(sketch: _Sketch, w: Weights) -> Node:
    start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
    inner = next((n for n in start.walk() if n.op == "matrix"), None)
    kind = next((m.kind for m in sketch.matrices if inner is not None and m.name == inner.leaf), "goe")
    scaled = any(n.op == "root" for n in start.walk())
    return ONE if kind == "goe" or scaled else over(ONE, root(name(w.columns)))


def _draw_weights(sketch: _Sketch, word: str) -> None:
    """Weights that begin at a random matrix; their update is drawn when there are fields."""
    static = [m for m in sketch.matrices if m.kind != "fresh"]
    if not static:
        return
    matrix = sketch.rng.choice(static)
    start = Node("matrix", (matrix.name,))
    if matrix.kind != "goe" and sketch.chance(0.3):
        start = over(start, root(name(matrix.columns)))
    elif sketch.chance(0.15):
        start = times(number(Fraction(1, 2)), start)
    sketch.weights.append(Weights(word, matrix.rows, matrix.columns))
    sketch.equations.append(Equation(word, "0", start))


def _vector(sketch: _Sketch, sector: str, rank: int, static: bool, later: bool) -> Node | None:
    """What a matrix is applied to: a value, or a sum of two."""
    usable = _usable(sketch, sector, rank, static, later)
    if not usable:
        return None
    first = sketch.rng.choice(usable)
    if sketch.chance(0.3):
        second = sketch.rng.choice(usable)
        return add(first, second) if sketch.chance(0.5) else add(first, times(sketch.coefficient(), second))
    return first


def _applied(sketch: _Sketch, sector: str, rank: int, static: bool, later: bool) -> Node | None:
    operators = _operators(sketch, sector, static)
    if not operators:
        return None
    matrix, takes, scale = sketch.rng.choice(operators)
    vector = _vector(sketch, takes, rank, static, later)
    if sketch.chance(0.15):
        vector = _applied(sketch, takes, rank, static, later) or vector
    if vector is None:
        return None
    return times(sketch.coefficient(), scale, apply(matrix, vector))


def _term(sketch: _Sketch, sector: str, rank: int, static: bool, later: bool) -> Node | None:
    usable = _usable(sketch, sector, rank, static, later)
    kind = sketch.rng.random()
    if kind < 0.4:
        made = _applied(sketch, sector, rank, static, later)
        if made is not None:
            return made
    if not usable:
        return None
    value = sketch.rng.choice(usable)
    fields = [u for u in usable if u.args[1] is not None and u.args[1] != 5]
    if kind < 0.5 and fields and not static:
        inner = at(sketch.rng.choice(fields).leaf, sketch.rng.choice((0, 0, 1)))
        if inner.leaf not in {n.name for n in sketch.normals}:
            return times(sketch.coefficient(), Node("past", (inner,)))
    if kind < 0.56 and fields and not static:
        one, two = sketch.rng.choice(fields), sketch.rng.choice(fields)
        return times(number(Fraction(1, 4)), mean(times(one, two)), value)
    if kind < 0.62:
        return times(sketch.coefficient(), number(1)) if sketch.chance(0.5) else number(Fraction(1, 2))
    if kind < 0.8 and not sketch.linear:
        other = sketch.rng.choice(usable)
        inner = add(times(sketch.coefficient(), value), other) if sketch.chance(0.5) else value
        if sketch.chance(0.15):
            return times(number(Fraction(1, 4)), power(value, 2))
        if sketch.chance(0.15):
            return times(number(Fraction(1, 4)), value, call("tanh", other))
        if sketch.chance(0.3):
            inner = add(inner, sketch.coefficient())
        return times(sketch.coefficient(), call(sketch.rng.choice(LAWS), inner))
    return times(sketch.coefficient(), value)


def _right_side(sketch: _Sketch, sector: str, rank: int, static: bool, later: bool) -> Node:
    if sketch.chance(0.06):
        return ONE
    terms = [_term(sketch, sector, rank, static, later) for _ in range(sketch.rng.choice((1, 2, 2, 3)))]
    kept = [t for t in terms if t is not None]
    return add(*kept) if kept else _source(sketch, sector)


def _source(sketch: _Sketch, sector: str, static: bool = True) -> Node:
    """A normal vector over a sector, made where there is none."""
    fitting = [v for v in sketch.normals if v.sector == sector and (v.kind == "static" or not static)]
    if not fitting:
        fitting = [Vector(f"m{len(sketch.normals) + 1}", sector, "static")]
        sketch.normals += fitting
    return _value(sketch, sketch.rng.choice(fitting), 0)


def _draw_equations(sketch: _Sketch) -> None:
    for rank, v in enumerate(sketch.fields):
        if v.kind == "static":
            sketch.equations.append(Equation(v.name, "", _right_side(sketch, v.sector, rank, True, False)))
        elif sketch.chance(0.4):
            start = _source(sketch, v.sector)
            if sketch.chance(0.2):
                start = add(times(sketch.coefficient(), start), number(Fraction(1, 2)))
            sketch.equations.append(Equation(v.name, "0", start))
            sketch.equations.append(Equation(v.name, "t + 1", _right_side(sketch, v.sector, rank, False, True)))
        else:
            sketch.equations.append(Equation(v.name, "t", _right_side(sketch, v.sector, rank, False, False)))
    for w in list(sketch.weights):
        _draw_update(sketch, w)


def _spike(sketch: _Sketch, w: Weights) -> Node | None:
    """An outer product for an update, with the scale that keeps the matrix of order one."""
    sides = []
    for sector in (w.rows, w.columns):
        values = [_value(sketch, v, 0) for v in sketch.fields if v.sector == sector]
        timed = [v for v in sketch.fields if v.sector == sector and v.kind == "timed"]
        values += [_value(sketch, v, delay) for v in timed for delay in (1, 2)]
        values += [_value(sketch, v, 0) for v in sketch.normals if v.sector == sector]
        if sketch.labelled():  # labels are summed over together: both sides need them
            plain = {v.name for v in (*sketch.fields, *sketch.normals) if v.kind == "static"}
            values = [v for v in values if v.leaf not in plain]
        if not values:
            return None
        side = sketch.rng.choice(values)
        if sketch.chance(0.2):
            side = add(side, times(sketch.coefficient(), sketch.rng.choice(values)))
        elif not sketch.linear and sketch.chance(0.3):
            side = call(sketch.rng.choice(LAWS), side)
        sides.append(side)
    small = _weight_scale(sketch, w) == ONE
    scale = over(ONE, name(w.columns)) if small else over(ONE, root(name(w.columns)))
    parts = [times(sketch.coefficient(), scale)]
    if sketch.chance(0.15):
        parts.append(mean(power(_plain_field(sketch, w.rows) or sides[0], 2)))
    elif sketch.chance(0.1):
        parts.append(over(ONE, add(ONE, name("t"))))
    spike = outer(*sides)
    if _symmetric_start(sketch, w):
        kind = sketch.rng.choice(("square", "square", "pair", "pair", "skewed"))
        if kind == "skewed":
            sketch.skewed.add(w.name)
        else:
            spike = outer(sides[0], sides[0]) if kind == "square" else add(spike, turned(spike))
    return times(*parts, spike)


def _plain_field(sketch: _Sketch, sector: str) -> Node | None:
    fitting = [v for v in sketch.fields if v.sector == sector and v.kind == "timed"]
    return _value(sketch, sketch.rng.choice(fitting), 0) if fitting and not sketch.labelled() else None


def _symmetric_start(sketch: _Sketch, w: Weights) -> bool:
    start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
    used = {n.leaf for n in start.walk() if n.op == "matrix"}
    return all(m.kind == "goe" for m in sketch.matrices if m.name in used)


def _draw_update(sketch: _Sketch, w: Weights) -> None:
    old = Node("weights", (w.name, "t"))
    spikes = [s for s in (_spike(sketch, w) for _ in range(sketch.rng.choice((1, 1, 2)))) if s is not None]
    kept = times(number(Fraction(9, 10)), old) if sketch.chance(0.3) else old
    if spikes and sketch.chance(0.2):
        buffer = f"{w.name}m"
        sketch.weights.append(Weights(buffer, w.rows, w.columns))
        before = Node("weights", (buffer, "t"))
        sketch.equations.append(Equation(buffer, "0", number(0)))
        sketch.equations.append(Equation(buffer, "t + 1", add(times(number(Fraction(1, 2)), before), *spikes)))
        spikes = [Node("weights", (buffer, "t + 1"))]
    if sketch.chance(0.15):
        start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
        spikes.append(times(number(Fraction(1, 10)), start))
    sketch.equations.append(Equation(w.name, "t + 1", add(kept, *spikes)))


def _observables(sketch: _Sketch) -> list[Node]:
    found = []
    for v in sketch.fields:
        value = _value(sketch, v, 0)
        found.append(mean(power(value, 2)))
        mates = [u for u in (*sketch.fields, *sketch.normals) if u.sector == v.sector and u.name != v.name]
        if mates and sketch.chance(0.5):
            mate = sketch.rng.choice(mates)
            lag = sketch.rng.choice((0, 0, 1, 5)) if v.kind == "timed" else 0
            found.append(mean(times(value, _value(sketch, mate, lag if mate in sketch.fields else 0))))
        if v.kind == "timed" and sketch.chance(0.2):
            found.append(mean(times(value, _value(sketch, v, sketch.rng.choice((1, 2, 5))))))
        if not sketch.linear and sketch.chance(0.3):
            found.append(mean(value) if sketch.chance(0.5) else mean(call("tanh", value)))
    if found and sketch.chance(0.2):
        found.append(add(times(sketch.coefficient(), found[0]), number(1)))
    return found


# labels and data


def _draw_labels(sketch: _Sketch) -> list[Node]:
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
    now = _value(sketch, field, 0)
    if kind == "timed":
        _feed_back(sketch, field)
    observed = rng.choice((now, at("k1", None)))
    numbers = mean(times(now, observed))
    found = [numbers, Node("each", (numbers,)), total(times(_given(sketch), numbers))]
    return rng.sample(found, rng.choice((1, 2, 3)))


def _given(sketch: _Sketch, static: bool = False) -> Node:
    """A number per label, from the data with one axis."""
    fitting = [d for d in sketch.data if len(d.axes) == 1 and not (static and d.timed)]
    chosen = sketch.rng.choice(fitting)
    return Node("data", (chosen.name, sketch.rng.choice((0, 0, 1)) if chosen.timed else None))


def _labelled_side(sketch: _Sketch, field: Vector, rank: int) -> Node:
    """The equation of a vector with labels: of others with labels, data, tables, means and plain vectors."""
    rng, static = sketch.rng, field.kind == "static"
    plain = [v for v in _usable(sketch, field.sector, rank, static, False) if not _has_labels(sketch, v)]
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
    operators = [o for o in _operators(sketch, field.sector, static) if o[1] == field.sector]
    if operators:
        matrix, _, scale = rng.choice(operators)
        inner = rng.choice((own, past, add(own, past)))
        terms.append(times(sketch.coefficient(), scale, apply(matrix, inner)))
    if not sketch.linear:
        terms.append(times(sketch.coefficient(), call(rng.choice(LAWS), add(own, past))))
        terms.append(call("tanh", times(_given(sketch, static), own)))
    return add(*rng.sample(terms, min(len(terms), rng.choice((2, 2, 3)))))


def _has_labels(sketch: _Sketch, value: Node) -> bool:
    """Whether a value has labels of its own."""
    return any(v.labels and v.name == value.leaf for v in (*sketch.fields, *sketch.normals))


def _feed_back(sketch: _Sketch, field: Vector) -> None:
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
    square = [w for w in sketch.weights if w.rows == w.columns == field.sector and _rooted(sketch, w.name)]
    for w in square:
        if _symmetric_start(sketch, w) or sketch.chance(0.3):
            continue
        small = _weight_scale(sketch, w) == ONE
        scale = over(ONE, name(w.columns)) if small else over(ONE, root(name(w.columns)))
        now = at(field.name, 0)
        weight = rng.choice((ONE, mean(power(now, 2)), total(mean(power(now, 2))), _given(sketch)))
        spike = times(number(Fraction(1, 4)), weight, scale, outer(now, at("k1", None)))
        for k, e in enumerate(sketch.equations):
            if e.target == w.name and e.time == "t + 1":
                sketch.equations[k] = replace(e, value=add(e.value, spike))


def _probes(sketch: _Sketch) -> list[Node]:
    """Symmetric matrices made of weights after the last step, or of fixed matrices and spikes."""
    found = []
    for w in sketch.weights:
        if not _rooted(sketch, w.name):
            continue
        last = Node("weights", (w.name, "T"))
        size = ONE if _weight_scale(sketch, w) == ONE else name(w.columns)
        if w.name in sketch.skewed and sketch.chance(0.5):
            found.append(add(last, turned(last)))
        elif _symmetric_start(sketch, w) and w.name not in sketch.skewed and sketch.chance(0.7):
            found.append(last)
        elif sketch.chance(0.7):
            found.append(over(Node("matmul", (turned(last), last)), size))
        else:
            found.append(over(Node("matmul", (last, turned(last))), size))
    if not found or sketch.chance(0.15):
        found += [m for m in map(lambda m: _fixed_probe(sketch, m), sketch.matrices) if m is not None][:1]
    return found[: sketch.rng.choice((1, 1, 2))]


def _fixed_probe(sketch: _Sketch, m: Matrix) -> Node | None:
    if m.kind == "fresh":
        return None
    start = Node("matrix", (m.name,))
    sides = [
        [v for v in (*sketch.fields, *sketch.normals) if v.sector == s and v.kind == "static" and not v.labels]
        for s in (m.rows, m.columns)
    ]
    if all(sides):
        left, right = (_value(sketch, sketch.rng.choice(side), 0) for side in sides)
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


def drawn(seed: int, linear: bool | None = None, probes: bool = True) -> Draft:
    """The draft of a seed."""
    return draw(Random(seed), linear, probes)


def shortened(draft: Draft, steps: int) -> Draft:
    """The draft with fewer steps, where it has a clock."""
    if draft.clock is None:
        return draft
    return replace(draft, parameters=draft.with_value(draft.clock.steps, steps).parameters)
