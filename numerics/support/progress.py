"""What reports along a computation share: parts of a progress bar, and a few times out of many."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float, str], None]


def part(tell: Report, low: float, high: float) -> Report:
    """Progress within a share of the whole."""
    return lambda fraction, text: tell(low + (high - low) * fraction, text)


def handful(count: int, most: int = 5) -> list[int]:
    """Evenly spread indices, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})
