"""A declaration as plain data, which can be drawn, changed, shrunk and printed.

Expressions are small trees. A draft may be ill posed, because shrinking tries smaller drafts blindly; the engine must
then refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

Leaf = str | int | Fraction | None


@dataclass(frozen=True)
class Node:
    """An operation and its arguments. The kinds of nodes and their arguments:

    scalars: number (value), name (of a parameter, of a clock, or of a sector, whose size is meant), index (the time of
    a sum over the past), compare (relation, two scalars or vectors).
    vectors: at (name, time). A time is None without a clock, a delay (2 is t - 2), or a scalar.
    both: sum, product, power (base, whole number or scalar), root (of a scalar), call (function, arguments), cases
    (value, condition, ..., value otherwise), mean (vector), overlap (two vectors), past (vector, in which a delay
    counts from the index of the sum, and how many steps later than usual the sum ends), now (vector inside it, in which
    it does not), relabel (vector or number, old axis, new axis).
    matrices: matrix (name), fresh (name, time), weights (name, time), turned (matrix), outer (left, right), matmul
    (matrices), diag (vector), weighed (vector, matrix: its rows times the entries), also sum, and product with
    scalars; apply (matrix, vector) is a vector.
    labels: data (name, time) is a number per label, entries (name, time) one per pair of labels, mix (name, time,
    transposed or not, vector, "root" or nothing) a table of data times a vector, total (vector or number) the sum over
    labels, each (number) all of them, observed; total_over (vector or number, axis) and softmax (number, axis) act
    along one axis.
    at the top: alignment (vector) is observed, probe (matrix, observable that is added, names and matrices that stand
    between resolvents) is probed. law (kind, numbers) and list (items) tell how a vector is drawn.
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
        """Return the tree with every node changed, leaves first."""
        return change(self.rebuilt(lambda child: child.mapped(change)))

    def rebuilt(self, change: Callable[[Node], Node]) -> Node:
        """Return the node with its children changed."""
        return self.with_children(map(change, self.children))

    def with_children(self, children: Iterable[Node]) -> Node:
        """Return the node with other children."""
        changed = iter(children)
        return Node(self.op, tuple(next(changed) if arg in self.children else arg for arg in self.args))

    @property
    def whole(self) -> int | None:
        """The integer value of a delay or exponent; None if it is absent or an expression."""
        return None if self.args[1] in (None, *self.children) else int(str(self.args[1]))

    def __add__(self, other: Node) -> Node:
        return add(self, other)

    def __mul__(self, other: Node) -> Node:
        return times(self, other)

    def __truediv__(self, other: Node) -> Node:
        return self if other == ONE else times(self, Node("power", (other, -1)))

    def __pow__(self, exponent: int | Node) -> Node:
        return self if exponent in (1, ONE) else Node("power", (self, exponent))

    def __neg__(self) -> Node:
        return number(-Fraction(str(self.args[0]))) if self.op == "number" else number(-1) * self

    def __matmul__(self, vector: Node) -> Node:
        return Node("apply", (self, vector))

    @property
    def T(self) -> Node:
        """The transpose of a matrix."""
        return self.children[0] if self.op == "turned" else Node("turned", (self,))

    @property
    def leaf(self) -> str:
        """The name in the node, if any."""
        holds = self.op in ("name", "at", "matrix", "fresh", "weights", "data", "mix", "entries")
        return str(self.args[0]) if holds else ""


def number(value: int | str | Fraction) -> Node:
    return Node("number", (Fraction(value),))


def name(word: str) -> Node:
    return Node("name", (word,))


def at(word: str, delay: int | Node | None = 0) -> Node:
    return Node("at", (word, delay))


def weights_at(word: str, delay: int | Node = 0) -> Node:
    return Node("weights", (word, delay))


def add(*terms: Node) -> Node:
    """Return the sum, with nested sums flattened."""
    flat = [part for term in terms for part in (term.children if term.op == "sum" else (term,))]
    return flat[0] if len(flat) == 1 else Node("sum", tuple(flat))


def times(*factors: Node) -> Node:
    """Return the product, with nested products flattened and ones dropped."""
    flat = [part for factor in factors for part in (factor.children if factor.op == "product" else (factor,))]
    kept = [part for part in flat if part != ONE]
    return Node("product", tuple(kept)) if len(kept) > 1 else (kept or [ONE])[0]


def root(inner: Node) -> Node:
    return Node("root", (inner,))


def call(function: str, *arguments: Node) -> Node:
    return Node("call", (function, *arguments))


def cases(*parts: Node) -> Node:
    """Return a piecewise value: values and conditions in turn, the last value without a condition."""
    return Node("cases", parts)


def compare(relation: str, left: Node, right: Node) -> Node:
    return Node("compare", (relation, left, right))


def mean(inner: Node) -> Node:
    return Node("mean", (inner,))


def total(inner: Node) -> Node:
    return Node("total", (inner,))


def outer(left: Node, right: Node) -> Node:
    return Node("outer", (left, right))


ONE, HALF, QUARTER = number(1), number(Fraction(1, 2)), number(Fraction(1, 4))


@dataclass(frozen=True)
class DraftParameter:
    """A parameter; `domain` is written verbatim."""

    name: str
    value: Fraction
    domain: str = "real"
    doc: str = ""

    @property
    def whole(self) -> bool:
        return "whole" in self.domain


@dataclass(frozen=True)
class DraftSector:
    """An index space; `ratio` is its size relative to the base, which comes first with ratio 1."""

    name: str
    ratio: Node = ONE


@dataclass(frozen=True)
class DraftClock:
    """The training clock and the parameter that counts its steps."""

    name: str
    steps: str
    endpoint: bool = True


@dataclass(frozen=True)
class DraftAxis:
    """An axis of labels. Results are ordered by axis names, which no law changes.

    `size` is the parameter that counts the labels, or a number.
    """

    name: str
    size: str | int

    @property
    def counter(self) -> str:
        """The parameter that counts the labels, if there is one."""
        return str(self.size) if str(self.size).isidentifier() else ""


@dataclass(frozen=True)
class DraftMatrix:
    """A random matrix; `kind` is gaussian, goe or fresh."""

    name: str
    kind: str
    rows: str
    columns: str
    variance: Node = ONE

    def mapped(self, change: Callable[[Node], Node]) -> DraftMatrix:
        return replace(self, variance=self.variance.mapped(change))


@dataclass(frozen=True)
class DraftVector:
    """A drawn vector or a field; `kind` is static or timed, `axes` are its label axes.

    `law` is the distribution of a drawn vector that is not normal.
    """

    name: str
    sector: str
    kind: str = "timed"
    scale: Node = ONE
    axes: tuple[str, ...] = ()
    law: Node | None = None

    def trees(self) -> tuple[Node, ...]:
        """The expressions in its law and scale."""
        return (self.scale, *(() if self.law is None else (self.law,)))

    def mapped(self, change: Callable[[Node], Node]) -> Self:
        """Return the vector with every node changed."""
        law = None if self.law is None else self.law.mapped(change)
        return replace(self, scale=self.scale.mapped(change), law=law)


@dataclass(frozen=True)
class DraftTrait(DraftVector):
    """A trait: a fixed number per site with a known law.

    The law is given by values with weights (equal if there are none), by data, by a density (of `index`) with its ends,
    or by one of the laws of drawn vectors.
    """

    kind: str = "static"
    values: tuple[Node, ...] = ()
    shares: tuple[Node, ...] = ()
    given: str = ""
    density: tuple[Node, ...] = ()

    def trees(self) -> tuple[Node, ...]:
        return (*super().trees(), *self.values, *self.shares, *self.density)

    def mapped(self, change: Callable[[Node], Node]) -> Self:
        values, shares, density = (
            tuple(node.mapped(change) for node in some) for some in (self.values, self.shares, self.density)
        )
        return replace(super().mapped(change), values=values, shares=shares, density=density)


Numbers = float | tuple["Numbers", ...]


@dataclass(frozen=True)
class DraftData:
    """An array of data: its axes, after time if it is timed. `phase` generates its numbers, unless `values` contains
    them."""

    name: str
    axes: tuple[str, ...]
    timed: bool
    phase: int = 0
    values: Numbers | None = None
    optional: bool = False


@dataclass(frozen=True)
class DraftWeights:
    """A weight matrix that is updated in time."""

    name: str
    rows: str
    columns: str


@dataclass(frozen=True)
class DraftEquation:
    """The equation of a field or of weights; `time` is t, t + 1, an integer, or None without a clock."""

    target: str
    time: str
    value: Node

    @property
    def starts(self) -> bool:
        return self.time.isdigit()


@dataclass(frozen=True)
class Draft:
    """A whole declaration as plain data."""

    sectors: tuple[DraftSector, ...]
    parameters: tuple[DraftParameter, ...]
    clock: DraftClock | None
    matrices: tuple[DraftMatrix, ...]
    normals: tuple[DraftVector, ...]
    fields: tuple[DraftVector, ...]
    weights: tuple[DraftWeights, ...]
    equations: tuple[DraftEquation, ...]
    observables: tuple[tuple[str, Node], ...]
    probes: tuple[tuple[str, Node], ...] = ()
    data: tuple[DraftData, ...] = ()
    traits: tuple[DraftTrait, ...] = ()
    axes: tuple[DraftAxis, ...] = ()
    latex: tuple[tuple[str, str], ...] = ()
    """LaTeX of names."""
    style: tuple[str, ...] = ()
    """Equivalent styles: "fields" declares several fields at once, "family" writes a member of a family."""
    responses: str = ""

    def trees(self) -> Iterator[Node]:
        """Every expression, in the order of the file."""
        for sector in self.sectors:
            yield sector.ratio
        for matrix in self.matrices:
            yield matrix.variance
        for vector in self.vectors():
            yield from vector.trees()
        for equation in self.equations:
            yield equation.value
        for _, value in self.observables:
            yield value
        for _, value in self.probes:
            yield value

    def mapped(self, change: Callable[[Node], Node]) -> Draft:
        """Return the draft with every node of every equation, observable and probe changed."""
        return replace(
            self,
            equations=tuple(replace(e, value=e.value.mapped(change)) for e in self.equations),
            observables=tuple((label, value.mapped(change)) for label, value in self.observables),
            probes=tuple((label, value.mapped(change)) for label, value in self.probes),
        )

    def mapped_everywhere(self, change: Callable[[Node], Node]) -> Draft:
        """Return the draft with every node changed, including those of ratios, variances, scales and laws."""
        return replace(
            self.mapped(change),
            sectors=tuple(DraftSector(s.name, s.ratio.mapped(change)) for s in self.sectors),
            matrices=tuple(m.mapped(change) for m in self.matrices),
            normals=tuple(v.mapped(change) for v in self.normals),
            fields=tuple(v.mapped(change) for v in self.fields),
            traits=tuple(v.mapped(change) for v in self.traits),
        )

    def names(self) -> list[str]:
        """Every declared name except those of axes, observables included."""
        names = [s.name for s in self.sectors] + [p.name for p in self.parameters]
        names += list(self.shapes()) + [v.name for v in self.vectors()]
        names += [d.name for d in self.data]
        return names + ([self.clock.name] if self.clock else []) + [label for label, _ in self.observables]

    def shapes(self) -> dict[str, tuple[str, str]]:
        """The row and column sectors of every random matrix and of all weights."""
        shapes = {m.name: (m.rows, m.columns) for m in self.matrices}
        return shapes | {w.name: (w.rows, w.columns) for w in self.weights}

    def free_name(self, wish: str) -> str:
        """Return an unused name similar to a preferred one."""
        taken = {*self.names(), *(axis.name for axis in self.axes)}
        return next(n for n in (wish, *(f"{wish}{k}" for k in range(2, 1000))) if n not in taken)

    def value(self, parameter: str) -> Fraction:
        return next(p.value for p in self.parameters if p.name == parameter)

    def with_value(self, parameter: str, value: int | Fraction) -> Draft:
        """Return the draft with a different default value of one parameter."""
        kept = tuple(replace(p, value=Fraction(value)) if p.name == parameter else p for p in self.parameters)
        return replace(self, parameters=kept)

    def size(self, axis: str) -> str | int:
        """Return the parameter or number that counts the labels of an axis."""
        return next(a.size for a in self.axes if a.name == axis)

    def counters(self) -> set[str]:
        """The parameters that count steps or labels, which a declaration cannot replace by numbers."""
        counters = {axis.counter for axis in self.axes if axis.counter}
        return counters | ({self.clock.steps} if self.clock is not None else set())

    def vectors(self) -> tuple[DraftVector, ...]:
        return (*self.normals, *self.fields, *self.traits)

    def vector(self, word: str) -> DraftVector:
        """Return the drawn vector, field or trait of that name."""
        return next(v for v in self.vectors() if v.name == word)


def pruned(draft: Draft) -> Draft:
    """Return the draft without unused equations, vectors, matrices, parameters and sectors."""
    while True:
        roots = [value for _, value in (*draft.observables, *draft.probes)]
        wanted = {node.leaf for tree in roots for node in tree.walk()}
        while True:
            more = {n.leaf for e in draft.equations if e.target in wanted for n in e.value.walk()} - wanted
            if not more:
                break
            wanted |= more
        equations = tuple(e for e in draft.equations if e.target in wanted)
        vectors = [v for v in draft.vectors() if v.name in wanted]
        used = {v.sector for v in vectors}
        used |= {sector for word, shape in draft.shapes().items() if word in wanted for sector in shape} | wanted
        inner = [s.ratio for s in draft.sectors if s.name in used]
        inner += [m.variance for m in draft.matrices if m.name in wanted]
        inner += [tree for v in vectors for tree in v.trees()]
        wanted |= {n.leaf for tree in inner for n in tree.walk()}
        wanted |= {v.given for v in draft.traits if v in vectors}
        clocked = (
            any(v.kind != "static" for v in vectors)
            or any(w.name in wanted for w in draft.weights)
            or any(m.kind == "fresh" and m.name in wanted for m in draft.matrices)
            or any(d.timed and d.name in wanted for d in draft.data)
        )
        clock = draft.clock if clocked else None
        if clock is not None:
            wanted |= {clock.steps}
        lines = {axis for v in vectors for axis in v.axes}
        lines |= {axis for d in draft.data if d.name in wanted for axis in d.axes}
        nodes = [n for e in equations for n in e.value.walk()] + [n for tree in roots for n in tree.walk()]
        lines |= {str(axis) for n in nodes if n.op == "relabel" for axis in n.args[1:]}
        axes = tuple(axis for axis in draft.axes if axis.name in lines)
        wanted |= {str(axis.size) for axis in axes}
        smaller = replace(
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
            axes=axes,
        )
        if smaller == draft:
            return draft
        draft = smaller
