"""A check that the bulk ends at its reported edges."""

from __future__ import annotations

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import Branch
from numerics.bulk.curve import Curve
from numerics.bulk.law import SpectralLaw
from numerics.certificate.zeros import responses_along

BESIDE = 1e-7
"""Distance from an edge at which it is checked, in units of the largest edge."""
ALONE = 4.0
"""Least distance to another edge or to zero for a check, in units of BESIDE."""
INSIDE, OUTSIDE = 1e-9, 1e-2
"""Least |Im G| / |G| inside the bulk, and largest Im G outside relative to that inside."""


def unconfirmed_edges(branch: Branch, law: SpectralLaw, thorough: bool) -> list[float]:
    """Return edges at which G is real on both sides, or on neither.

    The number of real roots G of the curve changes by two at an edge. If it does not, for example where three roots
    meet, or without a curve in a thorough check, the bulk equations decide.
    """
    ends = [end for pair in law.edges for end in pair]
    if branch.law.sites is not None or not ends:
        return []
    step = BESIDE * max(map(abs, ends))
    places = [0.0, *ends]
    alone = [end for end in ends if sum(abs(end - other) <= ALONE * step for other in places) == 1]
    doubtful = alone if thorough else []
    if branch.eliminated and alone:
        counts = real_roots(branch, np.array([*(end - step for end in alone), *(end + step for end in alone)]))
        sides = zip(alone, counts, counts[len(alone) :], strict=False)
        doubtful = [end for end, one, other in sides if one == other]
    return [end for end in doubtful if not _ends_at(branch, end, step)]


def real_roots(branch: Branch, z: np.ndarray) -> list[int]:
    """Return the number of real roots G of the curve at each real z."""
    curve = Curve.of(branch.law, branch.own)
    assert curve is not None, "roots of a curve need a curve"
    table = curve.table
    occupied = np.flatnonzero(table.any(axis=1))
    if not occupied.size or occupied[-1] == 0:
        return [0] * z.size
    table = table[: 1 + int(occupied[-1])]
    powers = np.array([z**k for k in range(table.shape[1])]).T @ table.T
    degree = powers.shape[1] - 1
    companion = np.zeros((z.size, degree, degree))
    companion[:, 1:, :-1] = np.eye(degree - 1)
    with np.errstate(all="ignore"):
        companion[:, :, -1] = -powers[:, :-1] / powers[:, -1:]
    if not np.isfinite(companion).all():
        return [0] * z.size
    return np.sum(np.linalg.eigvals(companion).imag == 0, axis=1).tolist()


def _ends_at(branch: Branch, end: float, step: float) -> bool:
    """Return whether G is real on one side of a point and complex on the other; true if undecided."""
    try:
        resolvents = responses_along(branch, np.array([end - step, end + step]))[:, branch.resolvent_index]
    except NumericalError:
        return True
    outside, inside = sorted(resolvents, key=lambda g: abs(g.imag))
    return bool(abs(inside.imag) > INSIDE * abs(inside) and abs(outside.imag) < OUTSIDE * abs(inside.imag))
