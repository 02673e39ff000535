"""How far a slider goes: from the domain of a parameter and the value that it starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from derive.language.symbols import Domain

STEPS = 200
DECADES = 1.0
"""A slider of a positive number goes so many powers of ten up and down."""


@dataclass(frozen=True)
class Range:
    """Ends of a slider, in terms of the number or, where `log` is set, of its logarithm to base ten."""

    low: float
    high: float
    step: float
    log: bool
    whole: bool

    def position(self, value: float) -> float:
        """Where the slider stands for a value."""
        return math.log10(value) if self.log else float(value)

    def value(self, position: float) -> float | int:
        """The number that a position stands for, with no more digits than a hand can set."""
        if self.whole:
            return round(position)
        return float(f"{10.0**position if self.log else position:.4g}")


def slider_range(domain: Domain, start: float) -> Range:
    """Whole numbers step by one; positive ones go by logarithm, others on a line, around where they start."""
    if domain.whole:
        low = domain.low if domain.low_included else domain.low + 1
        low = low if math.isfinite(low) else min(start - 10, 2 * start)
        high = domain.high if domain.high_included else domain.high - 1
        return Range(low, min(high, max(4 * start, start + 10)), 1.0, False, True)
    if math.isfinite(domain.low) and math.isfinite(domain.high):
        return _linear(domain, domain.low, domain.high)
    if domain.low == 0.0 and start > 0.0 and not domain.low_included:
        middle = math.log10(start)
        return Range(middle - DECADES, middle + DECADES, 2 * DECADES / STEPS, True, False)
    far = max(2 * abs(start), 2.0)
    return _linear(domain, max(domain.low, start - far), min(domain.high, start + far))


def _linear(domain: Domain, low: float, high: float) -> Range:
    """A line of the domain; an end that does not belong to it is left out by a step."""
    step = (high - low) / STEPS
    low = low if domain.contains(low) else low + step
    high = high if domain.contains(high) else high - step
    return Range(low, high, step, False, False)
