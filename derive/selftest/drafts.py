"""A declaration as plain data: what is drawn, changed, shrunk and written out.

Expressions are small trees. A draft may be ill posed, for shrinking tries whatever is smaller: the engine then has to
refuse it in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

Leaf = str | int | Fraction | None


@dataclass(frozen=True)
class Node:
    """An operation and its arguments. What there is, with what the arguments are:

    scalars: number (value), name (of a parameter or of a sector, whose size is meant).
    vectors: at (name, delay or None where there is no clock).
    both: sum, product, power (base, exponent), root (of a scalar), call (function, argument), mean (vector),
    past (vector, in which the delay counts from the index of the sum), now (vector inside it, in which it does not).
    matrices: matrix (name), fresh (name, delay), weights (name, time as text), turned (matrix), outer (left, right),
    matmul (matrices), weighed (vector, matrix: its rows times the entries), also sum, and product with scalars; apply
    (matrix, vector) is a vector.
    labels: data (name, delay or None) is a number per label, mix (name, delay or None, transposed or not, vector) a
    table of data times a vector, total (vector or number) the sum over labels, each (number) all of them, observed;
    total_over (vector or number, parameter) and softmax (number, parameter) act along the axis that it counts.
    """

    op: str
    args: tuple[Node | Leaf, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, Node))

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()

    def mapped(self, change: Callable[[Node], Node]) -> Node:
        """The tree with every node changed, the leaves first."""
        args = tuple(arg.mapped(change) if isinstance(arg, Node) else arg for arg in self.args)
        return change(Node(self.op, args))

    @property
    def leaf(self) -> str:
        """The name that the node holds, if it holds one."""
        holds = self.op in ("name", "at", "matrix", "fresh", "weights", "data", "mix")
        return str(self.args[0]) if holds else ""


def number(value: int | str | Fraction) -> Node:
    return Node("number", (Fraction(value),))


def name(word: str) -> Node:
    return Node("name", (word,))


def at(word: str, delay: int | None = 0) -> Node:
    return Node("at", (word, delay))


def add(*terms: Node) -> Node:
    """The sum, without a sum inside it."""
    flat = [part for term in terms for part in (term.children if term.op == "sum" else (term,))]
    return flat[0] if len(flat) == 1 else Node("sum", tuple(flat))


def times(*factors: Node) -> Node:
    """The product, without a product inside it and without ones."""
    flat = [part for factor in factors for part in (factor.children if factor.op == "product" else (factor,))]
    kept = [part for part in flat if part != ONE]
    return Node("product", tuple(kept)) if len(kept) > 1 else (kept or [ONE])[0]


def power(base: Node, exponent: int) -> Node:
    return base if exponent == 1 else Node("power", (base, exponent))


def over(top: Node, *bottom: Node) -> Node:
    return times(top, *(Node("power", (part, -1)) for part in bottom if part != ONE))


def root(inner: Node) -> Node:
    return Node("root", (inner,))


def call(function: str, inner: Node) -> Node:
    return Node("call", (function, inner))


def mean(inner: Node) -> Node:
    return Node("mean", (inner,))


def apply(matrix: Node, vector: Node) -> Node:
    return Node("apply", (matrix, vector))


def total(inner: Node) -> Node:
    return Node("total", (inner,))


def outer(left: Node, right: Node) -> Node:
    return Node("outer", (left, right))


def turned(matrix: Node) -> Node:
    """The transpose."""
    return matrix.children[0] if matrix.op == "turned" else Node("turned", (matrix,))


ONE = number(1)


@dataclass(frozen=True)
class Parameter:
    name: str
    value: Fraction
    domain: str = "real"


@dataclass(frozen=True)
class Sector:
    """An index space; `ratio` is its size over that of the base, 1 for the base itself, which comes first."""

    name: str
    ratio: Node = ONE


@dataclass(frozen=True)
class Clock:
    """`classes` is the parameter that counts the classes that everything on the clock has, if there are any."""

    name: str
    steps: str
    classes: str = ""
    endpoint: bool = True


@dataclass(frozen=True)
class Matrix:
    """A random matrix; `kind` is gaussian, goe or fresh."""

    name: str
    kind: str
    rows: str
    columns: str
    variance: Fraction = Fraction(1)


@dataclass(frozen=True)
class Vector:
    """A normal vector or a field; `kind` is static, timed or by_class, which is for normal vectors only: one
    per class, at all times.

    `labels` is the parameter that counts its labels, if they are not those of the clock.
    """

    name: str
    sector: str
    kind: str = "timed"
    scale: Fraction = Fraction(1)
    labels: str = ""
    law: str = ""
    """Of a vector that is drawn from another law than the normal one, as it is written."""


@dataclass(frozen=True)
class Trait(Vector):
    """A vector that differs from site to site by a known law: values and the shares of sites that have them."""

    kind: str = "static"
    values: tuple[Fraction, ...] = ()
    shares: tuple[Fraction, ...] = ()


@dataclass(frozen=True)
class Data:
    """An array that is given: the parameters that its axes count, after time if it is timed; `phase` tells numbers."""

    name: str
    axes: tuple[str, ...]
    timed: bool
    phase: int


@dataclass(frozen=True)
class Weights:
    name: str
    rows: str
    columns: str


@dataclass(frozen=True)
class Equation:
    """The equation of a field or of weights; `time` is t, t + 1, a whole number, or nothing without a clock."""

    target: str
    time: str
    value: Node


@dataclass(frozen=True)
class Draft:
    sectors: tuple[Sector, ...]
    parameters: tuple[Parameter, ...]
    clock: Clock | None
    matrices: tuple[Matrix, ...]
    normals: tuple[Vector, ...]
    fields: tuple[Vector, ...]
    weights: tuple[Weights, ...]
    equations: tuple[Equation, ...]
    observables: tuple[tuple[str, Node], ...]
    probes: tuple[tuple[str, Node], ...] = ()
    data: tuple[Data, ...] = ()
    traits: tuple[Trait, ...] = ()

    def trees(self) -> Iterator[Node]:
        """Every expression, in the order of the file."""
        for sector in self.sectors:
            yield sector.ratio
        for equation in self.equations:
            yield equation.value
        for _, value in self.observables:
            yield value
        for _, value in self.probes:
            yield value

    def mapped(self, change: Callable[[Node], Node]) -> Draft:
        """Every node of every equation, observable and probe changed."""
        return replace(
            self,
            equations=tuple(replace(e, value=e.value.mapped(change)) for e in self.equations),
            observables=tuple((label, value.mapped(change)) for label, value in self.observables),
            probes=tuple((label, value.mapped(change)) for label, value in self.probes),
        )

    def names(self) -> list[str]:
        """Every name that is declared, observables included."""
        found = [s.name for s in self.sectors] + [p.name for p in self.parameters]
        found += list(self.shapes()) + [v.name for v in self.vectors()]
        found += [d.name for d in self.data]
        return found + ([self.clock.name] if self.clock else []) + [label for label, _ in self.observables]

    def shapes(self) -> dict[str, tuple[str, str]]:
        """Rows and columns of every random matrix and of all weights."""
        found = {m.name: (m.rows, m.columns) for m in self.matrices}
        return found | {w.name: (w.rows, w.columns) for w in self.weights}

    def free_name(self, wish: str) -> str:
        """A name like the one wished for that nothing has yet."""
        taken = set(self.names())
        return next(n for n in (wish, *(f"{wish}{k}" for k in range(2, 1000))) if n not in taken)

    def value(self, parameter: str) -> Fraction:
        return next(p.value for p in self.parameters if p.name == parameter)

    def with_value(self, parameter: str, value: int | Fraction) -> Draft:
        """The same declaration with another default of one parameter."""
        kept = tuple(replace(p, value=Fraction(value)) if p.name == parameter else p for p in self.parameters)
        return replace(self, parameters=kept)

    def vectors(self) -> tuple[Vector, ...]:
        return (*self.normals, *self.fields, *self.traits)

    def vector(self, word: str) -> Vector:
        """The normal vector, field or trait of that name."""
        return next(v for v in self.vectors() if v.name == word)


def pruned(draft: Draft) -> Draft:
    """The draft without equations, vectors, matrices, parameters and sectors that nothing uses any more."""
    while True:
        roots = [value for _, value in (*draft.observables, *draft.probes)]
        wanted = {node.leaf for tree in roots for node in tree.walk()}
        while True:
            more = {n.leaf for e in draft.equations if e.target in wanted for n in e.value.walk()} - wanted
            if not more:
                break
            wanted |= more
        equations = tuple(e for e in draft.equations if e.target in wanted)
        vectors = draft.vectors()
        used = {v.sector for v in vectors if v.name in wanted}
        used |= {sector for word, shape in draft.shapes().items() if word in wanted for sector in shape} | wanted
        wanted |= {n.leaf for s in draft.sectors if s.name in used for n in s.ratio.walk()}
        clocked = (
            any(v.kind != "static" and v.name in wanted for v in vectors)
            or any(w.name in wanted for w in draft.weights)
            or any(m.kind == "fresh" and m.name in wanted for m in draft.matrices)
            or any(d.timed and d.name in wanted for d in draft.data)
        )
        clock = draft.clock if clocked else None
        if clock is not None:
            wanted |= {clock.steps, clock.classes}
        wanted |= {v.labels for v in vectors if v.name in wanted}
        wanted |= {axis for d in draft.data if d.name in wanted for axis in d.axes}
        made = replace(
            draft,
            sectors=(draft.sectors[0], *(s for s in draft.sectors[1:] if s.name in used)),
            parameters=tuple(p for p in draft.parameters if p.name in wanted),
            clock=clock,
            matrices=tuple(m for m in draft.matrices if m.name in wanted),
            normals=tuple(v for v in draft.normals if v.name in wanted),
            fields=tuple(v for v in draft.fields if v.name in wanted),
            weights=tuple(w for w in draft.weights if w.name in wanted),
            equations=equations,
            data=tuple(d for d in draft.data if d.name in wanted),
            traits=tuple(v for v in draft.traits if v.name in wanted),
        )
        if made == draft:
            return draft
        draft = made
