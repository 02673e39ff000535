"""Moments, observables and correlations from the declared equations, recorded once and replayed at other parameter
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from numerics.certificate.declared import MORE_STEPS, Declared, DeclaredPast, run_declared
from numerics.certificate.recording import NotRecorded, Recording, Tape, are_finite, table
from numerics.certificate.words import UNKNOWN, VECTOR, LargeVector, NotWritten, kind_of, word_moments
from numerics.runtime.interface import FiniteSize
from numerics.runtime.point import Point, replaced
from numerics.support.rebinding import UNUSUAL

MOMENTS, LETTERS = 4, 1500
"""Number of moments of the bulk compared, while all words of a power have at most LETTERS letters together."""
MOST_COURSES = 8
"""Most control-flow paths recorded per computation."""

Pairs = tuple[tuple[str, str], ...]
"""Pairs of fields, by name."""


class AlongSpikes(NamedTuple):
    """Sums of <u u>, <u M u> and <M u M u> over the spike vectors u of M. single: whether there is only one, without
    labels.
    """

    weight: float
    first: float
    second: float
    alone: bool


class ExpectedMoments(NamedTuple):
    """Results of the declared equations as numbers: moments of each bulk, moments along spikes, observables at the
    first times, and initial correlations; `unknown` says why there are none."""

    moments: dict[str, list[float]]
    spikes: dict[str, AlongSpikes]
    observables: dict[str, list[list[float]]]
    correlations: dict[tuple[str, str], list[list[float]]]
    unknown: str | None = None


def expect(simulation: FiniteSize, p: Point, steps: int, pairs: Pairs = ()) -> ExpectedMoments:
    """Return the moments, observables and correlations of the declared equations at a point.

    Args:
        steps: for which fields are followed.
        pairs: fields whose correlations replace observables if there are none.
    """
    declared = run_declared(simulation, p, steps)
    observables = {name: _known(series) for name, series in declared.observables.items()}
    spikes = {label: _along_spikes(declared, label) for label in declared.probed}
    return ExpectedMoments(
        {label: _finite(word_moments(matrix, MOMENTS, LETTERS)) for label, matrix in declared.probed.items()},
        {label: found for label, found in spikes.items() if found is not None},
        observables,
        {} if any(observables.values()) else _correlations(declared, pairs),
    )


def _known(series: Sequence[Any]) -> list[list[float]]:
    """Return an observable at the first times at which it is known, one number per label."""
    return _finite([np.ravel(table(value)).tolist() for value in series[: MORE_STEPS + 1]])


def _finite(values: list[Any]) -> list[Any]:
    """Return the values before the first value that is not finite."""
    return values[: next((k for k, value in enumerate(values) if not are_finite(value)), len(values))]


def _along_spikes(declared: Declared, label: str) -> AlongSpikes | None:
    if "right" not in declared.spikes.get(label, {}):
        return None
    matrix, vectors = declared.probed[label], declared.spikes[label]["right"]()
    if matrix.dyads == UNKNOWN or not all(kind_of(u) == VECTOR and u.known for u in vectors):
        return None
    overlaps = matrix.ensemble.overlaps
    pairs = [(u, matrix @ u) for u in vectors]
    weight, first, second = (
        sum(np.trace(overlaps(a, b)) for a, b in some)
        for some in ([(u, u) for u in vectors], pairs, [(v, v) for _, v in pairs])
    )
    if not (are_finite([weight, first, second]) and weight > 0):
        return None
    return AlongSpikes(weight, first, second, len(vectors) == vectors[0].labels == 1)


def _correlations(declared: Declared, pairs: Pairs) -> dict[tuple[str, str], list[list[float]]]:
    correlations = {}
    for names in pairs:
        first, second = (_first(declared.fields.get(name)) for name in names)
        if first is not None and second is not None:
            overlaps = first.ensemble.overlaps(first, second)
            if are_finite(overlaps):
                correlations[names] = overlaps.tolist()
    return correlations


def _first(values: Any) -> LargeVector | None:
    """Return a field at time 0 if it is a sum of words."""
    if isinstance(values, DeclaredPast):
        values = values[0] if len(values) else None
    return values if kind_of(values) == VECTOR and values.known else None


# -- the same at other values


class Courses:
    """Recordings of `expect` for one declaration at fixed integers and arrays, one for each control-flow path."""

    def __init__(self, simulation: FiniteSize, steps: int, pairs: Pairs) -> None:
        self.simulation, self.steps, self.pairs = simulation, steps, pairs
        self.known: list[tuple[Recording, Any]] = []
        self.recordable = True

    def at(self, p: Point) -> ExpectedMoments:
        """Return the expected moments at a point; raise NotWritten if words cannot represent the equations."""
        moving = {name: value for name, value in vars(p).items() if isinstance(value, float)}
        values = list(moving.values())
        for recording, shape in self.known:
            replayed = recording(values)
            if replayed is not None:
                return shape.unflatten(replayed)
        if not self.recordable or len(self.known) >= MOST_COURSES:
            return expect(self.simulation, p, self.steps, self.pairs)
        try:
            self.known.insert(0, self._record(p, moving))
        except (NotRecorded, NotWritten, *UNUSUAL):
            self.recordable = False
        return self.at(p)

    def _record(self, p: Point, moving: dict[str, float]) -> tuple[Recording, Any]:
        tape = Tape()
        numbers = {name: tape.parameter(value) for name, value in moving.items()}
        expected = expect(self.simulation, replaced(p, **numbers), self.steps, self.pairs)
        leaves, shape = jax.tree_util.tree_flatten(expected)
        recording = Recording(tape, list(numbers.values()), leaves)
        if recording(list(moving.values())) is None:
            raise NotRecorded("conditions that do not hold where they were recorded")
        return recording, shape


def expected_at(simulation: FiniteSize, p: Point, steps: int, pairs: Pairs = ()) -> ExpectedMoments:
    """Return the result of `expect`, replayed from a recording if its conditions hold."""
    fixed = tuple((name, _key(value)) for name, value in vars(p).items())
    return _courses(simulation, steps, pairs, fixed).at(p)


def _key(value: Any) -> Any:
    """Return a hashable key of a parameter value that is not recorded."""
    if isinstance(value, float):
        return None
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


@lru_cache(maxsize=64)
def _courses(simulation: FiniteSize, steps: int, pairs: Pairs, fixed: tuple[Any, ...]) -> Courses:
    return Courses(simulation, steps, pairs)
