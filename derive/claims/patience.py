"""A limit on the CPU time spent on one claim, because algebra on an arbitrary formula may not terminate."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from derive.errors import NumericalError
from derive.support.bounds import CLAIM_TIME, Bound

T = TypeVar("T")
LOOK_EVERY = 0.2
"""Interval between two checks of the processor time, in seconds."""


class OutOfTime(BaseException):
    """Raised inside a computation that takes too long; it is not an Exception, so that libraries do not catch it."""


def within_time(computation: Callable[[], T], bound: Bound = CLAIM_TIME) -> T:
    """Return the result of `computation`.

    Raises:
        NumericalError: the computation exceeds the limit.
    """
    done, thread, start = threading.Event(), threading.get_ident(), time.process_time()

    def watch() -> None:
        while not done.wait(LOOK_EVERY):
            if time.process_time() - start > bound.most:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(OutOfTime))
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        try:
            return computation()
        finally:
            done.set()
            watcher.join()
    except OutOfTime:
        raise NumericalError(f"not decided within {bound}") from None
