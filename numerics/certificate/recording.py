"""A tape of scalar arithmetic, recorded once and replayed at other parameter values.

The words of a computation depend on the declaration, and only their coefficients on parameter values. Every branch that
depends on a value is recorded as a condition; if one of them fails, the computation is run again.

A recorded number never turns into a plain one: `float`, `int` and NumPy's conversions raise TypeError.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np

MOST_STEPS = 20_000
"""Operations above which replaying saves no time."""
_PLAIN: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
}


class NotRecorded(Exception):
    """Raised when a computation does not support recorded numbers."""


class RecordedNumber:
    """A number with its place on the tape."""

    __slots__ = ("function", "parts", "tape", "value")

    def __init__(
        self, tape: Tape, value: Any, function: Callable[..., Any] | None, parts: tuple[RecordedNumber, ...]
    ) -> None:
        self.tape, self.value, self.function, self.parts = tape, value, function, parts

    def _with(self, function: Callable[..., Any], *parts: Any) -> Any:
        if not all(isinstance(part, (RecordedNumber, float, int, np.number)) for part in parts):
            return NotImplemented
        return self.tape.call(function, *parts)

    def __add__(self, other: Any) -> Any:
        return self if _is_plain(other, 0) else self._with(operator.add, self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._with(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._with(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        return self if _is_plain(other, 1) else self._with(operator.mul, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._with(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(operator.truediv, other, self)

    def __pow__(self, other: Any) -> Any:
        return self._with(operator.pow, self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._with(operator.pow, other, self)

    def __neg__(self) -> Any:
        return self._with(operator.mul, self, -1)

    def __abs__(self) -> Any:
        return self._with(abs, self)

    def __round__(self) -> Any:
        return self._with(round, self)

    def __bool__(self) -> bool:
        return self.tape.decide(operator.ne, self, 0)

    def __eq__(self, other: object) -> Any:
        return self.tape.decide(operator.eq, self, other)

    def __ne__(self, other: object) -> Any:
        return self.tape.decide(operator.ne, self, other)

    def __lt__(self, other: Any) -> bool:
        return self.tape.decide(operator.lt, self, other)

    def __le__(self, other: Any) -> bool:
        return self.tape.decide(operator.le, self, other)

    def __gt__(self, other: Any) -> bool:
        return self.tape.decide(operator.gt, self, other)

    def __ge__(self, other: Any) -> bool:
        return self.tape.decide(operator.ge, self, other)

    __hash__ = None  # type: ignore[assignment]  # a key that is looked for in vain would be no condition


class Tape:
    """The operations on recorded numbers, and the conditions on them."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], RecordedNumber] = {}
        self.constants: dict[str, RecordedNumber] = {}
        self.conditions: dict[tuple[Any, ...], tuple[Callable[..., Any], tuple[RecordedNumber, ...], bool]] = {}
        self.order: list[RecordedNumber] = []

    def parameter(self, value: Any) -> RecordedNumber:
        """Return a recorded parameter, whose value may differ on replay."""
        return RecordedNumber(self, value, None, ())

    def number(self, part: Any) -> RecordedNumber:
        """Return a recorded number unchanged and a plain one as a constant.

        Constants are keyed by their text, since 1, 1.0 and -0.0 are different.
        """
        if isinstance(part, RecordedNumber):
            return part
        key = repr(part)
        if key not in self.constants:
            self.constants[key] = RecordedNumber(self, part, None, ())
        return self.constants[key]

    def call(self, function: Callable[..., Any], *parts: Any) -> RecordedNumber:
        """Apply and record a function of numbers, some of them recorded."""
        numbers = tuple(map(self.number, parts))
        key = (function, *map(id, numbers))
        result = self.known.get(key)
        if result is None:
            if len(self.order) >= MOST_STEPS:
                raise NotRecorded(f"more than {MOST_STEPS} operations")
            value = function(*(number.value for number in numbers))
            result = self.known[key] = RecordedNumber(self, value, function, numbers)
            self.order.append(result)
        return result

    def decide(self, test: Callable[..., Any], *parts: Any) -> bool:
        """Return whether a condition holds, and record that it must have the same value on replay."""
        numbers = tuple(map(self.number, parts))
        outcome = bool(test(*(number.value for number in numbers)))
        self.conditions[(test, *map(id, numbers))] = (test, numbers, outcome)
        return outcome


def _is_plain(part: Any, value: int) -> bool:
    return isinstance(part, (float, int)) and part == value


def _second(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda one, _: function(one)


Step = tuple[Callable[[Any, Any], Any], int, int]


class Recording:
    """The part of a tape between parameters and results, as a function of the parameters."""

    def __init__(self, tape: Tape, parameters: Sequence[RecordedNumber], results: Sequence[Any]) -> None:
        asked = list(tape.conditions.values())
        given = list(map(tape.number, results))
        needed = {id(one) for one in (*given, *(part for _, parts, _ in asked for part in parts))}
        for one in reversed(tape.order):
            if id(one) in needed:
                needed.update(map(id, one.parts))
        kept = [one for one in tape.order if id(one) in needed]
        constants = [one for one in tape.constants.values() if id(one) in needed]
        self.constants = [one.value for one in constants]
        self.places = {id(one): place for place, one in enumerate((*parameters, *constants, *kept))}
        self.steps = [self._step(one.function, one.parts) for one in kept if one.function is not None]
        self.conditions = [(*self._step(test, parts), outcome) for test, parts, outcome in asked]
        self.results = [self.places[id(one)] for one in given]

    def _step(self, function: Callable[..., Any], parts: tuple[RecordedNumber, ...]) -> Step:
        if len(parts) > 2:
            raise NotRecorded("a function of more than two numbers")
        places = [self.places[id(part)] for part in parts]
        return (function, *places) if len(parts) == 2 else (_second(function), *places, *places)  # type: ignore[return-value]

    def __call__(self, parameters: Sequence[Any]) -> list[Any] | None:
        """Return the results at these parameters; None if a condition fails."""
        values = [*parameters, *self.constants]
        push = values.append
        try:
            for function, i, k in self.steps:
                push(function(values[i], values[k]))
            for test, i, k, outcome in self.conditions:
                if bool(test(values[i], values[k])) is not outcome:
                    return None
        except ArithmeticError:
            return None
        return [values[place] for place in self.results]


# -- arrays of numbers, recorded or not


def table(numbers: Any) -> np.ndarray:
    """Return an array of floats, or of objects if some are recorded."""
    array = np.asarray(numbers)
    if array.dtype == object and any(isinstance(one, RecordedNumber) for one in array.flat):
        return array
    return array.astype(float, copy=False)


def as_number(value: Any) -> Any:
    """Return the only entry of an array, as a float unless it is recorded."""
    if not is_number(value):
        value = np.asarray(value).item()
    return value if isinstance(value, RecordedNumber) else float(value)


def is_number(value: Any) -> bool:
    """Return whether a value is a plain or a recorded number."""
    return isinstance(value, (RecordedNumber, float, int))


def are_finite(numbers: Any) -> bool:
    """Return whether all entries of an array are finite."""
    array = np.asarray(numbers)
    if array.dtype != object:
        return bool(np.all(np.isfinite(array)))
    return all(_is_finite(one) for one in array.flat)


def _is_finite(one: Any) -> bool:
    return one.tape.decide(isfinite, one) if isinstance(one, RecordedNumber) else isfinite(one)


def entrywise(function: Callable[..., Any], *given: Any) -> np.ndarray:
    """Apply a function entrywise to numbers and arrays."""
    arrays = [table(one) for one in given]
    if all(one.dtype != object for one in arrays):
        return table(function(*given))
    plain = _PLAIN.get(function, function)

    def applied(*parts: Any) -> Any:
        recorded = [one for one in parts if isinstance(one, RecordedNumber)]
        return recorded[0].tape.call(plain, *parts) if recorded else plain(*parts)

    return np.asarray(np.frompyfunc(applied, len(arrays), 1)(*arrays))
