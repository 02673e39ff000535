"""Laws of traits as discrete measures: values with weights.

Sites with equal traits form a group. A density is discretised by the trapezoidal rule after a double-exponential change
of variables, so that singular or infinite ends converge exponentially. With more nodes the rule is finer and reaches
further into the tails; a divergent integral therefore never converges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from .arrays import module_of
from .point import Table

Array = Any

FEW, REACH, FURTHER = 32, 3.5, 0.25
"""Number of nodes of the coarsest rule, half-width of its transformed interval, and its increase at each doubling."""
MANY, APART, SLOWLY, TAIL = 512, 0.35, 0.1, 60.0
"""Number of nodes above which nodes between finite ends are equally spaced except in the tails; their spacing in the
transformed variable, the curvature of the tails, and their length. Averages with a nearly singular resolvent need equal
spacing."""
FARTHEST = 8.2
"""Standard normal values beyond this have weights below rounding."""
FINE = 4096
"""Nodes for a single integral."""


class TraitValues(NamedTuple):
    """Values and weights of a discrete law; for several traits, one column of values each."""

    values: Array
    weights: Array


def discrete(values: Any, weights: Any = None, xp: Any = jnp) -> TraitValues:
    """Return values with weights, equal ones by default."""
    points = xp.stack([xp.asarray(v, float) for v in values]) if isinstance(values, tuple) else xp.asarray(values)
    if weights is None:
        return TraitValues(points, xp.full(points.shape, 1.0 / points.shape[0]))
    return TraitValues(points, xp.stack([xp.asarray(w, float) for w in weights]))


def density(function: Callable[[Array], Array], low: Any, high: Any, nodes: int, xp: Any = jnp) -> TraitValues:
    """Return a normalised density, discretised at a number of nodes."""
    _, values, shares = rule(function, low, high, nodes, xp, evenly=True)
    # nodes of zero weight take a regular value, so that nothing overflows there
    usual = values[xp.argmax(shares)]
    return TraitValues(xp.where(shares > 0, values, usual), shares / xp.sum(shares))


def rule(
    function: Callable[[Array], Array], low: Any, high: Any, nodes: int, xp: Any = jnp, evenly: bool = False
) -> tuple[Array, Array, Array]:
    """Return nodes in the transformed variable, values there, and the density times the quadrature weights."""
    reach = REACH + FURTHER * np.log2(nodes / FEW)
    even = 0.0
    if evenly and nodes >= MANY and not _is_infinite(low) and not _is_infinite(high):
        reach = APART * nodes / 2
        even = reach - TAIL - np.log2(nodes / MANY)
    places = np.linspace(-reach, reach, nodes)
    values, stretch = stretched(places, low, high, xp, even)
    return places, values, xp.asarray(function(values)) * stretch * (places[1] - places[0])


def stretched(places: Array, low: Any, high: Any, xp: Any = jnp, even: float = 0.0) -> tuple[Array, Array]:
    """Return values between the ends at nodes of the transformed variable, and their derivatives.

    even: half-width of the interval where nodes are equally spaced between finite ends.
    """
    own = np if module_of(places) is np else xp
    if even:
        return _between(low, high, *_evenly(places, even), places, xp)
    bent, speed = np.pi / 2 * own.sinh(places), np.pi / 2 * own.cosh(places)
    below, above = _is_infinite(low), _is_infinite(high)
    if below and above:
        return xp.asarray(own.sinh(bent)), xp.asarray(own.cosh(bent) * speed)
    if above:
        return low + xp.asarray(own.exp(bent)), xp.asarray(own.exp(bent) * speed)
    if below:
        return high - xp.asarray(own.exp(-bent)), xp.asarray(own.exp(-bent) * speed)
    left, right = 1 / (1 + own.exp(-2 * bent)), 1 / (1 + own.exp(2 * bent))  # fractions of the way, from either end
    return _between(low, high, left, right, 2 * left * right * speed, places, xp)


def _between(
    low: Any, high: Any, left: Array, right: Array, changing: Array, places: Array, xp: Any
) -> tuple[Array, Array]:
    """Return values at fractions of the way between finite ends, and their derivatives."""
    width = high - low
    evenly = xp.where(places < 0, low + width * left, high - width * right)
    # between positive ends the map is logarithmic, so that a power law is as smooth as a constant
    positive = xp.asarray(low) > 0
    decades = xp.log(xp.where(positive, high, 2.0) / xp.where(positive, low, 1.0))
    by_ratios = xp.where(places < 0, low * xp.exp(decades * left), high * xp.exp(-decades * right))
    return xp.where(positive, by_ratios, evenly), xp.where(positive, by_ratios * decades, width) * changing


def _evenly(places: Array, even: float) -> tuple[Array, Array, Array]:
    """Return the distances from either end and their derivative: linear in the middle, doubly exponential in the
    tails."""
    ahead, behind = np.exp(SLOWLY * (places - even)), np.exp(-SLOWLY * (places + even))
    bent, speed = places + ahead - behind, 1 + SLOWLY * (ahead + behind)
    left, right = (np.logaddexp(0, at + even) - np.logaddexp(0, at - even) for at in (bent, -bent))
    inner, outer = np.exp(-np.logaddexp(0, np.abs(bent) - even)), np.exp(-np.logaddexp(0, np.abs(bent) + even))
    return left / (2 * even), right / (2 * even), (inner - outer) * speed / (2 * even)


def standard_normal(nodes: int, halves: bool, xp: Any = jnp) -> TraitValues:
    """Return nodes and weights for a standard normal variable (trapezoidal rule, exponentially convergent).

    halves: integrate both half-lines separately, for functions that are smooth on either side of zero.
    """
    if not halves:
        values = np.linspace(-FARTHEST, FARTHEST, nodes)
        shares = np.exp(-(values**2) / 2)
        return TraitValues(xp.asarray(values), xp.asarray(shares / np.sum(shares)))
    _, upper, shares = rule(lambda x: np.exp(-(x**2) / 2), 0.0, FARTHEST, nodes // 2, np)
    values, shares = np.concatenate([-upper[::-1], upper]), np.concatenate([shares[::-1], shares])
    return TraitValues(xp.asarray(values), xp.asarray(shares / np.sum(shares)))


def density_between(
    function: Callable[[Array], Array], low: Any, high: Any, nodes: int, breaks: tuple[Any, ...], xp: Any = jnp
) -> TraitValues:
    """Return a discretised density for functions that are smooth between breakpoints; each part is integrated
    separately."""
    inside = xp.sort(xp.stack([xp.clip(xp.asarray(place, float), low, high) for place in breaks]))
    ends = [low, *(inside[k] for k in range(len(breaks))), high]
    parts = [rule(function, a, b, nodes // (len(breaks) + 1), xp)[1:] for a, b in itertools.pairwise(ends)]
    values, shares = (xp.concatenate(parts_of) for parts_of in zip(*parts, strict=True))
    usual = values[xp.argmax(shares)]
    return TraitValues(xp.where(shares > 0, values, usual), xp.where(shares > 0, shares, 0.0) / xp.sum(shares))


def normal_between(nodes: int, breaks: tuple[Any, ...], xp: Any = jnp) -> TraitValues:
    """Return nodes for a standard normal variable and functions that are smooth between breakpoints."""
    return density_between(lambda x: xp.exp(-(x**2) / 2), -FARTHEST, FARTHEST, nodes, breaks, xp)


# -- sites of a sampled pass


def of_values(normals: Array, number: int, values: Any, weights: Any) -> Array:
    """Return one trait value per site as a quantile of a standard normal; with a Sobol sequence the number of sites
    with each value follows from its weight, up to one site.
    """
    law = discrete(values, weights)
    bounds = jnp.cumsum(law.weights)
    chosen = jnp.searchsorted(bounds / bounds[-1], ndtr(normals[:, number]), side="right")
    return law.values[jnp.minimum(chosen, len(bounds) - 1)][:, None]


def of_density(normals: Array, number: int, function: Callable[[Array], Array], low: Any, high: Any) -> Array:
    """Return one trait value per site as a quantile of a density."""
    places, _, shares = rule(function, low, high, FINE)
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum((shares[1:] + shares[:-1]) / 2)])
    quantiles = jnp.interp(ndtr(normals[:, number]) * below[-1], below, jnp.asarray(places))
    return stretched(quantiles, low, high)[0][:, None]


def _is_infinite(end: Any) -> bool:
    """Whether an end is infinite."""
    return isinstance(end, float) and bool(np.isinf(end))


class SiteAverage(NamedTuple):
    """The average over sites of a product of integer powers of polynomials in z and the responses.

    weights: of groups of sites. factors: for each polynomial its exponent and its monomials, which are products of
        names ("1" for the constant) with coefficients per group.
    """

    weights: Array
    factors: tuple[tuple[int, tuple[tuple[str, Array], ...]], ...]

    def at(self, variables: Mapping[str, Array]) -> Array:
        """Return the average at values of the variables, in the shape of z."""
        product: Any = 1.0
        for power, terms in self.factors:
            product = product * sum(scale * monomial_at(name, variables) for name, scale in terms) ** power
        return _in_shape(self.weights @ (product * np.ones((len(self.weights), 1))), variables["z"])


def monomial_at(name: str, variables: Mapping[str, Array]) -> Array:
    """Return a product of named variables."""
    return 1 if name == "1" else math.prod(variables[word] for word in name.split())


def site_average(function: Callable[..., Any], *laws: TraitValues) -> SiteAverage:
    """Return the average over independent traits of given factors."""
    weights, values = _together(laws)
    return SiteAverage(weights, function(*values))


def _together(laws: Sequence[TraitValues]) -> tuple[Array, list[Array]]:
    """Return the weights of groups of independent traits, and one column of values per trait."""
    weights, values = laws[0].weights, _columns(laws[0])
    for law in laws[1:]:
        values = [*(x.repeat(len(law.weights)) for x in values), (0 * weights[:, None] + law.values).ravel()]
        weights = (weights[:, None] * law.weights).ravel()
    return weights, [x[:, None] for x in values]


def over_sites(z: Array, function: Callable[..., Array], *laws: TraitValues) -> Array:
    """Return the average of a function of independent traits, in the shape of z.

    Other arguments have the shape of z; groups of sites run along a leading axis.
    """
    weights, values = _together(laws)
    return _in_shape(weights @ function(*values), z)


def _in_shape(total: Array, z: Array) -> Array:
    """Return an average in the shape of z; one that depends on traits alone is broadcast."""
    xp = module_of(total)
    if total.size != np.size(z):  # it depends on traits alone
        return xp.broadcast_to(total, np.shape(z))
    return xp.reshape(total, np.shape(z))


def _columns(law: TraitValues) -> list[Array]:
    """Return the values of each trait of a law."""
    return [law.values] if law.values.ndim == 1 else list(law.values.T)


def sampled_law(table: Table) -> TraitValues:
    """Return a sampled law: one row per value, with its weight last."""
    return TraitValues(table.numbers[:, :-1], table.numbers[:, -1])


def weighed(function: Callable[..., Array], law: TraitValues, table: Array) -> Array:
    """Return the average over sites of a function of their diagonal entries times a table by value."""
    weights = jnp.broadcast_to(function(*_columns(law)), law.weights.shape)
    return jnp.tensordot(weights, jnp.asarray(table), axes=1)


def triangular(rows: Sequence[Sequence[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the Cholesky factor of a covariance, given by the rows of its lower triangle, and its inverse.

    Directions without variance are zero in both (pseudo-inverse).
    """
    count = len(rows)
    lower, inverse = np.zeros((count, count)), np.zeros((count, count))
    for a, row in enumerate(rows):
        for b in range(a):
            lower[a, b] = (row[b] - lower[a, :b] @ lower[b, :b]) * (inverse[b, b] if inverse[b, b] else 0.0)
        left = row[a] - lower[a, :a] @ lower[a, :a]
        if left > 1e-13 * row[a]:
            lower[a, a] = np.sqrt(left)
            inverse[a, a] = 1 / lower[a, a]
            inverse[a, :a] = -inverse[a, a] * (lower[a, :a] @ inverse[:a, :a])
    return lower, inverse


# -- what is asked before anything is solved, in NumPy


class NotSmooth(ArithmeticError):
    """An integral over a density is finite but has not converged: the density has a kink or a jump."""


def integral(function: Callable[[Array], Array], low: Any, high: Any) -> float:
    """Return the integral of a density; NaN if it diverges or the density is negative somewhere.

    Raises:
        NotSmooth: if the quadrature has not converged.
    """
    with np.errstate(all="ignore"):
        weights = [rule(function, low, high, nodes, np)[2] for nodes in (FINE // 2, FINE)]
    totals = [float(np.sum(shares)) for shares in weights]
    change = abs(totals[1] - totals[0])
    if not (bool(np.all(weights[1] >= 0)) and change <= FINITE * abs(totals[1])):
        return float("nan")
    if change > CONVERGED * abs(totals[1]):
        raise NotSmooth
    return totals[1]


CONVERGED = 1e-9
"""Relative tolerance of the integral of a smooth density under doubling of the nodes."""
NEARER, FARTHER, STEP = 3.8, 4.5, 1 / 256
"""Half-widths of the transformed interval (values up to about 1e15 and 1e30 at an infinite end), and the node
spacing."""
FINITE = 1e-2
"""Relative change between the two half-widths above which an integral diverges."""


def mean_size(function: Callable[[Array], Array], density: Callable[[Array], Array], low: Any, high: Any) -> float:
    """Return the mean absolute value of a function over a density; infinite if it does not exist."""
    means = []
    with np.errstate(all="ignore"):
        for reach in (NEARER, FARTHER):
            values, stretch = stretched(np.arange(-reach, reach, STEP), low, high, np)
            shares = np.asarray(density(values)) * stretch
            sizes = np.abs(np.broadcast_to(function(values), shares.shape)) * shares
            means.append(float(np.sum(sizes[shares > 0]) / np.sum(shares)))
    return means[1] if abs(means[1] - means[0]) <= FINITE * means[1] else float("inf")


def extent(function: Callable[..., Array], *laws: TraitValues) -> float:
    """Return the largest absolute value of a function of traits; NaN if it is undefined somewhere."""
    grids = np.meshgrid(*(np.asarray(law.values)[np.asarray(law.weights) > 0] for law in laws))
    with np.errstate(all="ignore"):
        sizes = np.abs(np.asarray(function(*grids), float))
    return float(np.max(sizes)) if np.all(np.isfinite(sizes)) else float("nan")
