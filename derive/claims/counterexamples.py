"""Parameter values at which a claim fails, with the derived numbers, so that a solver can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import flint
import sympy as sp

from derive.language.symbols import parameter_values

BITS = 96
"""Precision, in bits, at which balls are converted to floats."""


@dataclass(frozen=True)
class Counterexample:
    """Rational values of all parameters by name, and the derived spectrum there.

    `what` is "edges", "outliers", "atom" (`of`: its position), "moment" (`of`: its order) or "threshold" (`of`: its
    parameter). `values` are the derived numbers; for a false threshold, one parameter value on either side.
    """

    point: tuple[tuple[str, sp.Rational], ...]
    what: str
    values: tuple[float, ...]
    of: Any = None

    @staticmethod
    def at(point: dict[sp.Symbol, Any], what: str, values: Iterable[float], of: Any = None) -> Counterexample:
        named = ((p.name, v) for p, v in parameter_values(point).items())
        return Counterexample(tuple(named), what, tuple(values), of)


@dataclass(frozen=True)
class Refuted:
    """A refutation in words, with its counterexample."""

    detail: str
    counterexample: Counterexample


def floats(numbers: Iterable[Any]) -> list[float]:
    """Return balls, given as functions of the working precision, as floats in ascending order."""
    with flint.ctx.workprec(BITS):
        return sorted(float(number().mid()) for number in numbers)
