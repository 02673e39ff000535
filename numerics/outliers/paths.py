"""Outliers at every training time: what the spikes added so far have pulled out of the bulk."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from numerics.bulk.branch import Branch
from numerics.bulk.settling import as_settled, settled
from numerics.bulk.support import atoms_of, support
from numerics.outliers.finding import (
    Eigenvalues,
    Points,
    RingSpectrum,
    candidates,
    check_size,
    factors_at,
    find_outliers,
    outlier_positions,
    physical,
    real_among,
    ring_factors,
    ring_spectra,
    ring_spectrum,
)
from numerics.outliers.following import Lost
from numerics.outliers.linear import ALL_EIGENVALUES, all_eigenvalues
from numerics.outliers.problem import SpikedProblem
from numerics.outliers.replicas import agree, edge_images, followed_eigenvalues, followed_outliers, placed
from numerics.precision import in_float64
from numerics.runtime.interface import Key, Order, Ring, Strides
from numerics.runtime.point import Point, replaced

CHUNK = 64
"""Times whose eigenproblems are in memory together, and whose candidates the bulk is asked about at once."""
KEPT_BYTES = 5e8
"""Matrices of replicas that take more are made again for each time."""


LARGEST_ANEW = ALL_EIGENVALUES
"""Of larger matrices replicas that cannot be followed are not solved anew at every time."""
CHECKS = 4
"""At about so many times a replica to which outliers were followed is solved anew."""

Factors = Callable[[], tuple[np.ndarray, ...]]
Others = Sequence[tuple[Order, tuple[np.ndarray, ...] | None]]


@dataclass(frozen=True)
class Steps:
    """How a problem depends on time: its number of steps, under the name of that parameter, and the entries per time
    step along each axis of the order parameters."""

    name: str
    count: int
    strides: Mapping[Key, Strides]


Path = list[tuple[list[float], float]]
"""For each time 0, 1, ..., T the outliers, descending, and the upper edge of the bulk."""


@dataclass(frozen=True)
class Course:
    """Outliers at every time. replicas: the same of each of several other order parameters, where they were asked for;
    anew: how many times their outliers could not be followed from the first ones and were solved for; unknown: how many
    times they were not, because matrices are large, so that replicas have no outliers there."""

    path: Path
    replicas: list[list[list[float]]]
    anew: int = 0
    unknown: int = 0


Early = Sequence[Mapping[int, Eigenvalues]]
"""For each ring, by time, the eigenvalues of its matrix."""


@in_float64
def outlier_path(
    problem: SpikedProblem,
    steps: Steps,
    tell: Callable[[float, str], None],
    orders: Sequence[Order] = (),
    early: Early | None = None,
) -> Course:
    """Outliers at every time, also of other order parameters near those of the problem.

    The matrix at time t holds the spikes of the times before t, and the order parameters of those do not depend on
    what comes later. early: what `early_eigenvalues` found.
    """
    if not problem.probe.steady:
        return _one_by_one(problem, steps, tell, orders)
    return _by_restriction(problem, steps, tell, orders, early or [{} for _ in problem.probe.rings])


@in_float64
def early_eigenvalues(problem: SpikedProblem, steps: Steps) -> Early | None:
    """The eigenvalues at all times that `outlier_path` needs; None if it is better to have them one by one."""
    if not problem.probe.steady or steps.count > CHUNK:
        return None
    found, times = [], range(1, steps.count + 1)
    for ring in problem.probe.rings:
        restriction = _Restriction(problem, ring, steps)
        if max(map(max, restriction.sizes)) > ALL_EIGENVALUES:
            return None
        whole = restriction.of(problem.order)
        matrices = [reduce(np.matmul, restriction.at(time, problem.order, whole)) for time in times]
        check_size(*matrices)
        found.append(dict(zip(times, _all_eigenvalues(matrices), strict=True)))
    return found


def _by_restriction(
    problem: SpikedProblem,
    steps: Steps,
    tell: Callable[[float, str], None],
    orders: Sequence[Order],
    early: Early,
) -> Course:
    """Spikes of later times set to zero in the eigenproblem of the last time, which keeps its shape."""
    path: list[list[float]] = [[] for _ in range(steps.count + 1)]
    replicas: list[list[list[float]]] = [[[] for _ in path] for _ in orders]
    anew: set[int] = set()
    unknown: set[int] = set()
    for ring, known in zip(problem.probe.rings, early, strict=True):
        points = partial(physical, problem, ring)
        edges = edge_images(problem, ring) if orders else np.zeros(0)
        restriction = _Restriction(problem, ring, steps)
        whole = restriction.of(problem.order) if len(known) < steps.count or orders else ()
        keep = len(orders) * restriction.bytes <= KEPT_BYTES
        others = [(order, restriction.of(order) if keep else None) for order in orders]
        checked = range(0, steps.count, max(1, steps.count // CHECKS))
        trusted = True
        listed: dict[int, list[list[float]]] = {}

        def products(time: int, others: Others = others, restriction: _Restriction = restriction) -> list[Factors]:
            return [partial(restriction.at, time, *other) for other in others]

        with ThreadPoolExecutor(_threads()) as pool:  # eigenvalues are found outside the interpreter's lock
            for start in range(1, steps.count + 1, CHUNK):
                times = range(start, min(start + CHUNK, steps.count + 1))
                tell(start / steps.count, f"outliers at time {start} of {steps.count}")
                found = [known[time] for time in times if time in known]
                if len(found) < len(times):
                    matrices = [reduce(np.matmul, restriction.at(time, problem.order, whole)) for time in times]
                    check_size(*matrices)
                    found = _all_eigenvalues(matrices, pool.map)
                for time, spectrum in zip(times, _spectra(found, points), strict=True):
                    path[time] += [z for z, _ in spectrum.outliers]
                    if not orders or not trusted:
                        continue
                    try:
                        listed[time] = followed_eigenvalues(spectrum, edges, products(time))
                    except Lost:
                        continue
                    if time in checked and spectrum.outliers:
                        number = time % len(orders)
                        again = _outlying(products(time)[number], points)
                        trusted = agree(points, listed[time], number, again)
        if not trusted:
            listed = {}
        if orders:
            missing = [time for time in range(1, steps.count + 1) if time not in listed]
            small = [time for time in missing if restriction.rows(time) <= LARGEST_ANEW]
            anew |= set(small)
            unknown |= set(missing) - set(small)
            listed.update({time: [_outlying(factors, points) for factors in products(time)] for time in small})
        pairs = [(one[time], these) for time in listed for one, these in zip(replicas, listed[time], strict=True)]
        for (now, _), zs in zip(pairs, placed(points, [these for _, these in pairs]), strict=True):
            now += zs
    top = max((high for _, high in problem.excluded), default=float("nan"))
    ordered = [[sorted(now, reverse=True) if k not in unknown else [] for k, now in enumerate(one)] for one in replicas]
    return Course([(sorted(now, reverse=True), top) for now in path], ordered, len(anew), len(unknown))


def _outlying(factors: Factors, points: Points) -> list[float]:
    """The eigenvalues of a matrix that outliers come from."""
    return [s for _, s in ring_spectrum(reduce(np.matmul, factors()), points).outliers]


def _threads() -> int:
    """Two, or one where linear algebra has been told to take no more: workers of a sweep have one each."""
    return 1 if os.environ.get("OMP_NUM_THREADS") == "1" else 2


def _all_eigenvalues(matrices: Sequence[np.ndarray], spread: Callable[..., Any] = map) -> list[Eigenvalues]:
    """All eigenvalues of small matrices, none of large ones."""
    values = spread(lambda m: all_eigenvalues(m) if len(m) <= ALL_EIGENVALUES else np.zeros(0), matrices)
    return [Eigenvalues(m, these, real_among(m, these)) for m, these in zip(matrices, values, strict=True)]


def _spectra(found: Sequence[Eigenvalues], points: Points) -> list[RingSpectrum]:
    """The spectra of several matrices; the points of all small ones are asked for together."""
    places = iter(points([s for one in found for s in one.asked]))
    return [
        one.placed([next(places) for _ in one.asked])
        if len(one.matrix) <= ALL_EIGENVALUES
        else ring_spectrum(one.matrix, points)
        for one in found
    ]


def places_to_ask(problem: SpikedProblem, known: Sequence[Eigenvalues], early: Early | None) -> list[float]:
    """Where outliers may be, at the end or at any time: what the bulk will be asked about."""
    found = []
    for number, ring in enumerate(problem.probe.rings):
        at_times = early[number].values() if early else ()
        values = dict.fromkeys(s for one in (known[number], *at_times) for s in one.asked)
        found += [z for _, z in candidates(problem, ring, list(values))]
    return found


@dataclass(frozen=True)
class _Structure:
    """Which rows and columns of a ring's factors belong to which time.

    nested: whether the factors of every time are corners of those of the last one, with rows and columns in the order
    `appearing`; sizes: of those corners by time. bytes: of all factors.
    """

    nested: bool
    appearing: tuple[np.ndarray, ...]
    sizes: tuple[tuple[int, ...], ...]
    bytes: int


Shapes = tuple[tuple[Key, tuple[int, ...]], ...]


@lru_cache(maxsize=64)
def _structure(
    ring: Ring, p: Point, shapes: Shapes, strides: tuple[tuple[Key, Strides], ...], count: int
) -> _Structure:
    """The structure at order parameters without any zeros; p holds numbers without any relation to each other.

    That early factors are parts of late ones is an identity in parameters and order parameters, so that what holds at
    numbers drawn at random holds at all of them, and is asked once for all points of a sweep.
    """
    draw, of_time = np.random.default_rng(0).uniform, dict(strides)
    generic = {key: draw(0.5, 1.5, shape) for key, shape in shapes}
    whole = _early(ring, p, generic, of_time, count)
    last = count + 1
    births = [np.full(len(x), last) for x in whole]
    nested = all(np.all(np.isfinite(x)) for x in whole)
    for time in range(count, 0, -1):
        early = _early(ring, p, generic, of_time, time)
        alive = [
            np.any(one, axis=0) & np.any(other, axis=1)
            for one, other in zip((early[-1], *early[:-1]), early, strict=True)
        ]
        nested &= all(np.all(birth[now] == time + 1) for birth, now in zip(births, alive, strict=True))
        for birth, now in zip(births, alive, strict=True):
            birth[now] = time
        pairs = zip(_parts(early, alive), _parts(whole, alive), strict=True)
        nested &= all(np.array_equal(now, then) for now, then in pairs)
    return _Structure(
        bool(nested),
        tuple(np.argsort(birth, kind="stable") for birth in births),
        tuple(tuple(int(np.sum(birth <= time)) for birth in births) for time in range(last)),
        sum(x.nbytes for x in whole),
    )


def _generic(p: Point) -> Point:
    """Numbers without any relation to each other in the place of all parameters but whole ones, which fix shapes."""
    draw = np.random.default_rng(1).uniform
    return Point(**{name: x if isinstance(x, int) else float(draw(0.5, 1.5)) for name, x in vars(p).items()})


def _early(ring: Ring, p: Point, order: Order, strides: Mapping[Key, Strides], time: int) -> tuple[np.ndarray, ...]:
    """The factors with order parameters of later times set to zero."""
    kept = {
        key: np.where(_before(x.shape, strides[key], time), x, 0.0) if key in strides else x for key, x in order.items()
    }
    return factors_at(ring, p, kept)


class _Restriction:
    """The factors of a ring's matrix when the spikes of later times are left out.

    What is left at each time is asked of order parameters without any zeros, since sampled ones may vanish here in one
    replica and there in another. If it is a part of what is left later, with the same entries, rows and columns are put
    in the order in which they appear, so that the factors of every time are the corners of those of the last one.
    """

    def __init__(self, problem: SpikedProblem, ring: Ring, steps: Steps) -> None:
        self.problem, self.ring, self.strides = problem, ring, steps.strides
        shapes = tuple((key, np.shape(x)) for key, x in problem.order.items())
        strides = tuple((key, tuple(stride)) for key, stride in steps.strides.items())
        found = _structure(ring, _generic(problem.p), shapes, strides, steps.count)
        self.nested, self.appearing, self.sizes, self.bytes = found.nested, found.appearing, found.sizes, found.bytes

    def of(self, order: Order) -> tuple[np.ndarray, ...]:
        """The factors of the last time at given order parameters, rows and columns as they appear."""
        if not self.nested:
            return ()
        return _parts(ring_factors(self.problem.with_order(order), self.ring), self.appearing)

    def rows(self, time: int) -> int:
        """Of the matrix at a time."""
        return self.sizes[time][0] if self.nested else self.sizes[-1][0]

    def at(self, time: int, order: Order, last: tuple[np.ndarray, ...] | None) -> tuple[np.ndarray, ...]:
        """The factors at a time; last: what `of` gives, where it is at hand."""
        if not self.nested:
            found = _early(self.ring, self.problem.p, order, self.strides, time)
            check_size(*found)
            return found
        rows = self.sizes[time]
        ends = zip(last or self.of(order), rows, [*rows[1:], rows[0]], strict=True)
        return tuple(x[:height, :width] for x, height, width in ends)


def _parts(factors: Sequence[np.ndarray], chosen: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Rows and columns of each factor; what leaves the last one enters the first."""
    ends = [*chosen[1:], chosen[0]]
    return tuple(x[np.ix_(rows, columns)] for x, rows, columns in zip(factors, chosen, ends, strict=True))


def _one_by_one(
    problem: SpikedProblem, steps: Steps, tell: Callable[[float, str], None], orders: Sequence[Order]
) -> Course:
    """The whole problem at each time, where coefficients or the bulk itself depend on the number of steps."""
    path: Path = []
    replicas: list[list[list[float]]] = [[] for _ in orders]
    anew = 0
    for time in range(steps.count + 1):
        tell(time / (steps.count + 1), f"outliers at time {time} of {steps.count}")
        then = replaced(problem.p, **{steps.name: time})
        branch = settled(Branch(problem.branch.law, then))
        edges = support(branch)
        excluded = (*edges, *((atom["at"], atom["at"]) for atom in atoms_of(branch, edges)))
        now: list[float] = []
        theirs: list[list[float]] = [[] for _ in orders]
        if time:
            early = [_first(order, steps, time) for order in (problem.order, *orders)]
            at_time = SpikedProblem(as_settled(problem.probe, branch), then, early[0], branch, excluded)
            spectra = ring_spectra(at_time) if problem.probe.reduced else None
            now = [o.z for o in find_outliers(at_time, spectra)]
            try:
                theirs = followed_outliers(at_time, spectra, now, early[1:])
            except Lost:
                anew += 1
                theirs = [outlier_positions(at_time.with_order(order)) for order in early[1:]]
        path.append((now, max((high for _, high in edges), default=float("nan"))))
        for one, zs in zip(replicas, theirs, strict=True):
            one.append(zs)
    return Course(path, replicas, anew)


def _first(order: Order, steps: Steps, time: int) -> Order:
    """Order parameters of the times before one; a mean at a fixed time, ("F", i), stays."""

    def part(key: Key, x: np.ndarray) -> np.ndarray:
        if key in steps.strides:
            return x[_slices(x.shape, steps.strides[key], time)]
        return x if key[0] == "F" else x[:time]

    return {key: part(key, x) for key, x in order.items()}


def _slices(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> tuple[slice, ...]:
    return tuple(
        slice(min(length, step * time) if step else length) for length, step in zip(shape, stride, strict=True)
    )


def _before(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> np.ndarray:
    """Which entries of an order parameter belong to times before `time`."""
    inside = np.zeros(shape, bool)
    inside[_slices(shape, stride, time)] = True
    return inside
