"""The bulk as one verified law: support, point masses, density, moments, expected counts.

A law is returned only after two checks of the whole: its total mass is one, and its Stieltjes transform equals the
resolvent continued from infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import Branch
from numerics.bulk.density import build_panels, pieces_of, resolvent_at, tip_panel
from numerics.bulk.edges import (
    Intervals,
    atom_at,
    decades,
    edge_candidates,
    hidden_masses,
    nearly_edges,
    support_from_branch,
    support_from_curve,
)
from numerics.bulk.keeping import law_from_json, law_to_json, load_or_compute
from numerics.bulk.law import DensityPanel, Panelled, SpectralLaw
from numerics.runtime.interface import BulkLaw
from numerics.runtime.point import Point
from numerics.support.precision import in_float64
from numerics.support.progress import Report, part, quiet

__all__ = [
    "Branch",
    "SpectralLaw",
    "atoms_of",
    "counts_against",
    "edge_candidates",
    "law_of",
    "series_moments",
    "support",
]

TIPS = 0.5
"""Relative tolerance between the missing mass and that of the power laws next to divergent edges."""
MASS_ERROR = 1e-8
"""Largest deviation of the total mass from one before the result is refused."""


@dataclass(frozen=True)
class _Watched:
    """A progress callback that compares equal to every other, so that it does not affect a cache key."""

    tell: Report = field(compare=False)

    def part(self, low: float, high: float) -> Report:
        return part(self.tell, low, high)


def law_of(branch: Branch, tell: Report = quiet) -> SpectralLaw:
    """Return the law at the branch's parameters; cached."""
    return _law(branch.law, branch.own, _Watched(tell))


@lru_cache(maxsize=128)
@in_float64
def _law(law: BulkLaw, p: Point, watched: _Watched) -> SpectralLaw:
    branch = Branch(law, p)
    intervals = support_from_curve(branch)
    if intervals is not None:
        spectral_law = _assembled(branch, intervals, edge_candidates(branch), nearly_edges(branch))
        if not spectral_law.panels.zeros and spectral_law.error <= MASS_ERROR:
            return spectral_law
    return load_or_compute(branch, "law", lambda: law_without_curve(branch, watched.tell), law_to_json, law_from_json)


@in_float64
def law_without_curve(branch: Branch, tell: Report = quiet) -> SpectralLaw:
    """Return the law from the response equations alone: support by continuation, density by panels, a search for
    missing mass."""
    branch, watched = replace(branch, use_curve=False), _Watched(tell)
    more: tuple[float, ...] = ()
    law = None
    for _ in range(12):
        intervals, empty = support_from_branch(branch, more, watched.part(0.0, 0.5))
        law = _assembled(branch, intervals, np.zeros(0), np.zeros(0), watched.part(0.5, 1.0))
        if not law.panels.zeros and law.error > MASS_ERROR:  # products of matrices have a singular density at zero
            law = _assembled(branch, intervals, np.zeros(0), np.zeros(1), watched.part(0.5, 1.0))
        if not law.panels.zeros and law.error > MASS_ERROR:  # mass on a scale of its own may have been overlooked
            law = _assembled(branch, intervals, np.zeros(0), decades(intervals), watched.part(0.5, 1.0))
        if not law.panels.zeros and law.error <= MASS_ERROR:
            return law
        fresh = list(law.panels.zeros)
        for low, high, _ in hidden_masses(branch, empty):
            fresh += list(low + (high - low) * np.linspace(0, 1, 11)[1:-1])
        if not set(fresh) - set(more):
            break
        more = (*more, *fresh)
    defect = "with gaps too narrow to tell" if law is None or law.panels.zeros else f"off by {law.error:.1g}"
    raise NumericalError(
        f"the masses of the bulk do not add up to one ({defect}), so its support is uncertain at these parameters; "
        "try less extreme values"
    )


def _assembled(
    branch: Branch, intervals: Intervals, candidates: np.ndarray, more: np.ndarray, tell: Report = quiet
) -> SpectralLaw:
    """Combine density and point masses, and measure the errors of the total mass and of the Stieltjes transform.

    `more` are additional points at which panels end.
    """
    pieces, tips = pieces_of(branch, intervals, np.unique(np.concatenate([candidates, more])))
    panels = build_panels(branch, pieces, tell)
    places = sorted({0.0, *candidates})
    atoms = tuple((x, w) for x, w in ((float(x), atom_at(branch, float(x), intervals)) for x in places) if w > 0)
    if tips:
        panels = _with_tips(panels, [tip_panel(branch, tip) for tip in tips], sum(weight for _, weight in atoms))
    law = SpectralLaw(tuple(intervals), atoms, panels, np.inf)
    total = panels.mass + sum(weight for _, weight in atoms)
    above = 1j * branch.start.height / 3
    right = resolvent_at(branch, np.array([above]))[0][0]
    defect = max(abs(total - 1), abs(complex(law.transform(above)) / right - 1))
    return SpectralLaw(tuple(intervals), atoms, panels, float(defect) if np.isfinite(defect) else np.inf)


def _with_tips(panels: Panelled, tips: list[DensityPanel], atoms: float) -> Panelled:
    """Assign the missing mass to the tips if it roughly equals the mass of their power laws; the check of the transform
    confirms it.
    """
    estimate, left = sum(tip.mass for tip in tips), 1 - atoms - panels.mass
    if abs(left - estimate) < TIPS * estimate:
        tips = [replace(tip, series=tip.series * left / estimate, error=tip.error) for tip in tips]
    whole = sorted((*panels.panels, *tips), key=lambda panel: (panel.piece.low, panel.t0))
    return Panelled(tuple(whole), panels.zeros)


def support(branch: Branch, tell: Report = quiet) -> list[tuple[float, float]]:
    """Return the intervals of the bulk, ascending."""
    return list(law_of(branch, tell).edges)


def atoms_of(branch: Branch, edges: Sequence[tuple[float, float]]) -> list[dict[str, float]]:
    """Return the point masses of the bulk, ascending; they belong to the same law as the `edges` of `support`."""
    return [{"at": at, "weight": weight} for at, weight in law_of(branch).atoms]


def series_moments(branch: Branch, count: int, like: Branch | None = None) -> np.ndarray:
    """Return moments 0 to `count` by a contour integral of the resolvent around the whole spectrum.

    like: a branch with nearly the same spectrum whose contour can be reused.
    """
    if like is not None:
        return np.array(_on_a_circle(branch, count, law_of(like)))
    return np.array(_moments(branch.law, branch.own, count))


@lru_cache(maxsize=128)
@in_float64
def _moments(law: BulkLaw, p: Point, count: int) -> tuple[float, ...]:
    branch = Branch(law, p)
    found = partial(_on_a_circle, branch, count)
    return load_or_compute(branch, f"moments-{count}", lambda: found(law_of(branch)), list, tuple)


def _on_a_circle(branch: Branch, count: int, law: SpectralLaw) -> tuple[float, ...]:
    ends = [e for pair in law.edges for e in pair] + [at for at, _ in law.atoms]
    radius = 1.5 * max(map(abs, ends), default=branch.start.height) or branch.start.height
    nodes = 48  # the aliasing error of the trapezoidal rule is (2/3)^96
    z = radius * np.exp(1j * np.pi * (np.arange(nodes) + 0.5) / nodes)
    g, _ = resolvent_at(branch, z)
    return tuple(float(np.mean((g * z ** (k + 1)).real)) for k in range(count + 1))


@dataclass(frozen=True)
class Counts:
    """Expected and simulated eigenvalue counts per bin, with the standard error over draws."""

    bins: np.ndarray
    expected: np.ndarray
    mean: np.ndarray
    stderr: np.ndarray

    @property
    def differences(self) -> np.ndarray:
        """Return (simulation - theory) / standard error per bin; zero where theory and simulation coincide."""
        gap = self.mean - self.expected
        with np.errstate(all="ignore"):
            return np.where(np.abs(gap) < 1e-9, 0.0, gap / np.maximum(self.stderr, 1e-12))


def counts_against(law: SpectralLaw, draws: list[np.ndarray], bins: np.ndarray) -> Counts:
    """Return expected counts per bin from the integrated law, and the counts of simulated eigenvalues (one array per
    draw).
    """
    bins = np.asarray(bins, float)
    if len(draws) < 2:
        raise NumericalError("a histogram needs at least two draws for its error; increase --seeds")
    seen = np.array([np.histogram(np.asarray(e, float), bins)[0] for e in draws], float)
    below = law.cumulative(bins)
    for at, weight in law.atoms:  # numpy's bins include their left end
        below -= weight * (bins == at)
    expected = np.diff(below) * np.mean([len(e) for e in draws])
    return Counts(bins, expected, seen.mean(axis=0), seen.std(axis=0, ddof=1) / np.sqrt(len(draws)))
