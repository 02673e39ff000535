"""Random drafts: every word of the language in random combinations.

Numbers are of order one and steps are few, so that training does not diverge. The random source is anything with the
interface of random.Random, so that a seed or a property-testing library can drive it.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

from derive.selftest.drafts import (
    HALF,
    ONE,
    QUARTER,
    Draft,
    DraftAxis,
    DraftClock,
    DraftEquation,
    DraftMatrix,
    DraftParameter,
    DraftSector,
    DraftVector,
    DraftWeights,
    Node,
    add,
    at,
    call,
    mean,
    name,
    number,
    outer,
    pruned,
    root,
    times,
    weights_at,
)
from derive.selftest.drawing_labels import LABELS, draw_labels
from derive.selftest.drawing_probes import EARLY, draw_alignments, draw_probes, with_more
from derive.selftest.drawing_traits import DRAWN, TRAITS, draw_laws, draw_traits, weigh_rows
from derive.selftest.sketch import (
    LAWS,
    OF_TIME,
    OF_VECTOR,
    TIMES,
    Sketch,
    of_time,
    operators_into,
    symmetric_start,
    usable_values,
    value_of,
    weight_scale,
)

_BENT = tuple(f"{word}{OF_VECTOR}" for word in LAWS)
_TIMES = tuple(f"{word}{OF_TIME}" for word in TIMES)
VARIANCES = (Fraction(1), Fraction(1), Fraction(1), Fraction(4, 9), Fraction(9, 4), Fraction(1, 4))
RATIOS = (Fraction(1, 2), Fraction(3, 2), Fraction(2), Fraction(1))
FAR_RATIOS = (Fraction(1, 8), Fraction(8))


def draw(rng: Random, linear: bool | None = None, probes: bool = True, wanted: frozenset[str] = frozenset()) -> Draft:
    """Return a random draft.

    Args:
        rng: the random source.
        linear: whether all laws are linear; random if None.
        probes: whether a matrix is probed.
        wanted: features that it should have.
    """
    if linear is None:
        linear = rng.random() < 0.85 and not any(feature.endswith(OF_VECTOR) for feature in wanted)
    sketch = Sketch(rng, linear, [DraftSector("D")], [], None, [], [], [], [], [], wanted=wanted)
    _draw_sectors(sketch)
    if sketch.chance(0.85, "T = 1", "training_clock(endpoint=)", *_TIMES):
        _draw_clock(sketch)
    _draw_disorder(sketch)
    _draw_fields(sketch)
    if sketch.clock is not None:
        early = any(feature in wanted for feature in ("weights", *EARLY))
        for word in ("W", "V")[: rng.choice((1, 1, 2) if early else (0, 1, 1, 1, 2))]:
            _draw_weights(sketch, word)
    _draw_equations(sketch)
    observables = _observables(sketch)
    if not sketch.labelled() and sketch.chance(0.3, *LABELS):
        observables += draw_labels(sketch)
    found = draw_probes(sketch) if probes else []
    if sketch.chance(0.3, *TRAITS):
        observables += draw_traits(sketch)
    if sketch.chance(0.15, *DRAWN):
        draw_laws(sketch)
    found = [weigh_rows(sketch, probe) for probe in found]
    labels = [""] if len(found) == 1 else [str(k) for k in range(len(found))]
    observed = tuple((f"o{k + 1}", value) for k, value in enumerate(observables))
    draft = Draft(
        tuple(sketch.sectors),
        tuple(sketch.parameters),
        sketch.clock,
        tuple(sketch.matrices),
        tuple(sketch.normals),
        tuple(sketch.fields),
        tuple(sketch.weights),
        tuple(sketch.equations),
        (*observed, *draw_alignments(sketch, found)),
        tuple((label, with_more(sketch, probe, observed)) for label, probe in zip(labels, found, strict=True)),
        tuple(sketch.data),
        tuple(sketch.traits),
        tuple(sketch.axes),
        _latex(sketch),
        tuple(word for word in ("fields", "family", "doc", "refuses", "real") if sketch.chance(0.1, word)),
        rng.choice(("pathwise", "stein")) if sketch.chance(0.05, "Model(responses=)") else "",
    )
    return pruned(draft)


def _latex(sketch: Sketch) -> tuple[tuple[str, str], ...]:
    """Return, for some of the symbols, LaTeX that differs from their names."""
    if not sketch.chance(0.15):
        return ()
    words = [v.name for v in (*sketch.normals, *sketch.fields, *sketch.traits)] + [p.name for p in sketch.parameters]
    words += [m.name for m in sketch.matrices] + [w.name for w in sketch.weights] + [d.name for d in sketch.data]
    words += [axis.name for axis in sketch.axes] + ([sketch.clock.name] if sketch.clock is not None else [])
    return tuple((word, rf"\hat{{q}}_{{{k}}}") for k, word in enumerate(words) if sketch.chance(0.3))


def _draw_sectors(sketch: Sketch) -> None:
    for word, ratio in (("N", "nu"), ("P", "alpha"))[: sketch.rng.choice((0, 1, 1, 2))]:
        value = sketch.rng.choice(FAR_RATIOS if sketch.chance(0.1, "a huge or tiny ratio") else RATIOS)
        if sketch.chance(0.5, "a ratio with a parameter"):
            sketch.parameters.append(DraftParameter(ratio, value, "positive"))
            sketch.sectors.append(DraftSector(word, name(ratio)))
        else:
            sketch.sectors.append(DraftSector(word, number(value)))


def _draw_clock(sketch: Sketch) -> None:
    steps = 1 if sketch.chance(0.15, "T = 1") else sketch.rng.choice((2, 2, 3))
    sketch.parameters.append(DraftParameter("T", Fraction(steps), "whole_positive"))
    if sketch.chance(0.2, "axis"):
        size: str | int = 2
        if sketch.chance(0.8):
            size = "C"
            sketch.parameters.append(DraftParameter("C", Fraction(sketch.rng.choice((1, 2, 2, 3))), "whole_positive"))
        sketch.axes.append(DraftAxis("along_classes", size))
        sketch.classes = ("along_classes",)
    sketch.clock = DraftClock("t", "T", not sketch.chance(0.15, "training_clock(endpoint=)"))


def _draw_disorder(sketch: Sketch) -> None:
    names = [s.name for s in sketch.sectors]
    for word in "ABE"[: sketch.rng.choice((1, 2, 2, 3))]:
        kinds = ("gaussian", "gaussian", "goe") + (("fresh",) if sketch.clock is not None else ())
        kind = sketch.pick(kinds)
        rows, columns = sketch.rng.choice(names), sketch.rng.choice(names)
        variance = number(sketch.rng.choice(VARIANCES))
        if sketch.chance(0.1, "a variance with a parameter"):
            variance = sketch.rng.choice((sketch.parameter("kappa") ** 2, sketch.parameter("beta", None, "positive")))
        sketch.matrices.append(DraftMatrix(word, kind, rows, rows if kind == "goe" else columns, variance))
    for k, word in enumerate(names):
        kinds = ("static",)
        if sketch.clock is not None:
            kinds += ("timed",)
        if sketch.labelled():
            kinds += ("by_class", "by_class")
        kind = sketch.rng.choice(kinds)
        axes = sketch.classes if kind != "static" else ()
        scale = number(sketch.rng.choice((Fraction(1), Fraction(1), Fraction(1, 2))))
        if sketch.chance(0.05, "a scale with a parameter"):
            scale = sketch.parameter("kappa")
        vector = DraftVector(f"n{k + 1}", word, "timed" if kind == "timed" else "static", scale, axes)
        sketch.normals.append(vector)
    if sketch.chance(0.4):
        sketch.normals.append(DraftVector(f"n{len(names) + 1}", sketch.rng.choice(names), "static"))


def _draw_fields(sketch: Sketch) -> None:
    names = [s.name for s in sketch.sectors]
    for word in "xyuvw"[: sketch.rng.choice((2, 3, 3, 4))]:
        kind = "timed" if sketch.clock is not None and sketch.chance(0.85) else "static"
        axes = sketch.classes if kind == "timed" else ()
        sketch.fields.append(DraftVector(word, sketch.rng.choice(names), kind, axes=axes))


def _draw_weights(sketch: Sketch, word: str) -> None:
    """Draw weights with a random initial matrix; their update is drawn after the fields."""
    static = [m for m in sketch.matrices if m.kind != "fresh"]
    if not static:
        return
    matrix = sketch.rng.choice(static)
    start = Node("matrix", (matrix.name,))
    if matrix.kind != "goe" and sketch.chance(0.3):
        start = start / root(name(matrix.columns))
    elif sketch.chance(0.15):
        start = HALF * start
    sketch.weights.append(DraftWeights(word, matrix.rows, matrix.columns))
    sketch.equations.append(DraftEquation(word, "0", start))


def _vector(sketch: Sketch, sector: str, rank: int, static: bool, later: bool) -> Node | None:
    """Return the argument of a matrix: a value or a sum of two; None if no value is available."""
    usable = usable_values(sketch, sector, rank, static, later)
    if not usable:
        return None
    first = sketch.rng.choice(usable)
    if sketch.chance(0.3):
        second = sketch.rng.choice(usable)
        return first + second if sketch.chance(0.5) else first + sketch.coefficient() * second
    return first


def _applied(sketch: Sketch, sector: str, rank: int, static: bool, later: bool) -> Node | None:
    operators = operators_into(sketch, sector, static)
    if not operators:
        return None
    matrix, takes, scale = sketch.rng.choice(operators)
    vector = _vector(sketch, takes, rank, static, later)
    if sketch.chance(0.15):
        vector = _applied(sketch, takes, rank, static, later) or vector
    if vector is None:
        return None
    if takes == sector and sketch.chance(0.15):  # a square matrix together with its transpose
        matrix = matrix + sketch.rng.choice((number(-1), sketch.coefficient())) * matrix.T
    product = matrix @ vector
    return sketch.coefficient() * scale * (_late(sketch, product) if sketch.chance(0.1) else product)


def _late(sketch: Sketch, product: Node) -> Node:
    """Return a product with a weight matrix some steps earlier, if its argument vanishes before the start."""
    nodes = list(product.walk())
    if not any(n.op in ("weights", "fresh") for n in nodes) or any(n.op == "at" and n.args[1] is None for n in nodes):
        return product
    steps = sketch.rng.choice((1, 2, 3))

    def moved(old: Node) -> Node:
        delay = old.whole if old.op in ("at", "fresh", "weights") else None
        return old if delay is None else Node(old.op, (old.leaf, delay + steps))

    return product.mapped(moved)


def _term(sketch: Sketch, sector: str, rank: int, static: bool, later: bool) -> Node | None:
    usable = usable_values(sketch, sector, rank, static, later)
    kind = sketch.rng.random()
    if sketch.chance(0.0, *_BENT) and not sketch.linear:
        kind = 0.7
    elif sketch.chance(0.0, *_TIMES):
        kind = 0.65
    elif sketch.chance(0.0, "past_sum"):
        kind = 0.45
    if kind < 0.4:
        product = _applied(sketch, sector, rank, static, later)
        if product is not None:
            return product
    if not usable:
        return None
    value = sketch.rng.choice(usable)
    fields = [u for u in usable if u.args[1] is not None and u.args[1] != 5]
    if kind < 0.5 and fields and not static:
        inner = at(sketch.rng.choice(fields).leaf, sketch.rng.choice((0, 0, 1)))
        if inner.leaf not in {n.name for n in sketch.normals}:
            inner = inner + sketch.coefficient() * at(inner.leaf, 1) if sketch.chance(0.2) else inner
            if inner.op == "at" and sketch.chance(0.3) and not sketch.labelled():
                other = sketch.rng.choice((inner, Node("now", (sketch.rng.choice(fields),))))
                inner = QUARTER * mean(at(inner.leaf, 0) * other) * inner
            return sketch.coefficient() * Node("past", (inner,))
    if kind < 0.56 and fields and not static:
        return _of_means(sketch, sketch.rng.choice(fields), sketch.rng.choice(fields)) * value
    if kind < 0.62:
        return sketch.coefficient() * number(1) if sketch.chance(0.5) else HALF
    if kind < 0.66 and not static and sketch.clock is not None:
        return sketch.coefficient() * of_time(sketch) * value
    if kind < 0.8 and not sketch.linear:
        other = sketch.rng.choice(usable)
        inner = sketch.coefficient() * value + other if sketch.chance(0.5) else value
        if sketch.chance(0.15):
            return QUARTER * value**2
        if sketch.chance(0.15):
            return QUARTER * value * call("tanh", other)
        if sketch.chance(0.3):
            inner = inner + sketch.coefficient()
        return sketch.coefficient() * sketch.law(inner)
    return sketch.coefficient() * value


def _of_means(sketch: Sketch, one: Node, two: Node) -> Node:
    """Return a coefficient that contains a mean over sites."""
    strength = mean(one * two)
    bounded = ONE / sketch.rng.choice((ONE + mean(one**2), mean(ONE + one**2)))
    if sketch.chance(0.25):  # a mean inside a mean
        rest = one + -HALF * strength * two
        bounded = ONE / (ONE + mean(sketch.rng.choice((rest**2, one**2 * mean(two**2)))))
    if sketch.linear:
        return sketch.rng.choice((QUARTER * strength, HALF * bounded))
    rooted = ONE / root(ONE + mean(one**2))
    return sketch.rng.choice((bounded, rooted, LAWS[sketch.rng.choice(("tanh", "cos", "Piecewise"))](strength)))


def _right_side(sketch: Sketch, sector: str, rank: int, static: bool, later: bool) -> Node:
    if sketch.chance(0.06):
        return sketch.rng.choice((ONE, ONE, number(0), sketch.coefficient()))
    terms = [_term(sketch, sector, rank, static, later) for _ in range(sketch.rng.choice((1, 2, 2, 3)))]
    kept = [t for t in terms if t is not None]
    return add(*kept) if kept else _source(sketch, sector)


def _source(sketch: Sketch, sector: str, static: bool = True) -> Node:
    """Return a normal vector over a sector, creating one if there is none."""
    fitting = [v for v in sketch.normals if v.sector == sector and ((v.kind == "static" and not v.axes) or not static)]
    if not fitting:
        fitting = [DraftVector(f"m{len(sketch.normals) + 1}", sector, "static")]
        sketch.normals += fitting
    return value_of(sketch.rng.choice(fitting), 0)


def _draw_equations(sketch: Sketch) -> None:
    for rank, v in enumerate(sketch.fields):
        if v.kind == "static":
            sketch.equations.append(DraftEquation(v.name, "", _right_side(sketch, v.sector, rank, True, False)))
        elif sketch.chance(0.4):
            start = _source(sketch, v.sector)
            if sketch.chance(0.2):
                start = sketch.coefficient() * start + HALF
            sketch.equations.append(DraftEquation(v.name, "0", start))
            ahead = 1
            if sketch.chance(0.25):
                second = _source(sketch, v.sector)
                second = sketch.coefficient() * second + ONE if sketch.chance(0.3) else second
                sketch.equations.append(DraftEquation(v.name, "1", second))
                ahead = 2
            value = _right_side(sketch, v.sector, rank, False, True)
            sketch.equations.append(DraftEquation(v.name, f"t + {ahead}", value))
        else:
            sketch.equations.append(DraftEquation(v.name, "t", _right_side(sketch, v.sector, rank, False, False)))
    for w in list(sketch.weights):
        _draw_update(sketch, w)


def _spike(sketch: Sketch, w: DraftWeights) -> Node | None:
    """Return an outer product for an update, scaled so that the matrix stays of order one; None if no field fits."""
    sides = []
    for sector in (w.rows, w.columns):
        values = [value_of(v, 0) for v in sketch.fields if v.sector == sector]
        timed = [v for v in sketch.fields if v.sector == sector and v.kind == "timed"]
        values += [value_of(v, delay) for v in timed for delay in (1, 2)]
        values += [value_of(v, 0) for v in sketch.normals if v.sector == sector]
        if sketch.labelled():  # labels are summed over together: both sides need them
            plain = {v.name for v in (*sketch.fields, *sketch.normals) if not v.axes}
            values = [v for v in values if v.leaf not in plain]
        if not values:
            return None
        side = sketch.rng.choice(values)
        if sketch.chance(0.2):
            side = side + sketch.coefficient() * sketch.rng.choice(values)
        elif not sketch.linear and sketch.chance(0.3):
            side = sketch.law(side)
        sides.append(side)
    small = weight_scale(sketch, w) == ONE
    scale = ONE / name(w.columns) if small else ONE / root(name(w.columns))
    parts = [sketch.coefficient() * scale]
    if sketch.chance(0.15):
        parts.append(mean((_plain_field(sketch, w.rows) or sides[0]) ** 2))
    elif sketch.chance(0.15, *_TIMES):
        parts.append(of_time(sketch))
    spike = outer(*sides)
    if symmetric_start(sketch, w):
        kind = sketch.rng.choice(("square", "square", "pair", "pair", "skewed"))
        if kind == "skewed":
            sketch.skewed.add(w.name)
        else:
            spike = outer(sides[0], sides[0]) if kind == "square" else spike + spike.T
    return times(*parts, spike)


def _plain_field(sketch: Sketch, sector: str) -> Node | None:
    fitting = [v for v in sketch.fields if v.sector == sector and v.kind == "timed"]
    return value_of(sketch.rng.choice(fitting), 0) if fitting and not sketch.labelled() else None


def _draw_update(sketch: Sketch, w: DraftWeights) -> None:
    old = weights_at(w.name)
    count = sketch.rng.choice((0, *(1,) * 12, *(2,) * 6))
    spikes = [s for s in (_spike(sketch, w) for _ in range(count)) if s is not None]
    kept = sketch.rng.choice((number(Fraction(9, 10)), sketch.coefficient())) * old if sketch.chance(0.3) else old
    if spikes and sketch.chance(0.2):
        buffer = f"{w.name}m"
        sketch.weights.append(DraftWeights(buffer, w.rows, w.columns))
        before = weights_at(buffer)
        sketch.equations.append(DraftEquation(buffer, "0", number(0)))
        sketch.equations.append(DraftEquation(buffer, "t + 1", add(HALF * before, *spikes)))
        spikes = [weights_at(buffer, -1)]
    if sketch.chance(0.15):
        start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
        spikes.append(number(Fraction(1, 10)) * start)
    sketch.equations.append(DraftEquation(w.name, "t + 1", add(kept, *spikes)))


def _observables(sketch: Sketch) -> list[Node]:
    observables = []
    for v in sketch.fields:
        value = value_of(v, 0)
        observables.append(mean(value**2))
        mates = [u for u in (*sketch.fields, *sketch.normals) if u.sector == v.sector and u.name != v.name]
        if mates and sketch.chance(0.5):
            mate = sketch.rng.choice(mates)
            lag = sketch.rng.choice((0, 0, 1, 5)) if v.kind == "timed" else 0
            other = value_of(mate, lag if mate in sketch.fields else 0)
            shared = Node("overlap", (value, other)) if sketch.chance(0.2, "overlap") else mean(value * other)
            observables.append(shared)
        if v.kind == "timed" and sketch.chance(0.2):
            observables.append(mean(value * value_of(v, sketch.rng.choice((1, 2, 5)))))
        if sketch.chance(0.15):  # a term without a field inside a mean
            observables.append(mean(HALF + -QUARTER * value**2))
        if sketch.chance(0.1):  # beyond second moments, of laws that are linear too
            observables.append(mean(sketch.rng.choice((value**4, (value + ONE) ** 3, value))))
        if not sketch.linear and sketch.chance(0.3):
            observables.append(mean(value) if sketch.chance(0.5) else mean(call("tanh", value)))
    if observables and sketch.chance(0.2):
        observables.append(-HALF * observables[0] + number(1))
    return observables


def drawn(seed: int, linear: bool | None = None, probes: bool = True) -> Draft:
    """Return the draft of a seed."""
    return draw(Random(seed), linear, probes)
