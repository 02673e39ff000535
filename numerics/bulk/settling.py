"""Densities of traits in the bulk: at how many values they are taken, so that nothing changes with more.

Taken at n values a density is a law of its own, with a bulk that is found and checked like any other. It stands for the
density once its responses, inside the bulk, in its gaps and beside it, are those with twice as many values.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import Branch
from numerics.bulk.law import SpectralLaw
from numerics.bulk.support import law_of
from numerics.runtime.interface import NODES, BulkLaw, Probe
from numerics.runtime.point import Point
from numerics.support.precision import in_float64

TOLERANCE, MOST, TOGETHER = 1e-10, 4096, 2**16
"""How far responses may move with twice as many values, relatively, the most values that are tried, and the most
combinations of those of several densities."""
INSIDE, NEWTON = 48, 4
"""Points in each interval of the bulk, and steps from the responses with fewer values to those with more."""
ABOVE, SPREAD, NEAR, ROUGHLY = 128, 6.0, 3e-3, 1e-9
"""Points above the axis, how far they reach and how high they are, beside the width of the spectrum, and how far
responses may move there."""


def settled(branch: Branch) -> Branch:
    """The branch with as many values of each density as it needs; itself where there is none."""
    if not branch.law.settles:
        return branch
    return Branch(replace(branch.law, nodes=_settled(branch.law, branch.own)[0]), branch.p)


def movement(branch: Branch) -> float:
    """How far the responses of a settled branch move with twice as many values, relatively."""
    return _settled(branch.law, branch.own)[1] if branch.law.settles else 0.0


def as_settled(probe: Probe, branch: Branch) -> Probe:
    """A(z) with the same values as a settled branch has."""
    return probe if probe.sites is None else replace(probe, nodes=branch.law.nodes)


def _settled(law: BulkLaw, p: Point) -> tuple[int, float]:
    return _found(replace(law, nodes=NODES), p)


@lru_cache(maxsize=256)
@in_float64
def _found(law: BulkLaw, p: Point) -> tuple[int, float]:
    most = _most(law, p)
    nodes, moved = _first_guess(law, p, most), np.inf
    failure: NumericalError | None = None
    while nodes <= most:
        branch = Branch(replace(law, nodes=nodes), p)
        try:
            moved = _moved(branch, law_of(branch), Branch(replace(law, nodes=2 * nodes), p))
        except NumericalError as error:
            moved, failure = np.inf, error
        if moved <= TOLERANCE:
            return nodes, float(moved)
        nodes *= 2
    told = f"the bulk still moves by {moved:.1e}" if np.isfinite(moved) else "the bulk is not found"
    raise not_converged(law.densities, f"with {most} values {told}") from failure


def not_converged(densities: tuple[tuple[str, str], ...], told: str) -> NumericalError:
    """The error that names the averages which have not converged. densities: as of BulkLaw; told: how far they came."""
    names = " and ".join(name for _, name in densities)
    cures = {
        "trait": "take values and weights instead of a density, or cut it off where it is thin",
        "field": "take a smoother function of it there",
    }
    cure = " or ".join(cures[kind] for kind in dict.fromkeys(kind for kind, _ in densities))
    return NumericalError(f"the average over {names} has not converged: {told}; {cure}")


def _most(law: BulkLaw, p: Point) -> int:
    """The most values that are tried of each density: of several at the same sites all combinations count."""
    assert law.sites is not None
    few, more = (np.prod([len(one.weights) for one in law.sites(p, nodes)]) for nodes in (32, 64))
    densities = max(1, round(float(np.log2(more / few))))
    return MOST if densities == 1 else int(2 ** (np.log2(TOGETHER) // densities))


def _first_guess(law: BulkLaw, p: Point, most: int) -> int:
    """A number of values with which responses a little above the axis have settled: with fewer the bulk falls apart
    into islands, one for each value, which take long to find and mean nothing."""
    nodes = law.nodes
    branch = Branch(law, p)
    height = 10 * branch.start.height
    excess = 1j * height * branch.responses(np.array([1j * height]))[branch.resolvent_index][0] - 1
    mean = -excess.imag * height
    width = np.sqrt(max(-excess.real * height**2 - mean**2, 1e-6 * mean**2))
    z = mean + width * (np.linspace(-SPREAD, SPREAD, ABOVE) + 1j * NEAR)
    while nodes < most:
        if _change(Branch(replace(law, nodes=nodes), p), Branch(replace(law, nodes=2 * nodes), p), z) <= ROUGHLY:
            break
        nodes *= 2
    return nodes


def _moved(coarse: Branch, law: SpectralLaw, fine: Branch) -> float:
    """The largest relative change of a response at points inside the bulk, in its gaps and beside it."""
    return _change(coarse, fine, _points(law))


def _change(coarse: Branch, fine: Branch, z: np.ndarray) -> float:
    """The largest relative change of a response between two numbers of values; infinite if it could not be told."""
    r, errors = coarse.followed(z)
    if not np.max(errors) < 1e-8:
        return np.inf
    better, last = r, np.full(z.shape, np.inf)
    with np.errstate(all="ignore"):
        for _ in range(NEWTON):
            better, _, last, _ = fine.kernel(z, better, np.abs(r))
    if not np.max(last) < 1e-8:
        return np.inf
    return float(np.max(np.abs(better - r) / np.max(np.abs(r), axis=0)))


def _points(law: SpectralLaw) -> np.ndarray:
    edges = sorted(law.edges)
    width = edges[-1][1] - edges[0][0]
    share = (1 - np.cos(np.pi * (np.arange(INSIDE) + 0.5) / INSIDE)) / 2
    inside = [low + (high - low) * share for low, high in edges]
    gaps = [(a + b) / 2 for (_, a), (b, _) in zip(edges, edges[1:], strict=False)]
    beside = [edges[0][0] - 0.1 * width, edges[-1][1] + 0.1 * width]
    return np.concatenate([*inside, np.array([*gaps, *beside])]).astype(complex)
