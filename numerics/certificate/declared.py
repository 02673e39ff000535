"""The declared equations on words: the simulation of a declaration, run for infinitely large matrices.

The generated simulation draws the disorder, runs the equations as they stand and returns the probed matrices. Here it
draws letters instead of arrays. Nothing of the derivation takes part: neither an action nor a saddle point, neither
order parameters nor a resolvent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.special

from numerics.certificate.recording import RecordedNumber, as_number, table
from numerics.certificate.words import (
    FUNCTION,
    NUMBER,
    UNKNOWN,
    VECTOR,
    DeclaredEnsemble,
    DrawnLetter,
    EntrywiseFunction,
    LargeMatrix,
    LargeVector,
    NotWritten,
    TraitNumbers,
    kind_of,
    operand,
    outer_product,
)
from numerics.runtime import finite_size
from numerics.runtime.interface import FiniteSize
from numerics.runtime.point import Point
from numerics.runtime.traits import density
from numerics.support.rebinding import UNUSUAL, with_names

SIZE = 2**100
"""A size so large that what falls with it is beyond rounding; a power of two, so that its roots are exact."""
STEPS, MORE_STEPS = 1, 3
"""Steps that fields are followed for, where that is to be quick and where it need not be: words grow with every one."""
NODES = 512
"""Values that the density of a trait is taken at."""


@dataclass(frozen=True)
class Declared:
    """What the declared equations give: the probed matrices by label, for each and either side a function that gives
    the vectors of its outer products, observables at each time, and fields by name."""

    probed: Mapping[str, LargeMatrix]
    spikes: Mapping[str, Mapping[str, Callable[[], list[Any]]]]
    observables: Mapping[str, list[Any]]
    fields: Mapping[str, Any]


class DeclaredPast:
    """A field at all times so far, unknown after the first steps. Before the start it is zero."""

    def __init__(self, ensemble: DeclaredEnsemble, steps: int, size: int, labels: int = 1, kicks: Any = None) -> None:
        self._values: list[Any] = []
        self._steps = steps
        self._unknown = ensemble.unknown(size, labels)
        self._zero = LargeVector(ensemble, size, {}, labels)

    def append(self, value: Any) -> None:
        if len(self._values) > self._steps:
            value = self._unknown
        else:
            value = operand(value).filled(self._unknown.ensemble, self._unknown.size, self._unknown.labels)
        self._values.append(value)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, time: int) -> Any:
        return self._values[time] if time >= 0 else self._zero


def filled(ensemble: DeclaredEnsemble, value: Any, size: int, labels: int = 1) -> Any:
    """A vector with all of its labels: a number counts for all sites, a row for all of them."""
    return operand(value).filled(ensemble, size, labels)


class Functions:
    """Functions of arrays by name, which take large vectors too."""

    def __init__(self, library: Any, ensemble: DeclaredEnsemble) -> None:
        self._library, self._ensemble = library, ensemble

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)
        if not callable(function):
            return function

        def of_number(value: Any) -> Any:
            return function(_short(value))

        def applied(*given: Any, **more: Any) -> Any:
            if len(given) == 1 and isinstance(given[0], RecordedNumber):
                return given[0].tape.call(of_number, *given)
            return _entrywise(function, *given) if _is_large(*given) else function(*map(_short, given), **more)

        setattr(self, name, applied)
        return applied

    def select(self, conditions: list[Any], values: list[Any], default: Any = 0.0) -> Any:
        """The value whose condition holds first, entry by entry."""
        count = len(conditions)

        def chosen(*given: Any) -> Any:
            full = np.broadcast_arrays(*given)
            return np.select([one.astype(bool) for one in full[:count]], full[count:-1], full[-1])

        given = (*conditions, *values, default)
        return _entrywise(chosen, *given) if _is_large(*given) else chosen(*given)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        rows, columns = shape
        if columns > 2**53:
            return LargeMatrix(self._ensemble, rows, columns, {})
        return LargeVector(self._ensemble, rows, {}, columns)


def _is_large(*given: Any) -> bool:
    return any(kind_of(one) > NUMBER for one in given)


def _entrywise(function: Callable[..., Any], *given: Any) -> Any:
    """A function of vectors or traits, and of numbers."""
    highest = max(given, key=kind_of)
    return EntrywiseFunction.of(function, *given) if kind_of(highest) >= VECTOR else highest.combined(function, *given)


def _short(number: Any) -> Any:
    """A whole number that NumPy takes for an object, as a float."""
    return float(number) if isinstance(number, int) and abs(number) > 2**53 else number


def run_declared(simulation: FiniteSize, p: Point, steps: int = STEPS) -> Declared:
    """The declared equations at a point, with fields that are known for the first steps; NotWritten where they hold
    something that words do not reach."""
    ensemble = DeclaredEnsemble()
    fields: dict[str, Any] = {}
    simulate = with_names(simulation.simulate, _functions(ensemble, steps))
    libraries = Functions(np, ensemble), Functions(scipy.special, ensemble)
    try:
        probed, spikes, observables = simulate(p, SIZE, None, _ignored, None, None, fields.update, *libraries)
    except UNUSUAL as error:
        raise NotWritten(f"the equations hold what words do not reach ({type(error).__name__})") from error
    return Declared(probed, spikes, observables, fields)


def _ignored(share: float) -> None:
    """Nobody asks how far the run is."""


def _labelled(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function that changes labels only, on the coefficients of a vector."""

    def applied(*given: Any) -> Any:
        vector = given[place]
        if kind_of(vector) == FUNCTION:
            vector = vector.unknown(vector.labels)
        arguments = [np if k < place else one for k, one in enumerate(given)]
        if kind_of(vector) != VECTOR:
            return function(*arguments)
        return vector.mapped(lambda rows: function(*arguments[:place], rows, *arguments[place + 1 :]))

    return applied


def _functions(ensemble: DeclaredEnsemble, steps: int) -> dict[str, Callable[..., Any]]:
    """What a simulation calls, on words."""

    def gaussian(rng: Any, xp: Any, rows: int, columns: int) -> LargeMatrix:
        return ensemble.matrix(rows, columns, 1.0, False)

    def goe(rng: Any, xp: Any, size: int, variance: float) -> LargeMatrix:
        return ensemble.matrix(size, size, as_number(variance), True)

    def normal(rng: Any, xp: Any, size: int, labels: int | None = None) -> LargeVector:
        return ensemble.vector(DrawnLetter(size, 1 if labels is None else int(labels)))

    def drawn_from(rng: Any, xp: Any, law: tuple[Any, ...], size: int, labels: int | None = None) -> LargeVector:
        return ensemble.unknown(size, 1 if labels is None else int(labels))

    def trait_of_values(rng: Any, xp: Any, size: int, values: Any, weights: Any) -> TraitNumbers:
        found = table(values)
        return _trait(size, found, np.ones(found.shape) if weights is None else table(weights))

    def trait_of_density(rng: Any, xp: Any, size: int, function: Any, low: Any, high: Any) -> TraitNumbers:
        law = density(function, low, high, NODES, np)
        return _trait(size, np.asarray(law.values, float), np.asarray(law.weights, float))

    def _trait(size: int, values: np.ndarray, weights: np.ndarray) -> TraitNumbers:
        traits.append(len(traits))
        return TraitNumbers(ensemble, size, (traits[-1],), values, {traits[-1]: weights / weights.sum()})

    traits: list[int] = []
    whole = {"repeated": 1, "in_order": 0, "mixed_along": 1, "total_along": 0, "total": 0}
    return {
        **{name: _labelled(getattr(finite_size, name), place) for name, place in whole.items()},
        "gaussian": gaussian,
        "goe": goe,
        "normal": normal,
        "drawn_from": drawn_from,
        "trait_of_values": trait_of_values,
        "trait_of_density": trait_of_density,
        "Past": partial(DeclaredPast, ensemble, steps),
        "kicked": lambda value, kicks: value,
        "filled": partial(filled, ensemble),
        "mean": mean,
        "average": average,
        "columns": columns,
        "outer": outer,
        "project": lambda left, right, vector: outer(left, right) @ vector,
        "diagonal_matrix": partial(diagonal_matrix, ensemble),
        "scaled_rows": lambda entries, matrix: diagonal_matrix(ensemble, entries) @ matrix,
        "scaled_columns": lambda matrix, entries: matrix @ diagonal_matrix(ensemble, entries),
    }


def mean(vector: Any) -> Any:
    """The mean over sites: one row."""
    return vector.mean_row() if kind_of(vector) > NUMBER else finite_size.mean(vector)


def average(vector: Any) -> Any:
    """The mean over sites and labels, as a number."""
    if not operand(vector).known:
        return math.nan
    return as_number(np.mean(mean(vector)))


def columns(xp: Any, size: int, *vectors: Any) -> list[Any]:
    """All vectors, and all in series of them."""
    return [vector for each in vectors for vector in ([each] if kind_of(each) > NUMBER else each)]


def outer(left: Any, right: Any) -> LargeMatrix:
    """left right^T; labels are summed over."""
    if min(map(kind_of, (left, right))) < VECTOR:
        raise NotWritten("an outer product of numbers")
    return outer_product(left, right)


def diagonal_matrix(ensemble: DeclaredEnsemble, entries: Any) -> LargeMatrix:
    """The matrix with a trait on its diagonal; with a field there it is no sum of words, and unknown."""
    if kind_of(entries) >= VECTOR:
        return LargeMatrix(ensemble, entries.size, entries.size, {(): math.nan}, UNKNOWN)
    if kind_of(entries) == NUMBER:
        raise NotWritten("numbers on a diagonal")
    return LargeMatrix(ensemble, entries.size, entries.size, {(ensemble.diagonal(entries),): 1.0})
