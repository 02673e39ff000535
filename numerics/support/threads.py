"""One thread for small linear algebra.

A library that shares a product or a factorisation among threads keeps those that wait running. Where matrices are small
they wait most of the time: they cost as much as the work, and several times that where other processes want the cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

SMALL = 1500
"""Matrices with fewer rows are factored, or solved for eigenvalues, by one thread."""


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """Linear algebra of matrices with so many rows: by one thread, or for large ones by as many as there are."""
    if rows >= SMALL:
        yield
        return
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> ThreadpoolController:
    """Those of NumPy and SciPy, which each bring their own: what is loaded now is found, so that both must be."""
    import scipy.linalg  # noqa: F401

    return ThreadpoolController()
