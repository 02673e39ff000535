"""Statuses of a claim and their combination."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

PROVED, SUPPORTED, UNDECIDED, REFUTED = "proved", "supported", "not decided", "refuted"
"""Exact for every value of the region; algebra exact but the branch or region tried at points only; neither proved nor
refuted; with a counterexample."""
STATUSES = (PROVED, SUPPORTED, UNDECIDED, REFUTED)


@dataclass(frozen=True)
class ComparisonOutcome:
    """The outcome of a comparison and its evidence. `point` contains parameter values at which the two sides differ."""

    status: str
    evidence: str = ""
    point: tuple[tuple[Any, Any], ...] = ()


def weakest(statuses: Iterable[str]) -> str:
    """Return the status of a conjunction: the weakest of its statements."""
    return max(statuses, key=STATUSES.index, default=PROVED)


def best(results: list[ComparisonOutcome]) -> ComparisonOutcome:
    """Return the result of a disjunction: the alternative that holds, if any."""
    return min(results, key=lambda r: STATUSES.index(r.status), default=ComparisonOutcome(REFUTED))
