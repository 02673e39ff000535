"""Equations driven by a source along a declared direction, and the overlap of the direction with a probe field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from derive.algebra.words import Combination
from derive.language.alignments import Alignment
from derive.language.vectors import Field
from derive.records.probe import Aligned, Unknown

Row = Mapping[Unknown, Combination]


class Projecting(Protocol):
    """The projection of a probe on training fields, as needed for declared directions."""

    def sides(self) -> list[tuple[str, Field]]: ...

    def neighbours(self) -> dict[Field, list[Field]]: ...

    def reachable(self) -> Mapping[Unknown, Row]: ...

    def row(self, unknown: Unknown) -> Row: ...

    def driven(self, unknown: Unknown, probe: Field, along: Field) -> Combination: ...


def alignments(
    projecting: Projecting, unknowns: tuple[Unknown, ...], declared: Iterable[tuple[str, Alignment]]
) -> tuple[Aligned, ...]:
    """Return each declared direction on each side that matches its sector; empty without spikes."""
    if not unknowns:
        return ()
    return tuple(
        _aligned(projecting, unknowns, name, side, probe, alignment)
        for name, alignment in declared
        for side, probe in projecting.sides()
        if probe.sector == alignment.direction.field.sector
    )


def _aligned(
    projecting: Projecting, unknowns: tuple[Unknown, ...], name: str, side: str, probe: Field, alignment: Alignment
) -> Aligned:
    field = alignment.direction.field
    later = _overlap_equations(projecting, unknowns, Unknown("C", probe, field))
    earlier = _response_equations(projecting, unknowns, probe, field)
    drive = ((r, projecting.driven(unknown, probe, field)) for r, unknown in enumerate((*unknowns, *earlier)))
    return Aligned(
        name,
        side,
        probe,
        alignment.direction,
        tuple(later),
        _table(later.values(), (*unknowns, *later)),
        tuple(earlier),
        _table(earlier.values(), tuple(earlier)),
        _table((projecting.reachable()[unknown] for unknown in unknowns), tuple(earlier)),
        tuple((r, combination) for r, combination in drive if combination),
    )


def _overlap_equations(projecting: Projecting, unknowns: tuple[Unknown, ...], first: Unknown) -> dict[Unknown, Row]:
    """Return the equation of an overlap, and the equations of the overlaps on which it depends besides the unknowns of
    A(z).
    """
    equations: dict[Unknown, Row] = {}
    neighbours, waiting = projecting.neighbours(), [first]
    while waiting:
        unknown = waiting.pop(0)
        if unknown in equations or unknown in unknowns:
            continue
        # responses outside A(z) have no pole at its zeros: no unknown of A(z) drives them
        equations[unknown] = {
            u: combination for u, combination in projecting.row(unknown).items() if u.kind == "C" or u in unknowns
        }
        waiting += [*equations[unknown], *(Unknown("C", p, unknown.field) for p in neighbours[unknown.probe])]
    return equations


def _response_equations(
    projecting: Projecting, unknowns: tuple[Unknown, ...], probe: Field, field: Field
) -> dict[Unknown, Row]:
    """Return the equations of responses that are driven by a source along a field but by no unknown of A(z)."""
    idle = {u: row for u, row in projecting.reachable().items() if u not in unknowns}
    neighbours = projecting.neighbours()
    driven = {u: None for u in idle if projecting.driven(u, probe, field)}
    while True:
        more = [
            u
            for u, row in idle.items()
            if u not in driven
            and (
                any(other in driven for other in row)
                or any(Unknown(u.kind, p, u.field) in driven for p in neighbours[u.probe])
            )
        ]
        if not more:
            return {u: row for u, row in idle.items() if u in driven}
        driven |= dict.fromkeys(more)


def _table(rows: Iterable[Row], columns: tuple[Unknown, ...]) -> tuple[tuple[tuple[int, int], Combination], ...]:
    return tuple(
        ((r, c), row[column]) for r, row in enumerate(rows) for c, column in enumerate(columns) if row.get(column)
    )
