"""From a draft to one that must have the same numbers.

Every function takes a draft and a source of randomness and returns the partner, or None where the draft has nothing
to change in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

from derive.selftest.drafts import (
    Clock,
    Draft,
    Equation,
    Node,
    Parameter,
    Sector,
    Vector,
    add,
    apply,
    at,
    call,
    mean,
    name,
    number,
    over,
    power,
    pruned,
    root,
    times,
    turned,
)
from derive.selftest.drawing_traits import LAWS

Partner = Callable[[Draft, Random], Draft | None]

WORDS = (
    "s tau row psi psi0 vector order u_1 jax np jnp jsp label labels when time times now steps step state rank size "
    "z r G I E S N Q O beta gamma zeta pi lamda Lambda x_each a_each base sites normals noise answer C R C_x_x R_x_x "
    "mean_x row_x in_x d_x old_x next_x history0 forward_pass training probe bulk here room share spikes watch rng xp "
    "special simulate self cls values arguments parameters print len sum range max min list dict object type id "
    "_ __x x1 X_ sin_ tanh_x Max_ t T D t_ hat_x i j k n p q f g h delta eta match case aleph Ångström été λ numerics "
    "derive sympy outer_ field_ data_ model Model_ MAP scalar_map a_matrix pivoted put one zero shape dtype key scan "
    "nodes tolerance normals wanted most begin move fields"
).split()
"""Names that an engine might use itself, and others that are merely legal."""


def renamed(draft: Draft, rng: Random, words: Iterable[str] = ()) -> Draft | None:
    """Every symbol under another name; `words` are further names to take."""
    old = draft.names()
    made = [f"{word}{end}" for word in old for end in ("_1", "_each", "_late1", "_new", "_now", "T", "_0")]
    made += [f"{start}_{word}" for word in old for start in ("u", "R", "C", "hat", "row", "mean", "d")]
    pool = list(dict.fromkeys([*words, *WORDS, *old, *rng.sample(made, min(len(made), 30))]))
    new = dict(zip(old, rng.sample(pool, len(old)), strict=True))
    if draft.observables and rng.random() < 0.3:  # what is observed may be called like anything else
        new[rng.choice(draft.observables)[0]] = new[rng.choice(old)]
    labels = [new[label] for label, _ in draft.observables]
    return with_names(draft, new) if len(set(labels)) == len(labels) else None


def with_names(draft: Draft, new: dict[str, str]) -> Draft:
    """The draft with names replaced as the table says."""

    def node(old: Node) -> Node:
        if old.op == "weights":
            return Node("weights", (new.get(old.leaf, old.leaf), new.get(str(old.args[1]), old.args[1])))
        if old.op in ("softmax", "total_over"):
            return Node(old.op, (old.args[0], new.get(str(old.args[1]), old.args[1])))
        return Node(old.op, (new.get(old.leaf, old.leaf), *old.args[1:])) if old.leaf else old

    def word(old: str) -> str:
        return new.get(old, old)

    def vector(old: Vector) -> Vector:
        return replace(old, name=word(old.name), sector=word(old.sector), labels=word(old.labels))

    clock = draft.clock
    if clock is not None:
        clock = replace(clock, name=word(clock.name), steps=word(clock.steps), classes=word(clock.classes))
    changed = draft.mapped(node)
    return replace(
        changed,
        sectors=tuple(Sector(word(s.name), s.ratio.mapped(node)) for s in draft.sectors),
        parameters=tuple(replace(p, name=word(p.name)) for p in draft.parameters),
        clock=clock,
        matrices=tuple(
            replace(m, name=word(m.name), rows=word(m.rows), columns=word(m.columns)) for m in draft.matrices
        ),
        normals=tuple(map(vector, draft.normals)),
        fields=tuple(map(vector, draft.fields)),
        data=tuple(replace(d, name=word(d.name), axes=tuple(map(word, d.axes))) for d in draft.data),
        traits=tuple(replace(v, name=word(v.name), sector=word(v.sector)) for v in draft.traits),
        weights=tuple(replace(w, name=word(w.name), rows=word(w.rows), columns=word(w.columns)) for w in draft.weights),
        equations=tuple(replace(e, target=word(e.target)) for e in changed.equations),
        observables=tuple((word(label), value) for label, value in changed.observables),
    )


def reordered(draft: Draft, rng: Random) -> Draft | None:
    """Declarations, equations and terms in another order; observables and probes stay, for they are compared in it."""

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
    """Nodes inside equations of fields, outside sums over the past, with the number of their equation."""
    found = []

    def look(node: Node, index: int) -> None:
        if fits(node):
            found.append((index, node))
        if node.op != "past":
            for child in node.children:
                look(child, index)

    targets = {v.name for v in draft.fields}
    for index, equation in enumerate(draft.equations):
        if equation.target in targets:
            look(equation.value, index)
    return found


def _swapped(node: Node, old: Node, new: Node) -> Node:
    """The tree with one node replaced wherever it stands, the largest first."""
    if node == old:
        return new
    args = tuple(_swapped(arg, old, new) if isinstance(arg, Node) else arg for arg in node.args)
    return Node(node.op, args)


def _sector(draft: Draft, node: Node) -> str | None:
    """The sector of a vector; None for a scalar."""
    if node.op == "at":
        return draft.vector(node.leaf).sector
    if node.op == "apply":
        return _shape(draft, node.children[0])[0]
    if node.op == "mean":
        return None
    return next((found for found in (_sector(draft, child) for child in node.children) if found is not None), None)


def _labels(draft: Draft, node: Node) -> set[str]:
    """The parameters that count the labels of a vector or number, if they are not those of the classes."""
    if node.op == "at":
        return {draft.vector(node.leaf).labels} - {""}
    if node.op in ("data", "mix"):
        axes = next(d.axes for d in draft.data if d.name == node.leaf)
        return {axes[-1] if node.op == "mix" and node.args[2] else axes[0]}
    if node.op == "total":
        return set()
    found = set().union(*(_labels(draft, child) for child in node.children))
    return found - {str(node.args[1])} if node.op == "total_over" else found


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
    return _shape(draft, next(filter(_is_matrix, node.children)))


def _is_matrix(node: Node) -> bool:
    if node.op in ("sum", "product"):
        return any(map(_is_matrix, node.children))
    return node.op in ("turned", "matrix", "fresh", "weights", "matmul", "outer", "weighed")


def named(draft: Draft, rng: Random) -> Draft | None:
    """A part of an equation as a field of its own."""
    kinds = ("sum", "product", "call", "power")  # a product with a matrix has its size beside it: the two go together
    places = [
        (index, node)
        for index, node in _places(draft, lambda n: n.op in kinds)
        if _sector(draft, node) is not None
        and draft.equations[index].time not in ("0", "1")
        and len(_labels(draft, node)) < 2
    ]
    if not places:
        return None
    index, node = rng.choice(places)
    equation = draft.equations[index]
    word = draft.free_name("part")
    timed = equation.time != ""
    made = at(word, 0 if timed else None)
    kind = "timed" if timed else "static"
    vector = Vector(word, str(_sector(draft, node)), kind, labels="".join(_labels(draft, node)))
    value = made if node == equation.value else _swapped(equation.value, node, made)
    equations = (
        *draft.equations[:index],
        Equation(word, "t" if timed else "", node),
        replace(equation, value=value),
        *draft.equations[index + 1 :],
    )
    return replace(draft, fields=(*draft.fields, vector), equations=equations)


def inlined(draft: Draft, rng: Random) -> Draft | None:
    """A field that has one equation at all times, written out where it is used at the same time."""
    targets = [e.target for e in draft.equations]
    options = []
    for equation in draft.equations:
        word = equation.target
        if equation.time not in ("t", "") or targets.count(word) > 1 or word not in {v.name for v in draft.fields}:
            continue
        if _has(equation.value, "past") or _sector(draft, equation.value) is None:
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


def _may_inline(draft: Draft, where: Equation, used: Node, value: Node) -> bool:
    """Products with matrices may only be added and scaled; nothing is put into sums over the past or starts."""
    if where.time in ("0", "1") or where.target not in {v.name for v in draft.fields}:
        return False
    closed = ("past", "mean") if not _has(value, "apply") else ("past", "mean", "call", "power")

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
    """W (a + b) as W a + W b."""
    places = _places(draft, lambda n: n.op == "apply" and n.children[1].op == "sum")
    if not places:
        return None
    index, node = rng.choice(places)
    matrix, vector = node.children
    equation = draft.equations[index]
    value = _swapped(equation.value, node, add(*(apply(matrix, part) for part in vector.children)))
    changed = replace(equation, value=value)
    return replace(draft, equations=(*draft.equations[:index], changed, *draft.equations[index + 1 :]))


def copied(draft: Draft, rng: Random) -> Draft | None:
    """A copy of a field or a normal vector, used in place of the original in some equations."""
    candidates = (*draft.fields, *draft.normals)
    if not candidates:
        return None
    chosen = rng.choice(candidates)
    word = draft.free_name("copy")
    timed = draft.clock is not None and chosen.kind != "static"
    delay = 0 if chosen.kind == "timed" else None
    made = Vector(word, chosen.sector, "timed" if timed else "static", labels=chosen.labels)

    def node(old: Node) -> Node:
        if old.op == "at" and old.leaf == chosen.name:
            kept = old.args[1]
            assert kept is None or isinstance(kept, int)
            return at(word, kept if chosen.kind == "timed" else (0 if timed else None))
        return old

    # a vector drawn once per class is there at all times, but a copy of it has times, and none before the first
    if chosen.kind == "by_class" and any(_has(e.value, "past") or e.time == "0" for e in draft.equations):
        return None
    equations = tuple(
        replace(e, value=e.value.mapped(node)) if rng.random() < 0.5 and (e.time != "" or not timed) else e
        for e in draft.equations
    )
    return replace(
        draft,
        fields=(*draft.fields, made),
        equations=(Equation(word, "t" if timed else "", at(chosen.name, delay)), *equations),
    )


# Gaussian matrices


def _substituted(draft: Draft, word: str, new: Callable[[Node], Node]) -> Draft:
    """The draft with every use of a random matrix replaced."""

    def node(old: Node) -> Node:
        return new(old) if old.op in ("matrix", "fresh") and old.leaf == word else old

    return draft.mapped(node)


def two_matrices(draft: Draft, rng: Random) -> Draft | None:
    """A Gaussian matrix as the sum of two independent ones with variances that add."""
    if not draft.matrices:
        return None
    chosen = rng.choice(draft.matrices)
    words = [draft.free_name(f"{chosen.name}a"), draft.free_name(f"{chosen.name}b")]
    share = rng.choice((Fraction(1, 4), Fraction(16, 25)))
    made = [
        replace(chosen, name=w, variance=chosen.variance * v) for w, v in zip(words, (share, 1 - share), strict=True)
    ]
    changed = _substituted(
        draft, chosen.name, lambda n: Node("sum", tuple(Node(n.op, (w, *n.args[1:])) for w in words))
    )
    return replace(changed, matrices=(*(m for m in draft.matrices if m is not chosen), *made))


def variance_moved(draft: Draft, rng: Random) -> Draft | None:
    """A variance moved into the factor of the equations."""
    if not draft.matrices:
        return None
    chosen = rng.choice(draft.matrices)
    factor = rng.choice((Fraction(1, 2), Fraction(3), Fraction(2, 3)))
    made = replace(chosen, variance=chosen.variance / factor**2)
    changed = _substituted(draft, chosen.name, lambda n: Node("product", (number(factor), n)))
    return replace(changed, matrices=tuple(made if m is chosen else m for m in draft.matrices))


def transposed(draft: Draft, rng: Random) -> Draft | None:
    """The transpose declared, and used transposed."""
    fitting = [m for m in draft.matrices if m.kind != "goe"]
    if not fitting:
        return None
    chosen = rng.choice(fitting)
    made = replace(chosen, rows=chosen.columns, columns=chosen.rows)
    changed = _substituted(draft, chosen.name, turned)

    def twice(node: Node) -> Node:
        return node.children[0].children[0] if node.op == "turned" and node.children[0].op == "turned" else node

    changed = changed.mapped(twice)
    return replace(changed, matrices=tuple(made if m is chosen else m for m in draft.matrices))


def other_base(draft: Draft, rng: Random) -> Draft | None:
    """Another sector as the first."""
    if len(draft.sectors) < 2:
        return None
    chosen = rng.choice(draft.sectors[1:])
    sectors = [Sector(chosen.name)]
    sectors += [Sector(s.name, over(s.ratio, chosen.ratio)) for s in draft.sectors if s is not chosen]
    return replace(draft, sectors=tuple(sectors))


def groups_split(draft: Draft, rng: Random) -> Draft | None:
    """The sites with one value of a trait as two groups with the same value."""
    if not draft.traits:
        return None
    chosen = rng.choice(draft.traits)
    k = rng.randrange(len(chosen.values))
    values = (*chosen.values, chosen.values[k])
    shares = list((*chosen.shares, chosen.shares[k] / 4))
    shares[k] *= Fraction(3, 4)
    made = replace(chosen, values=values, shares=tuple(shares))
    return replace(draft, traits=tuple(made if v is chosen else v for v in draft.traits))


# two drafts that are both new


def one_value(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """A trait whose values are all the same, and that number."""
    if not draft.traits:
        return None
    chosen = rng.choice(draft.traits)
    value = chosen.values[0]
    made = replace(chosen, values=(value,) * len(chosen.values))

    def node(old: Node) -> Node:
        if old.op == "mean" and not any(n.op == "at" for n in old.walk()):  # it was of this trait alone
            return old.children[0]
        return number(value) if old.op == "at" and old.leaf == chosen.name else old

    plain = pruned(replace(draft.mapped(node), traits=tuple(v for v in draft.traits if v is not chosen)))
    return replace(draft, traits=tuple(made if v is chosen else v for v in draft.traits)), plain


def by_moments(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """Vectors with another law, and normal ones with the same means and variances, where everything is linear."""
    chosen = {v.name: v for v in draft.normals if v.law}
    if not chosen or not _linear(draft):
        return None

    def node(old: Node) -> Node:
        if old.op != "at" or old.leaf not in chosen:
            return old
        center, variance = LAWS[chosen[old.leaf].law]
        return add(number(center), times(root(number(variance)), old))

    normals = tuple(replace(v, law="") for v in draft.normals)
    equations = tuple(replace(e, value=e.value.mapped(node)) for e in draft.equations)
    probes = tuple((label, value.mapped(node)) for label, value in draft.probes)
    kept = tuple((label, value) for label, value in draft.observables if not set(chosen) & _leaves(value))
    if not kept:
        return None
    one = replace(draft, observables=kept)
    return one, replace(one, normals=normals, equations=equations, probes=probes)


def _leaves(tree: Node) -> set[str]:
    return {node.leaf for node in tree.walk() if node.op == "at"}


def _linear(draft: Draft) -> bool:
    """Whether no law and no mean is other than linear or quadratic."""

    def order(node: Node) -> int:
        """How often vectors of one site stand in a product."""
        if node.op == "at":
            return int(not any(node.leaf == v.name for v in draft.traits))
        if node.op in ("mean", "number", "name"):
            return 0
        below = [order(child) for child in node.children]
        if node.op == "product":
            return sum(below)
        if node.op == "power":
            return below[0] * (abs(int(str(node.args[1]))) if below[0] else 1)
        if node.op == "outer":
            return max(below)
        return max(below, default=0)

    trees = list(draft.trees())
    if any(node.op == "call" for tree in trees for node in tree.walk()):
        return False
    means = [node.children[0] for tree in trees for node in tree.walk() if node.op == "mean"]
    within = [part for inner in means for part in (inner.children if inner.op == "sum" else (inner,))]
    fine = all(order(part) in (0, 2) for part in within)
    return fine and all(order(e.value) <= 1 for e in draft.equations)


def zero_parameter(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """A term with a parameter that is zero, and the term left out."""
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
    switched = replace(equation, value=Node("sum", (*terms[:k], times(name(word), terms[k]), *terms[k + 1 :])))

    def put(changed: Equation) -> tuple[Equation, ...]:
        return (*draft.equations[:index], changed, *draft.equations[index + 1 :])

    with_zero = replace(draft, equations=put(switched), parameters=(*draft.parameters, Parameter(word, Fraction(0))))
    left_out = pruned(replace(draft, equations=put(without)))
    kept = {v.name for v in left_out.vectors()}
    if not all({n.leaf for n in value.walk() if n.op == "at"} <= kept for _, value in draft.observables):
        return None
    return with_zero, left_out


def one_class(draft: Draft, rng: Random) -> tuple[Draft, Draft] | None:
    """One class, and none."""
    clock = draft.clock
    if clock is None or any(v.labels for v in (*draft.normals, *draft.fields)):
        return None
    if clock.classes:
        plain = replace(
            draft,
            clock=replace(clock, classes=""),
            parameters=tuple(p for p in draft.parameters if p.name != clock.classes),
            normals=tuple(replace(v, kind="static") if v.kind == "by_class" else v for v in draft.normals),
        )
        return draft.with_value(clock.classes, 1), plain
    unlabelled = {v.name for v in draft.vectors() if v.kind == "static"}
    for node in (n for tree in draft.trees() for n in tree.walk() if n.op == "outer"):
        sides = [{n.leaf for n in child.walk() if n.op == "at"} <= unlabelled for child in node.children]
        if any(sides):  # labels are summed over together: a side without them is another matrix
            return None
    word = draft.free_name("C")
    labelled = replace(
        draft,
        clock=Clock(clock.name, clock.steps, word, clock.endpoint),
        parameters=(*draft.parameters, Parameter(word, Fraction(1), "whole_positive")),
    )
    return labelled, draft


def longer(draft: Draft, rng: Random) -> Draft | None:
    """Two steps more."""
    if draft.clock is None:
        return None
    return draft.with_value(draft.clock.steps, draft.value(draft.clock.steps) + rng.choice((1, 2)))


def sampled(draft: Draft, rng: Random) -> Draft | None:
    """The same with a nonlinear observable of vectors that nothing else knows, too many for an integral, so that the
    theory is sampled."""
    vectors = [Vector(draft.free_name(f"aside{letter}"), draft.sectors[0].name, "static") for letter in "abcd"]
    field = Vector(draft.free_name("bent"), draft.sectors[0].name, "static")
    equation = Equation(field.name, "", times(*(call("tanh", at(vector.name, None)) for vector in vectors)))
    observable = (draft.free_name("extra"), mean(power(at(field.name, None), 2)))
    return replace(
        draft,
        normals=(*draft.normals, *vectors),
        fields=(*draft.fields, field),
        equations=(*draft.equations, equation),
        observables=(*draft.observables, observable),
    )


def other_side(draft: Draft, rng: Random) -> Draft | None:
    """K^T K as K K^T, for every probed product of this kind; beside other matrices the two are not alike."""

    def node(old: Node) -> Node:
        if old.op == "matmul" and len(old.children) == 2:
            left, right = old.children
            if left == turned(right) or turned(left) == right:
                return Node("matmul", (right, left))
        return old

    def alone(value: Node) -> bool:
        return value.op != "sum" and (value.op != "product" or all(map(alone, filter(_is_matrix, value.children))))

    probes = tuple((label, value.mapped(node) if alone(value) else value) for label, value in draft.probes)
    return None if probes == draft.probes else replace(draft, probes=probes)
