"""One thread for each worker.

Libraries that share a sum among threads round it differently from one that does not, so that a number would depend on
the machine; and workers that each take all cores wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_XLA = "--xla_cpu_multi_thread_eigen=false"


def one_thread() -> dict[str, str]:
    """What the environment must say before NumPy and JAX are imported."""
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        **dict.fromkeys(_BLAS, "1"),
        "NPROC": "1",  # how many threads XLA starts
        "XLA_FLAGS": flags if _XLA in flags else f"{flags} {_XLA}".strip(),
    }


@contextmanager
def environment_of_one_thread() -> Iterator[None]:
    """For processes that are started meanwhile."""
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
