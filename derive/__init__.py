"""Derive two-level dynamical mean-field theories of random matrices and trained networks.

A declaration imports its words from here; see the README, "Declare your own model". SymPy is imported only
when the first of them is asked for, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_WORDS = {
    "symbols": (
        "Domain",
        "nonnegative",
        "parameter",
        "positive",
        "real",
        "sectors",
        "training_clock",
        "whole_nonnegative",
        "whole_positive",
    ),
    "vectors": ("each", "field", "fields", "mean", "normal", "overlap", "past_sum", "total"),
    "data": ("data",),
    "matrices": ("gaussian", "goe", "outer", "weights"),
    "model": ("Eq", "Model", "spectrum"),
    "family": ("family", "formula", "one_of", "whole_choice"),
}
_HOME = {word: f"derive.language.{module}" for module, words in _WORDS.items() for word in words}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'derive' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
