"""What JAX has compiled, kept between runs beside derived code and signed as that is.

JAX's own cache reads whatever lies in its directory, warns about an entry that is damaged and never replaces it. So
JAX is given this one, which hands out what this user has written and nothing else. There is no public way of giving it
one; where a version of JAX keeps its cache elsewhere, compiled code is not kept.
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
    config: Any = jax.config
    held: Any = None
    with suppress(ImportError):
        held = import_module("jax._src.compilation_cache")
    known = hasattr(held, "_cache") and hasattr(held, "_cache_initialized")
    if not known or held._cache is not None or config.jax_compilation_cache_dir or kept() is None:
        return
    held._cache, held._cache_initialized = SignedCache(), True
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_COMPILE)


def _question(key: str) -> str:
    """JAX's key, which stands for the program and the versions of JAX, and the processor that it was compiled for."""
    return f"{key} {_processor()}"


@cache
def _processor() -> str:
    """A digest of what the processors here can do: several kinds of machines may share a home directory."""
    told = platform.machine() + platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    able = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return hashlib.sha256(f"{told} {able}".encode()).hexdigest()[:16]
