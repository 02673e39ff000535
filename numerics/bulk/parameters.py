"""The parameters that a bulk reads, which key its caches, and the updated coefficients of its equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from numerics.runtime.interface import NODES, BulkLaw, Cycle
from numerics.runtime.point import Point
from numerics.support.precision import in_float64


def own_parameters(law: BulkLaw, p: Point) -> Point:
    """Return the parameters on which the bulk equations, the curve and the edge polynomials depend."""

    def evaluate(reading: Point) -> None:
        few = replace(law, nodes=NODES)  # the same number at all points, so that nothing is recompiled
        few.residual(reading, *_place(law))
        for table in (law.curve, law.edge_polynomials):
            if table is not None:
                table.variables(reading, *law.updated(reading))

    return _read_by(law, p, evaluate)


def map_parameters(cycle: Cycle, law: BulkLaw, p: Point) -> Point:
    """Return the parameters on which the scalar map of a cycle depends, if sites do not differ."""
    return _read_by(cycle, p, lambda reading: cycle.scalar_map(reading, *_place(law)))


def _place(law: BulkLaw) -> tuple[complex, list[complex]]:
    """Return a generic point and generic responses."""
    return 2.3 + 1.1j, [0.37 + 0.1j / (k + 1) for k in range(len(law.responses))]


def _read_by(what: BulkLaw | Cycle, p: Point, evaluate: Callable[[Point], object]) -> Point:
    """Return the parameters that generated functions read.

    These functions have no branches, so one recorded evaluation shows all reads; if it fails, as at extreme values,
    every parameter is kept.
    """
    values, known = vars(p), _names_read(what, tuple(vars(p)))
    if not known:
        seen = set()

        class Reading:
            def __getattr__(self, name: str) -> Any:
                if name not in values:
                    raise AttributeError(name)
                seen.add(name)
                return values[name]

        reading: Any = Reading()
        try:
            evaluate(reading)
        except Exception:  # noqa: BLE001 - whatever arithmetic raises; then nothing is shared
            return p
        known.append(frozenset(seen))
    return Point(**{name: value for name, value in values.items() if name in known[0]})


@lru_cache(maxsize=256)
def _names_read(what: BulkLaw | Cycle, names: tuple[str, ...]) -> list[frozenset[str]]:
    """Return a list that holds the names read by generated functions, once they are known."""
    return []


@lru_cache(maxsize=256)
@in_float64
def updated(law: BulkLaw, p: Point) -> tuple[tuple[float, ...], ...]:
    """Return the updated coefficients, the last argument of the functions of a bulk, as floats."""
    return tuple(tuple(map(float, some)) for some in law.updated(p))


def exactly(given: tuple[tuple[float, ...], ...]) -> tuple[tuple[Fraction, ...], ...]:
    """Return the updated coefficients as exact fractions, so that all functions see the same rounding."""
    return tuple(tuple(map(Fraction, some)) for some in given)
