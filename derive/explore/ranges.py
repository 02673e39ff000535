"""The range of a slider, from the domain of a parameter and its initial value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from derive.language.symbols import Domain

STEPS = 200
DECADES = 1.0
"""Range of a slider for a positive number, in powers of ten up and down."""


@dataclass(frozen=True)
class Range:
    """The ends of a slider, for the number or, with `log`, for its decimal logarithm."""

    low: float
    high: float
    step: float
    log: bool
    whole: bool

    def position(self, value: float) -> float:
        """Return the slider position of a value."""
        return math.log10(value) if self.log else float(value)

    def value(self, position: float) -> float | int:
        """Return the number at a position, rounded to the digits that a slider can set."""
        if self.whole:
            return round(position)
        return float(f"{10.0**position if self.log else position:.4g}")


def slider_range(domain: Domain, start: float) -> Range:
    """Return the range: integers in steps of one, positive numbers on a logarithmic scale, others linear, around the
    start."""
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
    """Return a linear range within the domain; an excluded end is moved inwards by one step."""
    step = (high - low) / STEPS
    low = low if domain.contains(low) else low + step
    high = high if domain.contains(high) else high - step
    return Range(low, high, step, False, False)
