"""Limit each worker to one thread.

A sum distributed over threads rounds differently, so numbers would depend on the machine, and workers that all use
every core slow each other down.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_XLA = "--xla_cpu_multi_thread_eigen=false"


def one_thread() -> dict[str, str]:
    """Return the environment variables that limit NumPy and JAX to one thread, to be set before their import."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        **dict.fromkeys(_BLAS, "1"),
        "NPROC": "1",  # threads of XLA
        "XLA_FLAGS": flags if _XLA in flags else f"{flags} {_XLA}".strip(),
    }


@contextmanager
def environment_of_one_thread() -> Iterator[None]:
    """Set these variables for processes started in this block."""
    wanted = one_thread()
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
