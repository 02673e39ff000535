"""The number of quadrature nodes for densities of traits in the bulk, by doubling until the responses converge.

With n nodes a density is a discrete law whose bulk is solved like any other. It represents the density well enough once
the responses inside the bulk, in its gaps and outside agree with those for 2n nodes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import NEAR_ZERO, Branch
from numerics.bulk.law import SpectralLaw
from numerics.bulk.support import law_of
from numerics.runtime.interface import NODES, BulkLaw, Probe
from numerics.runtime.point import Point
from numerics.support.precision import in_float64

TOLERANCE, MOST, TOGETHER = 1e-10, 4096, 2**16
"""Relative change of responses on doubling at which nodes suffice, most nodes per density, and most combinations of
several."""
INSIDE, NEWTON = 48, 4
"""Test points per interval of the bulk, and Newton steps from the responses of n nodes to those of 2n."""
ABOVE, SPREAD, NEAR, ROUGHLY = 128, 6.0, 3e-3, 1e-9
"""Test points above the axis for the first guess: their number, range and height in units of the spectrum's width, and
the relative tolerance there."""


def settled(branch: Branch) -> Branch:
    """Return the branch with a converged number of quadrature nodes; unchanged if there is no density."""
    if not branch.law.settles:
        return branch
    return Branch(replace(branch.law, nodes=_converged_nodes(branch.law, branch.own)[0]), branch.p)


def movement(branch: Branch) -> float:
    """Return the relative change of a converged branch's responses on doubling the nodes."""
    return _converged_nodes(branch.law, branch.own)[1] if branch.law.settles else 0.0


def as_settled(probe: Probe, branch: Branch) -> Probe:
    """Return A(z) with the quadrature nodes of a converged branch."""
    return probe if probe.sites is None else replace(probe, nodes=branch.law.nodes)


def _converged_nodes(law: BulkLaw, p: Point) -> tuple[int, float]:
    return _converge_nodes(replace(law, nodes=NODES), p)


@lru_cache(maxsize=256)
@in_float64
def _converge_nodes(law: BulkLaw, p: Point) -> tuple[int, float]:
    most = _most_nodes(law, p)
    nodes, moved = _first_guess(law, p, most), np.inf
    failure: NumericalError | None = None
    while nodes <= most:
        branch = Branch(replace(law, nodes=nodes), p)
        try:
            moved = _largest_change(branch, law_of(branch), Branch(replace(law, nodes=2 * nodes), p))
        except NumericalError as error:
            moved, failure = np.inf, error
        if moved <= TOLERANCE:
            return nodes, float(moved)
        nodes *= 2
    if np.isfinite(moved):
        raise not_converged(law.densities, f"with {most} values the bulk still changes by {moved:.1e}") from failure
    told = f"with {most} values the bulk was not found"
    raise not_converged(law.densities, f"{told}; {NEAR_ZERO}", "otherwise ") from failure


def not_converged(densities: tuple[tuple[str, str], ...], told: str, otherwise: str = "") -> NumericalError:
    """Return the error that names the averages that have not converged.

    Args:
        densities: as in BulkLaw.
        told: the remaining change, as a clause.
        otherwise: what introduces the remedy after another one.
    """
    names = " and ".join(name for _, name in densities)
    cures = {
        "trait": "use values and weights instead of a density, or truncate it where it is small",
        "field": "use a smoother function of it there",
    }
    cure = " or ".join(cures[kind] for kind in dict.fromkeys(kind for kind, _ in densities))
    return NumericalError(f"the average over {names} has not converged: {told}; {otherwise}{cure}")


def _most_nodes(law: BulkLaw, p: Point) -> int:
    """Return the largest number of nodes per density; several densities at one site need all combinations of nodes."""
    assert law.sites is not None
    few, more = (np.prod([len(law_of_sites.weights) for law_of_sites in law.sites(p, nodes)]) for nodes in (32, 64))
    densities = max(1, round(float(np.log2(more / few))))
    return MOST if densities == 1 else int(2 ** (np.log2(TOGETHER) // densities))


def _first_guess(law: BulkLaw, p: Point, most: int) -> int:
    """Return a number of nodes for which responses slightly above the real axis have converged.

    With fewer nodes the bulk splits into one island per node, an artefact that is slow to resolve.
    """
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


def _largest_change(coarse: Branch, law: SpectralLaw, fine: Branch) -> float:
    """Return the largest relative change of a response inside the bulk, in its gaps and outside."""
    return _change(coarse, fine, _test_points(law))


def _change(coarse: Branch, fine: Branch, z: np.ndarray) -> float:
    """Return the largest relative change of a response at z between two numbers of nodes; infinite if Newton's method
    fails."""
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


def _test_points(law: SpectralLaw) -> np.ndarray:
    """Return test points: Chebyshev points of each interval, centres of gaps, and one point outside each end."""
    edges = sorted(law.edges)
    width = edges[-1][1] - edges[0][0]
    share = (1 - np.cos(np.pi * (np.arange(INSIDE) + 0.5) / INSIDE)) / 2
    inside = [low + (high - low) * share for low, high in edges]
    gaps = [(a + b) / 2 for (_, a), (b, _) in zip(edges, edges[1:], strict=False)]
    beside = [edges[0][0] - 0.1 * width, edges[-1][1] + 0.1 * width]
    return np.concatenate([*inside, np.array([*gaps, *beside])]).astype(complex)
