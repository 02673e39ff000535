"""Progress reports: none, subranges of a progress bar, and evenly spaced indices."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float, str], None]


def quiet(fraction: float, text: str) -> None:
    """Report nothing."""


def part(tell: Report, low: float, high: float) -> Report:
    """Return a report for a subrange of the whole."""
    return lambda fraction, text: tell(low + (high - low) * fraction, text)


def handful(count: int, most: int = 5) -> list[int]:
    """Return evenly spaced indices, including the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})
