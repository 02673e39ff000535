"""Linear training on fresh data alone: each site iterates one companion matrix.

Without memory of fixed matrices S(w) is a polynomial in w. With S(w) x = u the state (x(t), x(t - 1), ...) evolves by a
companion matrix A, group of sites by group. The mean is unstable if an eigenvalue of A lies outside the unit disc. The
contribution of noise of one step to later covariances is a Gramian, sum_t A^t b c^T (A^T)^t, summed by doubling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from numerics.limit.linear_sites import Pairs, SitesAt, end_of

LARGEST = 60
"""Rows of the largest companion matrix that is formed for every group of sites."""
STAYS = 1e-9
"""Distance from 1 within which an eigenvalue belongs to a conserved mode."""
DOUBLINGS = 64
"""Largest number of doublings in a sum over steps; every decaying mode in double precision needs fewer."""
DECAYS = 1e-14
"""Distance from the unit circle within which rounding hides whether a mode decays."""
ROUNDING = 1e-16
"""Relative rounding error of a sum."""


def has_finite_memory(sites: SitesAt) -> bool:
    """Whether all noises of sites are redrawn at each step, so that sites have finite memory."""
    if sites.count or sites.fixed_pairs:
        return False
    depth = _depth(sites)
    return all(sector.rows * depth <= LARGEST for sector in sites.sectors.values())


def _depth(sites: SitesAt) -> int:
    """Return the number of earlier steps in the state."""
    return max((delay + power for delay, power in sites.factors), default=0) or 1


@dataclass(frozen=True)
class FiniteMemory:
    """The companion-matrix recursion of sites with finite memory."""

    sites: SitesAt

    @cached_property
    def _powers(self) -> np.ndarray:
        """Coefficients of w^delay (1 - w)^power as a polynomial in w: powers of w x factors."""
        coefficients = np.zeros((_depth(self.sites) + 1, len(self.sites.factors)))
        for k, (delay, power) in enumerate(self.sites.factors):
            for j in range(power + 1):
                coefficients[delay + j, k] = (-1) ** j * math.comb(power, j)
        return coefficients

    @cached_property
    def _steps(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For each sector, the companion matrix (groups x state x state) and input matrix (groups x state x rows)."""
        matrices, sites = {}, self.sites
        for name, polynomial in sites.polynomials(self._powers).items():
            first = np.linalg.inv(polynomial[0].real)
            groups, rows = first.shape[:2]
            state = rows * (len(polynomial) - 1)
            step, enters = np.zeros((groups, state, state)), np.zeros((groups, state, rows))
            enters[:, :rows] = first
            for k, power in enumerate(polynomial[1:]):
                step[:, :rows, k * rows : (k + 1) * rows] = -first @ power.real
            step[:, rows:, :-rows] = np.eye(state - rows)
            matrices[name] = step, enters
        return matrices

    @cached_property
    def leading(self) -> complex:
        """Eigenvalue of largest modulus, apart from conserved modes."""
        all_of = [np.linalg.eigvals(step).ravel() for step, _ in self._steps.values()]
        values = np.concatenate([*all_of, np.zeros(1)])
        moving = values[np.abs(values - 1) > STAYS]
        return complex(moving[np.argmax(np.abs(moving))])

    def white_radius(self, pairs: Pairs) -> tuple[float, float]:
        """Return the spectral radius of the covariances of redrawn noises, summed over later times, and its error;
        infinite if a mode does not decay."""
        transfer = self._transfer(pairs) if abs(self.leading) < 1 - DECAYS else None
        return (math.inf, 0.0) if transfer is None else (spectral_radius(transfer[0]), transfer[1])

    def _transfer(self, to: Pairs) -> tuple[np.ndarray, float] | None:
        """Return the contribution of noises redrawn at one time to covariances at all later times (pairs x pairs), and
        its error; None if the sum diverges.
        """
        sites, error = self.sites, 0.0
        total = np.zeros((end_of(to), end_of(to)))
        for c, scale in sites.covariance_terms:
            sector = sites.sector_of(c.left)
            step, enters = self._steps[sites.places[c.left].sector]
            left, right = (np.moveaxis(enters[:, :, sector.places[x]], 2, 0) for x in (c.left, c.right))
            drive = np.einsum("igs,jgt->ijgst", left, right)
            gramian = _gramian(step, drive)
            if gramian is None:
                return None
            weights = sector.weights * np.broadcast_to(scale, (len(sector.weights), 1, 1))[:, 0, 0]
            for (a, b), rows in to.items():
                if a in sector.places and b in sector.places:
                    block = gramian[..., sector.places[a], sector.places[b]]
                    added = np.einsum("g,ijgkl->klij", weights, block)
                    total[rows, to[c.of]] += added.reshape(added.shape[0] * added.shape[1], -1)
                    # the sum of a mode of modulus 1 - x has relative error ROUNDING / x
                    lost = ROUNDING * np.einsum("g,ijgkl->klij", np.abs(weights), block**2)
                    error += float(np.max(lost, initial=0.0))
        return total, error


def spectral_radius(matrix: np.ndarray) -> float:
    """Return the spectral radius of a matrix."""
    return float(np.max(np.abs(np.linalg.eigvals(matrix)), initial=0.0))


def _gramian(step: np.ndarray, drive: np.ndarray) -> np.ndarray | None:
    """Return sum_t A^t drive (A^T)^t for each group by doubling; None if it diverges."""
    total, power = drive, step
    with np.errstate(all="ignore"):
        for _ in range(DOUBLINGS):
            added = power @ total @ np.swapaxes(power, -1, -2)
            if not np.isfinite(added).all():
                return None
            total = total + added
            if np.all(np.abs(added) <= ROUNDING * np.abs(total)):
                return np.asarray(total)
            power = power @ power
    return None
