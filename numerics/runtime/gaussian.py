"""Averages of nonlinear laws of Gaussian variables, by quadrature.

A law has a few Gaussian arguments. Its projection on the Gaussian variables of its site has the mean derivatives of the
law times the rows of its arguments as coefficients (Stein's lemma). The remainder is uncorrelated with all Gaussian
variables and becomes a variable of its own, whose covariances are integrals over the arguments of two laws. The exact
forward pass then proceeds as if the law were linear.

Arguments are written in independent normals (Cholesky). Axes are of three kinds. A smooth axis has the trapezoidal rule
with Gaussian weight, which converges exponentially for analytic laws. An axis that crosses kinks or jumps is split
there, and each piece has a double-exponential (tanh-sinh) rule, which resolves boundary layers. The last axes, of
arguments that enter as polynomials, have exact Gauss-Hermite quadrature.

Covariances of two laws of one argument each avoid double integrals. Two analytic laws are expanded in normalised
Hermite polynomials: with correlation rho of the arguments, the covariance is the sum over k of products of coefficients
times rho^k (Mehler's formula). For two piecewise linear laws the second derivative of the covariance in rho is the mean
product of their second derivatives (Price's theorem), a sum over pairs of kinks of the bivariate normal density,
integrated once along rho.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .exact import NoiseBlock, Site, _dual

Array = Any
Law1 = Callable[..., Array]

SMOOTH, SPLIT = 0, -1
"""Kinds of arguments; an argument that enters as a polynomial has its degree, at least 1, as its kind."""
DEGENERATE = 1e-13
"""Conditional variance, relative to the variance, below which an argument is a linear function of others."""
AT_ONCE = 4_000_000
"""Values of a law that are held in memory at once. Trades memory for time."""


@dataclass(frozen=True)
class GaussianFunction:
    """A law of Gaussian arguments and numbers: value(*arguments, *numbers).

    Attributes:
        slopes: derivatives with respect to the arguments; None if the law jumps.
        kinks: affine functions of the arguments whose zeros are kinks and jumps; None without any.
        kinds: kind of each argument.
        straight: whether it is piecewise linear in one argument.
    """

    value: Law1
    slopes: Callable[..., tuple[Array, ...]] | None
    kinks: Callable[..., tuple[Array, ...]] | None
    kinds: tuple[int, ...]
    straight: bool = False

    @property
    def arguments(self) -> int:
        """Number of arguments."""
        return len(self.kinds)

    @property
    def expanded(self) -> bool:
        """Whether it is represented by a Hermite series."""
        return self.kinds == (SMOOTH,)


# -- rules for one normal variable


def trapezoid(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the trapezoidal rule for a standard normal; more nodes are denser and reach
    further."""
    reach = 6.0 + 0.5 * math.log2(nodes)
    z = np.linspace(-reach, reach, nodes + 1)
    weights = np.exp(-z * z / 2)
    return z, weights / weights.sum()


def hermite(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Hermite nodes and weights, exact for polynomials of this degree."""
    z, weights = np.polynomial.hermite_e.hermegauss(degree // 2 + 1)
    return z, weights / weights.sum()


STRIDE = 16
"""Powers of a correlation are products of two, one of them below this exponent."""


def terms(nodes: int) -> int:
    """Return the number of Hermite coefficients, from degree two on, of an analytic law.

    The number of trapezoidal nodes and the square root of the degree scale alike with the distance of the law's
    singularities, so that the series is at least as accurate as the rule.
    """
    return STRIDE * math.ceil(nodes * nodes / 48 / STRIDE)


@lru_cache(maxsize=8)
def hermite_functions(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return trapezoidal nodes, and weights that give the Hermite coefficients of a law from degree two on."""
    z, weights = trapezoid(nodes)
    rows = np.empty((terms(nodes) + 2, z.size))
    rows[0], rows[1] = weights, weights * z
    for k in range(1, len(rows) - 1):
        rows[k + 1] = (z * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1)
    return z, rows[2:].T


def double_exponential(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distances of tanh-sinh nodes from the two ends of [0, 1], and their weights."""
    t = np.linspace(-3.2, 3.2, nodes + 1)  # wide enough that the ends are reached to rounding
    s = np.pi / 2 * np.sinh(t)
    left, right = 1 / (1 + np.exp(-2 * s)), 1 / (1 + np.exp(2 * s))
    weights = np.pi * np.cosh(t) * left * right * (t[1] - t[0])
    return left, right, weights / weights.sum()


def split_axis(nodes: int, breaks: Array) -> tuple[Array, Array]:
    """Return nodes and weights along an axis that is split at breakpoints, given along the last axis of the array."""
    reach = 6.0 + 0.5 * math.log2(nodes)
    middle = jnp.zeros((*breaks.shape[:-1], 1))  # the rule is densest at ends, and zero is where the weight is
    inside = jnp.sort(jnp.clip(jnp.concatenate([breaks, middle], axis=-1), -reach, reach), axis=-1)
    edge = jnp.full((*inside.shape[:-1], 1), reach)
    ends = jnp.concatenate([-edge, inside, edge], axis=-1)
    left, right, weights = double_exponential(3 * nodes // 2)  # as accurate as the trapezoidal rule
    low, high = ends[..., :-1, None], ends[..., 1:, None]
    z = jnp.where(left < 0.5, low + (high - low) * left, high - (high - low) * right)
    density = jnp.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    shape = (*inside.shape[:-1], -1)
    return z.reshape(shape), ((high - low) * weights * density).reshape(shape)


# -- several variables

Square = list[list[Array]]
"""A matrix as a list of entries, so that the compiler handles each separately; the lower triangle suffices."""


def factor(covariance: Square) -> Square:
    """Return the Cholesky factor of a covariance, with zero columns for variables that depend on earlier ones."""
    lower: Square = []
    inverse: list[Array] = []
    for i, row in enumerate(covariance):
        entries: list[Array] = []
        for j in range(i):
            rest = row[j] - sum(entries[k] * lower[j][k] for k in range(j))
            entries.append(rest * inverse[j])
        pivot = row[i] - sum(x * x for x in entries)
        fine = pivot > DEGENERATE * row[i]
        root = jnp.sqrt(jnp.where(fine, pivot, 1.0))
        inverse.append(jnp.where(fine, 1 / root, 0.0))
        lower.append([*entries, jnp.where(fine, root, 0.0)])
    return lower


def order_of(kinds: Sequence[int]) -> tuple[int, ...]:
    """Return the order of integration of the arguments, from the outside: split, smooth, polynomial."""
    rank = [0 if k == SPLIT else 1 if k == SMOOTH else 2 for k in kinds]
    return tuple(sorted(range(len(kinds)), key=lambda i: rank[i]))


def points_of(nodes: int, kinds: Sequence[int], kinks: int) -> int:
    """Return the approximate number of evaluations of an integral."""
    exact = sum(k for k in kinds if k > 0) // 2 + 1
    sizes = {SMOOTH: nodes + 1, SPLIT: 3 * nodes // 2 * (3 + kinks)}
    return math.prod(sizes.get(k, exact) for k in kinds)


def integrate(
    nodes: int,
    kinds: Sequence[int],
    mean: Sequence[Array],
    covariance: Square,
    integrands: Callable[..., tuple[Array, ...]],
    kinks: Callable[..., tuple[Array, ...]] | None = None,
    stein: bool = False,
) -> tuple[Array, ...]:
    """Return means of functions of Gaussian variables. kinks: affine functions at whose zeros they are not smooth.

    With `stein`, for a single function: its mean and its mean derivatives, from correlations with the variables.
    """
    count = len(kinds)
    places = order_of(kinds)
    back = tuple(sorted(range(count), key=lambda i: places[i]))
    lower = factor([[covariance[max(i, j)][min(i, j)] for j in places[: k + 1]] for k, i in enumerate(places)])
    exact = hermite(sum(k for k in kinds if k > 0))

    def along(i: int, array: Array) -> Array:
        """Return an array over the first i axes with trailing axes added for broadcasting."""
        return array.reshape(array.shape + (1,) * (count - 1 - i))

    planes = None if kinks is None else _planes(kinks, mean, places, lower)
    normals: list[Array] = []
    weights: list[Array] = []
    for i, place in enumerate(places):
        if kinds[place] == SPLIT:
            assert planes is not None
            z, w = split_axis(nodes, jnp.stack(_breaks(planes, i, normals), axis=-1))
            z, w = along(i, z.reshape((*z.shape[:i], -1))), along(i, w.reshape((*w.shape[:i], -1)))
        else:
            z, w = trapezoid(nodes) if kinds[place] == SMOOTH else exact
            z, w = (along(i, x.reshape((1,) * i + (-1,))) for x in (z, w))
        normals.append(z)
        weights.append(w)
    values = [mean[places[i]] + sum(lower[i][j] * normals[j] for j in range(i + 1)) for i in range(count)]

    def averaged(value: Array) -> Array:
        for w in weights:  # one by one: their product would be a large constant
            value = value * w
        return jnp.sum(value)

    integrand = integrands(*(values[k] for k in back))
    if not stein:
        return tuple(map(averaged, integrand))
    (value,) = integrand
    slopes: list[Array] = [0.0] * count
    for i in range(count - 1, -1, -1):  # L^T slopes = correlations with the normals
        rest = averaged(value * normals[i]) - sum(lower[j][i] * slopes[j] for j in range(i + 1, count))
        fine = lower[i][i] > 0
        slopes[i] = jnp.where(fine, rest / jnp.where(fine, lower[i][i], 1.0), 0.0)
    return (averaged(value), *(slopes[k] for k in back))


def _planes(
    kinks: Callable[..., tuple[Array, ...]], mean: Sequence[Array], places: tuple[int, ...], lower: Square
) -> list[tuple[list[Array], Array]]:
    """Return kinks as affine functions of the independent normals: coefficients and offset."""
    count = len(places)
    offsets = kinks(*mean)
    moved = [kinks(*(m + 1.0 if k == place else m for k, m in enumerate(mean))) for place in places]
    planes = []
    for number, offset in enumerate(offsets):
        slopes = [moved[i][number] - offset for i in range(count)]
        planes.append(([sum(slopes[i] * lower[i][j] for i in range(j, count)) for j in range(count)], offset))
    return planes


FAR = 1e9
"""A breakpoint beyond all nodes, which has no effect."""


def _breaks(planes: list[tuple[list[Array], Array]], axis: int, before: list[Array]) -> list[Array]:
    """Return breakpoints of an axis given the preceding normals: kinks that cross it, intersections of kinks on the
    next axis, and centres of layers caused by the next axis."""

    def ratio(above: Array, below: Array) -> Array:
        fine = below != 0
        return jnp.where(fine, above / jnp.where(fine, below, 1.0), FAR)

    held = []
    for slopes, offset in planes:
        rest = offset + sum(slopes[j] * z for j, z in enumerate(before))
        held.append(rest.reshape(rest.shape[:axis]) if before else rest)
    breaks = [ratio(-rest, slopes[axis]) for (slopes, _), rest in zip(planes, held, strict=True)]
    if axis == 0 and len(planes[0][0]) > 1:
        for i, (one, a) in enumerate(planes):
            for two, b in planes[:i]:
                breaks.append(ratio(one[1] * b - a * two[1], one[0] * two[1] - one[1] * two[0]))
    shape = jnp.broadcast_shapes(*(jnp.shape(x) for x in breaks))
    return [jnp.broadcast_to(x, shape) for x in breaks]


def _batched(function: Callable[..., Any], points: int, *arguments: Array) -> Any:
    """Map a function over the first axis of its arguments, in batches that fit into memory."""
    count = arguments[0].shape[0]
    together = max(1, AT_ONCE // max(points, 1))
    if count <= together:
        return jax.vmap(function)(*arguments)
    return jax.lax.map(lambda each: function(*each), arguments, batch_size=together)


# -- laws


def columns(numbers: tuple[Array, ...], labels: int) -> Array:
    """Return numbers, or columns over labels, as one matrix."""
    parts = [jnp.broadcast_to(jnp.asarray(x, float).reshape(-1, 1), (labels, 1)) for x in numbers]
    return jnp.concatenate(parts, axis=1) if parts else jnp.zeros((labels, 0))


def _column(table: Array, number: int) -> Array:
    """Return a column of a table."""
    return jax.lax.index_in_dim(table, number, axis=1, keepdims=False)


@dataclass(frozen=True)
class _Facts:
    """Record of a law, one row per time and label: whether the law applies, its mean, its mean derivatives, means and
    covariances of its arguments, then its numbers and Hermite coefficients.
    """

    holds: Array
    mean: Array
    slopes: list[Array]
    at: list[Array]
    covariance: Square
    rest: Array

    @staticmethod
    def of(law: GaussianFunction, table: Array) -> _Facts:
        """Split a table into the parts of a record."""
        k = law.arguments
        width = 2 + 2 * k + k * (k + 1) // 2
        each = [_column(table, i) for i in range(width)]
        holds, mean, slopes, at, pairs = each[0], each[1], each[2 : 2 + k], each[2 + k : 2 + 2 * k], each[2 + 2 * k :]
        square = [[pairs.pop(0) for _ in range(i + 1)] for i in range(k)]
        return _Facts(holds, mean, slopes, at, square, table[:, width:])

    def numbers(self, law: GaussianFunction, nodes: int) -> list[Array]:
        """Numbers that the law takes."""
        count = self.rest.shape[1] - (terms(nodes) if law.expanded else 0)
        return [_column(self.rest, i) for i in range(count)]

    def coefficients(self, nodes: int) -> Array:
        """Hermite coefficients."""
        return self.rest[:, self.rest.shape[1] - terms(nodes) :]

    def table(self) -> Array:
        each = [self.holds, self.mean, *self.slopes, *self.at, *(x for row in self.covariance for x in row)]
        record = jnp.concatenate([jnp.stack(each, axis=1), self.rest], axis=1)
        return jnp.where(self.holds[:, None] > 0, record, 0.0)


def _moments(law: GaussianFunction, grams: tuple[Array, ...], at: tuple[Array, ...]) -> tuple[list[Array], Square]:
    """Return means and covariances of the arguments of a law, one row per label."""
    means, pairs = [x.reshape(-1) for x in at], [x.reshape(-1) for x in grams]
    square = [[pairs.pop(0) - means[i] * means[j] for j in range(i + 1)] for i in range(law.arguments)]
    return means, square


def _averages(
    nodes: int, law: GaussianFunction, slopes: bool, means: list[Array], square: Square, numbers: list[Array]
) -> list[Array]:
    """Return the mean of a law and its mean derivatives, one row per label."""
    k = law.arguments

    def one(*numbers_of_label: Array) -> tuple[Array, ...]:
        mean, rest = numbers_of_label[:k], list(numbers_of_label[k : len(numbers_of_label) - len(numbers)])
        own = numbers_of_label[len(numbers_of_label) - len(numbers) :]

        def values(*u: Array) -> tuple[Array, ...]:
            more = law.slopes(*u, *own) if slopes and law.slopes is not None else ()
            return (law.value(*u, *own), *more)

        def kinks(*u: Array) -> tuple[Array, ...]:
            return () if law.kinks is None else law.kinks(*u, *own)

        covariance = [[rest.pop(0) for _ in range(i + 1)] for i in range(k)]
        bent = None if law.kinks is None else kinks
        return integrate(nodes, law.kinds, mean, covariance, values, bent, slopes and law.slopes is None)

    flat = [*means, *(x for row in square for x in row), *numbers]
    return list(_batched(one, points_of(nodes, law.kinds, 1), *flat))


def facts(
    nodes: int, law: GaussianFunction, grams: tuple[Array, ...], at: tuple[Array, ...], numbers: Array, holds: Array
) -> Array:
    """Return the record of a law at one time, one row per label.

    grams: second moments of its arguments as columns, in the order of a lower triangle. at: means of the arguments.
    holds: whether the law applies at this time; otherwise the record is zero.
    """
    means, square = _moments(law, grams, at)
    own = [_column(numbers, i) for i in range(numbers.shape[1])]
    mean, *slopes = _averages(nodes, law, True, means, square, own)
    there = jnp.broadcast_to(jnp.asarray(holds, float), mean.shape)
    series = [_coefficients(nodes, law, means, square, own)] if law.expanded else []
    rest = jnp.concatenate([numbers, *series], axis=1)
    return _Facts(there, mean, slopes, means, square, rest).table()


def _coefficients(nodes: int, law: GaussianFunction, means: list[Array], square: Square, numbers: list[Array]) -> Array:
    """Return the Hermite coefficients of an analytic law from degree two on."""
    z, weights = hermite_functions(nodes)
    (mean,), ((variance,),) = means, square
    values = law.value(mean[:, None] + _root(variance)[:, None] * z, *(x[:, None] for x in numbers))
    return jnp.broadcast_to(values, (mean.size, z.size)) @ weights


def _root(variance: Array) -> Array:
    """Return a standard deviation whose derivative at zero variance is zero."""
    fine = variance > 0
    return jnp.where(fine, jnp.sqrt(jnp.where(fine, variance, 1.0)), 0.0)


def average(
    nodes: int, law: GaussianFunction, grams: tuple[Array, ...], at: tuple[Array, ...], numbers: Array
) -> Array:
    """Return the mean of a law as a column over labels; arguments as for `facts`."""
    own = [_column(numbers, i) for i in range(numbers.shape[1])]
    return _averages(nodes, law, False, *_moments(law, grams, at), own)[0][:, None]


# -- sites that differ by traits: one line per label and group


def dual_each(rows: Array, place: Site, *covariances: Array) -> Array:
    """Return rows times the covariance of the site's variables, without the weights of the groups."""
    each = rows.reshape(len(rows) * place.groups, place.size // place.groups)
    return _dual(each, place, covariances).reshape(rows.shape)


def products_each(seen: Array, rows: Array, place: Site) -> Array:
    """Return means of products of two fields over the sites of each group."""
    return jnp.sum((seen * rows).reshape(len(rows) * place.groups, -1), axis=1, keepdims=True)


def part_each(rows: Array, block: NoiseBlock) -> Array:
    """Return the coefficients of rows on a scalar source, per group."""
    return rows.reshape(len(rows) * block.groups, -1)[:, block.start : block.start + 1]


def overlaps_each(seen: Array, past: Array, place: Site) -> Array:
    """Return means of products of a field with another at several times, over the sites of each group."""
    left, right = (x.reshape(len(x), place.groups, -1) for x in (seen, past))
    return jnp.einsum("lgk,mgk->glm", left, right)


def columns_each(numbers: tuple[Array, ...], labels: int, place: Site, traits: tuple[int, ...]) -> Array:
    """Return numbers, or columns over labels, followed by traits, as one matrix."""
    shared = jnp.repeat(columns(numbers, labels), place.groups, axis=0)
    own = [jnp.tile(place.traits[k], labels)[:, None] for k in traits]
    return jnp.concatenate([shared, *own], axis=1)


def projection(law: GaussianFunction, record: Array, rows: tuple[Array, ...], one: NoiseBlock) -> Array:
    """Return the projection of a law on the Gaussian variables: mean derivatives times the rows of its arguments, and
    its mean."""
    here = _Facts.of(law, record)
    constant = here.mean - sum(d * m for d, m in zip(here.slopes, here.at, strict=True))
    size = one.size // one.groups
    unit = (jnp.arange(size) == one.start).astype(float)
    each = (d[:, None] * row.reshape(len(d), size) for d, row in zip(here.slopes, rows, strict=True))
    return (constant[:, None] * unit + sum(each)).reshape(-1, one.size)


def own(block: NoiseBlock, t: Array, record: Array) -> Array:
    """Return the unit rows of a law's remainder at one time, where the law applies."""
    place = block.start + t * block.labels + jnp.arange(block.labels)
    here = place[:, None] == jnp.arange(block.size // block.groups)
    holds = record[:, 0].reshape(block.labels, block.groups, 1) > 0
    return (here[:, None, :] & holds).astype(float).reshape(block.labels, block.size)


def residuals(
    nodes: int,
    a: GaussianFunction,
    here: Array,
    b: GaussianFunction,
    there: Array,
    crosses: tuple[Array, ...],
    shared: tuple[tuple[int, int], ...] = (),
    sites: Site | None = None,
) -> Array:
    """Return covariances of the remainders of two laws: a at one time, b at other times.

    crosses: cross moments of the arguments, where the index of b runs fastest; rows for a, columns for b. shared:
    positions in a and b of common arguments. Groups of sites, if any, run along a leading axis.
    """
    left, right = _Facts.of(a, here), _Facts.of(b, there)
    groups = 1 if sites is None else sites.groups
    shape = (groups, here.shape[0] // groups, there.shape[0] // groups)
    between = tuple(cross.reshape(shape) for cross in crosses)
    if a.expanded and b.expanded and not shared:
        covariances = _series(nodes, left, right, between[0])
    elif a.straight and b.straight and not shared:
        covariances = _between_kinks(nodes, a, left, b, right, between[0])
    else:
        covariances = _over_arguments(nodes, a, left, b, right, between, shared)
    return covariances if sites is not None else covariances[0]


def _over_arguments(
    nodes: int,
    a: GaussianFunction,
    left: _Facts,
    b: GaussianFunction,
    right: _Facts,
    crosses: tuple[Array, ...],
    shared: tuple[tuple[int, int], ...],
) -> Array:
    """Return covariances of the remainders by quadrature over the arguments of both laws, counting common arguments
    once. The leading axis runs over groups of sites."""
    shape = crosses[0].shape
    ka, kb, groups = a.arguments, b.arguments, shape[0]
    apart = [j for j in range(kb) if all(j != other for _, other in shared)]

    def down(x: Array) -> Array:
        return jnp.broadcast_to(x.reshape(-1, groups).T[:, :, None], shape).reshape(-1)

    def across(x: Array) -> Array:
        return jnp.broadcast_to(x.reshape(-1, groups).T[:, None, :], shape).reshape(-1)

    at_a, at_b = [down(x) for x in left.at], [across(x) for x in right.at]
    between = [[crosses[i * kb + j].reshape(-1) - at_a[i] * at_b[j] for j in range(kb)] for i in range(ka)]
    means = [*at_a, *(at_b[j] for j in apart)]
    square = [[down(x) for x in row] for row in left.covariance]
    for k, j in enumerate(apart):
        theirs = (across(_entry(right.covariance, j, m)) for m in apart[: k + 1])
        square.append([*(between[i][j] for i in range(ka)), *theirs])
    numbers = [down(x) for x in left.numbers(a, nodes)], [across(x) for x in right.numbers(b, nodes)]
    means_of_product = _product(nodes, a, b, shared, means, square, numbers)
    linear = down(left.mean) * across(right.mean)
    for i in range(ka):
        for j in range(kb):
            linear = linear + down(left.slopes[i]) * across(right.slopes[j]) * between[i][j]
    holds = down(left.holds) * across(right.holds) > 0
    return jnp.where(holds, means_of_product - linear, 0.0).reshape(shape)


def _product(
    nodes: int,
    a: GaussianFunction,
    b: GaussianFunction,
    shared: tuple[tuple[int, int], ...],
    means: list[Array],
    square: Square,
    numbers: tuple[list[Array], list[Array]],
) -> Array:
    """Return means of the product of two laws entry by entry. means, square: moments of the arguments of a, then of
    those of b that are not shared."""
    ka, of_a = a.arguments, {j: i for i, j in shared}
    apart = [j for j in range(b.arguments) if j not in of_a]
    place = [of_a[j] if j in of_a else ka + apart.index(j) for j in range(b.arguments)]
    kinds = [*a.kinds, *(b.kinds[j] for j in apart)]
    for i, j in shared:
        kinds[i] = _of_both(a.kinds[i], b.kinds[j])
    bent = a.kinks is not None or b.kinks is not None

    def one(*moments: Array) -> Array:
        rest = list(moments[len(means) :])
        covariance = [[rest.pop(0) for _ in range(i + 1)] for i in range(len(means))]
        own_a, own_b = rest[: len(numbers[0])], rest[len(numbers[0]) :]

        def product(*u: Array) -> tuple[Array, ...]:
            return (a.value(*u[:ka], *own_a) * b.value(*(u[k] for k in place), *own_b),)

        def kinks(*u: Array) -> tuple[Array, ...]:
            mine = () if a.kinks is None else a.kinks(*u[:ka], *own_a)
            theirs = () if b.kinks is None else b.kinks(*(u[k] for k in place), *own_b)
            return (*mine, *theirs)

        return integrate(nodes, kinds, moments[: len(means)], covariance, product, kinks if bent else None)[0]

    flat = [*means, *(x for row in square for x in row), *numbers[0], *numbers[1]]
    return _batched(one, points_of(nodes, kinds, 2 if bent else 0), *flat)


def _series(nodes: int, left: _Facts, right: _Facts, cross: Array) -> Array:
    """Return covariances of the remainders for two Hermite series: the sum over degrees k of products of coefficients
    times rho^k (Mehler). The leading axis runs over groups of sites.
    """
    groups = cross.shape[0]

    def apart(x: Array) -> Array:
        return x.reshape(-1, groups).T

    def coefficients(x: _Facts) -> Array:
        return jnp.swapaxes(x.coefficients(nodes).reshape(x.mean.size // groups, groups, -1, STRIDE), 0, 1)

    between = cross - apart(left.at[0])[:, :, None] * apart(right.at[0])[:, None]
    size = apart(_root(left.covariance[0][0]))[:, :, None] * apart(_root(right.covariance[0][0]))[:, None]
    fine = size > 0
    rho = jnp.clip(jnp.where(fine, between / jnp.where(fine, size, 1.0), 0.0), -1.0, 1.0)
    one, two = coefficients(left), coefficients(right)
    few = _powers(rho, STRIDE)
    many = _powers(few[..., -1] * rho, one.shape[2])
    inner = jnp.sum(one[:, :, None] * two[:, None] * few[..., None, :], axis=-1)
    return rho * rho * jnp.sum(inner * many, axis=-1)


FARTHEST = 39.0
"""Largest standardised position of a kink: beyond it the normal density is zero in double precision."""


def _kinks_of(nodes: int, law: GaussianFunction, facts: _Facts) -> tuple[Array, Array, Array]:
    """Return, for a piecewise linear law, the standardised positions of kinks and jumps, the heights of the jumps, and
    the changes of slope; one row per label.
    """
    assert law.kinks is not None
    mean, size = facts.at[0], _root(facts.covariance[0][0])
    numbers = facts.numbers(law, nodes)

    def value(z: Array) -> Array:
        columns = (x[:, None] for x in (mean, size, *numbers))
        at, stretch, *rest = columns
        return jnp.broadcast_to(law.value(at + stretch * z, *rest), z.shape)

    planes = zip(law.kinks(mean, *numbers), law.kinks(mean + 1.0, *numbers), strict=True)
    places = []
    for offset, moved in planes:
        slope = (moved - offset) * size
        fine = slope != 0
        places.append(jnp.where(fine, -offset / jnp.where(fine, slope, 1.0), FARTHEST))
    table = jnp.stack([jnp.broadcast_to(x, mean.shape) for x in places], axis=1)
    at = jnp.sort(jnp.clip(table, -FARTHEST, FARTHEST), axis=1)
    inner = at[:, :-1] + jnp.minimum(jnp.diff(at, axis=1) / 2, 1.0)
    within = jnp.concatenate([at[:, :1] - 1.0, inner, at[:, -1:] + 1.0], axis=1)  # a point of each piece
    heights, slopes = jax.jvp(value, (within,), (jnp.ones_like(within),))
    below = heights[:, :-1] + slopes[:, :-1] * (at - within[:, :-1])
    above = heights[:, 1:] + slopes[:, 1:] * (at - within[:, 1:])
    return at, above - below, jnp.diff(slopes, axis=1)


def _between_kinks(
    nodes: int, a: GaussianFunction, left: _Facts, b: GaussianFunction, right: _Facts, cross: Array
) -> Array:
    """Return covariances of the remainders of two piecewise linear laws (Price's theorem).

    The leading axis runs over groups of sites.

    The covariance is the integral over r from 0 to rho of (rho - r) times the mean product of second derivatives at
    correlation r. With r = sin(angle) the bivariate normal density is smooth up to r = 1 except for thin layers, which
    the double-exponential rule resolves.
    """
    groups = cross.shape[0]

    def apart(x: Array) -> Array:
        return jnp.moveaxis(x.reshape(-1, groups, *x.shape[1:]), 1, 0)

    one, two = ([apart(x) for x in _kinks_of(nodes, *pair)] for pair in ((a, left), (b, right)))
    mean_a, mean_b = apart(left.at[0]), apart(right.at[0])
    size_a, size_b = apart(_root(left.covariance[0][0])), apart(_root(right.covariance[0][0]))
    holds = apart(left.holds)[:, :, None] * apart(right.holds)[:, None] > 0
    between = cross - mean_a[:, :, None] * mean_b[:, None]
    size = size_a[:, :, None] * size_b[:, None]
    holds = holds & (size > 0)
    rho = jnp.where(holds, between / jnp.where(holds, size, 1.0), 0.0)
    whole = 1 - rho * rho <= DEGENERATE
    # a negative correlation becomes positive when one argument changes sign
    turned = jnp.where(rho < 0, -1.0, 1.0)[..., None, None]
    x, jump_x, bend_x = (value[:, :, None, :, None] for value in one)
    y, jump_y, bend_y = (value[:, None, :, None, :] for value in two)
    y, jump_y = y * turned, jump_y * turned
    missing = jnp.where(whole, 0.0, jnp.arccos(jnp.where(whole, 0.0, jnp.abs(rho))))[
        ..., None, None
    ]  # to a right angle
    top = jnp.pi / 2 - missing
    total: Array = jnp.zeros(jnp.broadcast_shapes(x.shape, y.shape))

    def add(total: Array, node: tuple[Array, ...]) -> tuple[Array, None]:
        start, end, weight = node
        angle, short = top * start, missing + top * end
        sine, cosine = jnp.sin(angle), jnp.sin(short)
        near = 2 * jnp.sin(short / 2) ** 2  # 1 - r
        square = cosine * cosine  # 1 - r^2
        rest = 2 * jnp.sin((missing + short) / 2) * jnp.sin(top * end / 2)  # rho - r
        off_x, off_y = (x - y) + y * near, (y - x) + x * near  # x - r y, y - r x
        density = jnp.exp(-((x - y) ** 2 / square + 2 * x * y / (1 + sine)) / 2)
        bends = bend_x * bend_y * square + jump_x * bend_y * off_x + bend_x * jump_y * off_y
        jumps = jump_x * jump_y * (sine + off_x * off_y / square)
        return total + weight * top * (rest / square) * density * (bends + jumps), None

    rule = tuple(jnp.asarray(value) for value in double_exponential(3 * nodes // 2))
    total, _ = jax.lax.scan(add, total, rule)
    return jnp.where(holds, jnp.sum(total, axis=(-2, -1)) / (2 * jnp.pi), 0.0)


def _powers(x: Array, count: int) -> Array:
    """Return 1, x, x^2, ... along a new last axis."""
    powers = jnp.ones((*x.shape, 1))
    while powers.shape[-1] < count:  # doubling
        powers = jnp.concatenate([powers, powers * (powers[..., -1:] * x[..., None])], axis=-1)
    return powers[..., :count]


def _entry(square: Square, i: int, j: int) -> Array:
    """Return an entry of a symmetric matrix that is stored as its lower triangle."""
    return square[max(i, j)][min(i, j)]


def _of_both(one: int, two: int) -> int:
    """Return the kind of an argument in a product of two laws."""
    if SPLIT in (one, two):
        return SPLIT
    return SMOOTH if SMOOTH in (one, two) else one + two
