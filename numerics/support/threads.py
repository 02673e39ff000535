"""Thread limits for small linear algebra.

BLAS threads spin while they wait. For small matrices they wait most of the time, which costs as much as the
computation, and more if other processes need the cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from threadpoolctl import ThreadpoolController

SMALL = 1500
"""Rows below which matrices are factored or diagonalised by one thread."""
_limited: ContextVar[bool] = ContextVar("limited", default=False)


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """Limit BLAS to one thread for matrices with few rows, as a context manager; inside of another limit that one
    remains.
    """
    if rows >= SMALL or _limited.get():
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        before = _limited.set(True)
        try:
            yield
        finally:
            _limited.reset(before)


@cache
def _libraries() -> ThreadpoolController:
    """Return the BLAS libraries of NumPy and SciPy, both of which must be loaded first."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
