"""What has been drawn of a declaration so far, and what may be used next."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from derive.selftest.drafts import (
    ONE,
    Clock,
    Data,
    Equation,
    Matrix,
    Node,
    Parameter,
    Sector,
    Trait,
    Vector,
    Weights,
    at,
    name,
    number,
    over,
    root,
    times,
    turned,
)

COEFFICIENTS = (Fraction(1, 2), Fraction(-1, 2), Fraction(1, 4), Fraction(3, 4), Fraction(-1, 4), Fraction(1))
LAWS = ("tanh", "tanh", "erf", "relu", "sin", "cos", "Abs", "sign", "gate", "bump")


@dataclass
class Sketch:
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
    traits: list[Trait] = field(default_factory=list)
    skewed: set[str] = field(default_factory=set)
    """Weights that begin symmetric and are updated in another way."""

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def coefficient(self) -> Node:
        """A number of order one, sometimes as a parameter, a root or a ratio of sizes."""
        if self.chance(0.1):
            return self._root_or_ratio()
        value = self.rng.choice(COEFFICIENTS)
        if not self.chance(0.5):
            return number(value)
        old = [p for p in self.parameters if p.domain == "real"]
        if old and self.chance(0.4):
            return name(self.rng.choice(old).name)
        word = f"c{len(old) + 1}"
        self.parameters.append(Parameter(word, value))
        return name(word)

    def _root_or_ratio(self) -> Node:
        found = [times(number(Fraction(1, 2)), root(number(2))), times(number(Fraction(-1, 4)), root(number(3)))]
        if len(self.sectors) > 1:
            ratio = over(*(name(s.name) for s in self.rng.sample(self.sectors, 2)))
            found += [times(number(Fraction(1, 2)), part) for part in (ratio, root(ratio))]
        return self.rng.choice(found)

    def base(self) -> Node:
        return name(self.sectors[0].name)

    def labelled(self) -> bool:
        return self.clock is not None and bool(self.clock.classes)


def value_of(sketch: Sketch, vector: Vector, delay: int) -> Node:
    return at(vector.name, delay if vector.kind == "timed" else None)


def usable_values(sketch: Sketch, sector: str, rank: int, static: bool, later: bool) -> list[Node]:
    """Values over a sector that an equation may use: earlier fields at t, and any field later by a delay.

    `later`: the equation is at t + 1, so that everything at t is in its past.
    """
    found = [
        value_of(sketch, v, 0) for v in sketch.normals if v.sector == sector and not (static and v.kind != "static")
    ]
    for k, v in enumerate(sketch.fields):
        if v.sector != sector or (static and v.kind != "static"):
            continue
        if k < rank or (later and v.kind == "timed"):
            found += [value_of(sketch, v, 0)] * 3
        if not static and v.kind == "timed":
            found.append(value_of(sketch, v, sketch.rng.choice((1, 1, 2, 5))))
    return found


def operators_into(sketch: Sketch, sector: str, static: bool) -> list[tuple[Node, str, Node]]:
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
        if static or not rooted(sketch, w.name):
            continue
        node = Node("weights", (w.name, "t"))
        scale = weight_scale(sketch, w)
        if w.rows == sector:
            found += [(node, w.columns, scale)] * 2
        if w.columns == sector:
            found += [(turned(node), w.rows, scale)] * 2
    return found


def rooted(sketch: Sketch, word: str) -> bool:
    """Whether weights begin at a random matrix; momentum does not, and applying it to vectors is nothing new."""
    return any(e.target == word and e.time == "0" and e.value != number(0) for e in sketch.equations)


def weight_scale(sketch: Sketch, w: Weights) -> Node:
    start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
    inner = next((n for n in start.walk() if n.op == "matrix"), None)
    kind = next((m.kind for m in sketch.matrices if inner is not None and m.name == inner.leaf), "goe")
    scaled = any(n.op == "root" for n in start.walk())
    return ONE if kind == "goe" or scaled else over(ONE, root(name(w.columns)))


def symmetric_start(sketch: Sketch, w: Weights) -> bool:
    start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
    used = {n.leaf for n in start.walk() if n.op == "matrix"}
    return all(m.kind == "goe" for m in sketch.matrices if m.name in used)
