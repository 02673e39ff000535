"""The declared equations run on words of free-probability letters: the simulation in the limit of infinite size.

The generated simulation draws the disorder, runs the equations as declared and returns the probed matrices. Here it
draws letters instead of arrays. It is independent of the derivation: it uses no action, saddle point, order parameter
or resolvent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.special

from numerics.certificate.recording import RecordedNumber, as_number, entrywise, table
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
"""A size at which finite-size corrections are below rounding errors; a power of two, so that its roots are exact."""
STEPS, MORE_STEPS = 1, 3
"""Training steps of the quick and of the thorough check; words grow with every step."""
NODES = 512
"""Quadrature nodes for the density of a trait."""


@dataclass(frozen=True)
class Declared:
    """Results of the declared equations: probed matrices, and functions that give their spike vectors, by label;
    observables by time; fields by name.
    """

    probed: Mapping[str, LargeMatrix]
    spikes: Mapping[str, Mapping[str, Callable[[], list[Any]]]]
    observables: Mapping[str, list[Any]]
    fields: Mapping[str, Any]


class DeclaredPast:
    """A field at all times so far, unknown after the first steps and zero before the start."""

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
    """Broadcast a number or a row of labels to a vector over all sites and labels."""
    return operand(value).filled(ensemble, size, labels)


class Functions:
    """Array functions by name, extended to large vectors."""

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
        """Return, entrywise, the value of the first condition that holds."""
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
    """Apply a function entrywise to vectors, traits and numbers."""
    highest = max(given, key=kind_of)
    return EntrywiseFunction.of(function, *given) if kind_of(highest) >= VECTOR else highest.combined(function, *given)


def _short(number: Any) -> Any:
    """Convert an integer too large for NumPy to a float."""
    return float(number) if isinstance(number, int) and abs(number) > 2**53 else number


def run_declared(simulation: FiniteSize, p: Point, steps: int = STEPS) -> Declared:
    """Run the declared equations at a point for a few steps; raise NotWritten if words cannot represent them."""
    ensemble = DeclaredEnsemble()
    fields: dict[str, Any] = {}
    simulate = with_names(simulation.simulate, _functions(ensemble, steps))
    libraries = Functions(np, ensemble), Functions(scipy.special, ensemble)
    try:
        probed, spikes, observables = simulate(p, SIZE, None, _ignored, None, None, fields.update, *libraries)
    except UNUSUAL as error:
        raise NotWritten(f"the equations contain terms that words cannot represent ({type(error).__name__})") from error
    return Declared(probed, spikes, observables, fields)


def _ignored(share: float) -> None:
    """Ignore progress."""


def _labelled(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """Lift a function of labels to the coefficients of a vector."""

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
    """Return the functions that a simulation calls, implemented for words."""

    def gaussian(rng: Any, xp: Any, rows: int, columns: int) -> LargeMatrix:
        return ensemble.matrix(rows, columns, 1.0, False)

    def goe(rng: Any, xp: Any, size: int, variance: float) -> LargeMatrix:
        return ensemble.matrix(size, size, as_number(variance), True)

    def normal(rng: Any, xp: Any, size: int, labels: int | None = None) -> LargeVector:
        return ensemble.vector(DrawnLetter(size, 1 if labels is None else int(labels)))

    def drawn_from(rng: Any, xp: Any, law: tuple[Any, ...], size: int, labels: int | None = None) -> Any:
        if labels is None or labels == 1:
            return _trait(size, *_rule(law))
        ones = np.eye(int(labels))
        return sum(ensemble.constant(size, row).scaled_by(_trait(size, *_rule(law))) for row in ones)

    def trait_of_values(rng: Any, xp: Any, size: int, values: Any, weights: Any) -> TraitNumbers:
        numbers = table(values)
        shares = np.ones(numbers.shape) if weights is None else table(weights)
        return _trait(size, *_rule(("discrete", shares, numbers)))

    def trait_of_density(rng: Any, xp: Any, size: int, function: Any, low: Any, high: Any) -> TraitNumbers:
        return _trait(size, *_density_rule(function, low, high))

    def _trait(size: int, values: np.ndarray, *weights: np.ndarray) -> TraitNumbers:
        traits.append(len(traits))
        return TraitNumbers(ensemble, size, (traits[-1],), values, {traits[-1]: weights})

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


QuadratureRule = tuple[np.ndarray, ...]
"""Nodes, with the weights of a fine rule and of coarser ones; of one rule alone for a sum over values."""


def _density_rule(function: Callable[[Any], Any], low: Any, high: Any) -> QuadratureRule:
    """Return the quadrature of a density, with two coarser rules that use every second and every third node.

    A kink may cause equal errors in two of the three rules, but never in all three.
    """
    law = density(function, low, high, NODES, np)
    weights = np.asarray(law.weights, float)
    rules = (np.where(np.arange(NODES) % stride, 0.0, weights) for stride in (1, 2, 3))
    return np.asarray(law.values, float), *(rule / rule.sum() for rule in rules)


def _rule(law: tuple[Any, ...]) -> QuadratureRule:
    """Return the quadrature of a law as the generated simulation describes it."""
    kind, *numbers = law
    if kind in ("discrete", "mixture"):
        shares = table(numbers[0]) / sum(numbers[0])
        if kind == "discrete":
            return table(numbers[1]), shares
        nodes, *rules = zip(*map(_rule, numbers[1]), strict=True)
        scaled = (np.concatenate([share * one for share, one in zip(shares, rule, strict=True)]) for rule in rules)
        return np.concatenate(nodes), *scaled
    function, low, high = _STANDARD[kind]
    x, *weights = _density_rule(function, low, high)
    if kind == "uniform":
        low, high = numbers
        return table(low + (high - low) * x), *weights
    if kind in ("normal_law", "log_normal"):
        x = numbers[0] + numbers[1] * x
        return entrywise(np.exp, x) if kind == "log_normal" else table(x), *weights
    return table(numbers[0] * x), *weights


def _normal_density(x: Any) -> Any:
    return np.exp(-(x**2) / 2)


_STANDARD: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "uniform": (np.ones_like, 0.0, 1.0),
    "exponential": (lambda x: np.exp(-x), 0.0, math.inf),
    "half_normal": (_normal_density, 0.0, math.inf),
    "log_normal": (_normal_density, -math.inf, math.inf),
    "normal_law": (_normal_density, -math.inf, math.inf),
}
"""Densities of laws with unit parameters, up to a factor, and their ends; log_normal: that of the logarithm."""


def mean(vector: Any) -> Any:
    """Return the mean over sites, one row."""
    return vector.mean_row() if kind_of(vector) > NUMBER else finite_size.mean(vector)


def average(vector: Any) -> Any:
    """Return the mean over sites and labels."""
    if not operand(vector).known:
        return math.nan
    return as_number(np.mean(mean(vector)))


def columns(xp: Any, size: int, *vectors: Any) -> list[Any]:
    """Return all vectors, including those in time series, broadcast to all labels."""
    return [vector for each in vectors for vector in ([each] if kind_of(each) > NUMBER else each)]


def outer(left: Any, right: Any) -> LargeMatrix:
    """Return left right^T, summed over labels."""
    if NUMBER in map(kind_of, (left, right)):
        raise NotWritten("an outer product of numbers")
    return outer_product(*(filled(one.ensemble, one, one.size, one.labels) for one in (left, right)))


def diagonal_matrix(ensemble: DeclaredEnsemble, entries: Any) -> LargeMatrix:
    """Return the diagonal matrix of a trait, a vector or a function; unknown for several labels.

    Entries of a vector depend on random matrices through finitely many of their products. Given these, the matrices
    are independent of the entries up to a low rank, so that traces factor as with a trait.
    """
    if kind_of(entries) == NUMBER:
        raise NotWritten("numbers on a diagonal")
    if entries.labels > 1 or not entries.known:
        return LargeMatrix(ensemble, entries.size, entries.size, {(): math.nan}, UNKNOWN)
    return LargeMatrix(ensemble, entries.size, entries.size, {(ensemble.diagonal(entries),): 1.0})
