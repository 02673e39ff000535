"""Progress of a derivation, told from inside its stages to whoever asked for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Report = Callable[[float, str], None]
_current: ContextVar[Report | None] = ContextVar("progress", default=None)


@contextmanager
def reporting(progress: Report | None) -> Iterator[None]:
    """Send what `report` says inside to a function of the fraction done and a text."""
    token = _current.set(progress)
    try:
        yield
    finally:
        _current.reset(token)


def report(fraction: float, text: str) -> None:
    """Say how far the present step is, if anyone asked."""
    progress = _current.get()
    if progress is not None:
        progress(fraction, text)
