"""What every record has: a title, and everything that was assumed so far."""

from __future__ import annotations

from derive.support.display import DisplayedSections


class Record(DisplayedSections):
    """A stage's result. `assumptions` holds everything assumed so far, so the last record shows them all."""

    title: str = ""
    assumptions: tuple[str, ...]


def gathered(*records: Record, new: str) -> tuple[str, ...]:
    """Everything that the records assume, each once, and what is assumed on top of it."""
    return tuple(dict.fromkeys([*(a for record in records for a in record.assumptions), new]))
