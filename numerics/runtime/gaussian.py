"""Averages of nonlinear laws of Gaussian variables, by quadrature.

A law takes a few arguments that are Gaussian over the sites. Its projection on the site's Gaussian variables is a row
of coefficients, the mean derivatives of the law times the rows of its arguments (Stein's lemma); what is left is
correlated with no Gaussian variable and gets an entry of its own in the rows of its site, whose covariances are
integrals over the arguments of two laws. With that the exact forward pass goes on as if the law were linear.

Arguments are written in independent normals, each law's own order kept. Axes come in three kinds. A smooth axis has
the trapezoidal rule on the Gaussian weight, which converges exponentially for analytic laws, at large variance too. An
axis that crosses kinks or jumps is split there, and each piece has a double-exponential rule, which sees layers at the
ends of a piece however thin they are. Along the last axes, those of arguments that enter as polynomials, a few
Gauss-Hermite nodes are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .exact import Block

Array = Any
Law1 = Callable[..., Array]

SMOOTH, SPLIT = 0, -1
"""Kinds of arguments; one that enters as a polynomial has its degree, at least 1, as its kind."""
DEGENERATE = 1e-13
"""A variance below so many times that of an argument itself is taken for rounding: the argument follows from others."""
AT_ONCE = 4_000_000
"""About so many values of a law are held at a time."""


@dataclass(frozen=True)
class Law:
    """A law of Gaussian arguments and numbers: value(*arguments, *numbers).

    slopes: its derivatives by the arguments, None where it jumps. kinks: affine functions of the arguments whose zeros
    are its kinks and jumps, None if there are none. kinds: of each argument.
    """

    value: Law1
    slopes: Callable[..., tuple[Array, ...]] | None
    kinks: Callable[..., tuple[Array, ...]] | None
    kinds: tuple[int, ...]

    @property
    def arguments(self) -> int:
        return len(self.kinds)


# -- rules for one normal variable


def trapezoid(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights for the mean over a standard normal; more nodes are closer and reach further."""
    reach = 6.0 + 0.5 * math.log2(nodes)
    z = np.linspace(-reach, reach, nodes + 1)
    weights = np.exp(-z * z / 2)
    return z, weights / weights.sum()


def hermite(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The same, exact for polynomials of this degree."""
    z, weights = np.polynomial.hermite_e.hermegauss(degree // 2 + 1)
    return z, weights / weights.sum()


def double_exponential(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distances of the nodes from the two ends of [0, 1], and their weights."""
    t = np.linspace(-3.2, 3.2, nodes + 1)  # the ends are reached to rounding
    s = np.pi / 2 * np.sinh(t)
    left, right = 1 / (1 + np.exp(-2 * s)), 1 / (1 + np.exp(2 * s))
    weights = np.pi * np.cosh(t) * left * right * (t[1] - t[0])
    return left, right, weights / weights.sum()


def split_axis(nodes: int, breaks: Array) -> tuple[Array, Array]:
    """Nodes and weights along an axis that is split; breaks: where, along the last axis of the array."""
    reach = 6.0 + 0.5 * math.log2(nodes)
    middle = jnp.zeros((*breaks.shape[:-1], 1))  # a long piece is quickest where its ends are
    inside = jnp.sort(jnp.clip(jnp.concatenate([breaks, middle], axis=-1), -reach, reach), axis=-1)
    edge = jnp.full((*inside.shape[:-1], 1), reach)
    ends = jnp.concatenate([-edge, inside, edge], axis=-1)
    left, right, weights = map(jnp.asarray, double_exponential(nodes))
    low, high = ends[..., :-1, None], ends[..., 1:, None]
    z = jnp.where(left < 0.5, low + (high - low) * left, high - (high - low) * right)
    density = jnp.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    shape = (*inside.shape[:-1], -1)
    return z.reshape(shape), ((high - low) * weights * density).reshape(shape)


# -- several variables


def factor(covariance: Array) -> Array:
    """Lower-triangular L with L L^T the covariance; a column is zero where a variable follows from those before it."""
    size = covariance.shape[0]
    columns: list[Array] = []
    rest = covariance
    for i in range(size):
        pivot = rest[i, i]
        fine = pivot > DEGENERATE * covariance[i, i]
        root = jnp.sqrt(jnp.where(fine, pivot, 1.0))
        below = jnp.where((jnp.arange(size) >= i) & fine, rest[:, i] / root, 0.0)
        columns.append(below)
        rest = rest - jnp.outer(below, below)
    return jnp.stack(columns, axis=1) if columns else jnp.zeros((0, 0))


def order_of(kinds: tuple[int, ...]) -> tuple[int, ...]:
    """Places of the arguments in the order in which they are integrated from the outside: split, smooth, polynomial."""
    rank = [0 if k == SPLIT else 1 if k == SMOOTH else 2 for k in kinds]
    return tuple(sorted(range(len(kinds)), key=lambda i: rank[i]))


def points_of(nodes: int, kinds: tuple[int, ...], kinks: int) -> int:
    """About how many values of a law an integral takes."""
    exact = sum(k for k in kinds if k > 0) // 2 + 1
    sizes = {SMOOTH: nodes + 1, SPLIT: (nodes + 1) * (3 + kinks)}
    return math.prod(sizes.get(k, exact) for k in kinds)


def integrate(
    nodes: int,
    kinds: tuple[int, ...],
    mean: Array,
    covariance: Array,
    integrands: Callable[..., tuple[Array, ...]],
    kinks: Callable[..., tuple[Array, ...]] | None = None,
    stein: bool = False,
) -> tuple[Array, ...]:
    """Means of functions of Gaussian variables. kinks: affine functions where they are not smooth.

    With `stein`, for one function: its mean and its mean derivatives, from its correlations with the variables.
    """
    count = len(kinds)
    places = order_of(kinds)
    back = tuple(sorted(range(count), key=lambda i: places[i]))
    lower = factor(covariance[jnp.ix_(jnp.asarray(places, int), jnp.asarray(places, int))]) if count else None
    axes = [kinds[i] for i in places]
    exact = hermite(sum(k for k in kinds if k > 0))

    def along(i: int, array: Array) -> Array:
        """An array over the first axes, the last of them being i, with room for the axes behind."""
        return array.reshape(array.shape + (1,) * (count - 1 - i))

    planes = _planes(kinks, mean, places, lower) if kinks is not None and count else None
    normals: list[Array] = []
    weights: list[Array] = []
    for i, kind in enumerate(axes):
        if kind == SPLIT:
            assert planes is not None
            z, w = split_axis(nodes, _breaks(planes, i, normals))
            z, w = along(i, z), along(i, w)
        else:
            z, w = (jnp.asarray(x) for x in (trapezoid(nodes) if kind == SMOOTH else exact))
            z, w = (along(i, x.reshape((1,) * i + (-1,))) for x in (z, w))
        normals.append(z)
        weights.append(w)
    values = [
        mean[places[i]] + sum((lower[i, j] * normals[j] for j in range(i + 1)), jnp.zeros(())) for i in range(count)
    ]
    found = integrands(*(values[k] for k in back))

    def averaged(value: Array) -> Array:
        value = jnp.asarray(value, float)
        value = value.reshape((1,) * (count - value.ndim) + value.shape)
        for i in range(count - 1, -1, -1):
            value = jnp.sum(value * weights[i], axis=i, keepdims=True)
        return value.reshape(())

    if not stein:
        return tuple(map(averaged, found))
    (value,) = found
    seen = [averaged(value * z) for z in normals]
    slopes: list[Array] = [jnp.zeros(())] * count
    for i in range(count - 1, -1, -1):  # L^T slopes = seen
        known = seen[i] - sum((lower[j, i] * slopes[j] for j in range(i + 1, count)), jnp.zeros(()))
        fine = lower[i, i] > 0
        slopes[i] = jnp.where(fine, known / jnp.where(fine, lower[i, i], 1.0), 0.0)
    return (averaged(value), *(slopes[k] for k in back))


def _planes(kinks: Callable[..., tuple[Array, ...]], mean: Array, places: tuple[int, ...], lower: Array) -> Array:
    """Kinks in the normals: one row per kink, its coefficients and then its offset."""
    count = len(places)
    offsets = jnp.stack([jnp.asarray(x, float) for x in kinks(*mean)])
    steps = [
        jnp.stack([jnp.asarray(x, float) for x in kinks(*(mean + jnp.eye(count)[k]))]) - offsets for k in range(count)
    ]
    by_place = jnp.stack([steps[k] for k in places], axis=1)
    return jnp.concatenate([by_place @ lower, offsets[:, None]], axis=1)


def _breaks(planes: Array, axis: int, before: list[Array]) -> Array:
    """Where the integrand of an axis is not smooth, or nearly so, given the normals before: kinks that this axis
    crosses, where kinks cross each other on the next axis, and the middle of layers that the next axis makes."""
    slope = planes[:, axis]
    rest = planes[:, -1]
    shape = before[-1].shape if before else ()
    held = rest.reshape((1,) * len(shape) + (-1,))
    for j, z in enumerate(before):
        held = held + z[..., None] * planes[:, j]
    if before:
        held = held.reshape((*(n for n in held.shape[:axis]), -1))
    else:
        held = rest
    crossing = slope != 0
    found = jnp.where(crossing, -held / jnp.where(crossing, slope, 1.0), jnp.inf)
    if axis == 0 and planes.shape[1] > 2 and planes.shape[0] > 1:
        first, second = np.triu_indices(planes.shape[0], 1)
        one, two = planes[first], planes[second]
        det = one[:, 0] * two[:, 1] - one[:, 1] * two[:, 0]
        meet = -(one[:, -1] * two[:, 1] - one[:, 1] * two[:, -1])
        apart = det != 0
        met = jnp.where(apart, meet / jnp.where(apart, det, 1.0), jnp.inf)
        found = jnp.concatenate([found, met])
    return jnp.nan_to_num(found, nan=0.0, posinf=1e9, neginf=-1e9)


def _batched(function: Callable[..., Any], points: int, *arguments: Array) -> Any:
    """A function over the first axis of its arguments, as many side by side as memory allows."""
    count = arguments[0].shape[0]
    together = max(1, AT_ONCE // max(points, 1))
    if count <= together:
        return jax.vmap(function)(*arguments)
    return jax.lax.map(lambda each: function(*each), arguments, batch_size=together)


# -- laws


def columns(numbers: tuple[Array, ...], labels: int) -> Array:
    """Numbers, or columns over labels, side by side."""
    made = [jnp.broadcast_to(jnp.asarray(x, float).reshape(-1, 1), (labels, 1)) for x in numbers]
    return jnp.concatenate(made, axis=1) if made else jnp.zeros((labels, 0))


@dataclass(frozen=True)
class _Facts:
    """What is known of a law at one time and label: whether it holds, its mean, its mean slopes, the means and
    covariances of its arguments, its numbers."""

    holds: Array
    mean: Array
    slopes: Array
    at: Array
    covariance: Array
    numbers: Array

    @staticmethod
    def of(law: Law, table: Array) -> _Facts:
        k = law.arguments
        ends = np.cumsum([1, 1, k, k, k * k])
        holds, mean, slopes, at, covariance, numbers = jnp.split(table, ends, axis=-1)
        square = covariance.reshape((*covariance.shape[:-1], k, k))
        return _Facts(holds[..., 0], mean[..., 0], slopes, at, square, numbers)


def _moments(law: Law, grams: tuple[Array, ...], at: tuple[Array, ...], labels: int) -> tuple[Array, Array]:
    """Means and covariances of the arguments of a law, one line per label."""
    k = law.arguments
    means, pairs = columns(at, labels), columns(grams, labels)
    square = jnp.zeros((labels, k, k))
    for column, (i, j) in enumerate(zip(*np.triu_indices(k), strict=True)):
        value = pairs[:, column] - means[:, i] * means[:, j]
        square = square.at[:, i, j].set(value).at[:, j, i].set(value)
    return means, square


def _averages(nodes: int, law: Law, slopes: bool) -> Callable[[Array, Array, Array], Array]:
    """The mean of a law, and its mean slopes, from the moments of its arguments and its numbers."""

    def one(mean: Array, covariance: Array, numbers: Array) -> Array:
        given = tuple(numbers)

        def values(*u: Array) -> tuple[Array, ...]:
            more = law.slopes(*u, *given) if slopes and law.slopes is not None else ()
            return (law.value(*u, *given), *more)

        def kinks(*u: Array) -> tuple[Array, ...]:
            return () if law.kinks is None else law.kinks(*u, *given)

        bent = None if law.kinks is None else kinks
        stein = slopes and law.slopes is None
        return jnp.stack(integrate(nodes, law.kinds, mean, covariance, values, bent, stein))

    return one


def facts(nodes: int, law: Law, grams: tuple[Array, ...], at: tuple[Array, ...], numbers: Array, holds: Array) -> Array:
    """What is known of a law at one time, one line per label.

    grams: means of the products of its arguments, pair by pair, as columns; at: their means. holds: whether the law is
    the one of this time; elsewhere everything is zero.
    """
    labels, k = numbers.shape[0], law.arguments
    means, square = _moments(law, grams, at, labels)
    found = _batched(_averages(nodes, law, True), points_of(nodes, law.kinds, 1), means, square, numbers)
    there = jnp.broadcast_to(jnp.asarray(holds, float), (labels, 1))
    table = jnp.concatenate([there, found, means, square.reshape(labels, k * k), numbers], axis=1)
    return jnp.where(there > 0, table, 0.0)


def average(nodes: int, law: Law, grams: tuple[Array, ...], at: tuple[Array, ...], numbers: Array) -> Array:
    """The mean of a law, as a column over labels; arguments as for `facts`."""
    moments = _moments(law, grams, at, numbers.shape[0])
    return _batched(_averages(nodes, law, False), points_of(nodes, law.kinds, 1), *moments, numbers)


def projection(law: Law, known: Array, rows: tuple[Array, ...], one: Block) -> Array:
    """The rows of a law without what is its own: mean slopes times the rows of its arguments, and its mean."""
    here = _Facts.of(law, known)
    constant = here.mean - jnp.sum(here.slopes * here.at, axis=1)
    unit = (jnp.arange(one.size) == one.start).astype(float)
    return sum((here.slopes[:, i, None] * row for i, row in enumerate(rows)), constant[:, None] * unit)


def own(block: Block, t: Array, known: Array) -> Array:
    """The rows that are a law's own entries at one time, where the law holds."""
    place = block.start + t * block.labels + jnp.arange(block.labels)
    return ((place[:, None] == jnp.arange(block.size)) & (known[:, :1] > 0)).astype(float)


def residuals(
    nodes: int,
    a: Law,
    here: Array,
    b: Law,
    there: Array,
    crosses: tuple[Array, ...],
    shared: tuple[tuple[int, int], ...] = (),
) -> Array:
    """Covariances of what is left of two laws beside their projections: a at one time, b at other times.

    crosses: means of the products of the arguments, those of b running fastest; lines for a, columns for b.
    shared: places in a and b of arguments that are the same variable.
    """
    left, right = _Facts.of(a, here), _Facts.of(b, there)
    lines, width = here.shape[0], there.shape[0]
    ka, kb = a.arguments, b.arguments
    cross = jnp.stack(crosses, axis=-1).reshape(lines, width, ka, kb)
    cross = cross - left.at[:, None, :, None] * right.at[None, :, None, :]
    of_a = {j: i for i, j in shared}
    apart = [j for j in range(kb) if j not in of_a]
    place = [of_a[j] if j in of_a else ka + apart.index(j) for j in range(kb)]
    kinds = [*a.kinds, *(b.kinds[j] for j in apart)]
    for i, j in shared:
        kinds[i] = _of_both(a.kinds[i], b.kinds[j])
    kept = np.array([*range(ka), *(ka + j for j in apart)])
    bent = a.kinks is not None or b.kinks is not None

    def one(i: Array, j: Array) -> Array:
        between = cross[i, j]
        mean = jnp.concatenate([left.at[i], right.at[j]])[kept]
        covariance = jnp.block([[left.covariance[i], between], [between.T, right.covariance[j]]])
        numbers_a, numbers_b = tuple(left.numbers[i]), tuple(right.numbers[j])

        def product(*u: Array) -> tuple[Array, ...]:
            return (a.value(*u[:ka], *numbers_a) * b.value(*(u[k] for k in place), *numbers_b),)

        def kinks(*u: Array) -> tuple[Array, ...]:
            mine = () if a.kinks is None else a.kinks(*u[:ka], *numbers_a)
            theirs = () if b.kinks is None else b.kinks(*(u[k] for k in place), *numbers_b)
            return (*mine, *theirs)

        square = covariance[np.ix_(kept, kept)]
        (found,) = integrate(nodes, tuple(kinds), mean, square, product, kinks if bent else None)
        linear = left.slopes[i] @ between @ right.slopes[j] + left.mean[i] * right.mean[j]
        known = left.holds[i] * right.holds[j] > 0
        return jnp.where(known, found - linear, 0.0)

    row, column = (x.reshape(-1) for x in jnp.meshgrid(jnp.arange(lines), jnp.arange(width), indexing="ij"))
    points = points_of(nodes, tuple(kinds), 2 if bent else 0)
    return _batched(one, points, row, column).reshape(lines, width)


def _of_both(one: int, two: int) -> int:
    """The kind of an argument of both factors of a product."""
    if SPLIT in (one, two):
        return SPLIT
    return SMOOTH if SMOOTH in (one, two) else one + two
