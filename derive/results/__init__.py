"""Results of the verbs: frozen records of plain data with their provenance, which convert, save, open and plot
themselves."""

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
