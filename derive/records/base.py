"""The base of all records: a title and the assumptions made so far."""

from __future__ import annotations

from derive.support.display import DisplayedSections


class Record(DisplayedSections):
    """The result of a stage. `assumptions` accumulates, so the last record lists all of them."""

    title: str = ""
    assumptions: tuple[str, ...]


def gathered(*records: Record, new: str) -> tuple[str, ...]:
    """Return all assumptions of the records, each once, followed by the new one."""
    return tuple(dict.fromkeys([*(a for record in records for a in record.assumptions), new]))
