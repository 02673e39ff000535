"""Outliers at every training time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from numerics.bulk.branch import Branch
from numerics.bulk.settling import as_settled, settled
from numerics.outliers.complete import MARGIN, NO_START, complete_eigenvalues
from numerics.outliers.finding import (
    CycleSpectrum,
    Eigenvalues,
    Points,
    candidates,
    check_size,
    cycle_spectra,
    cycle_spectrum,
    find_outliers,
    outlier_positions,
    physical,
    real_among,
    smallest_image,
)
from numerics.outliers.following import Lost
from numerics.outliers.linear import ALL_EIGENVALUES, RESOLVED, all_eigenvalues, balancing
from numerics.outliers.powers import Powers
from numerics.outliers.problem import SpikedProblem, excluded_by
from numerics.outliers.replicas import agree, edge_images, followed_eigenvalues, followed_outliers, placed
from numerics.outliers.restriction import Restriction, Steps, products, slices, without_later
from numerics.outliers.together import Early
from numerics.runtime.interface import Cycle, Order
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import replaced
from numerics.support.precision import in_float64

CHUNK = 64
"""Times whose eigenproblems are held in memory together, and whose candidates need one call of the bulk."""
KEPT_BYTES = 5e8
"""Bytes of replicates' matrices above which they are recomputed at each time."""


LARGEST_ANEW = ALL_EIGENVALUES
"""Rows above which replicates that cannot be continued are not solved in full at every time."""
FEWEST_ROWS = 64
"""Rows below which a full eigenvalue decomposition is computed."""
CHECKS = 4
"""Approximate number of times at which a continued replicate is solved in full as a check."""

Factors = Callable[[], tuple[np.ndarray, ...]]


Edges = tuple[tuple[float, float], ...]
Path = list[tuple[list[float], Edges]]
"""For each time 0, 1, ..., T the outliers, in descending order, and the intervals and point masses of the bulk."""


@dataclass(frozen=True)
class Course:
    """Outliers at every time, and those of Monte Carlo replicates.

    Attributes:
        replicas: the outliers of each replicate, if requested.
        anew: number of times at which replicates were solved in full instead of continued.
        unknown: number of times at which replicates have no outliers, because matrices are too large.
    """

    path: Path
    replicas: list[list[list[float]]]
    anew: int = 0
    unknown: int = 0


@in_float64
def outlier_path(
    problem: SpikedProblem,
    steps: Steps,
    tell: Callable[[float, str], None],
    orders: Sequence[Order] = (),
    early: Early | None = None,
) -> Course:
    """Return the outliers at every time, also for replicates of the order parameters.

    The matrix at time t contains the spikes of times before t, whose order parameters do not depend on later times.
    early: from `numerics.outliers.together.solve_cycles`.
    """
    probe = problem.probe
    if not (probe.steady and probe.reduced and not probe.measured):
        return _one_by_one(problem, steps, tell, orders)
    return _by_restriction(problem, steps, tell, orders, early or [{} for _ in problem.probe.cycles])


def _by_restriction(
    problem: SpikedProblem,
    steps: Steps,
    tell: Callable[[float, str], None],
    orders: Sequence[Order],
    early: Early,
) -> Course:
    """Return the path from leading blocks of the eigenproblem of the last time."""
    path: list[list[float]] = [[] for _ in range(steps.count + 1)]
    replicas: list[list[list[float]]] = [[[] for _ in path] for _ in orders]
    anew: set[int] = set()
    unknown: set[int] = set()
    for cycle, known in zip(problem.probe.cycles, early, strict=True):
        course = _CycleCourse(problem, cycle, steps, orders)
        complete: dict[int, list[float]] = {time: [] for time, one in known.items() if one is None}
        if not (orders or known):
            complete = course.complete(tell)
        for time, zs in zip(complete, placed(course.points, list(complete.values())), strict=True):
            path[time] += zs
        for time, spectrum in course.spectra(known, complete, tell):
            path[time] += [z for z, _ in spectrum.outliers]
            if orders:
                course.follow(time, spectrum)
        if orders:
            solved, unsolved = course.solve_missing()
            anew |= solved
            unknown |= unsolved
        for number, time, zs in course.replicas():
            replicas[number][time] += zs
    ordered = [[sorted(now, reverse=True) if k not in unknown else [] for k, now in enumerate(one)] for one in replicas]
    return Course([(sorted(now, reverse=True), problem.excluded) for now in path], ordered, len(anew), len(unknown))


@dataclass
class _CycleCourse:
    """The eigenvalues of a cycle at all times.

    followed: by time, the eigenvalues of each replicate to which outliers belong. trusted: whether they agree with
        replicates solved in full.
    """

    problem: SpikedProblem
    cycle: Cycle
    steps: Steps
    orders: Sequence[Order]
    followed: dict[int, list[list[float]]] = field(default_factory=dict)
    trusted: bool = True

    @cached_property
    def restriction(self) -> Restriction:
        return Restriction(self.problem, self.cycle, self.steps)

    @cached_property
    def points(self) -> Points:
        return partial(physical, self.problem, self.cycle)

    @cached_property
    def _edges(self) -> np.ndarray:
        return edge_images(self.problem, self.cycle)

    @cached_property
    def _others(self) -> list[tuple[Order, tuple[np.ndarray, ...] | None]]:
        keep = len(self.orders) * self.restriction.bytes <= KEPT_BYTES
        return [(order, self.restriction.of(order) if keep else None) for order in self.orders]

    def _products(self, time: int) -> list[Factors]:
        return [partial(self.restriction.at, time, *other) for other in self._others]

    def complete(self, tell: Callable[[float, str], None]) -> dict[int, list[float]]:
        """Return, by time, the real eigenvalues to which outliers may belong, for the times at which a bound proves
        completeness.

        The subspace and the powers start from those of the preceding time. After each successive failure twice as many
        times are skipped.
        """
        count, by_time = self.steps.count, dict[int, list[float]]()
        radius = (1 - 2 * MARGIN) * smallest_image(self.problem, self.cycle)
        if not self.restriction.nested or radius == 0 or self.restriction.rows(count) < FEWEST_ROWS:
            return by_time
        powers, start, left_out, again = Powers(self.restriction.rows(count)), NO_START, 1, 0
        in_radii = products(self._balanced(radius), self.restriction.sizes)
        for time, (matrix, change) in enumerate(in_radii, start=1):
            if len(matrix) < FEWEST_ROWS or time < again:
                powers.cut(0)
                continue
            tell(0.5 * time / count, f"outliers at time {time} of {count}")
            check_size(matrix)
            if len(powers):
                powers.grow(matrix, change)
            else:
                powers.restart(matrix)
            result = complete_eigenvalues(powers, start.padded(len(matrix)))
            real = None if result is None or RESOLVED * powers.norms[0] >= 1 else result.real
            if result is None or real is None:
                start, left_out, again = NO_START, 2 * left_out, time + left_out
            else:
                start, left_out, by_time[time] = result.start, 1, (radius * real).tolist()
                powers.cut(start.level + 1)
        return by_time

    def _balanced(self, unit: float) -> tuple[np.ndarray, ...]:
        """Return the factors of the last time for the matrix in a unit, balanced so that it has a smaller norm."""
        first, *others = self.restriction.of(self.problem.order)
        scales = balancing(reduce(np.matmul, others, first))
        factors = [first / (unit * scales[:, None]), *others]
        return (*factors[:-1], factors[-1] * scales)

    def spectra(
        self,
        known: Mapping[int, Eigenvalues | None],
        done: Mapping[int, list[float]],
        tell: Callable[[float, str], None],
    ) -> Iterator[tuple[int, CycleSpectrum]]:
        """Yield by time the spectrum of the cycle's matrix, except for times in `done`; known: eigenvalues computed
        before."""
        count, order = self.steps.count, self.problem.order
        whole = self.restriction.of(order) if len(known) < count else ()
        with ThreadPoolExecutor(_threads()) as pool:  # eigenvalues are found outside the interpreter's lock
            for start in range(1, count + 1, CHUNK):
                times = [time for time in range(start, min(start + CHUNK, count + 1)) if time not in done]
                if not times:
                    continue
                tell((start + len(done)) / (count + len(done)), f"outliers at time {start} of {count}")
                eigenvalues = [one for time in times if (one := known.get(time)) is not None]
                if len(eigenvalues) < len(times):
                    matrices = [reduce(np.matmul, self.restriction.at(time, order, whole)) for time in times]
                    check_size(*matrices)
                    eigenvalues = _all_eigenvalues(matrices, pool.map)
                yield from zip(times, _spectra(eigenvalues, self.points), strict=True)

    def follow(self, time: int, spectrum: CycleSpectrum) -> None:
        """Continue the eigenvalues of a time to the replicates, and occasionally check a replicate against its full
        solution.
        """
        if not self.trusted:
            return
        products = self._products(time)
        try:
            self.followed[time] = followed_eigenvalues(spectrum, self._edges, products)
        except Lost:
            return
        if time % max(1, self.steps.count // CHECKS) == 0 and time < self.steps.count and spectrum.outliers:
            number = time % len(self.orders)
            again = _outlying(products[number], self.points)
            self.trusted = agree(self.points, self.followed[time], number, again)

    def solve_missing(self) -> tuple[set[int], set[int]]:
        """Solve replicates that were not continued; return the times solved, and those at which matrices are
        too large."""
        if not self.trusted:
            self.followed = {}
        missing = [time for time in range(1, self.steps.count + 1) if time not in self.followed]
        small = [time for time in missing if self.restriction.rows(time) <= LARGEST_ANEW]
        for time in small:
            self.followed[time] = [_outlying(factors, self.points) for factors in self._products(time)]
        return set(small), set(missing) - set(small)

    def replicas(self) -> Iterator[tuple[int, int, list[float]]]:
        """Yield the outliers of each replicate at each time; all eigenvalues are mapped to z together."""
        listed = [(k, time, these) for time, all_of in self.followed.items() for k, these in enumerate(all_of)]
        places = placed(self.points, [these for _, _, these in listed])
        yield from ((k, time, zs) for (k, time, _), zs in zip(listed, places, strict=True))


def _outlying(factors: Factors, points: Points) -> list[float]:
    """Return the eigenvalues of a matrix to which outliers belong."""
    return [s for _, s in cycle_spectrum(reduce(np.matmul, factors()), points).outliers]


def _threads() -> int:
    """Return two, or one if the linear algebra is limited to one thread, as in workers of a sweep."""
    return 1 if os.environ.get("OMP_NUM_THREADS") == "1" else 2


def _all_eigenvalues(matrices: Sequence[np.ndarray], spread: Callable[..., Any] = map) -> list[Eigenvalues]:
    """Return all eigenvalues of small matrices, none of large ones."""
    values = spread(lambda m: all_eigenvalues(m) if len(m) <= ALL_EIGENVALUES else np.zeros(0), matrices)
    return [Eigenvalues(m, these, real_among(m, these)) for m, these in zip(matrices, values, strict=True)]


def _spectra(eigenvalues: Sequence[Eigenvalues], points: Points) -> list[CycleSpectrum]:
    """Return the spectra of several matrices; outliers of all small ones are located together."""
    places = iter(points([s for one in eigenvalues for s in one.asked]))
    small = [one.placed([next(places) for _ in one.asked]) if len(one.values) else None for one in eigenvalues]
    return [spectrum or cycle_spectrum(one.matrix, points) for one, spectrum in zip(eigenvalues, small, strict=True)]


def places_to_ask(problem: SpikedProblem, known: Sequence[Eigenvalues], early: Early | None) -> list[float]:
    """Return candidate outliers at the last time and at all times; the bulk is needed at these points."""
    places = []
    for number, cycle in enumerate(problem.probe.cycles):
        at_times = early[number].values() if early else ()
        values = dict.fromkeys(s for one in (known[number], *at_times) if one is not None for s in one.asked)
        places += [z for _, z in candidates(problem, cycle, list(values))]
    return places


@in_float64
def taken_at(problem: SpikedProblem, steps: Steps, time: int) -> SpikedProblem:
    """Return the problem of the matrix at an earlier time with the same order parameters."""
    then = problem.probe.taken_at(problem.p, problem.order, steps.name, time)
    if problem.probe.steady and not problem.probe.measured:
        return replace(problem, p=then)
    branch = settled(Branch(problem.branch.law, then))
    return SpikedProblem(as_settled(problem.probe, branch), then, problem.order, branch, excluded_by(branch))


def _one_by_one(
    problem: SpikedProblem, steps: Steps, tell: Callable[[float, str], None], orders: Sequence[Order]
) -> Course:
    """Solve the whole problem at each time, if coefficients or the bulk depend on time, or there is no eigenproblem.

    If the number of steps enters through shapes alone, shapes are those of the last time with later spikes set to zero,
    so that one compiled program serves all times.
    """
    path: Path = []
    replicas: list[list[list[float]]] = [[] for _ in orders]
    anew = 0
    for time in range(steps.count + 1):
        tell(time / (steps.count + 1), f"outliers at time {time} of {steps.count}")
        then = problem.probe.taken_at(problem.p, problem.order, steps.name, time)
        stops = problem.probe.stopping is not None
        if problem.probe.steady and not stops:
            then = replaced(then, **{steps.name: steps.count})
        branch = settled(Branch(problem.branch.law, then))
        excluded = excluded_by(branch)
        now: list[float] = []
        theirs: list[list[float]] = [[] for _ in orders]
        if time:
            cut = (
                partial(without_later, strides=steps.strides) if problem.probe.steady else partial(_first, steps=steps)
            )
            early = [order if stops else cut(order, time=time) for order in (problem.order, *orders)]
            at_time = SpikedProblem(as_settled(problem.probe, branch), then, early[0], branch, excluded)
            spectra = cycle_spectra(at_time) if problem.probe.reduced else None
            now = [o.z for o in find_outliers(at_time, spectra)]
            try:
                theirs = followed_outliers(at_time, spectra, now, early[1:])
            except Lost:
                anew += 1
                theirs = [outlier_positions(at_time.with_order(order)) for order in early[1:]]
        path.append((now, excluded))
        for one, zs in zip(replicas, theirs, strict=True):
            one.append(zs)
    return Course(path, replicas, anew)


def _first(order: Order, steps: Steps, time: int) -> Order:
    """Return order parameters of earlier times; a mean at a fixed time, ("F", i), is unchanged."""

    def part(key: OrderKey, x: np.ndarray) -> np.ndarray:
        if key in steps.strides:
            return x[slices(x.shape, steps.strides[key], time)]
        return x if key.kind == "F" else x[:time]

    return {key: part(key, x) for key, x in order.items()}
