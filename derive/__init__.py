"""Derive two-level dynamical mean-field theories of random matrices and trained networks.

A declaration imports its words from here; see the README, "Declare your own model". SymPy is imported only
when the first of them is asked for, so that the command line starts at once. Editors and type checkers read the
imports below, which never run; a new word stands in both lists.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from derive.display import printed_by

if TYPE_CHECKING:
    from derive.language.data import data as data
    from derive.language.family import (
        family as family,
        formula as formula,
        one_of as one_of,
        whole_choice as whole_choice,
    )
    from derive.language.matrices import gaussian as gaussian, goe as goe, outer as outer, weights as weights
    from derive.language.model import Eq as Eq, Model as Model, spectrum as spectrum
    from derive.language.symbols import (
        Domain as Domain,
        nonnegative as nonnegative,
        parameter as parameter,
        positive as positive,
        real as real,
        sectors as sectors,
        training_clock as training_clock,
        whole_nonnegative as whole_nonnegative,
        whole_positive as whole_positive,
    )
    from derive.language.vectors import (
        each as each,
        field as field,
        fields as fields,
        mean as mean,
        normal as normal,
        overlap as overlap,
        past_sum as past_sum,
        total as total,
    )

_WORDS = {
    "derive.language.symbols": (
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
    "derive.language.vectors": ("each", "field", "fields", "mean", "normal", "overlap", "past_sum", "total"),
    "derive.language.data": ("data",),
    "derive.language.matrices": ("gaussian", "goe", "outer", "weights"),
    "derive.language.model": ("Eq", "Model", "spectrum"),
    "derive.language.family": ("family", "formula", "one_of", "whole_choice"),
}
_HOME = {word: module for module, words in _WORDS.items() for word in words}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def _printers() -> Any:
    return import_module("derive.printing.displays")


printed_by(_printers)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'derive' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
