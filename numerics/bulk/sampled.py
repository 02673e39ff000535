"""Standard errors of a bulk whose equations contain sampled sites or sampled means of the training level.

At an edge the Jacobian of F(z, r) = 0 with respect to r is singular. With l its left null vector, a perturbation F of
the equations moves the edge by -l.F / l.(dF/dz) to first order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from derive.errors import NumericalError
from numerics.bulk.branch import Branch
from numerics.bulk.law import SpectralLaw
from numerics.bulk.moments import moments
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64


@in_float64
def edge_errors(branch: Branch, others: Sequence[Branch], law: SpectralLaw, nearby: Nearby) -> list[list[float | None]]:
    """Return a standard error, bias included, for each edge of each interval.

    None if first-order perturbation theory does not apply, as at a hard edge. others: the branch at each Monte Carlo
    replicate of the order parameters.
    """
    return [[_error(branch, edge, others, nearby) for edge in pair] for pair in law.edges]


@in_float64
def moment_errors(branch: Branch, others: Sequence[Branch], count: int, nearby: Nearby) -> list[float]:
    """Return a standard error, bias included, for each moment."""
    here, there = moments(branch, count), [moments(one, count, branch) for one in others]
    found = [nearby.estimate(value, [one[k] for one in there]) for k, value in enumerate(here)]
    return [math.hypot(error, value - now) for (value, error), now in zip(found, here, strict=True)]


def _error(branch: Branch, edge: float, others: Sequence[Branch], nearby: Nearby) -> float | None:
    z = np.array([edge])
    try:
        r = branch.responses(z).T.real
        _, by_z, by_r = (x[0] for x in branch.equations(z, r))
        left = np.linalg.svd(by_r.T)[2][-1]
        moved = [edge - float(left @ one.equations(z, r)[0][0] / (left @ by_z)) for one in others]
    except (NumericalError, np.linalg.LinAlgError):
        return None
    value, error = nearby.estimate(edge, moved)
    total = math.hypot(error, value - edge)
    return total if math.isfinite(total) else None
