"""Outliers at Monte Carlo replicates of the order parameters, by continuation from one eigenproblem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from derive.errors import NumericalError
from numerics.outliers.finding import (
    Points,
    RingSpectrum,
    cycle_factors,
    mapped,
    outlier_positions,
    physical,
    real_among,
)
from numerics.outliers.following import (
    Dense,
    FollowedZeros,
    Lost,
    ShiftedProduct,
    eigenvalue_block,
    follow_eigenvalues,
    follow_zeros,
    repeated,
    zero_block,
)
from numerics.outliers.problem import SpikedProblem, with_slope
from numerics.runtime.interface import Cycle, Order
from numerics.support.nearby import Nearby
from numerics.support.precision import in_float64

NEAR = 0.1
"""Relative distance from an outlier's or edge's eigenvalue within which real eigenvalues are continued too: they may
cross it."""
AGREE = 0.05
"""Tolerated error of continued outliers, in standard errors, where a replicate is solved in full."""
BLOCK_BYTES = 5e8
"""Most bytes of factored matrices of eigenvalues continued together."""


@dataclass(frozen=True)
class Replicas:
    """Outliers, descending, of each replicate, and how they were computed."""

    positions: list[list[float]]
    method: str


@in_float64
def replica_outliers(
    problem: SpikedProblem,
    spectra: Sequence[RingSpectrum] | None,
    outliers: list[float],
    nearby: Nearby,
) -> Replicas:
    """Return the outliers of replicates near a problem with these spectra of cycles and these outliers.

    The replicate farthest from the mean is solved in full as a check. If it disagrees, or continuation fails or changes
    the number of outliers, all are solved in full.
    """
    orders = nearby.orders
    try:
        continued = followed_outliers(problem, spectra, outliers, orders)
        if any(len(one) != len(outliers) for one in continued):
            raise Lost("one is so close to the edge that not all replicas have it")
        worst = _check(problem, outliers, continued, nearby)
        return Replicas(continued, f"followed from the mean; the farthest, solved again, agrees to {worst:.1g} errors")
    except Lost as lost:
        return Replicas(
            [outlier_positions(problem.with_order(order)) for order in orders], f"each replica solved anew: {lost}"
        )


def _check(problem: SpikedProblem, outliers: list[float], continued: list[list[float]], nearby: Nearby) -> float:
    """Return the largest error of continued outliers, in standard errors, against a full solution."""
    orders = nearby.orders
    here = np.array(continued).reshape(len(orders), len(outliers))
    errors = np.array([nearby.estimate(z, column)[1] for z, column in zip(outliers, here.T.tolist(), strict=True)])
    allowed = np.maximum(AGREE * errors, 1e-9 * np.abs(outliers) + 1e-280)
    far = int(np.argmax(np.max(np.abs(here - outliers) / allowed, axis=1, initial=0.0)))
    again = outlier_positions(problem.with_order(orders[far]))
    if len(again) != len(outliers):
        raise Lost("a replica that was solved again has more or fewer outliers")
    off = np.abs(np.array(again) - here[far])
    if np.any(off > allowed):
        raise Lost("a replica that was solved again disagrees")
    return float(np.max(off * AGREE / allowed, initial=0.0))


@in_float64
def followed_outliers(
    problem: SpikedProblem, spectra: Sequence[RingSpectrum] | None, outliers: list[float], orders: Sequence[Order]
) -> list[list[float]]:
    """Return the outliers of each replicate by continuation from those of a problem; raise Lost if it fails."""
    if not problem.probe.unknowns or not orders:
        return [[] for _ in orders]
    if spectra is None:
        return _followed_zeros(problem, outliers, orders)
    by_replicate: list[list[float]] = [[] for _ in orders]
    others = [problem.with_order(order) for order in orders]
    for cycle, spectrum in zip(problem.probe.rings, spectra, strict=True):

        def points(values: Sequence[float], cycle: Cycle = cycle, at: SpikedProblem = problem) -> list[list[float]]:
            return physical(at, cycle, values)

        products = [partial(cycle_factors, other, cycle) for other in others]
        values = followed_eigenvalues(spectrum, edge_images(problem, cycle), products)
        if problem.moves:  # each has its own bulk
            there = [placed(partial(points, at=other), [one])[0] for other, one in zip(others, values, strict=True)]
        else:
            there = placed(points, values)
        for one, zs in zip(by_replicate, there, strict=True):
            one += zs
    return [sorted(one, reverse=True) for one in by_replicate]


def placed(points: Points, values: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the outliers of each of several lists of eigenvalues."""
    places = iter(points([s for one in values for s in one]))
    return [[z for _ in one for z in next(places)] for one in values]


def agree(points: Points, followed: Sequence[Sequence[float]], number: int, again: Sequence[float]) -> bool:
    """Return whether continued eigenvalues of replicate `number` have the outliers of its full solution `again`."""
    places = [sorted(zs) for zs in placed(points, [*followed, again])]
    here, there = places[number], places[-1]
    if len(here) != len(there):
        return False
    alike = [zs for zs in places[:-1] if len(zs) == len(there)]
    allowed = np.maximum(AGREE * np.std(alike, axis=0), 1e-9 * np.abs(there))
    return bool(np.all(np.abs(np.subtract(here, there)) <= allowed))


def edge_images(problem: SpikedProblem, cycle: Cycle) -> np.ndarray:
    """Return the scalar map of a cycle just outside the edges of the bulk."""
    bulk = [pair for pair in problem.excluded if pair[1] > pair[0]]
    if not bulk:
        return np.zeros(0)
    beside = 1e-6 * (max(high for _, high in bulk) - min(low for low, _ in bulk))
    ends = np.array([z for low, high in bulk for z in (low - beside, high + beside)])
    return np.real(mapped(problem.probe, cycle, problem.p, ends, problem.branch.responses(ends)))


def followed_eigenvalues(
    spectrum: RingSpectrum, edges: np.ndarray, products: Sequence[Callable[[], tuple[np.ndarray, ...]]]
) -> list[list[float]]:
    """Return the real eigenvalues of nearby matrices that outliers may belong to; raise Lost if continuation fails.

    Args:
        spectrum: of the mean.
        edges: images of the bulk's edges under the scalar map.
        products: functions that return each matrix as factors.
    """
    outlying = np.array([bool(zs) for zs in spectrum.places], bool)
    marks = np.concatenate([spectrum.real[outlying], edges])
    near = np.any(np.abs(spectrum.real[:, None] - marks) <= NEAR * np.abs(marks), axis=1)
    chosen = spectrum.real[(outlying | near) & (spectrum.real != 0)].tolist()
    if spectrum.meeting:
        raise Lost("two eigenvalues are about to meet and leave the real axis")
    if not chosen:
        return [[] for _ in products]
    by_replicate: list[list[float]] = [[] for _ in products]
    for part in apart(chosen, max(1, int(BLOCK_BYTES / (8 * spectrum.matrix.size)))):
        block = eigenvalue_block(spectrum.matrix, part)
        for one, factors in zip(by_replicate, products, strict=True):
            there = follow_eigenvalues(block, ShiftedProduct(factors()))
            one += real_among(there.step, there.zeros.astype(complex)).tolist()
    return by_replicate


def apart(values: Sequence[float], most: int) -> list[list[float]]:
    """Split values into lists of at most `most`, cut at the widest gaps."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return [ordered]
    cut = 1 + int(np.argmax(np.diff(ordered)))
    return [*apart(ordered[:cut], most), *apart(ordered[cut:], most)]


def _followed_zeros(problem: SpikedProblem, outliers: list[float], orders: Sequence[Order]) -> list[list[float]]:
    by_replicate: list[list[float]] = [[] for _ in orders]
    for z, count in repeated(outliers):
        for one, there in zip(by_replicate, follow_zero(problem, z, count, orders), strict=True):
            one += [float(x.real) for x in there.zeros if abs(x.imag) <= 1e-6 * abs(x) and problem.outside(x.real)]
    return [sorted(one, reverse=True) for one in by_replicate]


def follow_zero(problem: SpikedProblem, z: float, count: int, orders: Sequence[Order]) -> list[FollowedZeros]:
    """Continue the zero of A(z) at z, of multiplicity `count`, to each replicate of the order parameters."""

    others = [problem.with_order(order) for order in orders]

    def matrices(numbers: Sequence[int], points: Sequence[float]) -> Iterator[Dense]:
        if problem.moves:  # each has its own bulk
            yield from (Dense(*with_slope(others[k], x)) for k, x in zip(numbers, points, strict=True))
            return
        responses = problem.branch.responses(np.array(points)).T.real
        for k, x, r in zip(numbers, points, responses, strict=True):
            yield Dense(*with_slope(others[k], x, r))

    block = zero_block(with_slope(problem, z)[0], count)
    try:
        return follow_zeros(block, z, matrices, len(orders))
    except NumericalError as error:
        raise Lost("one is so close to the edge that it meets the bulk in a replica") from error
