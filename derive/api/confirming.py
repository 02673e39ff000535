"""Check counterexamples of refuted claims with the solver of the same declaration."""

from __future__ import annotations

from typing import Any

import numpy as np

from derive.api.points import ProblemPoint
from derive.api.solvers import DeclarationSource
from derive.claims.counterexamples import Counterexample
from derive.errors import DeriveError
from derive.inputs.problems import problem_of
from derive.language.model import Model
from derive.results import Solution
from numerics.options import BARE

RESOLVED = 1e-6
"""Relative tolerance at which numbers of solver and derivation are equal, and beyond which an outlier is separate from
an edge."""


class Confirmation:
    """The solver of a model, evaluated at counterexamples."""

    def __init__(self, model: Model):
        self.model, self.source = model, DeclarationSource("")

    def __call__(self, against: Counterexample) -> tuple[bool | None, str]:
        """Return whether the solver agrees with the derivation (None if it has no result), and its result as text."""
        values = {name: int(v) if v.is_Integer else float(v) for name, v in against.point}
        try:
            if against.what == "threshold":
                return self._no_threshold(against, values)
            return self._same(against, self._solved(values))
        except DeriveError as error:
            return None, f"`derive solve` gives no number at the counterexample: {error}"

    def _solved(self, values: dict[str, Any]) -> Solution:
        point = ProblemPoint.of(self.source, problem_of(self.model, values), None)
        solution = point.solved(BARE)
        if not solution:
            raise DeriveError("it fails a check of its own")
        return solution

    def _same(self, against: Counterexample, solution: Solution) -> tuple[bool | None, str]:
        expected, edges = np.array(against.values), np.ravel(solution.bulk_edges)
        what = f"the {against.what}"
        if against.what == "edges":
            solved, expected = (_without_contacts(places, edges) for places in (edges, expected))
        elif against.what == "outliers":
            solved, expected = (_away(places, edges) for places in (solution.outliers, expected))
            if not against.of:  # of one eigenproblem only
                solved = np.array([z for z in solved if len(expected) and _near(z, expected, edges)])
        elif against.what == "atom":
            what = f"the mass at {against.of:g}"
            masses = [mass for place, mass in solution.layer().atoms if _near(place, np.array([against.of]), edges)]
            solved = np.array([sum(masses)])
        else:
            what, solved = f"moment {against.of}", solution.layer().moments[against.of : against.of + 1]
            if not len(solved):
                return None, ""
        same = len(solved) == len(expected) and all(
            _near(a, np.array([b]), edges) for a, b in zip(solved, expected, strict=True)
        )
        return same, f"`derive solve` gives {what}: {', '.join(f'{x:.6g}' for x in solved) or 'none'}"

    def _no_threshold(self, against: Counterexample, values: dict[str, Any]) -> tuple[bool | None, str]:
        if not against.values:
            return None, ""
        counts = [len(self._solved({**values, against.of: side}).outliers) for side in against.values]
        low, high = (f"{against.of} = {side:.6g}" for side in against.values)
        return counts[0] == counts[1], f"`derive solve` gives {counts[0]} outliers at {low} and {counts[1]} at {high}"


def _near(value: float, others: np.ndarray, edges: np.ndarray) -> bool:
    """Return whether a number equals one of others within the solver's resolution."""
    scale = 1 + max(map(abs, (*edges, value)))
    return bool(np.min(np.abs(others - value)) <= RESOLVED * scale)


def _without_contacts(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the edges, ascending, without those at which two bands touch."""
    ends = sorted(places)
    touch = [_near(a, np.array([b]), edges) for a, b in zip(ends[1::2], ends[2::2], strict=False)]
    return np.array([z for i, z in enumerate(ends) if not any(touch[max(0, (i - 1) // 2) : (i + 1) // 2])])


def _away(places: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the outliers, ascending, that are separate from edges."""
    return np.array([z for z in sorted(places) if not len(edges) or not _near(z, edges, edges)])
