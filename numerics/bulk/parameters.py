"""What a bulk takes of a point: its own parameters, so that what is found for one point of a sweep serves all points
that share those, and the coefficients that updates make of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from numerics.runtime.interface import NODES, BulkLaw
from numerics.runtime.point import Point
from numerics.support.precision import in_float64


@lru_cache(maxsize=256)
def own_parameters(law: BulkLaw, p: Point) -> Point:
    """The part of a point that the bulk reads: its equations, its curve and the polynomials of its edges.

    Generated functions have no branches, so that one run reads all that is ever read. Where it fails, as at extreme
    values, everything counts as read.
    """
    values, seen = vars(p), set()

    class Reading:
        def __getattr__(self, name: str) -> Any:
            if name not in values:
                raise AttributeError(name)
            seen.add(name)
            return values[name]

    reading: Any = Reading()
    try:
        few = replace(law, nodes=NODES)  # as many at all points, so that nothing is compiled anew
        few.residual(reading, 2.3 + 1.1j, [0.37 + 0.1j / (k + 1) for k in range(len(law.responses))])
        for table in (law.curve, law.edge_polynomials):
            if table is not None:
                table.variables(reading, *law.updated(reading))
    except Exception:  # noqa: BLE001 - whatever arithmetic raises; then nothing is shared
        return p
    return Point(**{name: value for name, value in values.items() if name in seen})


@lru_cache(maxsize=256)
@in_float64
def updated(law: BulkLaw, p: Point) -> tuple[tuple[float, ...], ...]:
    """What the functions of a bulk take last, as plain numbers."""
    return tuple(tuple(map(float, some)) for some in law.updated(p))


def exactly(given: tuple[tuple[float, ...], ...]) -> tuple[tuple[Fraction, ...], ...]:
    """The same as the fractions that they are: rounded once, so that whatever is made of them agrees."""
    return tuple(tuple(map(Fraction, some)) for some in given)
