"""Where things are kept between runs: derived code, and what JAX has compiled."""

from __future__ import annotations

import os
from pathlib import Path

SHORTEST_COMPILE = "0.05"
"""What compiles faster than so many seconds is not kept: reading it back takes a tenth of compiling it, not nothing."""


def cache_place() -> Path | None:
    """The user's cache directory, or what TWO_LEVEL_DMFT_CACHE names; None if it is set to nothing."""
    named = os.environ.get("TWO_LEVEL_DMFT_CACHE")
    if named is not None:
        return Path(named) if named else None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "two-level-dmft"


def keep_compiled_code() -> None:
    """Let JAX keep compiled code there, if nobody has told it another place; before JAX is imported."""
    place = cache_place()
    if place is not None:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(place / "compiled"))
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", SHORTEST_COMPILE)
