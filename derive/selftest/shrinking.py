"""Shrinking: the smallest declaration that still breaks a law, by greedy search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from derive.selftest.drafts import ONE, Draft, DraftSector, Node, number, pruned
from derive.selftest.partners import with_names, with_numbers, without_axis


def shrink(draft: Draft, breaks: Callable[[Draft], bool], most: int = 400) -> Draft:
    """Return the draft reduced as long as the law stays broken; at most `most` drafts are tried."""
    tried: set[Draft] = {draft}
    while True:
        for smaller in smaller_drafts(draft):
            if smaller in tried:
                continue
            tried.add(smaller)
            if len(tried) > most:
                return draft
            if breaks(smaller):
                draft = smaller
                break
        else:
            return draft


def smaller_drafts(draft: Draft) -> Iterator[Draft]:
    """Yield drafts with one part removed, the largest reductions first."""
    for smaller in _smaller(draft):
        kept = pruned(smaller)
        if kept != draft and (kept.observables or kept.probes):
            yield kept


def _smaller(draft: Draft) -> Iterator[Draft]:
    if draft.probes:
        yield replace(draft, probes=())
    for k in range(len(draft.observables)):
        yield replace(draft, observables=draft.observables[k : k + 1], probes=())
    yield replace(draft, observables=())
    for k in range(len(draft.probes)):
        yield replace(draft, probes=draft.probes[:k] + draft.probes[k + 1 :])
    for k in range(len(draft.observables)):
        yield replace(draft, observables=draft.observables[:k] + draft.observables[k + 1 :])
    for sector in draft.sectors[1:]:
        merged = with_names(draft, {sector.name: draft.sectors[0].name})
        yield replace(merged, sectors=tuple(s for s in draft.sectors if s is not sector))
        if sector.ratio != number(2):
            simpler = tuple(DraftSector(s.name, number(2)) if s is sector else s for s in draft.sectors)
            yield replace(draft, sectors=simpler)
    clock = draft.clock
    if clock is not None:
        for steps in range(1, int(draft.value(clock.steps))):
            yield draft.with_value(clock.steps, steps)
        if not clock.endpoint:
            yield replace(draft, clock=replace(clock, endpoint=True))
    data_axes = {axis for d in draft.data for axis in d.axes}
    for axis in draft.axes:
        if axis.name not in data_axes:
            yield without_axis(draft, axis.name)
    if draft.latex or draft.style:
        yield replace(draft, latex=(), style=())
    for k, equation in enumerate(draft.equations):
        for value in _smaller_nodes(equation.value):
            changed = replace(equation, value=value)
            yield replace(draft, equations=(*draft.equations[:k], changed, *draft.equations[k + 1 :]))
    for k, (label, value) in enumerate(draft.observables):
        for less in _smaller_nodes(value):
            yield replace(draft, observables=(*draft.observables[:k], (label, less), *draft.observables[k + 1 :]))
    for k, (label, value) in enumerate(draft.probes):
        for less in _smaller_nodes(value):
            yield replace(draft, probes=(*draft.probes[:k], (label, less), *draft.probes[k + 1 :]))
    yield from _plainer_symbols(draft)


def _plainer_symbols(draft: Draft) -> Iterator[Draft]:
    for m in draft.matrices:
        if m.variance != ONE:
            matrices = tuple(replace(x, variance=ONE) if x is m else x for x in draft.matrices)
            yield replace(draft, matrices=matrices)
    for trait in draft.traits:

        def even(node: Node, word: str = trait.name) -> Node:
            return ONE if node.op == "at" and node.leaf == word else node

        yield draft.mapped(even)
        if len(trait.values) > 1:
            single = replace(trait, values=trait.values[:1], shares=(ONE,))
            yield replace(draft, traits=tuple(single if x is trait else x for x in draft.traits))
    for v in draft.normals:
        if v.scale != ONE:
            yield replace(draft, normals=tuple(replace(x, scale=ONE) if x is v else x for x in draft.normals))
        if v.kind == "timed":
            plain = tuple(replace(x, kind="static") if x is v else x for x in draft.normals)

            def untimed(node: Node, word: str = v.name) -> Node:
                return Node("at", (word, None)) if node.op == "at" and node.leaf == word else node

            yield replace(draft.mapped(untimed), normals=plain)
        for other in draft.normals:
            if other.name < v.name and replace(other, name=v.name) == v:
                merged = with_names(draft, {v.name: other.name})
                yield replace(merged, normals=tuple(x for x in draft.normals if x is not v))
    for p in draft.parameters:
        if p.name not in draft.counters():
            yield with_numbers(draft, {p.name})


def _smaller_nodes(node: Node) -> Iterator[Node]:
    """Yield trees with one node less."""
    if node.op in ("sum", "product") and len(node.children) > 1:
        for k, child in enumerate(node.children):
            rest = node.children[:k] + node.children[k + 1 :]
            if node.op == "product" and (child.op in ("power", "root") or child.op not in ("number", "name", "mean")):
                continue  # sizes stay where they are: without them there is no limit
            yield rest[0] if len(rest) == 1 else Node(node.op, rest)
    if node.op in ("call", "past", "probe", "cases") or (node.op == "power" and node.args[1] != -1):
        yield from node.children[:1]
    if node.op == "at" and (node.whole or 0) > 1:
        yield Node("at", (node.args[0], 1))
    if node.op == "number" and node != ONE and node.args[0] != 0:
        yield ONE
    for k, child in enumerate(node.children):
        for less in _smaller_nodes(child):
            yield node.with_children((*node.children[:k], less, *node.children[k + 1 :]))
