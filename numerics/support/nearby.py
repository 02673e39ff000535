"""A bias-corrected result and its error from results at nearby order parameters."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from numerics.runtime.interface import Order
from numerics.runtime.keys import OrderKey
from numerics.runtime.operators import Operator

V = TypeVar("V", float, np.ndarray)
KNOWN = 0.9
"""Fraction of the contributions to an error that must be known."""


def without_bias(whole: V, halves: V, share: float) -> V:
    """Return the result from all sites plus a fraction of its difference from the result of halves; the fraction is one
    if the bias decreases as 1/sites.
    """
    return whole + share * (whole - halves)


class ReadTogether(Mapping[OrderKey, np.ndarray]):
    """Order parameters that are computed on access, several at little more than the cost of one."""

    @abstractmethod
    def read(self, keys: Sequence[OrderKey]) -> dict[OrderKey, np.ndarray]:
        """Return those with these names."""

    def __getitem__(self, key: OrderKey) -> np.ndarray:
        return self.read((key,))[key]


class Moved(ReadTogether):
    """Order parameters shifted along a direction, to first order."""

    @abstractmethod
    def changes(self, keys: Sequence[OrderKey]) -> dict[OrderKey, Operator]:
        """Return the shifts of the order parameters with these names."""


def read(order: Order, keys: Sequence[OrderKey] | None = None) -> dict[OrderKey, np.ndarray]:
    """Return order parameters with these names, all if none are given."""
    wanted = tuple(order) if keys is None else tuple(keys)
    return order.read(wanted) if isinstance(order, ReadTogether) else {key: order[key] for key in wanted}


@dataclass(frozen=True)
class Nearby:
    """Order parameters near those of all sites.

    Attributes:
        varied: order parameters shifted by one standard deviation of each independent contribution to the error of a
            bias-corrected result.
        counted: for each entry of `varied`, the fraction of the change of a result that counts as an error.
        half: order parameters of passes over half of the sites; None without bias correction.
        share: the bias with all sites, as a fraction of the additional bias with half of them.
        doubt: the uncertainty of `share`.
        replicas: the number of leading entries of `varied` that are shifted by noise; these shifts sum to zero.
        unbiased: order parameters shifted, to first order, by the bias correction; None without it.
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
        """Return all nearby order parameters, in the order in which `estimate` takes their results."""
        return (*self.varied, *(order for order in (self.half, self.unbiased) if order is not None))

    def estimate(self, value: float, others: Sequence[float | None]) -> tuple[float, float]:
        """Return a bias-corrected result and its standard error, from its value at the order parameters of all sites
        and at nearby ones; None for missing values. The error is infinite if too few values are known."""
        count = len(self.varied)
        base, unsure = value, 0.0
        if self.half is not None:
            half = others[count]
            if half is None:
                return value, math.inf
            base, unsure = without_bias(value, half, self.share), self.doubt * (value - half)
        pairs = zip(self.counted, others[:count], strict=True)
        known = [(part * (x - value)) ** 2 for part, x in pairs if x is not None]
        if len(known) < KNOWN * count:
            return base, math.inf
        return base, math.sqrt(sum(known) * count / len(known) + unsure**2)

    def added_by_noise(self, value: float, others: Sequence[float | None]) -> float:
        """Return the mean contribution of noise to a result. The first-order changes of replicates sum to zero, so
        their sum is of second order and equals the contribution of noise."""
        pairs = zip(self.counted[: self.replicas], others, strict=False)
        known = [part**2 * (x - value) for part, x in pairs if x is not None]
        return sum(known) * self.replicas / len(known) if known else 0.0
