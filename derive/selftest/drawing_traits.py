"""Random heterogeneous sites: traits inserted as factors into a drawn declaration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from derive.selftest.drafts import HALF, ONE, DraftTrait, Node, add, at, mean, number, outer, root
from derive.selftest.sketch import Sketch, value_of

VALUES = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(3, 2))
SHARES: tuple[tuple[Fraction, ...], ...] = (
    (Fraction(1),),
    (Fraction(1, 4), Fraction(3, 4)),
    (Fraction(1, 2), Fraction(1, 2)),
    (Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)),
)


def _law(kind: str, *numbers: Fraction | int | Node | list[Fraction] | list[Node]) -> Node:
    def part(numbers: Fraction | int | Node | list[Fraction] | list[Node]) -> Node:
        if isinstance(numbers, list):
            return Node("list", tuple(map(part, numbers)))
        return numbers if isinstance(numbers, Node) else number(numbers)

    return Node("law", (kind, *map(part, numbers)))


_QUARTERS = [Fraction(1, 4), Fraction(3, 4)]
LAWS: dict[Node, tuple[Fraction, Fraction]] = {
    _law("discrete", [Fraction(-1), Fraction(1, 2)], _QUARTERS): (Fraction(1, 8), Fraction(27, 64)),
    _law("discrete", [Fraction(-1), Fraction(1)]): (Fraction(0), Fraction(1)),
    _law("uniform", -1, 2): (Fraction(1, 2), Fraction(3, 4)),
    _law("exponential", Fraction(1, 2)): (Fraction(1, 2), Fraction(1, 4)),
    _law("exponential"): (Fraction(1), Fraction(1)),
    _law("mixture", _QUARTERS, [_law("normal_law", -1, Fraction(1, 2)), _law("normal_law", Fraction(1, 2), 1)]): (
        Fraction(1, 8),
        Fraction(79, 64),
    ),
}
"""Laws that are not normal, with rational mean and variance."""
FURTHER = (_law("half_normal", Fraction(1, 2)), _law("half_normal"), _law("log_normal", 0, Fraction(1, 2)))
"""Laws whose moments are not rational."""
DRAWN = ("drawn", "discrete", "uniform", "exponential", "mixture", "normal_law", "half_normal", "log_normal")
TRAITS = ("trait", "trait(values=)", "trait(weights=)", "trait(density=)", "trait(law=)", "diag")


def draw_laws(sketch: Sketch) -> None:
    """Give some of the drawn vectors a law that is not normal."""
    for k, v in enumerate(sketch.normals):
        if sketch.chance(0.4, *DRAWN):
            kind = sketch.pick([str(law.args[0]) for law in (*LAWS, *FURTHER)])
            fitting = [law for law in (*LAWS, *FURTHER) if law.args[0] == kind]
            sketch.normals[k] = replace(v, scale=ONE, law=sketch.rng.choice(fitting))


def draw_traits(sketch: Sketch) -> list[Node]:
    """Insert one or two traits into terms, updates and sums, and return their observables."""
    rng = sketch.rng
    for k in range(rng.choice((1, 1, 2))):
        sketch.traits.append(_trait(sketch, f"l{k + 1}", rng.choice(sketch.fields).sector))
    sectors = {v.name: v.sector for v in sketch.fields}
    sides = {w.name: (w.rows, w.columns) for w in sketch.weights}
    for k, equation in enumerate(sketch.equations):
        if equation.target in sectors and sketch.chance(0.5):
            value = _in_terms(sketch, equation.value, sectors[equation.target])
        elif equation.target in sides and sketch.chance(0.3):
            value = _in_sides(sketch, equation.value, sides[equation.target])
        else:
            continue
        sketch.equations[k] = replace(equation, value=value)
    observables = [mean(_factor(sketch, trait)) for trait in sketch.traits]
    for v in sketch.fields:
        fitting = [trait for trait in sketch.traits if trait.sector == v.sector]
        if fitting and sketch.chance(0.5):
            observables.append(mean(_factor(sketch, rng.choice(fitting)) * value_of(v, 0) ** 2))
    return observables


def _trait(sketch: Sketch, word: str, sector: str) -> DraftTrait:
    """Return a trait with weighted values, with equal weights, with a density, or with a named law."""
    kind = sketch.pick(("trait(weights=)",) * 5 + ("trait(values=)", "trait(density=)", "trait(law=)"))
    if kind == "trait(density=)":
        return DraftTrait(word, sector, density=(ONE + Node("index", ()), number(0), ONE))
    if kind == "trait(law=)":
        return DraftTrait(word, sector, law=_law("uniform", Fraction(1, 4), 1))
    shares = sketch.rng.choice(SHARES)
    values = tuple(number(sketch.rng.choice(VALUES)) for _ in shares)
    if sketch.chance(0.1, "a parameter in a trait"):
        values = (sketch.parameter("beta", None, "positive"), *values[1:])
    return DraftTrait(
        word, sector, values=values, shares=tuple(map(number, shares)) if kind == "trait(weights=)" else ()
    )


def weigh_rows(sketch: Sketch, probe: Node) -> Node:
    """Return K^T K with the rows of K weighted by a trait, or by a bounded function of a field without a clock."""

    def node(old: Node) -> Node:
        if old.op != "matmul" or len(old.children) != 2 or old.children[0] != old.children[1].T:
            return old
        matrix = old.children[1]
        rows = _rows(sketch, matrix)
        factor = _of(sketch, rows) if rows else None
        fields = [v for v in sketch.fields if v.sector == rows and v.kind == "static" and not v.axes]
        if factor is None and fields and sketch.linear and sketch.chance(0.3):
            factor = ONE / (ONE + value_of(sketch.rng.choice(fields), 0) ** 2)
        if factor is None or not sketch.chance(0.7, "diag"):
            return old
        weighed = Node("weighed", (factor, matrix))
        return Node("matmul", (weighed.T, weighed))

    return probe.mapped(node)


def _rows(sketch: Sketch, matrix: Node) -> str:
    """Return the row sector of a matrix that is not transposed."""
    named = matrix if matrix.op != "sum" else matrix.children[0]
    shapes = {m.name: m.rows for m in sketch.matrices} | {w.name: w.rows for w in sketch.weights}
    return shapes.get(named.leaf, "") if named.op in ("matrix", "weights") else ""


def _factor(sketch: Sketch, trait: DraftTrait) -> Node:
    """Return a function of a trait."""
    word = at(trait.name, None)
    half = HALF * word
    return sketch.rng.choice((word, word, root(word), ONE + half, ONE / (ONE + word), word**2))


def _of(sketch: Sketch, sector: str) -> Node | None:
    fitting = [trait for trait in sketch.traits if trait.sector == sector]
    return _factor(sketch, sketch.rng.choice(fitting)) if fitting else None


def _in_terms(sketch: Sketch, value: Node, sector: str) -> Node:
    """Return a right-hand side with one term multiplied by a trait, or with a trait as an additional term."""
    factor = _of(sketch, sector)
    if factor is None:
        return value
    if sketch.chance(0.15):
        return value + sketch.coefficient() * factor
    calls = [n for n in value.walk() if n.op == "call" and any(inner.op == "at" for inner in n.walk())]
    if calls and sketch.chance(0.5):  # a threshold inside a law
        chosen = sketch.rng.choice(calls)
        moved = Node("call", (*chosen.args[:-1], chosen.children[-1] + factor))
        return value.mapped(lambda old: moved if old == chosen else old)
    if value.op != "sum":
        return factor * value
    k = sketch.rng.randrange(len(value.children))
    return add(*(factor * part if j == k else part for j, part in enumerate(value.children)))


def _in_sides(sketch: Sketch, update: Node, sectors: tuple[str, str]) -> Node:
    """Return an update whose outer products have a trait on one or both sides; symmetric ones remain symmetric."""
    square = sectors[0] == sectors[1]
    factors = [_of(sketch, sector) for sector in sectors]
    kept = [sketch.chance(0.7) for _ in sectors]
    if square:
        factors, kept = [factors[0]] * 2, [True] * 2
    left, right = (factor if factor is not None and keep else ONE for factor, keep in zip(factors, kept, strict=True))

    def node(old: Node) -> Node:
        if old.op != "outer":
            return old
        return outer(left * old.children[0], right * old.children[1])

    return update.mapped(node)
