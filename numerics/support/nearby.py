"""From results at order parameters near each other to one result without bias, and its error."""

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
"""An error is given where so many of the contributions to it are known."""


def without_bias(whole: V, halves: V, share: float) -> V:
    """The value of all sites and a share of how far it is from that of halves: one where a bias falls as 1/sites."""
    found: V = whole + share * (whole - halves)
    return found


class ReadTogether(Mapping[OrderKey, np.ndarray]):
    """Order parameters that are made when they are read, several for little more than one."""

    @abstractmethod
    def read(self, keys: Sequence[OrderKey]) -> dict[OrderKey, np.ndarray]:
        """Those with these names."""

    def __getitem__(self, key: OrderKey) -> np.ndarray:
        return self.read((key,))[key]


class Moved(ReadTogether):
    """Order parameters that are moved along a direction, to first order."""

    @abstractmethod
    def changes(self, keys: Sequence[OrderKey]) -> dict[OrderKey, Operator]:
        """What those with these names are moved by."""


def read(order: Order, keys: Sequence[OrderKey] | None = None) -> dict[OrderKey, np.ndarray]:
    """Order parameters with these names, all if none are given."""
    wanted = tuple(order) if keys is None else tuple(keys)
    return order.read(wanted) if isinstance(order, ReadTogether) else {key: order[key] for key in wanted}


@dataclass(frozen=True)
class Nearby:
    """Order parameters near those of all sites.

    varied: moved by each independent contribution to the error of a result without bias, one standard deviation at a
    time; counted: how much of what each of them changes is an error. half: of passes over half of the sites; None where
    the bias is left. share: the bias of all sites in units of how much more halves have, and doubt how far that may be
    off. replicas: so many of `varied`, the first ones, are moved by noise, by amounts that add up to nothing. unbiased:
    moved, to first order, by what is taken off results; None where the bias is left.
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
        """All of them, in the order in which `estimate` takes results."""
        return (*self.varied, *(order for order in (self.half, self.unbiased) if order is not None))

    def estimate(self, value: float, others: Sequence[float | None]) -> tuple[float, float]:
        """A result without bias and its standard error, from its value at the order parameters of all sites and at
        those near them; None where there is none. The error is infinite where too few are known."""
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
        """What noise adds to a result on average. What replicas change it by in first order adds up to nothing, so that
        their sum is of second order, and noise has the same."""
        pairs = zip(self.counted[: self.replicas], others, strict=False)
        known = [part**2 * (x - value) for part, x in pairs if x is not None]
        return sum(known) * self.replicas / len(known) if known else 0.0
