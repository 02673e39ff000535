"""From results at order parameters near each other to one result without bias, and its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from numerics.runtime.interface import Order

V = TypeVar("V", float, np.ndarray)
KNOWN = 0.9
"""An error is given where so many of the contributions to it are known."""


def without_bias(whole: V, halves: V, share: float) -> V:
    """The value of all sites and a share of how far it is from that of halves: one where a bias falls as 1/sites."""
    found: V = whole + share * (whole - halves)
    return found


@dataclass(frozen=True)
class Nearby:
    """Order parameters near those of all sites.

    varied: moved by each independent contribution to the error, one standard deviation at a time. halves: of passes
    over half of the sites, as they are and then moved by the same contributions; empty where the bias is left. share:
    the bias of all sites in units of how much more halves have, and doubt how far that may be off.
    """

    varied: tuple[Order, ...] = ()
    halves: tuple[Order, ...] = ()
    share: float = 1.0
    doubt: float = 0.0

    @property
    def orders(self) -> tuple[Order, ...]:
        """All of them, in the order in which `estimate` takes results."""
        return (*self.varied, *self.halves)

    def estimate(self, value: float, others: Sequence[float | None]) -> tuple[float, float]:
        """A result without bias and its standard error, from its value at the order parameters of all sites and at
        those near them; None where there is none. The error is infinite where too few are known."""
        count = len(self.varied)
        moved, base, unsure = list(others[:count]), value, 0.0
        if self.halves:
            half, *half_moved = others[count:]
            if half is None:
                return value, math.inf
            base, unsure = without_bias(value, half, self.share), self.doubt * (value - half)
            pairs = zip(moved, half_moved, strict=True)
            moved = [None if a is None or b is None else without_bias(a, b, self.share) for a, b in pairs]
        known = [x for x in moved if x is not None]
        if len(known) < KNOWN * count:
            return base, math.inf
        return base, math.sqrt(sum((x - base) ** 2 for x in known) * count / len(known) + unsure**2)
