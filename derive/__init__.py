"""Derive two-level dynamical mean-field theories of random matrices and trained networks.

Declarations import the words of the language from here; see the README, "Your own model in thirty lines". It also
exports the verbs: `derive.load(...)` returns a model that solves, simulates, compares, sweeps and more. SymPy is
imported on first access, so that the command line starts quickly. Editors and type checkers read the imports below,
which never run; a new word must be added to both lists.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from derive import errors as errors
from derive.support.display import printed_by
from derive.version import __version__ as __version__
from derive.words import LANGUAGE, UNDER, VERBS

if TYPE_CHECKING:
    from derive.api.loading import load as load
    from derive.api.spectra import spectra as spectra
    from derive.api.theory import Theory as Theory
    from derive.language.alignments import alignment as alignment
    from derive.language.data import data as data, entries as entries, root as root
    from derive.language.diagonals import diag as diag
    from derive.language.equations import Eq as Eq, spectrum as spectrum
    from derive.language.family import (
        family as family,
        formula as formula,
        one_of as one_of,
        whole_choice as whole_choice,
    )
    from derive.language.laws import (
        discrete as discrete,
        drawn as drawn,
        exponential as exponential,
        half_normal as half_normal,
        log_normal as log_normal,
        mixture as mixture,
        normal_law as normal_law,
        uniform as uniform,
    )
    from derive.language.matrices import gaussian as gaussian, goe as goe, outer as outer, weights as weights
    from derive.language.model import Model as Model
    from derive.language.symbols import (
        Domain as Domain,
        axis as axis,
        nonnegative as nonnegative,
        parameter as parameter,
        positive as positive,
        real as real,
        sectors as sectors,
        training_clock as training_clock,
        whole_nonnegative as whole_nonnegative,
        whole_positive as whole_positive,
    )
    from derive.language.traits import trait as trait
    from derive.language.vectors import (
        each as each,
        field as field,
        fields as fields,
        mean as mean,
        normal as normal,
        overlap as overlap,
        past_sum as past_sum,
        relabel as relabel,
        softmax as softmax,
        total as total,
    )
    from derive.results.check import Check as Check
    from derive.results.comparison import Comparison as Comparison, compare as compare
    from derive.results.files import open_result as open  # noqa: F401 - a name of ours that is Python's inside
    from derive.results.simulation import Simulation as Simulation
    from derive.results.solution import Solution as Solution
    from derive.results.spectra import Spectra as Spectra
    from derive.results.sweep import Sweep as Sweep

_HOME = {word: module for table in (LANGUAGE, VERBS) for module, words in table.items() for word in words}

__all__ = sorted(set(_HOME) - set(UNDER))  # `from derive import *` hides nothing of Python's own


def _printers() -> Any:
    return import_module("derive.printing.displays")


printed_by(_printers)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), UNDER.get(name, name))
    raise AttributeError(f"module 'derive' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
