"""What JAX has compiled, kept between runs beside derived code and signed as that is.

JAX's own cache reads whatever lies in its directory, warns about an entry that is damaged and never replaces it. So it is
given this one, which hands out what this user has written and nothing else. JAX has no public way of giving it one;
where the version at hand keeps its cache elsewhere, compiled code is not kept.
"""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from pathlib import Path

import jax
from jax._src import compilation_cache

from derive.places import kept

KIND = "compiled"
SHORTEST_COMPILE = 0.05
"""What compiles faster than so many seconds is not kept: reading it back takes a tenth of compiling it, not nothing."""


class SignedCache:
    """What JAX asks for compiled code by key, and gives it to."""

    def get(self, key: str) -> bytes | None:
        place = kept()
        return None if place is None else place.read(KIND, _question(key))

    def put(self, key: str, value: bytes) -> None:
        place = kept()
        if place is not None:
            place.write(KIND, _question(key), value)


@cache
def keep_compiled() -> None:
    """Let JAX keep compiled code from now on, if nobody has told it where to keep it."""
    config = jax.config
    told = config.values.get("jax_compilation_cache_dir")
    if told or kept() is None or getattr(compilation_cache, "_cache", told) is not None:
        return
    if not hasattr(compilation_cache, "_cache_initialized"):
        return
    compilation_cache._cache = SignedCache()
    compilation_cache._cache_initialized = True
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_COMPILE)


def _question(key: str) -> str:
    """JAX's key, which stands for the program and the versions of JAX, and the processor that it was compiled for."""
    return f"{key} {_processor()}"


@cache
def _processor() -> str:
    """A digest of what this machine's processors can do: a home directory may be shared by machines of several kinds."""
    told = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    able = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return hashlib.sha256(f"{told} {able}".encode()).hexdigest()[:16]
