"""System -> TimeOrder: the causal dependencies of fields at t on fields at s < t or s <= t, from the microscopic
rules."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import NoReturn

import sympy as sp

from derive.equations.delays import shortest_delays
from derive.errors import DeclarationError, blaming
from derive.language.equations import Eq
from derive.language.symbols import Clock
from derive.language.traits import is_trait
from derive.language.vectors import PAST, Field, FieldAt, values
from derive.records.saddle import Edge, TimeOrder
from derive.records.system import Rule, System, SystemField


def order_in_time(system: System) -> TimeOrder:
    """Return a topological order of the training fields at one time, and the delay of every response.

    Raises:
        DeclarationError: if equal-time dependencies form a cycle.
    """
    fields = tuple(f.field for f in system.training)
    edges = _edges(system)
    origins = {f.field: f.origin for f in system.training}
    return TimeOrder(
        system,
        _equal_time_order(fields, edges, origins),
        edges,
        shortest_delays(fields, edges),
        (*system.assumptions, "no field depends on its own future"),
    )


def _edges(system: System) -> tuple[Edge, ...]:
    """Return all dependencies between training fields, in the order of the equations."""
    edges: dict[Edge, None] = {}
    for f in system.training:
        for rule in f.rules:
            with blaming(f.origin):
                for edge in _rule_edges(f, rule):
                    edges[edge] = None
    return tuple(edges)


def _rule_edges(f: SystemField, rule: Rule) -> list[Edge]:
    target, clock = f.field, f.field.clock
    if rule.product is not None:
        return [Edge(target, rule.product.argument, 0, False)]
    edges = []
    for law in rule.laws:
        direct = set(values(law))
        for value in sorted(law.atoms(FieldAt), key=sp.default_sort_key):
            edges.append(Edge(target, value.field, _lag(target, value, clock, None), value not in direct))
    for term in rule.terms:
        edges.append(Edge(target, term.vector.field, _lag(target, term.vector, clock, term.past), False))
        inside = (v for v in term.coefficient.atoms(FieldAt) if not is_trait(v))
        averaged = [*(term.pair or ()), *sorted(inside, key=sp.default_sort_key)]
        edges += [Edge(target, v.field, _lag(target, v, clock, term.past), True) for v in averaged]
    return edges


def _lag(target: Field, value: FieldAt, clock: Clock, past: sp.Expr | None) -> int:
    if value.time is None:
        return 0
    if not target.timed:
        raise DeclarationError(
            f"{target} has no clock but its equation needs {value.field}({value.time}); put it on a clock"
        )
    lag = sp.expand(clock - value.time)
    if value.time.has(PAST) and past is not None:
        lag = sp.expand(clock - (past - 1) + (PAST - value.time))
    if not lag.is_Integer:
        raise DeclarationError(
            f"the equation of {target} uses {value.field} at {value.time}; times must be {clock}, {clock} - 1, ... "
            "or a sum over earlier times"
        )
    if lag < 0:
        raise DeclarationError(
            f"{target}({clock}) needs {value.field}({value.time}), which lies in its future; use earlier times"
        )
    return int(lag)


def _equal_time_order(
    fields: tuple[Field, ...], edges: tuple[Edge, ...], origins: Mapping[Field, Eq | None]
) -> tuple[Field, ...]:
    """Return the fields in topological order of their equal-time dependencies; a cycle is an error."""
    place = {field: i for i, field in enumerate(fields)}
    needs: list[set[int]] = [set() for _ in fields]
    for edge in edges:
        if edge.lag == 0 and edge.source in place:
            needs[place[edge.target]].add(place[edge.source])
    needed_by: list[list[int]] = [[] for _ in fields]
    for i, sources in enumerate(needs):
        for source in sources:
            needed_by[source].append(i)
    missing = [len(sources) for sources in needs]
    ready = [(fields[i].timed, i) for i, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order: list[Field] = []
    while ready:
        _, here = heapq.heappop(ready)
        order.append(fields[here])
        for i in needed_by[here]:
            missing[i] -= 1
            if missing[i] == 0:
                heapq.heappush(ready, (fields[i].timed, i))
    if len(order) < len(fields):
        left = [i for i, count in enumerate(missing) if count > 0]
        loop = _cycle([fields[i] for i in left], {fields[i]: {fields[j] for j in needs[i]} for i in left})
        _refuse_cycle([e for field in loop if (e := origins[field]) is not None])
    return tuple(order)


def _cycle(left: list[Field], needs: dict[Field, set[Field]]) -> list[Field]:
    """Return a cycle of equal-time dependencies: each field needs the next, and the last needs the first."""
    path = [left[0]]
    while True:
        following = min((f for f in needs[path[-1]] if f in left), key=lambda f: f.name)
        if following in path:
            return path[path.index(following) :]
        path.append(following)


def _refuse_cycle(loop: list[Eq]) -> NoReturn:
    """Raise an error that names the declared equations of a cycle, without auxiliary fields."""
    equations = dict.fromkeys(loop)
    names = [*dict.fromkeys(e.name for e in equations)]
    lines = ", ".join(dict.fromkeys(str(e.place.line) for e in equations if e.place is not None))
    where = f" (lines {lines})" if "," in lines else ""
    with blaming(loop[0]):
        raise DeclarationError(
            f"non-causal equal-time cycle: {' -> '.join([*names, names[0]])}{where}, each needed by the one "
            "before at the same time; use an earlier time, such as t - 1, in one of these equations"
        )
