"""The cavity argument: the noises and memories implied by a system of equations.

In a = s W b and a' = s' W^T b' the noise of a has covariance variance * s^2 * columns * <b b>, and a also receives
variance * s * s' * columns * <d b / d noise of a'> times b'. For a symmetric matrix every pair of products contributes
both. Fields respond with the delays in the declared equations, and not through averages over all sites.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from derive.selftest.engine import training_level

Table = dict[tuple[str, str], list[tuple[sp.Expr, str, str, bool]]]


def cavity_disagrees(text: str) -> str:
    """Return where the averaged action and the cavity argument disagree; empty if they agree."""
    saddle = training_level(text).saddle
    covariances, memories = _expected(saddle.system)
    derived: Table = {}
    for c in saddle.covariances:
        _put(derived, c.left.name, c.right.name, (c.coefficient, c.a.name, c.b.name, c.fresh))
    apart = _apart(derived, covariances, "covariance")
    derived = {}
    for m in saddle.memories:
        _put(derived, m.target.name, m.noise.name, (m.coefficient, m.a.name, m.on.name, m.fresh))
    return apart or _apart(derived, memories, "memory")


def _put(table: Table, left: str, right: str, entry: tuple[sp.Expr, str, str, bool]) -> None:
    table.setdefault((left, right), []).append(entry)


def _expected(system: Any) -> tuple[Table, Table]:
    from derive.language.symbols import Sector

    products = [f for f in system.training if f.product is not None]
    delays = _delays(system)
    base = next((s for s in system.sectors if s.ratio == 1), sp.Symbol("size", positive=True))
    covariances: Table = {}
    memories: Table = {}
    for p in products:
        for q in products:
            matrix = p.rule.matrix
            if matrix != q.rule.matrix:
                continue
            strength = matrix.variance * p.rule.coefficient * q.rule.coefficient * p.rule.argument.sector
            strength = strength.xreplace({s: s.ratio * base for s in strength.atoms(Sector)})
            fresh = matrix.fresh is not None
            entry = (strength, p.rule.argument.name, q.rule.argument.name, fresh)
            if matrix.symmetric or p.rule.transposed == q.rule.transposed:
                _put(covariances, p.field.name, q.field.name, entry)
            if matrix.symmetric or p.rule.transposed != q.rule.transposed:
                delay = delays.get((p.rule.argument.name, q.field.name))
                if delay is not None and (delay == 0 or not fresh):
                    _put(memories, p.field.name, q.field.name, entry)
    return covariances, memories


def _delays(system: Any) -> dict[tuple[str, str], int]:
    """Return the shortest delay with which each field responds to an impulse in each other field, from the declared
    rules.
    """
    steps = [(f.field.name, *link) for f in system.training for rule in f.rules for link in _links(f, rule)]
    names = [f.field.name for f in system.training]
    delays = {(name, name): 0 for name in names}
    changed = True
    while changed:
        changed = False
        for target, source, lag in steps:
            for kicked in names:
                if (source, kicked) in delays:
                    delay = delays[source, kicked] + lag
                    if delay < delays.get((target, kicked), delay + 1):
                        delays[target, kicked] = delay
                        changed = True
    return delays


def _links(f: Any, rule: Any) -> list[tuple[str, int]]:
    """Return the fields that a rule uses at its own site, with their delays."""
    from derive.language.vectors import PAST, values

    if rule.product is not None:
        return [(rule.argument.name, 0)]
    clock = f.field.clock
    used = (v for law in rule.laws for v in values(law))
    links = [(v.field.name, 0 if v.time is None else int(sp.expand(clock - v.time))) for v in used]
    for term in rule.terms:
        time = term.vector.time
        if time is not None and term.past is not None:
            time = time.subs(PAST, term.past - 1)
        links.append((term.vector.field.name, 0 if time is None else int(sp.expand(clock - time))))
    return links


def _apart(derived: Table, expected: Table, what: str) -> str:
    for key in sorted({*derived, *expected}):
        there, wanted = derived.get(key, []), expected.get(key, [])
        if sorted(e[1:] for e in there) != sorted(e[1:] for e in wanted):
            return f"{what} of {key[0]} and {key[1]}: derived {_shown(there)}, by the cavity argument {_shown(wanted)}"
        for entry in wanted:
            same = [e[0] for e in there if e[1:] == entry[1:]]
            if sp.simplify(sum(same) - sum(e[0] for e in wanted if e[1:] == entry[1:])) != 0:
                return f"{what} of {key[0]} and {key[1]}: derived factor {sum(same)}, by the cavity argument {entry[0]}"
    return ""


def _shown(entries: list[Any]) -> str:
    return ", ".join(f"{e[0]} with {e[1]}, {e[2]}" for e in entries) or "nothing"
