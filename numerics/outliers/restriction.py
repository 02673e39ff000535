"""The eigenproblem of every training time as a leading block of that of the last one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from numerics.outliers.finding import check_size, cycle_factors, factors_at
from numerics.outliers.powers import LowRankChange
from numerics.outliers.problem import SpikedProblem
from numerics.runtime.interface import Cycle, Order, Strides
from numerics.runtime.keys import OrderKey
from numerics.runtime.point import Point

CODED_BYTES = 2e7
"""Bytes of order parameters above which the births of rows are not determined from one set of factors."""
CODED_BITS, FEWEST_BITS = 1000, 8
"""Binary digits of an exponent, and the minimum required for each time."""


@dataclass(frozen=True)
class Steps:
    """The dependence of a problem on time: the number of steps, the name of that parameter, and the entries per time
    step along each axis of the order parameters.
    """

    name: str
    count: int
    strides: Mapping[OrderKey, Strides]


@dataclass(frozen=True)
class _Structure:
    """The assignment of rows and columns of a cycle's factors to times.

    nested: whether the factors of every time are leading blocks of those of the last one, with rows and columns in the
    order `appearing`; sizes: the sizes of these blocks by time. bytes: the memory of all factors.
    """

    nested: bool
    appearing: tuple[np.ndarray, ...]
    sizes: tuple[tuple[int, ...], ...]
    bytes: int

    @staticmethod
    def of(nested: bool, births: Sequence[np.ndarray], count: int) -> _Structure:
        """births: for the rows of each factor, the first time at which they are nonzero (one after the last time if
        they never are).
        """
        rows = [len(birth) for birth in births]
        return _Structure(
            nested,
            tuple(np.argsort(birth, kind="stable") for birth in births),
            tuple(tuple(int(np.sum(birth <= time)) for birth in births) for time in range(count + 1)),
            sum(8 * one * other for one, other in zip(rows, [*rows[1:], rows[0]], strict=True)),
        )


Shapes = tuple[tuple[OrderKey, tuple[int, ...]], ...]


@lru_cache(maxsize=64)
def _structure(
    cycle: Cycle, p: Point, shapes: Shapes, strides: tuple[tuple[OrderKey, Strides], ...], count: int
) -> _Structure:
    """Return the structure at order parameters without zeros; p contains generic numbers.

    That early factors are parts of late ones is an identity in parameters and order parameters, so it can be tested at
    random values, once for all points of a sweep.
    """
    of_time = dict(strides)
    if sum(8 * math.prod(shape) for _, shape in shapes) > CODED_BYTES and CODED_BITS // count >= FEWEST_BITS:
        found = _coded_births(cycle, p, shapes, of_time, count)
        if _are_nested(cycle, p, shapes, of_time, found, count):
            return _Structure.of(True, found, count)
    generic = dict(_Drawn(shapes))
    whole = _early(cycle, p, generic, of_time, count)
    last = count + 1
    births = [np.full(len(x), last) for x in whole]
    nested = all(np.all(np.isfinite(x)) for x in whole)
    for time in range(count, 0, -1):
        early = _early(cycle, p, generic, of_time, time)
        alive = _alive(early)
        nested &= all(np.all(birth[now] == time + 1) for birth, now in zip(births, alive, strict=True))
        for birth, now in zip(births, alive, strict=True):
            birth[now] = time
        pairs = zip(_parts(early, alive), _parts(whole, alive), strict=True)
        nested &= all(np.array_equal(now, then) for now, then in pairs)
    return _Structure.of(bool(nested), births, count)


def _alive(factors: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return which rows of each factor, and columns of the preceding one, are nonzero."""
    return [
        np.any(one, axis=0) & np.any(other, axis=1)
        for one, other in zip((factors[-1], *factors[:-1]), factors, strict=True)
    ]


class _Drawn(Mapping[OrderKey, np.ndarray]):
    """Order parameters without zeros, drawn on first access because together they may be large. changed: a function
    applied to each of them.
    """

    def __init__(self, shapes: Shapes, changed: Callable[[OrderKey, np.ndarray], np.ndarray] | None = None) -> None:
        self.shapes, self.changed = dict(shapes), changed

    def __getitem__(self, key: OrderKey) -> np.ndarray:
        rng = np.random.default_rng(list(self.shapes).index(key))
        found = rng.uniform(0.5, 1.5, self.shapes[key])
        return found if self.changed is None else self.changed(key, found)

    def __iter__(self) -> Iterator[OrderKey]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


def _coded_births(
    cycle: Cycle, p: Point, shapes: Shapes, strides: Mapping[OrderKey, Strides], count: int
) -> list[np.ndarray]:
    """Return the first times of rows and columns from one set of factors: entries of order parameters decrease with
    their time, so the largest entry of a row encodes its first time. If entries are products of order parameters the
    encoding fails, which `_are_nested` detects.
    """
    bits = CODED_BITS // count

    def coded(key: OrderKey, x: np.ndarray) -> np.ndarray:
        sizes = np.ones((1,) * x.ndim)
        for axis, (length, step) in enumerate(zip(x.shape, strides.get(key, ()), strict=False)):
            when = np.arange(length) // step if step else np.zeros(length)
            # of what has two times the later one counts
            sizes = np.minimum(sizes, np.exp2(-bits * when).reshape([-1 if k == axis else 1 for k in range(x.ndim)]))
        found: np.ndarray = x * sizes
        return found

    factors = factors_at(cycle, p, _Drawn(shapes, coded))

    def birth(largest: np.ndarray) -> np.ndarray:
        there = largest > 0
        when = 1 + np.round(-np.log2(np.where(there, largest, 1.0)) / bits)
        return np.where(there, np.clip(when, 1, count), count + 1).astype(int)

    ends = zip((factors[-1], *factors[:-1]), factors, strict=True)
    return [np.maximum(birth(_largest(one, 0)), birth(_largest(other, 1))) for one, other in ends]


def _largest(x: np.ndarray, axis: int) -> np.ndarray:
    """Return the largest moduli along an axis, without a copy."""
    found: np.ndarray = np.maximum(x.max(axis=axis), -x.min(axis=axis))
    return found


def _are_nested(
    cycle: Cycle,
    p: Point,
    shapes: Shapes,
    strides: Mapping[OrderKey, Strides],
    births: Sequence[np.ndarray],
    count: int,
) -> bool:
    """Return whether factors of a few times are nonzero where the first times of rows and columns predict it, and act
    there like the factors of the last time.
    """
    times = sorted({1, max(1, count // 3), max(1, 2 * count // 3)})
    vectors = [np.random.default_rng(k).standard_normal(len(birth)) for k, birth in enumerate(births)]

    def seen(time: int, factors: Sequence[np.ndarray]) -> list[np.ndarray]:
        there = [birth <= time for birth in births]
        ends = zip(factors, there, [*there[1:], there[0]], [*vectors[1:], vectors[0]], strict=True)
        return [(x @ (vector * columns))[rows] for x, rows, columns, vector in ends]

    whole = factors_at(cycle, p, _Drawn(shapes))
    if not all(np.all(np.isfinite(x)) for x in whole):
        return False
    then = [seen(time, whole) for time in times]
    del whole
    for time, expected in zip(times, then, strict=True):

        def cut(key: OrderKey, x: np.ndarray, time: int = time) -> np.ndarray:
            return np.where(_before(x.shape, strides[key], time), x, 0.0) if key in strides else x

        early = factors_at(cycle, p, _Drawn(shapes, cut))
        if not all(np.array_equal(now, birth <= time) for now, birth in zip(_alive(early), births, strict=True)):
            return False
        now = seen(time, early)
        if not all(np.allclose(x, y, rtol=1e-9, atol=1e-12) for x, y in zip(now, expected, strict=True)):
            return False
    return True


def _generic(p: Point) -> Point:
    """Return generic numbers for all parameters except integers, which determine shapes."""
    draw = np.random.default_rng(1).uniform
    return Point(**{name: x if isinstance(x, int) else float(draw(0.5, 1.5)) for name, x in vars(p).items()})


def _early(
    cycle: Cycle, p: Point, order: Order, strides: Mapping[OrderKey, Strides], time: int
) -> tuple[np.ndarray, ...]:
    """Return the factors with order parameters of later times set to zero."""
    return factors_at(cycle, p, without_later(order, strides, time))


def without_later(order: Order, strides: Mapping[OrderKey, Strides], time: int) -> Order:
    """Return order parameters with those of later times set to zero."""
    return {
        key: np.where(_before(x.shape, strides[key], time), x, 0.0) if key in strides else x for key, x in order.items()
    }


class Restriction:
    """The factors of a cycle's matrix without the spikes of later times.

    The nonzero rows at each time are determined with order parameters without zeros, because sampled ones may vanish
    accidentally. If they are a subset of those at later times, with the same entries, rows and columns are put in order
    of appearance, so that the factors of every time are leading blocks of those of the last one.
    """

    def __init__(self, problem: SpikedProblem, cycle: Cycle, steps: Steps) -> None:
        self.problem, self.cycle, self.strides = problem, cycle, steps.strides
        shapes = tuple((key, np.shape(x)) for key, x in problem.order.items() if key in cycle.reads)
        strides = tuple((key, tuple(stride)) for key, stride in steps.strides.items())
        found = _structure(cycle, _generic(problem.p), shapes, strides, steps.count)
        self.nested, self.appearing, self.sizes, self.bytes = found.nested, found.appearing, found.sizes, found.bytes

    def of(self, order: Order) -> tuple[np.ndarray, ...]:
        """Return the factors of the last time at given order parameters, with rows and columns in order of
        appearance."""
        if not self.nested:
            return ()
        return cycle_factors(self.problem.with_order(order), self.cycle, self.appearing)

    def rows(self, time: int) -> int:
        """Return the rows of the matrix at a time."""
        return self.sizes[time][0] if self.nested else self.sizes[-1][0]

    def at(self, time: int, order: Order, last: tuple[np.ndarray, ...] | None) -> tuple[np.ndarray, ...]:
        """Return the factors at a time; last: the result of `of`, if available."""
        if not self.nested:
            return self.early(self.problem.p, order, time)
        return self.blocks(last or self.of(order), time)

    def early(self, p: Point, order: Order, time: int) -> tuple[np.ndarray, ...]:
        """Return the factors at a time at given parameters, with order parameters of later times set to zero."""
        found = _early(self.cycle, p, order, self.strides, time)
        check_size(*found)
        return found

    def ordered(self, factors: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Return factors, or stacks of them, with rows and columns in order of appearance."""
        ends = zip(factors, self.appearing, [*self.appearing[1:], self.appearing[0]], strict=True)
        return tuple(x[..., rows[:, None], columns] for x, rows, columns in ends)

    def blocks(self, ordered: Sequence[np.ndarray], time: int) -> tuple[np.ndarray, ...]:
        """Return the factors at a time from those of the last time in order of appearance, or from stacks of them."""
        rows = self.sizes[time]
        ends = zip(ordered, rows, [*rows[1:], rows[0]], strict=True)
        return tuple(x[..., :height, :width] for x, height, width in ends)


def products(
    factors: Sequence[np.ndarray], sizes: Sequence[Sequence[int]]
) -> Iterator[tuple[np.ndarray, LowRankChange]]:
    """Yield the product of the leading blocks of factors at each time after the first, as a view that the next one
    overwrites, and the change from the previous one, padded with zeros.

    Each change has low rank, so that all products cost little more than the last one.

    Args:
        factors: the factors of the last time.
        sizes: rows of each block by time; its columns are the rows of the next one.
    """
    whole = [np.array(factors[-1])]  # products of the last factors, the longest one last
    whole += [np.zeros((len(factor), factors[-1].shape[1])) for factor in reversed(factors[:-1])]
    for before, now in zip(sizes[:-1], sizes[1:], strict=True):
        heights, widths = list(now), [*now[1:], now[0]]
        olds = list(zip(before, [*before[1:], before[0]], strict=True))
        change = _added(factors[-1], olds[-1], (heights[-1], widths[-1]))
        for number, k in enumerate(reversed(range(len(factors) - 1)), start=1):
            added = _added(factors[k], olds[k], (heights[k], widths[k]))
            inner = whole[number - 1][: heights[k + 1], : widths[-1]]
            left = factors[k][: olds[k][0], : olds[k][1]] @ change.left[: olds[k][1]]
            left = np.pad(left, ((0, heights[k] - olds[k][0]), (0, 0)))
            right = np.vstack([change.right, added.right @ inner])
            change = LowRankChange(np.hstack([left, added.left]), right).without_zeros()
            whole[number][: heights[k], : widths[-1]] += change.left @ change.right
        yield whole[-1][: heights[0], : widths[-1]], change


def _added(factor: np.ndarray, old: tuple[int, int], new: tuple[int, int]) -> LowRankChange:
    """Return the new rows and columns of a block of a factor."""
    (height, width), (rows, columns) = old, new
    left = np.zeros((rows, (rows - height) + (columns - width)))
    right = np.zeros((left.shape[1], columns))
    left[height:, : rows - height] = np.eye(rows - height)
    right[: rows - height] = factor[height:rows, :columns]
    left[:height, rows - height :] = factor[:height, width:columns]
    right[rows - height :, width:] = np.eye(columns - width)
    return LowRankChange(left, right)


def _parts(factors: Sequence[np.ndarray], chosen: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return rows and columns of each factor; the output of the last one is the input of the first."""
    ends = [*chosen[1:], chosen[0]]
    return tuple(x[np.ix_(rows, columns)] for x, rows, columns in zip(factors, chosen, ends, strict=True))


def slices(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> tuple[slice, ...]:
    return tuple(
        slice(min(length, step * time) if step else length) for length, step in zip(shape, stride, strict=True)
    )


def _before(shape: tuple[int, ...], stride: tuple[int, ...], time: int) -> np.ndarray:
    """Return which entries of an order parameter belong to times before `time`."""
    inside = np.zeros(shape, bool)
    inside[slices(shape, stride, time)] = True
    return inside
