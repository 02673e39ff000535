"""Bias-corrected estimates and standard errors, from results at perturbed order parameters."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from numerics.runtime.interface import Key, Order
from numerics.runtime.operators import Operator

V = TypeVar("V", float, np.ndarray)
KNOWN = 0.9
"""Fraction of the contributions to an error that must be available."""


def without_bias(whole: V, halves: V, share: float) -> V:
    """Return the bias-corrected estimate whole + share (whole - halves); share is one for a bias of order 1/sites."""
    estimate: V = whole + share * (whole - halves)
    return estimate


class ReadTogether(Mapping[Key, np.ndarray]):
    """Order parameters that are computed when they are read; reading several together is cheaper."""

    @abstractmethod
    def read(self, keys: Sequence[Key]) -> dict[Key, np.ndarray]:
        """Return the order parameters with these keys."""

    def __getitem__(self, key: Key) -> np.ndarray:
        return self.read((key,))[key]


class Moved(ReadTogether):
    """Order parameters perturbed to first order along a direction."""

    @abstractmethod
    def changes(self, keys: Sequence[Key]) -> dict[Key, Operator]:
        """Return the first-order changes of the order parameters with these keys."""


def read(order: Order, keys: Sequence[Key] | None = None) -> dict[Key, np.ndarray]:
    """Return the order parameters with these keys; None for all."""
    wanted = tuple(order) if keys is None else tuple(keys)
    return order.read(wanted) if isinstance(order, ReadTogether) else {key: order[key] for key in wanted}


@dataclass(frozen=True)
class Nearby:
    """Perturbed order parameters around those of all sites.

    Attributes:
        varied: perturbed by one standard deviation of each independent contribution to the error of a bias-corrected
            result.
        counted: fraction of each contribution that counts as an error.
        half: those of passes over half of the sites; None without bias correction.
        share: fraction of the difference to halves that is bias.
        doubt: uncertainty of `share`.
        replicas: number of leading `varied` that come from replicates; these perturbations add up to zero.
        unbiased: perturbed to first order by the bias correction; None without it.
    """

    varied: tuple[Order, ...] = ()
    counted: tuple[float, ...] = ()
    half: Order | None = None
    share: float = 1.0
    doubt: float = 0.0
    replicas: int = 0
    unbiased: Order | None = None

    @property
    def orders(self) -> tuple[Order, ...]:
        """All perturbed order parameters, in the order in which `estimate` takes results."""
        return (*self.varied, *(order for order in (self.half, self.unbiased) if order is not None))

    def estimate(self, value: float, others: Sequence[float | None]) -> tuple[float, float]:
        """Return the bias-corrected result and its standard error, from its values at the central and the perturbed
        order parameters.

        others: None where a value is not available; the error is infinite where too few are.
        """
        count = len(self.varied)
        base, unsure = value, 0.0
        if self.half is not None:
            half = others[count]
            if half is None:
                return value, math.inf
            base, unsure = without_bias(value, half, self.share), self.doubt * (value - half)
        pairs = zip(self.counted, others[:count], strict=True)
        squares = [(part * (x - value)) ** 2 for part, x in pairs if x is not None]
        if len(squares) < KNOWN * count:
            return base, math.inf
        return base, math.sqrt(sum(squares) * count / len(squares) + unsure**2)

    def added_by_noise(self, value: float, others: Sequence[float | None]) -> float:
        """Return the second-order contribution of noise to the mean of a result.

        First-order changes by replicates add up to zero, so that their sum is of second order.
        """
        pairs = zip(self.counted[: self.replicas], others, strict=False)
        changes = [part**2 * (x - value) for part, x in pairs if x is not None]
        return sum(changes) * self.replicas / len(changes) if changes else 0.0
