"""What the declared equations say about a solution, as plain numbers; recorded once and repeated at other values."""

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
"""Moments of the bulk that are compared, as far as all words of a power have no more letters than this together."""
MOST_COURSES = 8
"""Courses of one computation that are kept; values at which it takes yet another one are not recorded."""

Pairs = tuple[tuple[str, str], ...]
"""Pairs of fields, by name."""


class AlongSpikes(NamedTuple):
    """Of a matrix M and the vectors u of its spikes: the sums of <u u>, <u M u> and <M u M u>, and whether there is one
    vector, without labels."""

    weight: float
    first: float
    second: float
    alone: bool


class ExpectedMoments(NamedTuple):
    """What the declared equations give: by label of a probed matrix the first moments of its bulk, and its moments
    along its spikes where these are known; observables at the first times, and correlations of fields at the first."""

    moments: dict[str, list[float]]
    spikes: dict[str, AlongSpikes]
    observables: dict[str, list[list[float]]]
    correlations: dict[tuple[str, str], list[list[float]]]


def expect(simulation: FiniteSize, p: Point, steps: int, pairs: Pairs = ()) -> ExpectedMoments:
    """What the declared equations give at a point, with fields that are known for the first steps.

    Args:
        pairs: fields whose correlations stand in for observables where there are none.
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
    """An observable at the first times, as long as it is known: one number per label."""
    return _finite([np.ravel(table(value)).tolist() for value in series[: MORE_STEPS + 1]])


def _finite(values: list[Any]) -> list[Any]:
    """The first values, up to one that is not finite."""
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
    found = {}
    for names in pairs:
        first, second = (_first(declared.fields.get(name)) for name in names)
        if first is not None and second is not None:
            overlaps = first.ensemble.overlaps(first, second)
            if are_finite(overlaps):
                found[names] = overlaps.tolist()
    return found


def _first(values: Any) -> LargeVector | None:
    """A field at the first time, if it is a sum of words."""
    if isinstance(values, DeclaredPast):
        values = values[0] if len(values) else None
    return values if kind_of(values) == VECTOR and values.known else None


# -- the same at other values


class Courses:
    """`expect` for one declaration, at one set of whole numbers and arrays: recorded once for each course it takes."""

    def __init__(self, simulation: FiniteSize, steps: int, pairs: Pairs) -> None:
        self.simulation, self.steps, self.pairs = simulation, steps, pairs
        self.known: list[tuple[Recording, Any]] = []
        self.recordable = True

    def at(self, p: Point) -> ExpectedMoments:
        """What is expected at a point; NotWritten where words do not reach."""
        moving = {name: value for name, value in vars(p).items() if isinstance(value, float)}
        values = list(moving.values())
        for recording, shape in self.known:
            found = recording(values)
            if found is not None:
                repeated: ExpectedMoments = shape.unflatten(found)
                return repeated
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
        found = expect(self.simulation, replaced(p, **numbers), self.steps, self.pairs)
        leaves, shape = jax.tree_util.tree_flatten(found)
        recording = Recording(tape, list(numbers.values()), leaves)
        if recording(list(moving.values())) is None:
            raise NotRecorded("conditions that do not hold where they were recorded")
        return recording, shape


def expected_at(simulation: FiniteSize, p: Point, steps: int, pairs: Pairs = ()) -> ExpectedMoments:
    """The same as `expect`, for less at values where the computation takes a course that is known."""
    fixed = tuple((name, _key(value)) for name, value in vars(p).items())
    return _courses(simulation, steps, pairs, fixed).at(p)


def _key(value: Any) -> Any:
    """What a value of a point is known by where it is not recorded."""
    if isinstance(value, float):
        return None
    return (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


@lru_cache(maxsize=64)
def _courses(simulation: FiniteSize, steps: int, pairs: Pairs, fixed: tuple[Any, ...]) -> Courses:
    return Courses(simulation, steps, pairs)
