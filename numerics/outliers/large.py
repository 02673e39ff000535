"""Outliers of eigenproblems that are too large for dense matrices, at all times and for all replicates.

The matrix is a product of factors and is applied to vectors only. Its leading eigenvalues come from Arnoldi's method;
those of earlier times, whose factors are leading blocks of the last ones, start from the results of later times. Errors
need derivatives only: to first order, the shift of an eigenvalue in a replicate is the matrix element of the difference
to the mean between left and right vectors of the mean, and the difference is never formed. Large differences, such as
those of responses to noises of small variance, have second-order effects: they repel eigenvalues, like noise, or create
new ones. Order parameters that differ by more than a small step, such as those of half of the sites, are solved
separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from numerics.outliers.finding import Outlier, Points, check_size, physical, real_among
from numerics.outliers.following import Lost, repeated
from numerics.outliers.leading import CONVERGED, Leading, NotConverged, leading
from numerics.outliers.paths import Course
from numerics.outliers.problem import SpikedProblem
from numerics.outliers.replicas import NEAR, Replicas, edge_images, placed
from numerics.outliers.restriction import Restriction, Steps
from numerics.runtime.interface import Cycle, Order
from numerics.runtime.keys import OrderKey
from numerics.runtime.operators import Composed, Operator, operator
from numerics.support.nearby import Moved, Nearby, read
from numerics.support.precision import in_float64
from numerics.support.progress import Report, part
from numerics.support.reports import ReplicateMethod

ROWS = 1000
"""Rows above which eigenproblems are not formed as dense matrices."""
WITHIN = 1e-8
"""Residual of eigenvalues of replicates, relative to the largest."""
STEP, HALF, TURNS = 1e-4, 0.03, 4
"""Steps along the change of a replicate: one that is evaluated between the vectors of the mean, and one to either side
for which right vectors are updated by this many products."""
OFF = 0.15
"""Tolerated first-order deviation of a replicate, in standard errors: it changes the error by at most a third of that,
because each of ten replicates contributes a third of it."""
APART = 1e-6
"""Left and right vectors with nearly orthogonal spans do not belong to the same eigenvalues."""

Shapes = dict[OrderKey, tuple[int, ...]]


@dataclass(frozen=True)
class LargeSpectrum:
    """Outliers of the last time, those of each replicate, and both at all times if requested; also the number of rows
    of the largest matrix.
    """

    outliers: list[Outlier]
    replicas: Replicas
    course: Course | None
    rows: int


def is_large(problem: SpikedProblem) -> bool:
    """Return whether the matrix of a cycle has too many rows for a dense matrix; false if the bulk depends on order
    parameters, or vectors are requested."""
    probe = problem.probe
    if not (probe.unknowns and probe.reduced) or problem.moves or probe.directions:
        return False
    return largest_rows(problem) > ROWS


def largest_rows(problem: SpikedProblem) -> int:
    """Return the number of rows of the matrix of the largest cycle."""
    return max(rows_of(problem, cycle) for cycle in problem.probe.cycles)


def rows_of(problem: SpikedProblem, cycle: Cycle) -> int:
    """Return the number of rows of the matrix of a cycle, from the shapes of the order parameters."""
    struct: type = jax.ShapeDtypeStruct
    shapes = {key: struct(np.shape(x), float) for key, x in problem.order.items()}
    return int(jax.eval_shape(lambda order: cycle.factors(problem.p, order), shapes)[0].shape[0])


@in_float64
def large_spectrum(problem: SpikedProblem, steps: Steps | None, nearby: Nearby, tell: Report) -> LargeSpectrum:
    """Return outliers without forming the matrices of which they are eigenvalues; raise Lost if that is impossible.

    steps: the dependence of the problem on time, if outliers at all times are requested.
    """
    cycles = problem.probe.cycles
    if steps is not None and not problem.probe.steady:
        raise Lost("coefficients depend on the number of steps")
    found = [
        _OfCycle(problem, cycle, steps).spectrum(nearby, part(tell, k / len(cycles), (k + 1) / len(cycles)))
        for k, cycle in enumerate(cycles)
    ]
    last = found[0].last
    outliers = sorted((one for each in found for one in each.outliers), key=lambda o: (o.z, o.condition), reverse=True)
    replicas = [
        sorted((z for each in found for z in each.replicas[last][number]), reverse=True)
        for number in range(len(nearby.orders))
    ]
    method, rows = _replicate_method([one.off for one in found if one.off is not None]), max(one.rows for one in found)
    if steps is None:
        return LargeSpectrum(outliers, Replicas(replicas, method), None, rows)
    times, bulk = range(steps.count + 1), problem.excluded
    course = Course(
        [(sorted((z for each in found for z in each.path.get(t, [])), reverse=True), bulk) for t in times],
        [
            [sorted((z for each in found for z in each.at(t, number)), reverse=True) for t in times]
            for number in range(len(nearby.orders))
        ],
    )
    return LargeSpectrum(outliers, Replicas(replicas, method), course, rows)


def _replicate_method(off: list[float]) -> ReplicateMethod:
    """Return how the outliers of replicates were computed."""
    if not off:
        return ReplicateMethod("from the mean")
    return ReplicateMethod("differences" if max(off) > OFF else "first order", float(max(off)))


@dataclass(frozen=True)
class _Found:
    """Results for one cycle: outliers of the last time, outliers of the mean and of each replicate by time, and, if
    there are replicates, the deviation of their first-order changes from finite differences in standard errors.
    """

    last: int
    outliers: list[Outlier]
    path: dict[int, list[float]]
    replicas: dict[int, list[list[float]]]
    off: float | None
    rows: int

    def at(self, time: int, number: int) -> list[float]:
        return self.replicas[time][number] if time in self.replicas else []


@dataclass(frozen=True)
class _Vectors:
    """Leading eigenvalues of the mean at one time, and left and right vectors at which replicates may have outliers.
    start: additional right vectors."""

    right: Leading
    left: np.ndarray | None
    between: np.ndarray
    start: np.ndarray

    def small(self, images: np.ndarray) -> np.ndarray:
        """small: the matrix between the vectors; images: its products with the right ones."""
        assert self.left is not None, "requested only if there are some"
        return np.linalg.solve(self.between, self.left.T @ images)


class _OfCycle:
    def __init__(self, problem: SpikedProblem, cycle: Cycle, steps: Steps | None) -> None:
        self.problem, self.cycle = problem, cycle
        self.points: Points = partial(physical, problem, cycle)
        self.edges = edge_images(problem, cycle)
        least = float(np.min(np.abs(self.edges), initial=np.inf))
        if not np.isfinite(least) or least == 0:
            raise Lost("the bulk has no edge at which the map is known")
        self.floor, self.edge = (1 - NEAR) * least, least
        self.restriction = None if steps is None else Restriction(problem, cycle, steps)
        if self.restriction is not None and not self.restriction.nested:
            raise Lost("matrices of early times are not parts of those of later ones")
        self.times = [0] if steps is None else list(range(1, steps.count + 1))
        self.mean = self.written(problem.order)

    def written(self, order: Order) -> dict[OrderKey, np.ndarray]:
        """Order parameters in the matrix."""
        found = read(order, self.cycle.reads)
        check_size(*found.values())
        return found

    def matrix(self, order: Mapping[OrderKey, Any]) -> Operator:
        """Return the matrix of the last time, with rows and columns in natural order; order: order parameters, as
        arrays or operators."""
        return self.cycle.pencil(self.problem.p, order)

    def matrices(self, order: Order) -> Callable[[int], Operator]:
        """Return the matrices of all times, with rows and columns in the order of appearance if there is more than
        one."""
        if self.restriction is None:
            found = self.matrix(self.mean if order is self.problem.order else self.written(order))
            return lambda time: found
        of, whole = self.restriction, self.restriction.of(order)
        return lambda time: Composed(tuple(map(operator, of.at(time, order, whole))))

    def spectrum(self, nearby: Nearby, tell: Report) -> _Found:
        """Return the spectrum of the mean and of all replicates."""
        last, orders = self.times[-1], nearby.orders
        at_time = self.matrices(self.problem.order)
        vectors = self._vectors(at_time, bool(orders), part(tell, 0.0, 0.4))
        values = {time: self._real(one.right.small, one.right.found) for time, one in vectors.items()}
        path = self._placed(values)
        self._check_floor([s for one in values.values() for s in one if abs(s) < (1 - 1e-6) * self.edge])
        outliers = self._outliers(at_time(last), vectors[last], values[last])
        rows = at_time(last).shape[0]
        del at_time
        replicas: dict[int, list[list[float]]] = {time: [[] for _ in orders] for time in self.times}
        followed = {time: one for time, one in vectors.items() if one.left is not None}
        if not orders or last not in followed:
            return _Found(last, outliers, path, replicas, None, rows)
        eigenvalues: list[dict[int, list[float]]] = []
        ends = _Ends(self.restriction, followed)
        begun = ends.smalls(self.matrix(self.mean))
        slopes: dict[int, np.ndarray] = {}
        here = np.array(values[last])
        for number, order in enumerate(orders):
            tell(0.4 + 0.5 * number / len(orders), f"outliers of replicate {number + 1} of {len(orders)}")
            if isinstance(order, Moved):
                there = ends.smalls(self._stepped(order.changes(self.cycle.reads), STEP))
                smalls = {time: begun[time] + (small - begun[time]) / STEP for time, small in there.items()}
                eigenvalues.append({t: self._real(small, np.linalg.eigvals(small)) for t, small in smalls.items()})
                slopes[number] = (_nearest(here, np.linalg.eigvals(there[last]).real) - here) / STEP
            else:
                at_time = self.matrices(order)
                eigenvalues.append({time: self._again(at_time(time), one.start) for time, one in followed.items()})
                del at_time
        off = self._checked(orders, here, slopes, eigenvalues, vectors[last], tell) if slopes else None
        for number, by_time in enumerate(eigenvalues):
            for time, zs in self._placed(by_time).items():
                replicas[time][number] = zs
        return _Found(last, outliers, path, replicas, off, rows)

    def _stepped(self, changes: Mapping[OrderKey, Operator], step: float) -> Operator:
        """Return the matrix a step along a change of the order parameters."""
        return self.matrix({key: operator(x) + step * changes[key] for key, x in self.mean.items()})

    def _checked(
        self,
        orders: Sequence[Order],
        here: np.ndarray,
        slopes: Mapping[int, np.ndarray],
        eigenvalues: list[dict[int, list[float]]],
        vectors: _Vectors,
        tell: Report,
    ) -> float:
        """Return the deviation, in standard errors, of first-order changes of replicates at the last time from
        differences with updated vectors. If the deviation is too large, differences are used instead. here: eigenvalues
        of the mean; slopes: their derivatives, by replicate."""
        errors = np.maximum(np.sqrt(np.sum(np.square(list(slopes.values())), axis=0)), 1e-9 * np.abs(here))

        def difference(number: int) -> np.ndarray:
            order = orders[number]
            assert isinstance(order, Moved), "only those have slopes"
            changes = order.changes(self.cycle.reads)
            above, below = (self._improved(self._stepped(changes, step), vectors) for step in (HALF, -HALF))
            found: np.ndarray = (_nearest(here, above) - _nearest(here, below)) / (2 * HALF)
            return found

        far = _moving_most(slopes, errors)
        tell(0.9, "differences of a replica")
        known = {far: difference(far)}
        off = float(np.max(np.abs(known[far] - slopes[far]) / errors, initial=0.0))
        if off > OFF:
            for number in slopes:
                found = known[number] if number in known else difference(number)
                eigenvalues[number][self.times[-1]] = (here + found).tolist()
        return off

    def _improved(self, matrix: Operator, vectors: _Vectors) -> np.ndarray:
        """Return eigenvalues of a matrix of the last time, with rows in natural order.

        The right vectors are improved by products with the matrix, which suppress smaller eigenvalues.
        """
        assert vectors.left is not None, "requested only if there are some"
        right, left = self._natural(vectors.right.vectors), self._natural(vectors.left)
        images = matrix.apply(right)
        for _ in range(TURNS):
            right = np.linalg.qr(images)[0]
            images = matrix.apply(right)
        found: np.ndarray = np.linalg.eigvals(np.linalg.solve(left.T @ right, left.T @ images)).real
        return found

    def _natural(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors of the last time with rows in natural order."""
        if self.restriction is None:
            return vectors
        found = np.zeros((len(self.restriction.appearing[0]), vectors.shape[1]))
        found[self.restriction.appearing[0][: len(vectors)]] = vectors
        return found

    def _placed(self, values: dict[int, list[float]]) -> dict[int, list[float]]:
        """Return the outliers, in descending order, of eigenvalues by time."""
        places = placed(self.points, list(values.values()))
        return {time: sorted(zs, reverse=True) for time, zs in zip(values, places, strict=True)}

    def _again(self, matrix: Operator, start: np.ndarray) -> list[float]:
        """Return eigenvalues of a matrix near that of the mean by a new solution. start: vectors of the mean."""
        found = self._leading(matrix, start, WITHIN)
        return self._real(found.small, found.found)

    def _vectors(self, at_time: Callable[[int], Operator], wanted: bool, tell: Report) -> dict[int, _Vectors]:
        """Return the vectors of all times, the last time first. wanted: whether replicates will be requested."""
        found: dict[int, _Vectors] = {}
        start = left_start = None
        last = self.times[-1]
        for time in reversed(self.times):
            tell(1 - time / (last + 1), f"outliers at time {time} of {last}" if last else "outliers")
            matrix = at_time(time)
            right = self._leading(matrix, start)
            start = right.vectors
            left, between = None, np.zeros((0, 0))
            if wanted and right.count:
                other = self._leading(matrix.T, left_start)
                left_start = other.vectors
                right, left, between = _paired(right, other)
            found[time] = _Vectors(right, left, between, start)
        return found

    def _leading(self, matrix: Operator, start: np.ndarray | None, within: float = CONVERGED) -> Leading:
        size = matrix.shape[0]
        begin = None if start is None else start[:size]
        try:
            return leading(matrix.apply, size, self.floor, begin, within)
        except NotConverged:
            raise Lost("eigenvalues near the edge lie too close together") from None

    def _real(self, matrix: np.ndarray, values: np.ndarray) -> list[float]:
        """Return the real eigenvalues of a small matrix that may belong to outliers."""
        large = values[np.abs(values) >= self.floor]
        found: list[float] = real_among(matrix, large).tolist() if len(large) else []
        return found

    def _check_floor(self, values: Sequence[float]) -> None:
        """Raise if smaller eigenvalues may belong to outliers, too; eigenvalues below the map at every edge do not."""
        if any(self.points(values)):
            raise Lost("an eigenvalue smaller than those at the edges belongs to an outlier")

    def _outliers(self, matrix: Operator, vectors: _Vectors, real: Sequence[float]) -> list[Outlier]:
        """Return the outliers of real eigenvalues, with residuals and condition numbers."""
        right = vectors.right
        scale = max(1.0, float(np.abs(right.values[0]))) if len(right.values) else 1.0
        found = []
        for s, count in repeated(real):
            space = right.vectors @ _null_space(right.small, s, count)
            residual = float(np.linalg.norm(matrix.apply(space) - s * space, 2))
            condition = 1.0
            if vectors.left is not None:
                # left vectors of the same eigenvalue, from the small matrix between both kinds
                small = vectors.small(matrix.apply(right.vectors))
                other = np.linalg.solve(vectors.between.T, _null_space(small.T, s, count))
                overlap = np.linalg.svd(np.linalg.qr(vectors.left @ other)[0].T @ space, compute_uv=False)[-1]
                condition = float(np.linalg.norm(right.small)) / max(abs(s) * float(overlap), 1e-300)
            for z in self.points([s])[0]:
                found += [Outlier(z, residual / scale, condition)] * count
        return found


class _Ends:
    """Left and right vectors of several times side by side, so that a matrix is applied to all of them at once.

    The matrix of a time consists of the rows of the last one that exist by then; contributions of the other rows, also
    between any two factors, are omitted.
    """

    def __init__(self, restriction: Restriction | None, vectors: Mapping[int, _Vectors]) -> None:
        self.vectors = vectors
        self.appearing = None if restriction is None else restriction.appearing
        self.sizes = None if restriction is None else restriction.sizes

    def smalls(self, matrix: Operator) -> dict[int, np.ndarray]:
        """Return the matrix elements of each time between its vectors. matrix: the matrix of the last time, with rows
        in natural order.
        """
        if self.appearing is None or self.sizes is None:
            return {time: one.small(matrix.apply(one.right.vectors)) for time, one in self.vectors.items()}
        widths = [one.right.vectors.shape[1] for one in self.vectors.values()]
        starts = np.concatenate([[0], np.cumsum(widths)])
        columns = {time: slice(a, b) for time, a, b in zip(self.vectors, starts[:-1], starts[1:], strict=True)}
        moving = np.zeros((len(self.appearing[0]), int(starts[-1])))
        for time, one in self.vectors.items():
            moving[self._there(0, time), columns[time]] = one.right.vectors
        factors = matrix.factors
        assert len(factors) == len(self.appearing), "both are the factors of the same product"
        for number in reversed(range(len(factors))):
            images = factors[number].apply(moving)
            moving = np.zeros_like(images)
            for time in self.vectors:
                there = self._there(number, time)
                moving[there, columns[time]] = images[there, columns[time]]
        return {time: one.small(moving[self._there(0, time), columns[time]]) for time, one in self.vectors.items()}

    def _there(self, number: int, time: int) -> np.ndarray:
        """Return the nonzero rows of a factor at a time, in order of appearance."""
        assert self.appearing is not None and self.sizes is not None
        return self.appearing[number][: self.sizes[time][number]]


def _null_space(matrix: np.ndarray, s: float, count: int) -> np.ndarray:
    """Return orthonormal eigenvectors of a small matrix with eigenvalue s."""
    found: np.ndarray = np.linalg.svd(matrix - s * np.eye(len(matrix)))[2][-count:].T
    return found


def _moving_most(slopes: Mapping[int, np.ndarray], errors: np.ndarray) -> int:
    """Return the replicate that contributes most to the error of an eigenvalue."""
    return max(slopes, key=lambda number: float(np.max(np.abs(slopes[number]) / errors, initial=0.0)))


def _nearest(values: np.ndarray, others: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return, for each value, the nearest of the other values, or the value itself if it is the only one."""
    if not len(others):
        return values
    found: np.ndarray = np.asarray(others)[np.argmin(np.abs(np.subtract.outer(values, others)), axis=1)]
    return found


def _paired(right: Leading, left: Leading) -> tuple[Leading, np.ndarray, np.ndarray]:
    """Return the converged right and left vectors of the same eigenvalues, and their products."""
    if right.count != left.count:
        raise Lost("eigenvalues near the edge lie too close together")
    one, other = right.cut(right.count), left.cut(left.count)
    if one.vectors.shape == other.vectors.shape:
        between = other.vectors.T @ one.vectors
        if np.linalg.svd(between, compute_uv=False)[-1] > APART:
            return one, other.vectors, between
    raise Lost("left and right vectors of eigenvalues near the edge are not resolved")
