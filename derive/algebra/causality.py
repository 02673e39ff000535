"""Which field depends on which, and how much earlier: read off the microscopic rules."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from derive.errors import DeclarationError
from derive.language.vectors import PAST, Field, FieldAt, values
from derive.records.system import DisorderRule, ElementwiseRule, LinearRule, Rule, System, SystemField


@dataclass(frozen=True)
class Edge:
    """`target` at t needs `source` at t - lag or earlier. `through_mean`: only through an average over sites."""

    target: Field
    source: Field
    lag: int
    through_mean: bool


def edges(system: System) -> tuple[Edge, ...]:
    """All dependencies between training fields, in the order of the equations."""
    found: dict[Edge, None] = {}
    for f in system.training:
        for rule in (f.rule, *f.starts):
            for edge in _rule_edges(f, rule):
                found[edge] = None
    return tuple(found)


def _rule_edges(f: SystemField, rule: Rule) -> list[Edge]:
    target, clock = f.field, f.field.clock
    if isinstance(rule, DisorderRule):
        return [Edge(target, rule.argument, 0, False)]
    found = []
    if isinstance(rule, ElementwiseRule):
        direct = set(values(rule.law))
        for value in sorted(rule.law.atoms(FieldAt), key=sp.default_sort_key):
            found.append(Edge(target, value.field, _lag(target, value, clock, None), value not in direct))
    if isinstance(rule, LinearRule):
        for term in rule.terms:
            found.append(Edge(target, term.vector.field, _lag(target, term.vector, clock, term.past), False))
            averaged = [*(term.pair or ()), *sorted(term.coefficient.atoms(FieldAt), key=sp.default_sort_key)]
            found += [Edge(target, v.field, _lag(target, v, clock, term.past), True) for v in averaged]
    return found


def _lag(target: Field, value: FieldAt, clock, past) -> int:
    if value.time is None:
        return 0
    if not target.timed:
        raise DeclarationError(
            f"{target} has no clock but its equation needs {value.field}({value.time}); put it on a clock"
        )
    lag = sp.expand(clock - value.time)
    if value.time.has(PAST):
        lag = sp.expand(clock - (past - 1) + (PAST - value.time))
    if not lag.is_Integer:
        raise DeclarationError(
            f"the equation of {target} uses {value.field} at {value.time}; times must be {clock}, {clock} - 1, ... "
            "or a sum over earlier times"
        )
    if lag < 0:
        raise DeclarationError(f"{target}({clock}) needs {value.field}({value.time}), which lies in its future")
    return int(lag)


def response_lags(system: System) -> dict[tuple[Field, Field], int]:
    """The shortest delay with which field a answers a kick to field b; pairs that are missing never do."""
    fields = [f.field for f in system.training]
    lags: dict[tuple[Field, Field], int] = {(a, a): 0 for a in fields}
    steps = [edge for edge in edges(system) if not edge.through_mean]
    for _ in range(len(fields) + 1):
        for edge in steps:
            for origin in fields:
                if (edge.source, origin) in lags:
                    delay = lags[edge.source, origin] + edge.lag
                    if delay < lags.get((edge.target, origin), delay + 1):
                        lags[edge.target, origin] = delay
    return lags


def equal_time_order(system: System) -> tuple[Field, ...]:
    """Fields in an order in which each can be computed at a given time; an error if there is a cycle."""
    fields = [f.field for f in system.training]
    needs: dict[Field, set[Field]] = {f: set() for f in fields}
    for edge in edges(system):
        if edge.lag == 0 and edge.source in needs:
            needs[edge.target].add(edge.source)
    order: list[Field] = []
    while len(order) < len(fields):
        ready = [f for f in fields if f not in order and needs[f] <= set(order)]
        if not ready:
            raise DeclarationError(_cycle([f for f in fields if f not in order], needs))
        order.append(min(ready, key=lambda f: (f.timed, fields.index(f))))
    return tuple(order)


def _cycle(left: list[Field], needs: dict[Field, set[Field]]) -> str:
    path = [left[0]]
    while True:
        following = min((f for f in needs[path[-1]] if f in left), key=lambda f: f.name)
        if following in path:
            loop = [*path[path.index(following) :], following]
            break
        path.append(following)
    shown = " -> ".join(f.name for f in loop)
    return (
        f"non-causal equal-time cycle: {shown}, each needed by the one before at the same time; "
        "use an earlier time, such as t - 1, in one of these equations"
    )
