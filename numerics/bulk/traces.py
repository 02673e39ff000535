"""Normalised traces of the resolvent with other matrices: tr R A, tr R A R and tr R A R B.

tr R A is one of the responses. Adding epsilon A to the matrix changes the resolvent by epsilon R A R, so the others are
derivatives of responses, which solve linear equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from numerics.bulk.branch import Branch, solve_batch
from numerics.bulk.settling import not_converged
from numerics.runtime.interface import BulkLaw
from numerics.support.precision import in_float64

SETTLED, MOST = 1e-9, 4096
"""Relative change of traces on doubling the quadrature nodes at which they have converged, and most nodes."""


@dataclass(frozen=True)
class ResolventTraces:
    """Traces at one point: beside[k] = tr R A_k, between[k] = tr R A_k R, both[k][l] = tr R A_k R A_l."""

    beside: np.ndarray
    between: np.ndarray
    both: np.ndarray


@in_float64
def traced(law: BulkLaw, branch: Branch, z: np.ndarray) -> list[ResolventTraces]:
    """Return the traces at points with Im z >= 0; branch: that of the bulk alone."""
    nodes = branch.law.nodes
    coarse = _traced(Branch(replace(law, nodes=nodes), branch.p), z)
    while law.settles:
        nodes *= 2
        finer = _traced(Branch(replace(law, nodes=nodes), branch.p), z)
        moved = max(_moved(a, b) for a, b in zip(finer, coarse, strict=True))
        coarse = finer
        if moved <= SETTLED:
            break
        if nodes >= MOST:
            raise not_converged(law.densities, f"with {nodes} values traces still change by {moved:.1e}")
    return coarse


def _moved(a: ResolventTraces, b: ResolventTraces) -> float:
    parts = ((a.beside, b.beside), (a.between, b.between), (a.both, b.both))
    return float(max(np.max(np.abs(x - y)) / max(np.max(np.abs(x)), 1e-300) for x, y in parts))


def _traced(branch: Branch, z: np.ndarray) -> list[ResolventTraces]:
    law = branch.law
    assert law.sources is not None
    z = np.asarray(z, complex)
    r = branch.responses(z).T
    _, _, slope = branch.equations(z, r)
    given = (*(() if law.sites is None else (law.sites(branch.p, law.nodes),)), *law.updated(branch.p))
    rates = law.sources(branch.p, z, list(r.T), *given)
    right = np.array([[np.broadcast_to(np.asarray(e), z.shape) for e in one] for one in rates])
    slope = np.array(slope, complex)
    if law.slopes is not None:
        for place, one in zip(law.vanishing, law.slopes(branch.p, z, list(r.T), *given), strict=True):
            slope[:, :, place] = np.array([np.broadcast_to(np.asarray(e), z.shape) for e in one]).T
    with np.errstate(all="ignore"):
        moved = solve_batch(slope, -np.moveaxis(right, (0, 1, 2), (2, 1, 0)))
    places = [place for _, place in law.images]
    # tr R A R B is symmetric in A and B, so the order of derivatives does not matter
    return [ResolventTraces(r[i, places], moved[i, law.resolvent], moved[i, places].T) for i in range(z.size)]
