"""Outliers at slightly different order parameters, such as those without one replicate, from one eigenproblem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from derive.errors import NumericalError
from numerics.outliers.finding import (
    CycleSpectrum,
    Points,
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
from numerics.support.reports import ReplicateMethod

NEAR = 0.1
"""Relative distance within which real eigenvalues near that of an outlier or of an edge are continued too: they may
exchange places with it, or become outliers."""
AGREE = 0.05
"""Tolerance of continued outliers in a replicate that is solved again, as a fraction of their error."""
BLOCK_BYTES = 5e8
"""Bytes of the factored matrices of eigenvalues that are continued together."""


@dataclass(frozen=True)
class Replicas:
    """Outliers, in descending order, of several sets of order parameters, and how they were computed."""

    positions: list[list[float]]
    method: ReplicateMethod


@in_float64
def replica_outliers(
    problem: SpikedProblem,
    spectra: Sequence[CycleSpectrum] | None,
    outliers: list[float],
    nearby: Nearby,
) -> Replicas:
    """Return the outliers at order parameters near those of a problem, whose cycles have these spectra and these
    outliers. The most distant set of order parameters is solved again as a check. If it disagrees, or if outliers
    cannot be continued or change in number, all sets are solved again.
    """
    orders = nearby.orders
    try:
        found = followed_outliers(problem, spectra, outliers, orders)
        if any(len(one) != len(outliers) for one in found):
            raise Lost("one is so close to the edge that some replicates lack it")
        worst = _check(problem, outliers, found, nearby)
        return Replicas(found, ReplicateMethod("followed", worst))
    except Lost as lost:
        positions = [outlier_positions(problem.with_order(order)) for order in orders]
        return Replicas(positions, ReplicateMethod("solved", reason=str(lost)))


def _check(problem: SpikedProblem, outliers: list[float], found: list[list[float]], nearby: Nearby) -> float:
    """Return the deviation, in standard errors, of continued outliers from a new solution."""
    orders = nearby.orders
    here = np.array(found).reshape(len(orders), len(outliers))
    errors = np.array([nearby.estimate(z, column)[1] for z, column in zip(outliers, here.T.tolist(), strict=True)])
    allowed = np.maximum(AGREE * errors, 1e-9 * np.abs(outliers) + 1e-280)
    far = int(np.argmax(np.max(np.abs(here - outliers) / allowed, axis=1, initial=0.0)))
    again = outlier_positions(problem.with_order(orders[far]))
    if len(again) != len(outliers):
        raise Lost("a replicate that was solved again has a different number of outliers")
    off = np.abs(np.array(again) - here[far])
    if np.any(off > allowed):
        raise Lost("a replicate that was solved again disagrees")
    return float(np.max(off * AGREE / allowed, initial=0.0))


@in_float64
def followed_outliers(
    problem: SpikedProblem, spectra: Sequence[CycleSpectrum] | None, outliers: list[float], orders: Sequence[Order]
) -> list[list[float]]:
    """Return the outliers at each of several sets of order parameters, continued from those of a problem; raise Lost if
    that fails."""
    if not problem.probe.unknowns or not orders:
        return [[] for _ in orders]
    if spectra is None:
        return _followed_zeros(problem, outliers, orders)
    found: list[list[float]] = [[] for _ in orders]
    others = [problem.with_order(order) for order in orders]
    for cycle, spectrum in zip(problem.probe.cycles, spectra, strict=True):

        def points(values: Sequence[float], cycle: Cycle = cycle, at: SpikedProblem = problem) -> list[list[float]]:
            return physical(at, cycle, values)

        products = [partial(cycle_factors, other, cycle) for other in others]
        values = followed_eigenvalues(spectrum, edge_images(problem, cycle), products)
        if problem.moves:  # each has its own bulk
            there = [placed(partial(points, at=other), [one])[0] for other, one in zip(others, values, strict=True)]
        else:
            there = placed(points, values)
        for one, zs in zip(found, there, strict=True):
            one += zs
    return [sorted(one, reverse=True) for one in found]


def placed(points: Points, values: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the outliers that belong to each of several lists of eigenvalues."""
    places = iter(points([s for one in values for s in one]))
    return [[z for _ in one for z in next(places)] for one in values]


def agree(points: Points, followed: Sequence[Sequence[float]], number: int, again: Sequence[float]) -> bool:
    """Return whether eigenvalues continued to a replicate have the outliers of a new solution."""
    places = [sorted(zs) for zs in placed(points, [*followed, again])]
    here, there = places[number], places[-1]
    if len(here) != len(there):
        return False
    alike = [zs for zs in places[:-1] if len(zs) == len(there)]
    allowed = np.maximum(AGREE * np.std(alike, axis=0), 1e-9 * np.abs(there))
    return bool(np.all(np.abs(np.subtract(here, there)) <= allowed))


def edge_images(problem: SpikedProblem, cycle: Cycle) -> np.ndarray:
    """Return the values of the scalar map of a cycle just outside the bulk."""
    bulk = [pair for pair in problem.excluded if pair[1] > pair[0]]
    if not bulk:
        return np.zeros(0)
    beside = 1e-6 * (max(high for _, high in bulk) - min(low for low, _ in bulk))
    ends = np.array([z for low, high in bulk for z in (low - beside, high + beside)])
    return np.real(mapped(problem.probe, cycle, problem.p, ends, problem.branch.responses(ends)))


def followed_eigenvalues(
    spectrum: CycleSpectrum, edges: np.ndarray, products: Sequence[Callable[[], tuple[np.ndarray, ...]]]
) -> list[list[float]]:
    """Return real eigenvalues of matrices near that of a spectrum, as far as they may belong to an outlier.

    edges: the edges of the bulk, as values of the scalar map. products: functions that create each matrix, as factors.
    """
    outlying = np.array([bool(zs) for zs in spectrum.places], bool)
    marks = np.concatenate([spectrum.real[outlying], edges])
    near = np.any(np.abs(spectrum.real[:, None] - marks) <= NEAR * np.abs(marks), axis=1)
    chosen = spectrum.real[(outlying | near) & (spectrum.real != 0)].tolist()
    if spectrum.meeting:
        raise Lost("two eigenvalues are about to meet and leave the real axis")
    if not chosen:
        return [[] for _ in products]
    found: list[list[float]] = [[] for _ in products]
    for part in apart(chosen, max(1, int(BLOCK_BYTES / (8 * spectrum.matrix.size)))):
        block = eigenvalue_block(spectrum.matrix, part)
        for one, factors in zip(found, products, strict=True):
            there = follow_eigenvalues(block, ShiftedProduct(factors()))
            one += real_among(there.step, there.zeros.astype(complex)).tolist()
    return found


def apart(values: Sequence[float], most: int) -> list[list[float]]:
    """Return values in lists of limited length, split where neighbours are farthest from each other."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return [ordered]
    cut = 1 + int(np.argmax(np.diff(ordered)))
    return [*apart(ordered[:cut], most), *apart(ordered[cut:], most)]


def _followed_zeros(problem: SpikedProblem, outliers: list[float], orders: Sequence[Order]) -> list[list[float]]:
    found: list[list[float]] = [[] for _ in orders]
    for z, count in repeated(outliers):
        for one, there in zip(found, follow_zero(problem, z, count, orders), strict=True):
            one += [float(x.real) for x in there.zeros if abs(x.imag) <= 1e-6 * abs(x) and problem.outside(x.real)]
    return [sorted(one, reverse=True) for one in found]


def follow_zero(problem: SpikedProblem, z: float, count: int, orders: Sequence[Order]) -> list[FollowedZeros]:
    """Return the zero of A(z) at z, with its multiplicity, continued to each of several sets of order parameters."""

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
        raise Lost("one is so close to the edge that it meets the bulk in a replicate") from error
