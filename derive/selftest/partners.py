"""Transformations of a draft into a partner that must have the same numbers.

Every function takes a draft and a random source and returns the partner, or None if the transformation does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any, TypeVar

from derive.selftest.drafts import (
    ONE,
    QUARTER,
    Draft,
    DraftAxis,
    DraftEquation,
    DraftParameter,
    DraftSector,
    DraftVector,
    Node,
    add,
    at,
    call,
    mean,
    name,
    number,
    pruned,
    root,
    times,
)
from derive.selftest.drawing_traits import LAWS

Partner = Callable[[Draft, Random], Draft | None]
V = TypeVar("V", bound=DraftVector)
NONLINEAR = 99
"""The degree assigned to expressions that are not polynomials."""

WORDS = (
    "s tau row psi psi0 vector order u_1 jax np jnp jsp label labels when time times now steps step state rank size "
    "z r G I E S N Q O beta gamma zeta pi lamda Lambda x_each a_each base sites normals noise answer C R C_x_x R_x_x "
    "mean_x row_x in_x d_x old_x next_x history0 forward_pass training probe bulk here room share spikes watch rng xp "
    "special simulate self cls values arguments parameters print len sum range max min list dict object type id "
    "_ __x x1 X_ sin_ tanh_x Max_ t T D t_ hat_x i j k n p q f g h delta eta match case aleph Ångström été λ numerics "
    "derive sympy outer_ field_ data_ model Model_ MAP scalar_map a_matrix pivoted put one zero shape dtype key scan "
    "nodes tolerance normals wanted most begin move fields"
).split()
"""Names that an engine might use internally, and other legal names."""


def renamed(draft: Draft, rng: Random, words: Iterable[str] = ()) -> Draft | None:
    """Return the draft with every symbol renamed; `words` are further names to use."""
    old = draft.names()
    suffixed = [f"{word}{end}" for word in old for end in ("_1", "_each", "_late1", "_new", "_now", "T", "_0")]
    suffixed += [f"{start}_{word}" for word in old for start in ("u", "R", "C", "hat", "row", "mean", "d")]
    taken = {axis.name for axis in draft.axes}  # these stay as they are
    candidates = dict.fromkeys([*words, *WORDS, *old, *rng.sample(suffixed, min(len(suffixed), 30))])
    pool = [word for word in candidates if word not in taken]
    new = dict(zip(old, rng.sample(pool, len(old)), strict=True))
    if draft.observables and rng.random() < 0.3:  # observables may share names with other symbols
        new[rng.choice(draft.observables)[0]] = new[rng.choice(old)]
    labels = [new[label] for label, _ in draft.observables]
    return with_names(draft, new) if len(set(labels)) == len(labels) else None


def with_names(draft: Draft, new: dict[str, str]) -> Draft:
    """Return the draft with names replaced by a table."""

    def word(old: str) -> str:
        return new.get(old, old)

    def node(old: Node) -> Node:
        if old.op == "probe":
            return Node("probe", (old.args[0], word(str(old.args[1])), *old.args[2:]))
        return Node(old.op, (word(old.leaf), *old.args[1:])) if old.leaf else old

    def vector(old: V) -> V:
        return replace(old, name=word(old.name), sector=word(old.sector))

    clock = draft.clock
    if clock is not None:
        clock = replace(clock, name=word(clock.name), steps=word(clock.steps))
    changed = draft.mapped_everywhere(node)
    return replace(
        changed,
        sectors=tuple(DraftSector(word(s.name), s.ratio) for s in changed.sectors),
        parameters=tuple(replace(p, name=word(p.name)) for p in draft.parameters),
        clock=clock,
        matrices=tuple(
            replace(m, name=word(m.name), rows=word(m.rows), columns=word(m.columns)) for m in changed.matrices
        ),
        normals=tuple(map(vector, changed.normals)),
        fields=tuple(map(vector, changed.fields)),
        data=tuple(replace(d, name=word(d.name)) for d in draft.data),
        traits=tuple(replace(vector(v), given=word(v.given)) for v in changed.traits),
        weights=tuple(replace(w, name=word(w.name), rows=word(w.rows), columns=word(w.columns)) for w in draft.weights),
        equations=tuple(replace(e, target=word(e.target)) for e in changed.equations),
        observables=tuple((word(label), value) for label, value in changed.observables),
        axes=tuple(replace(a, size=word(a.counter) if a.counter else a.size) for a in draft.axes),
        latex=tuple((word(name), text) for name, text in draft.latex),
    )


def reordered(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with declarations, equations and terms permuted; observables and probes keep their order."""

    def shuffled(things: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(rng.sample(things, len(things)))

    def node(old: Node) -> Node:
        return Node(old.op, shuffled(old.args)) if old.op in ("sum", "product") else old

    mixed = draft.mapped(node)
    return replace(
        mixed,
        sectors=(draft.sectors[0], *shuffled(draft.sectors[1:])),
        parameters=shuffled(draft.parameters),
        matrices=shuffled(draft.matrices),
        normals=shuffled(draft.normals),
        fields=shuffled(draft.fields),
        weights=shuffled(draft.weights),
        data=shuffled(draft.data),
        traits=shuffled(draft.traits),
        equations=shuffled(mixed.equations),
    )


# intermediates


def _places(draft: Draft, fits: Callable[[Node], bool]) -> list[tuple[int, Node]]:
    """Return nodes inside equations of fields, outside sums over the past, with the index of their equation."""
    places = []

    def look(node: Node, index: int) -> None:
        if fits(node):
            places.append((index, node))
        if node.op not in ("past", "cases"):
            for child in node.children:
                look(child, index)

    targets = {v.name for v in draft.fields}
    for index, equation in enumerate(draft.equations):
        if equation.target in targets:
            look(equation.value, index)
    return places


def _swapped(node: Node, old: Node, new: Node) -> Node:
    """Return the tree with every occurrence of a node replaced, outermost first."""
    if node == old:
        return new
    return node.rebuilt(lambda child: _swapped(child, old, new))


def _sector(draft: Draft, node: Node) -> str | None:
    """Return the sector of a vector; None for a scalar."""
    if node.op == "at":
        return draft.vector(node.leaf).sector
    if node.op == "apply":
        return _shape(draft, node.children[0])[0]
    if node.op in ("mean", "overlap", "softmax", "index"):
        return None
    return next((found for found in (_sector(draft, child) for child in node.children) if found is not None), None)


def _axes(draft: Draft, node: Node) -> set[str]:
    """Return the label axes of a vector or number."""
    if node.op == "at":
        return set(draft.vector(node.leaf).axes)
    if node.op in ("data", "entries"):
        return set(next(d.axes for d in draft.data if d.name == node.leaf))
    if node.op == "mix":
        rows, columns = next(d.axes for d in draft.data if d.name == node.leaf)[:: -1 if node.args[2] else 1]
        return (_axes(draft, node.children[-1]) - {columns}) | {rows}
    if node.op == "total":
        return set()
    if node.op == "apply" and node.children[0].op == "outer":  # labels of the outer product are summed over
        return _axes(draft, node.children[1])
    axes = set().union(*(_axes(draft, child) for child in node.children))
    if node.op == "relabel":
        return (axes - {str(node.args[1])}) | {str(node.args[2])}
    return axes - {str(node.args[1])} if node.op == "total_over" else axes


def _shape(draft: Draft, node: Node) -> tuple[str, str]:
    if node.op == "turned":
        rows, columns = _shape(draft, node.children[0])
        return columns, rows
    if node.op in ("matrix", "fresh", "weights"):
        return draft.shapes()[node.leaf]
    if node.op == "matmul":
        return _shape(draft, node.children[0])[0], _shape(draft, node.children[-1])[1]
    if node.op == "outer":
        left, right = (_sector(draft, child) for child in node.children)
        return str(left), str(right)
    if node.op == "weighed":
        return _shape(draft, node.children[1])
    if node.op == "diag":
        sector = str(_sector(draft, node.children[0]))
        return sector, sector
    return _shape(draft, next(filter(_is_matrix, node.children)))


def _is_matrix(node: Node) -> bool:
    if node.op in ("sum", "product"):
        return any(map(_is_matrix, node.children))
    return node.op in ("turned", "matrix", "fresh", "weights", "matmul", "outer", "weighed", "diag")


def named(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with a subexpression as a field of its own."""
    # a product with a matrix has its size beside it: the two go together
    kinds = ("sum", "product", "call", "cases", "power")
    places = [
        (index, node)
        for index, node in _places(draft, lambda n: n.op in kinds)
        if not _is_matrix(node) and _sector(draft, node) is not None and not draft.equations[index].starts
    ]
    if not places:
        return None
    index, node = rng.choice(places)
    equation = draft.equations[index]
    word = draft.free_name("part")
    timed = equation.time != ""
    reference = at(word, 0 if timed else None)
    kind = "timed" if timed else "static"
    vector = DraftVector(word, str(_sector(draft, node)), kind, axes=tuple(sorted(_axes(draft, node))))
    value = reference if node == equation.value else _swapped(equation.value, node, reference)
    equations = (
        *draft.equations[:index],
        DraftEquation(word, "t" if timed else "", node),
        replace(equation, value=value),
        *draft.equations[index + 1 :],
    )
    return replace(draft, fields=(*draft.fields, vector), equations=equations)


def inlined(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with a field replaced by its equation wherever it is used at equal time."""
    targets = [e.target for e in draft.equations]
    options = []
    for equation in draft.equations:
        word = equation.target
        if equation.time not in ("t", "") or targets.count(word) > 1 or word not in {v.name for v in draft.fields}:
            continue
        if _has(equation.value, "past") or _sector(draft, equation.value) is None:
            continue
        if _axes(draft, equation.value) != set(draft.vector(word).axes):  # it is spread over labels
            continue
        used = at(word, 0 if equation.time == "t" else None)
        here = [e for e in draft.equations if used in e.value.walk() and _may_inline(draft, e, used, equation.value)]
        if here:
            options.append((equation, used, here))
    if not options:
        return None
    equation, used, here = rng.choice(options)
    where = rng.choice(here)
    changed = replace(where, value=_swapped(where.value, used, equation.value))
    return replace(draft, equations=tuple(changed if e is where else e for e in draft.equations))


def _may_inline(draft: Draft, where: DraftEquation, used: Node, value: Node) -> bool:
    """Return whether a field can be inlined: its matrix products are only added and scaled, and no sum over the past or
    starting value uses it.
    """
    if where.starts or where.target not in {v.name for v in draft.fields}:
        return False
    closed: tuple[str, ...] = ("past", "mean", "overlap", "total", "total_over", "relabel", "mix")
    if _has(value, "apply"):
        closed += ("call", "cases", "power", "root")

    def fits(node: Node) -> bool:
        if node == used:
            return True
        if node.op in closed and used in node.walk():
            return False
        if node.op == "product" and _has(value, "apply"):
            vectors = [c for c in node.children if _sector(draft, c) is not None]
            if used in node.walk() and len(vectors) > 1:
                return False
        return all(map(fits, node.children))

    return fits(where.value)


def _has(node: Node, op: str) -> bool:
    return any(n.op == op for n in node.walk())


def split(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with W (a + b) as W a + W b."""
    places = _places(draft, lambda n: n.op == "apply" and n.children[1].op == "sum")
    if not places:
        return None
    index, node = rng.choice(places)
    matrix, vector = node.children
    equation = draft.equations[index]
    value = _swapped(equation.value, node, add(*(matrix @ part for part in vector.children)))
    changed = replace(equation, value=value)
    return replace(draft, equations=(*draft.equations[:index], changed, *draft.equations[index + 1 :]))


def copied(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with a copy of a field or a drawn vector in place of the original in some equations."""
    candidates = (*draft.fields, *draft.normals)
    if not candidates:
        return None
    chosen = rng.choice(candidates)
    word = draft.free_name("copy")
    copy = replace(chosen, name=word, scale=ONE, law=None)
    used = [n for tree in draft.trees() for n in tree.walk() if n.op == "at" and n.leaf == chosen.name]
    if any(n.children for n in used):  # one time alone
        return None

    def node(old: Node) -> Node:
        return Node("at", (word, old.args[1])) if old in used else old

    delay = 0 if chosen.kind == "timed" else None
    equations = tuple(
        replace(e, value=e.value.mapped(node)) if rng.random() < 0.5 and not e.starts else e for e in draft.equations
    )
    return replace(
        draft,
        fields=(*draft.fields, copy),
        equations=(DraftEquation(word, "t" if delay == 0 else "", at(chosen.name, delay)), *equations),
    )


# Gaussian matrices


def _substituted(draft: Draft, word: str, new: Callable[[Node], Node]) -> Draft:
    """Return the draft with every use of a random matrix replaced."""

    def node(old: Node) -> Node:
        return new(old) if old.op in ("matrix", "fresh") and old.leaf == word else old

    return draft.mapped(node)


def two_matrices(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with a Gaussian matrix as the sum of two independent ones whose variances add."""
    if not draft.matrices:
        return None
    chosen = rng.choice(draft.matrices)
    words = [draft.free_name(f"{chosen.name}a"), draft.free_name(f"{chosen.name}b")]
    share = rng.choice((Fraction(1, 4), Fraction(16, 25)))
    halves = [
        replace(chosen, name=w, variance=number(v) * chosen.variance)
        for w, v in zip(words, (share, 1 - share), strict=True)
    ]
    changed = _substituted(
        draft, chosen.name, lambda n: Node("sum", tuple(Node(n.op, (w, *n.args[1:])) for w in words))
    )
    return replace(changed, matrices=(*(m for m in draft.matrices if m is not chosen), *halves))


def variance_moved(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with a variance moved into the coefficients of the equations."""
    if not draft.matrices:
        return None
    chosen = rng.choice(draft.matrices)
    factor = rng.choice((Fraction(1, 2), Fraction(3), Fraction(2, 3)))
    scaled = replace(chosen, variance=number(1 / factor**2) * chosen.variance)
    changed = _substituted(draft, chosen.name, lambda n: Node("product", (number(factor), n)))
    return replace(changed, matrices=tuple(scaled if m is chosen else m for m in draft.matrices))


def transposed(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with a matrix declared as its transpose and used transposed."""
    fitting = [m for m in draft.matrices if m.kind != "goe"]
    if not fitting:
        return None
    chosen = rng.choice(fitting)
    turned_matrix = replace(chosen, rows=chosen.columns, columns=chosen.rows)
    changed = _substituted(draft, chosen.name, lambda matrix: matrix.T)

    def twice(node: Node) -> Node:
        return node.children[0].children[0] if node.op == "turned" and node.children[0].op == "turned" else node

    changed = changed.mapped(twice)
    return replace(changed, matrices=tuple(turned_matrix if m is chosen else m for m in draft.matrices))


def other_base(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with another sector as the base."""
    if len(draft.sectors) < 2:
        return None
    chosen = rng.choice(draft.sectors[1:])
    sectors = [DraftSector(chosen.name)]
    sectors += [DraftSector(s.name, s.ratio / chosen.ratio) for s in draft.sectors if s is not chosen]
    return replace(draft, sectors=tuple(sectors))


def groups_split(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with a group of sites split into two groups of equal trait value."""
    fitting = [v for v in draft.traits if v.values]
    if not fitting:
        return None
    chosen = rng.choice(fitting)
    k = rng.randrange(len(chosen.values))
    values = (*chosen.values, chosen.values[k])
    equal = (number(Fraction(1, len(chosen.values))),) * len(chosen.values)
    shares = list(chosen.shares or equal)
    shares.append(QUARTER * shares[k])
    shares[k] = number(Fraction(3, 4)) * shares[k]
    finer = replace(chosen, values=values, shares=tuple(shares))
    return replace(draft, traits=tuple(finer if v is chosen else v for v in draft.traits))


# coefficients


def with_numbers(draft: Draft, words: Collection[str]) -> Draft:
    """Return the draft with some parameters replaced by their values."""
    values = {p.name: number(p.value) for p in draft.parameters if p.name in words}

    def node(old: Node) -> Node:
        return values.get(old.leaf, old) if old.op == "name" else old

    filled = draft.mapped_everywhere(node)
    return pruned(replace(filled, parameters=tuple(p for p in draft.parameters if p.name not in values)))


def numbers(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with all parameters replaced by numbers, except counters of steps and labels."""
    return with_numbers(draft, {p.name for p in draft.parameters} - draft.counters())


def some_numbers(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with some of the parameters replaced by numbers."""
    free = sorted({p.name for p in draft.parameters} - draft.counters())
    return with_numbers(draft, rng.sample(free, rng.randint(1, len(free)))) if free else None


def steps_written_out(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """Return the draft with two or three steps, and the same with functions of time as interpolating polynomials."""
    clock = draft.clock
    if clock is None or any(d.timed and d.values is not None for d in draft.data):
        return None
    steps = min(int(draft.value(clock.steps)), 3)
    short = draft.with_value(clock.steps, steps)
    times_of_steps = range(steps + 1)

    def at_time(node: Node, time: int) -> Node:
        return node.mapped(lambda old: number(time) if old == name(clock.name) else old)

    def polynomial(node: Node) -> Node:
        """Return the Lagrange interpolation polynomial in the clock through the values at all times."""
        terms = []
        for k in times_of_steps:
            others = [j for j in times_of_steps if j != k]
            below = Fraction(1)
            for j in others:
                below *= k - j
            factors = [name(clock.name) + number(-j) for j in others]
            terms.append(times(number(1 / below), at_time(node, k), *factors))
        return add(*terms)

    def written(node: Node) -> Node:
        """Return the tree with maximal scalars that are not polynomials in time replaced by polynomials."""
        if node.op in ("at", "weights", "fresh", "data", "past"):
            return node
        if _is_scalar(node) and any(inner == name(clock.name) for inner in node.walk()):
            return node if node == name(clock.name) else polynomial(node)
        return node.rebuilt(written)

    equations = tuple(replace(e, value=written(e.value)) for e in short.equations)
    return None if equations == short.equations else (short, replace(short, equations=equations))


def _is_scalar(node: Node) -> bool:
    """Return whether a node consists of numbers, parameters, sizes and time alone."""
    kept = ("number", "name", "sum", "product", "power", "root", "call", "cases", "compare")
    return all(inner.op in kept for inner in node.walk())


def through_zero(draft: Draft) -> list[str]:
    """Return parameters that may be zero and in which the declaration is smooth at zero."""
    free = [p for p in draft.parameters if p.domain in ("real", "nonnegative") or p.domain.startswith("Domain(-")]
    uneven = {n.leaf for tree in draft.trees() for part in tree.walk() if _is_uneven(part) for n in part.walk()}
    return [p.name for p in free if p.name not in uneven]


def at_zero(draft: Draft, word: str) -> tuple[Draft, Draft]:
    """Return the draft with a parameter at zero, and at a negligibly small number."""
    return draft.with_value(word, 0), draft.with_value(word, Fraction(1, 10**10))


def near_zero(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """Return the pair of `at_zero` for one of the parameters; None if no parameter may be zero."""
    fitting = through_zero(draft)
    return at_zero(draft, rng.choice(fitting)) if fitting else None


def _is_uneven(node: Node) -> bool:
    """Return whether an operation may have a jump or a cusp."""
    if node.op == "call":
        return node.args[0] in ("sign", "Heaviside", "KroneckerDelta", "Min", "Max")
    return node.op in ("cases", "compare", "root") or (node.op == "power" and node.args[1] != 2)


# two drafts that are both new


def one_value(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """Return the draft with equal values of a trait, and the draft with that number in place of the trait."""
    fitting = [v for v in draft.traits if v.values]
    if not fitting:
        return None
    chosen = rng.choice(fitting)
    value = chosen.values[0]
    constant = replace(chosen, values=(value,) * len(chosen.values))

    def node(old: Node) -> Node:
        if old.op == "mean" and not any(n.op == "at" for n in old.walk()):  # it was of this trait alone
            return old.children[0]
        return value if old.op == "at" and old.leaf == chosen.name else old

    plain = pruned(replace(draft.mapped(node), traits=tuple(v for v in draft.traits if v is not chosen)))
    return replace(draft, traits=tuple(constant if v is chosen else v for v in draft.traits)), plain


def by_moments(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """Return the draft with non-normal vectors, and with normal ones of equal mean and variance, if all laws are
    linear."""
    chosen = {v.name: v.law for v in draft.normals if v.law is not None}
    if not chosen or not set(chosen.values()) <= set(LAWS) or not _linear(draft):
        return None

    def node(old: Node) -> Node:
        if old.op != "at" or old.leaf not in chosen:
            return old
        center, variance = LAWS[chosen[old.leaf]]
        return number(center) + root(number(variance)) * old

    normals = tuple(replace(v, law=None) for v in draft.normals)
    equations = tuple(replace(e, value=e.value.mapped(node)) for e in draft.equations)
    probes = tuple((label, value.mapped(node)) for label, value in draft.probes)
    kept = tuple((label, value) for label, value in draft.observables if not set(chosen) & _leaves(value))
    if not kept:
        return None
    original = replace(draft, observables=kept)
    return original, replace(original, normals=normals, equations=equations, probes=probes)


def _leaves(tree: Node) -> set[str]:
    return {node.leaf for node in tree.walk() if node.op == "at"}


def _linear(draft: Draft) -> bool:
    """Return whether all laws are linear and all means at most quadratic."""

    def order(node: Node) -> int:
        """Return the degree in the vectors of one site."""
        if node.op == "at":
            return int(not any(node.leaf == v.name for v in draft.traits))
        if node.op in ("mean", "overlap", "number", "name"):
            return 0
        below = [order(child) for child in node.children]
        if node.op == "product":
            return sum(below)
        if any(below) and node.op in ("call", "cases", "compare", "root", "diag"):
            return NONLINEAR
        if node.op == "power":
            return below[0] * (node.whole if node.whole and node.whole > 0 else NONLINEAR)
        if node.op == "outer":
            return max(below)
        return max(below, default=0)

    trees = [e.value for e in draft.equations] + [value for _, value in (*draft.observables, *draft.probes)]
    means = [node for tree in trees for node in tree.walk() if node.op in ("mean", "overlap")]
    inside = [node.children[0] if node.op == "mean" else times(*node.children) for node in means]
    within = [part for inner in inside for part in (inner.children if inner.op == "sum" else (inner,))]
    fine = all(order(part) in (0, 2) for part in within)
    return fine and all(order(e.value) <= 1 for e in draft.equations) and all(order(p) <= 1 for _, p in draft.probes)


def zero_parameter(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """Return the draft with a term times a zero parameter, and the draft without the term."""
    places = []
    for index, equation in enumerate(draft.equations):
        if equation.value.op == "sum":
            places += [(index, k) for k in range(len(equation.value.children))]
    if not places:
        return None
    index, k = rng.choice(places)
    equation = draft.equations[index]
    terms = equation.value.children
    word = draft.free_name("off")
    without = replace(equation, value=add(*terms[:k], *terms[k + 1 :]))
    switched = replace(equation, value=Node("sum", (*terms[:k], name(word) * terms[k], *terms[k + 1 :])))

    def put(changed: DraftEquation) -> tuple[DraftEquation, ...]:
        return (*draft.equations[:index], changed, *draft.equations[index + 1 :])

    with_zero = replace(
        draft, equations=put(switched), parameters=(*draft.parameters, DraftParameter(word, Fraction(0)))
    )
    left_out = pruned(replace(draft, equations=put(without)))
    kept = {v.name for v in left_out.vectors()}
    kept |= {d.name for d in left_out.data}
    held = ("at", "data", "mix", "entries")
    if not all({n.leaf for n in value.walk() if n.op in held} <= kept for _, value in draft.observables):
        return None
    return with_zero, left_out


def without_axis(draft: Draft, axis: str) -> Draft:
    """Return the draft without the labels along an axis that no data have."""

    def vector(old: V) -> V:
        return replace(old, axes=tuple(a for a in old.axes if a != axis))

    def node(old: Node) -> Node:
        if old.op == "softmax" and old.args[1] == axis:
            return ONE
        if old.op in ("total_over", "relabel") and axis in old.args[1:]:
            return old.children[0]
        inner = old.children[0] if old.op in ("total", "each") else None
        return inner if inner is not None and not _axes(plain, inner) else old

    plain = replace(
        draft,
        axes=tuple(a for a in draft.axes if a.name != axis),
        normals=tuple(map(vector, draft.normals)),
        fields=tuple(map(vector, draft.fields)),
    )
    return pruned(plain.mapped(node))


def one_class(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """Return the draft with one label, and the draft without labels."""
    clock = draft.clock
    if clock is None or len(draft.axes) > 1 or draft.data:
        return None
    for axis in draft.axes:
        if not axis.counter:
            return None
        return draft.with_value(axis.counter, 1), without_axis(draft, axis.name)
    unlabelled = {v.name for v in draft.vectors() if v.kind == "static"}
    for node in (n for tree in draft.trees() for n in tree.walk()):
        sides = [{n.leaf for n in child.walk() if n.op == "at"} <= unlabelled for child in node.children]
        if node.op == "outer" and any(sides):  # labels are summed over together: a side without them is another matrix
            return None
        if node.op in ("alignment", "diag", "probe"):
            return None
    word, along = draft.free_name("C"), draft.free_name("along_classes")

    def labelled(v: DraftVector) -> DraftVector:
        return replace(v, axes=(along,)) if v.kind == "timed" else v

    labelled_draft = replace(
        draft,
        parameters=(*draft.parameters, DraftParameter(word, Fraction(1), "whole_positive")),
        axes=(DraftAxis(along, word),),
        normals=tuple(map(labelled, draft.normals)),
        fields=tuple(map(labelled, draft.fields)),
    )
    return labelled_draft, draft


def longer(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with one or two more steps; None if a probe at a fixed time or data that end would change."""
    early = any(time is n.args[1] and time.op != "name" for n in _timed(draft) for time in n.children)
    if draft.clock is None or early or any(d.timed and d.values is not None for d in draft.data):
        return None
    return draft.with_value(draft.clock.steps, draft.value(draft.clock.steps) + rng.choice((1, 2)))


def without_alignments(draft: Draft) -> tuple[tuple[str, Node], ...]:
    """Return the draft with observables of the training level alone."""
    return tuple((label, value) for label, value in draft.observables if value.op != "alignment")


def _timed(draft: Draft) -> list[Node]:
    """Return all nodes with a time in a probe."""
    return [n for _, value in draft.probes for n in value.walk() if n.op in ("at", "weights", "fresh")]


def sampled(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with an additional nonlinear observable of independent vectors that forces sampling."""
    vectors = [DraftVector(draft.free_name(f"aside{letter}"), draft.sectors[0].name, "static") for letter in "abcd"]
    field = DraftVector(draft.free_name("bent"), draft.sectors[0].name, "static")
    equation = DraftEquation(field.name, "", times(*(call("tanh", at(vector.name, None)) for vector in vectors)))
    observable = (draft.free_name("extra"), mean(at(field.name, None) ** 2))
    return replace(
        draft,
        normals=(*draft.normals, *vectors),
        fields=(*draft.fields, field),
        equations=(*draft.equations, equation),
        observables=(*draft.observables, observable),
    )


def other_side(draft: Draft, rng: Random) -> Draft | None:
    """Return the draft with K^T K as K K^T in every probe of this kind; products with other terms do not qualify."""

    def node(old: Node) -> Node:
        if old.op == "matmul" and len(old.children) == 2:
            left, right = old.children
            if left == right.T or right == left.T:
                return Node("matmul", (right, left))
        return old

    def alone(value: Node) -> bool:
        if value.op in ("sum", "probe"):
            return False
        return value.op != "product" or all(map(alone, filter(_is_matrix, value.children)))

    probes = tuple((label, value.mapped(node) if alone(value) else value) for label, value in draft.probes)
    return None if probes == draft.probes else replace(draft, probes=probes)
