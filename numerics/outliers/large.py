"""Outliers of eigenproblems that are too large to be written down, at all times, and of all replicas.

The matrix is a product of factors, and what it does to a few vectors is enough: its leading eigenvalues come from
Arnoldi's method, those of earlier times, whose factors are corners of the last ones, start where those of later times
ended, and a replica has its eigenvalues where the small matrix between left and right vectors of the mean has them, to
second order in how far it is off. Replicas are made one at a time, each for all times at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import jax
import numpy as np

from numerics.nearby import Nearby
from numerics.outliers.errors import estimated_outliers
from numerics.outliers.finding import Outlier, Points, physical, real_among, ring_factors
from numerics.outliers.following import Lost, repeated
from numerics.outliers.leading import CONVERGED, Leading, NotConverged, leading
from numerics.outliers.paths import CHECKS, Course
from numerics.outliers.problem import SpikedProblem
from numerics.outliers.replicas import NEAR, Replicas, edge_images, placed
from numerics.outliers.restriction import Restriction, Steps
from numerics.precision import in_float64
from numerics.progress import Report, part
from numerics.runtime.interface import Key, Order, Ring

ROWS = 1000
"""Larger eigenproblems are not written down."""
WITHIN = 1e-8
"""Residual of eigenvalues of replicas, relative to the largest."""
OFF = 0.15
"""Replicas between the vectors of the mean may be off by so many errors: the error changes by a third of that at
most, since each of ten replicas makes up a third of it."""
APART = 1e-6
"""Left and right vectors whose spaces are so close to a right angle do not belong to the same eigenvalues."""

Factors = tuple[np.ndarray, ...]
Shapes = dict[Key, tuple[int, ...]]


@dataclass(frozen=True)
class Spectrum:
    """Outliers of the last time, those of each replica, and both at all times if they were asked for; rows of the
    largest matrix."""

    outliers: list[Outlier]
    replicas: Replicas
    course: Course | None
    rows: int


def is_large(problem: SpikedProblem) -> bool:
    """Whether the matrix of a ring has too many rows to be written down. Where the bulk moves with order parameters, or
    vectors are asked about, it is all the same."""
    probe = problem.probe
    if not (probe.unknowns and probe.reduced) or problem.moves or probe.directions:
        return False
    return max(rows_of(problem, ring) for ring in probe.rings) > ROWS


def rows_of(problem: SpikedProblem, ring: Ring) -> int:
    """Of the matrix of a ring, from the shapes of the order parameters."""
    struct: type = jax.ShapeDtypeStruct
    shapes = {key: struct(np.shape(x), float) for key, x in problem.order.items()}
    return int(jax.eval_shape(lambda order: ring.pencil(problem.p, order), shapes).shape[0])


@in_float64
def large_spectrum(problem: SpikedProblem, steps: Steps | None, nearby: Nearby, tell: Report) -> Spectrum:
    """Outliers without the matrices that they are eigenvalues of; Lost where that cannot be done.

    steps: how the problem depends on time, where outliers at all times are wanted.
    """
    rings = problem.probe.rings
    if steps is not None and not problem.probe.steady:
        raise Lost("coefficients depend on the number of steps")
    found = [
        _OfRing(problem, ring, steps).spectrum(nearby, part(tell, k / len(rings), (k + 1) / len(rings)))
        for k, ring in enumerate(rings)
    ]
    last = found[0].last
    outliers = sorted((one for each in found for one in each.outliers), key=lambda o: (o.z, o.condition), reverse=True)
    replicas = [
        sorted((z for each in found for z in each.replicas[last][number]), reverse=True)
        for number in range(len(nearby.orders))
    ]
    worst, rows = max(one.worst for one in found), max(one.rows for one in found)
    told = f"each solved from the mean's vectors; between those alone they are off by at most {worst:.1g} errors"
    if steps is None:
        return Spectrum(outliers, Replicas(replicas, told), None, rows)
    top = max((high for _, high in problem.excluded), default=float("nan"))
    times = range(steps.count + 1)
    course = Course(
        [(sorted((z for each in found for z in each.path.get(t, [])), reverse=True), top) for t in times],
        [
            [sorted((z for each in found for z in each.at(t, number)), reverse=True) for t in times]
            for number in range(len(nearby.orders))
        ],
        max(one.anew for one in found),
    )
    return Spectrum(outliers, Replicas(replicas, told), course, rows)


@dataclass(frozen=True)
class _Found:
    """Of one ring: outliers of the last time, by time those of the mean and those of each replica, how far replicas
    were off, in errors, where they were solved anew as a check, and at how many times all were."""

    last: int
    outliers: list[Outlier]
    path: dict[int, list[float]]
    replicas: dict[int, list[list[float]]]
    worst: float
    anew: int
    rows: int

    def at(self, time: int, number: int) -> list[float]:
        return self.replicas[time][number] if time in self.replicas else []


@dataclass(frozen=True)
class _Vectors:
    """Leading eigenvalues of the mean at one time, and left and right vectors where replicas may have outliers."""

    right: Leading
    left: np.ndarray | None
    between: np.ndarray

    def nearby(self, factors: Factors) -> np.ndarray:
        """The matrix of a replica between the vectors."""
        assert self.left is not None, "asked only where there are some"
        return np.linalg.solve(self.between, self.left.T @ _applied(factors, self.right.vectors))


class _OfRing:
    def __init__(self, problem: SpikedProblem, ring: Ring, steps: Steps | None) -> None:
        self.problem, self.ring = problem, ring
        self.points: Points = partial(physical, problem, ring)
        self.edges = edge_images(problem, ring)
        least = float(np.min(np.abs(self.edges), initial=np.inf))
        if not np.isfinite(least) or least == 0:
            raise Lost("the bulk has no edge at which the map is known")
        self.floor, self.edge = (1 - NEAR) * least, least
        self.restriction = None if steps is None else Restriction(problem, ring, steps)
        if self.restriction is not None and not self.restriction.nested:
            raise Lost("matrices of early times are no parts of those of later ones")
        self.times = [0] if steps is None else list(range(1, steps.count + 1))

    def factors(self, order: Order) -> Factors:
        """Of the last time."""
        if self.restriction is not None:
            return self.restriction.of(order)
        return ring_factors(self.problem.with_order(order), self.ring)

    def corner(self, whole: Factors, time: int) -> Factors:
        return whole if self.restriction is None else self.restriction.at(time, self.problem.order, whole)

    def spectrum(self, nearby: Nearby, tell: Report) -> _Found:
        """Of the mean and of all replicas."""
        last, orders = self.times[-1], nearby.orders
        whole = self.factors(self.problem.order)
        vectors = self._vectors(whole, bool(orders), part(tell, 0.0, 0.4))
        values = {time: self._real(one.right.small, one.right.found) for time, one in vectors.items()}
        path = self._placed(values)
        self._check_floor([s for one in values.values() for s in one if abs(s) < (1 - 1e-6) * self.edge])
        outliers = self._outliers(self.corner(whole, last), vectors[last])
        rows = whole[0].shape[0]
        del whole
        replicas: dict[int, list[list[float]]] = {time: [[] for _ in orders] for time in self.times}
        followed = [time for time, one in vectors.items() if one.left is not None]
        if not orders or last not in followed:
            return _Found(last, outliers, path, replicas, 0.0, 0, rows)
        checked = self.times[:: max(1, len(self.times) // CHECKS)]
        compared: list[tuple[int, list[float], list[float]]] = []

        def go(anew: bool) -> None:
            squares = np.zeros(len(path[last]))
            for number, order in enumerate(orders):
                tell(0.4 + 0.6 * number / len(orders), f"outliers of replica {number + 1} of {len(orders)}")
                theirs = self.factors(order)
                near = self._placed({time: self._between(theirs, time, vectors[time]) for time in followed})
                exact = self._placed({last: self._again(theirs, last, vectors[last])})
                far = _far(path[last], near[last], exact[last], squares, (number + 1) / len(orders))
                times = (
                    followed
                    if anew or far or order is nearby.half
                    else [t for t in checked if t in followed and t % len(orders) == number]
                )
                exact |= self._placed({t: self._again(theirs, t, vectors[t]) for t in times if t != last})
                if not far:
                    compared.extend((time, near[time], zs) for time, zs in exact.items())
                for time, zs in (near | exact).items():
                    replicas[time][number] = zs

        go(anew=False)
        worst = max((_off(path[t], one, other, replicas[t], nearby) for t, one, other in compared), default=0.0)
        if worst > OFF:
            go(anew=True)
        return _Found(last, outliers, path, replicas, worst, len(followed) if worst > OFF else 0, rows)

    def _placed(self, values: dict[int, list[float]]) -> dict[int, list[float]]:
        """The outliers, descending, of eigenvalues by time."""
        places = placed(self.points, list(values.values()))
        return {time: sorted(zs, reverse=True) for time, zs in zip(values, places, strict=True)}

    def _between(self, whole: Factors, time: int, vectors: _Vectors) -> list[float]:
        """Eigenvalues of a replica between the vectors of the mean."""
        small = vectors.nearby(self.corner(whole, time))
        return self._real(small, np.linalg.eigvals(small))

    def _again(self, whole: Factors, time: int, vectors: _Vectors) -> list[float]:
        """Eigenvalues of a replica, solved for."""
        found = self._leading(self.corner(whole, time), vectors.right.vectors, WITHIN)
        return self._real(found.small, found.found)

    def _vectors(self, whole: Factors, wanted: bool, tell: Report) -> dict[int, _Vectors]:
        """Of all times, the last one first; wanted: whether replicas will be asked for."""
        found: dict[int, _Vectors] = {}
        start = left_start = None
        for time in reversed(self.times):
            tell(1 - time / (self.times[-1] + 1), f"outliers at time {time} of {self.times[-1]}")
            factors = self.corner(whole, time)
            right = self._leading(factors, start)
            start = right.vectors
            left, between = None, np.zeros((0, 0))
            if wanted and np.any(np.abs(right.found) >= self.floor):
                other = self._leading(tuple(x.T for x in reversed(factors)), left_start)
                left_start = other.vectors
                right, left, between = _paired(right, other)
            found[time] = _Vectors(right, left, between)
        return found

    def _leading(self, factors: Factors, start: np.ndarray | None, within: float = CONVERGED) -> Leading:
        size = factors[0].shape[0]
        begin = None if start is None else start[:size]
        try:
            return leading(partial(_applied, factors), size, self.floor, begin, within)
        except NotConverged:
            raise Lost("eigenvalues near the edge lie too close together") from None

    def _real(self, matrix: np.ndarray, values: np.ndarray) -> list[float]:
        """Real eigenvalues that outliers may come from; matrix: a small one that has them."""
        large = values[np.abs(values) >= self.floor]
        found: list[float] = real_among(matrix, large).tolist() if len(large) else []
        return found

    def _check_floor(self, values: Sequence[float]) -> None:
        """Eigenvalues smaller than what the map is at any edge have no outliers, or smaller ones may have some too."""
        if any(self.points(values)):
            raise Lost("an eigenvalue smaller than those at the edges belongs to an outlier")

    def _outliers(self, factors: Factors, vectors: _Vectors) -> list[Outlier]:
        """With residuals and conditions."""
        right = vectors.right
        real = self._real(right.small, right.found)
        scale = max(1.0, float(np.abs(right.values[0]))) if len(right.values) else 1.0
        found = []
        for s, count in repeated(real):
            space = right.vectors @ _null_space(right.small, s, count)
            residual = float(np.linalg.norm(_applied(factors, space) - s * space, 2))
            condition = 1.0
            if vectors.left is not None:
                # left vectors of the same eigenvalue, from the small matrix between both kinds
                small = vectors.nearby(factors)
                other = np.linalg.solve(vectors.between.T, _null_space(small.T, s, count))
                overlap = np.linalg.svd(np.linalg.qr(vectors.left @ other)[0].T @ space, compute_uv=False)[-1]
                condition = float(np.linalg.norm(right.small)) / max(abs(s) * float(overlap), 1e-300)
            for z in self.points([s])[0]:
                found += [Outlier(z, residual / scale, condition)] * count
        return found


def _far(here: list[float], near: list[float], exact: list[float], squares: np.ndarray, share: float) -> bool:
    """Whether a replica is so far from the mean that its outliers between the vectors of the mean are off by too many
    errors; squares: of what replicas have moved outliers by, up to this one, and share: of all replicas."""
    if not len(near) == len(exact) == len(here):
        return True
    squares += np.subtract(exact, sorted(here, reverse=True)) ** 2
    allowed = np.maximum(OFF * np.sqrt(squares / share), 1e-9 * np.abs(exact))
    return bool(np.any(np.abs(np.subtract(near, exact)) > allowed))


def _off(
    here: list[float], near: list[float], exact: list[float], replicas: list[list[float]], nearby: Nearby
) -> float:
    """How far the outliers of a replica are from those that are solved for, in standard errors."""
    if len(near) != len(exact):
        return float("inf")
    errors = [error for _, error in estimated_outliers(here, replicas, nearby)]
    if len(near) != len(here) or not all(map(math.isfinite, errors)):
        return 0.0  # without an error there is nothing to compare with
    scales = [max(error, 1e-9 * abs(z)) for error, z in zip(errors, sorted(here, reverse=True), strict=True)]
    return max((abs(a - b) / scale for a, b, scale in zip(near, exact, scales, strict=True)), default=0.0)


def _applied(factors: Factors, vectors: np.ndarray) -> np.ndarray:
    return reduce(lambda v, factor: factor @ v, reversed(factors), vectors)


def _null_space(matrix: np.ndarray, s: float, count: int) -> np.ndarray:
    """Orthonormal vectors that a small matrix sends to s times themselves."""
    found: np.ndarray = np.linalg.svd(matrix - s * np.eye(len(matrix)))[2][-count:].T
    return found


def _paired(right: Leading, left: Leading) -> tuple[Leading, np.ndarray, np.ndarray]:
    """Right and left vectors of the same eigenvalues, and their products."""
    if right.count != left.count:
        raise Lost("eigenvalues near the edge lie too close together")
    for most in (True, False):
        one, other = (right, left) if most else (right.cut(right.count), left.cut(left.count))
        if one.vectors.shape != other.vectors.shape:
            continue
        between = other.vectors.T @ one.vectors
        if np.linalg.svd(between, compute_uv=False)[-1] > APART:
            return one, other.vectors, between
    raise Lost("left and right vectors of eigenvalues near the edge cannot be told apart")
