"""What the verbs return: frozen results of plain data, which know how they were made, convert, save, open and draw."""

from derive.results.check import Check, LawTried
from derive.results.comparison import Comparison, compare
from derive.results.files import open_result
from derive.results.limit import Limit, Limits
from derive.results.made import Provenance
from derive.results.simulation import Simulation
from derive.results.solution import Solution
from derive.results.spectra import Spectra
from derive.results.sweep import Sweep
from numerics.solution import Layer

__all__ = [
    "Check",
    "Comparison",
    "LawTried",
    "Layer",
    "Limit",
    "Limits",
    "Provenance",
    "Simulation",
    "Solution",
    "Spectra",
    "Sweep",
    "compare",
    "open_result",
]
