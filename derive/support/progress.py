"""Progress of a derivation, reported from inside its stages to a callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[float, str], None]
"""A callback for the fraction done and a text."""
_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def reporting(progress: Progress | None) -> Iterator[None]:
    """Send reports inside this block to a callback (fraction done, text)."""
    token = _current.set(progress)
    try:
        yield
    finally:
        _current.reset(token)


def report(fraction: float, text: str) -> None:
    """Report the progress of the current step, if there is a callback."""
    progress = _current.get()
    if progress is not None:
        progress(fraction, text)
