"""Persistent cache of compiled JAX programs, stored and signed like generated code.

JAX's own cache reads any file in its directory, warns about damaged entries and never replaces them. This cache returns
only what this user has written. JAX has no public interface for a custom cache; with versions of JAX that store their
cache elsewhere, programs are not cached.
"""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import jax

from derive.support.places import kept

KIND = "compiled"
SHORTEST_COMPILE = 0.05
"""Compile time (seconds) below which a program is not cached. Trades disk reads for compilation."""


class SignedCache:
    """Cache of compiled programs, in the interface that JAX expects."""

    def get(self, key: str) -> bytes | None:
        """Return a program and its compile time; None for both if absent."""
        place = kept()
        return None if place is None else place.read(KIND, _question(key))

    def put(self, key: str, value: bytes) -> None:
        """Store a program."""
        place = kept()
        if place is not None:
            place.write(KIND, _question(key), value)


@cache
def keep_compiled() -> None:
    """Switch on the persistent cache, unless the user configured another one."""
    config: Any = jax.config
    held: Any = None
    with suppress(ImportError):
        held = import_module("jax._src.compilation_cache")
    supported = hasattr(held, "_cache") and hasattr(held, "_cache_initialized")
    if not supported or held._cache is not None or config.jax_compilation_cache_dir or kept() is None:
        return
    held._cache, held._cache_initialized = SignedCache(), True
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_COMPILE)


def _question(key: str) -> str:
    """Return the cache key: JAX's key (program and versions) and the processor."""
    return f"{key} {_processor()}"


@cache
def _processor() -> str:
    """Return a digest of processor features; different machines may share a home directory."""
    machine = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    able = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return hashlib.sha256(f"{machine} {able}".encode()).hexdigest()[:16]
