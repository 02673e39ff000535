"""Traits: laws of what differs from site to site, as values with weights.

Sites of one value are a group. A density becomes values with weights by the trapezoidal rule after a change of variable
under which the integrand falls off doubly exponentially, so that ends where the density is singular, or that are
infinite, cost nothing. With more nodes the rule is finer and reaches further: an infinite integral never settles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

Array = Any

FEW, REACH, FURTHER = 32, 3.5, 0.25
"""With so many nodes the new variable ends there on both sides; twice as many reach so much further."""
FINE = 4096
"""Nodes where nothing but one integral is asked for."""


class Law(NamedTuple):
    """Values, and the share of the sites that has each."""

    values: Array
    weights: Array


def discrete(values: Any, weights: Any = None, xp: Any = jnp) -> Law:
    """Values with weights; with equal ones if none are given."""
    found = xp.stack([xp.asarray(v, float) for v in values]) if isinstance(values, tuple) else xp.asarray(values)
    if weights is None:
        return Law(found, xp.full(found.shape, 1.0 / found.shape[0]))
    return Law(found, xp.stack([xp.asarray(w, float) for w in weights]))


def density(function: Callable[[Array], Array], low: Any, high: Any, nodes: int, xp: Any = jnp) -> Law:
    """A density, which is divided by its integral, as so many values with weights."""
    _, values, shares = rule(function, low, high, nodes, xp)
    # what has no weight at all must not overflow: it takes a value that has some
    usual = values[xp.argmax(shares)]
    return Law(xp.where(shares > 0, values, usual), shares / xp.sum(shares))


def rule(
    function: Callable[[Array], Array], low: Any, high: Any, nodes: int, xp: Any = jnp
) -> tuple[Array, Array, Array]:
    """Places in the new variable, values there, and the density times what each stands for."""
    reach = REACH + FURTHER * np.log2(nodes / FEW)
    places = np.linspace(-reach, reach, nodes)
    values, stretch = stretched(places, low, high, xp)
    return places, values, xp.asarray(function(values)) * stretch * (places[1] - places[0])


def stretched(places: Array, low: Any, high: Any, xp: Any = jnp) -> tuple[Array, Array]:
    """Values between the ends at places of the new variable, and how fast they change with it."""
    bent, speed = np.pi / 2 * np.sinh(places), np.pi / 2 * np.cosh(places)
    below, above = _is_infinite(low), _is_infinite(high)
    if below and above:
        return xp.asarray(np.sinh(bent)), xp.asarray(np.cosh(bent) * speed)
    if above:
        return low + xp.asarray(np.exp(bent)), xp.asarray(np.exp(bent) * speed)
    if below:
        return high - xp.asarray(np.exp(-bent)), xp.asarray(np.exp(-bent) * speed)
    left, right = 1 / (1 + np.exp(-2 * bent)), 1 / (1 + np.exp(2 * bent))  # shares of the way, from either end
    changing = 2 * left * right * speed
    width = high - low
    evenly = xp.where(places < 0, low + width * left, high - width * right)
    # between positive ends shares of the way are those of the logarithm: a power law is as good as a constant
    positive = xp.asarray(low) > 0
    decades = xp.log(xp.where(positive, high, 2.0) / xp.where(positive, low, 1.0))
    by_ratios = xp.where(places < 0, low * xp.exp(decades * left), high * xp.exp(-decades * right))
    return xp.where(positive, by_ratios, evenly), xp.where(positive, by_ratios * decades, width) * changing


def _is_infinite(end: Any) -> bool:
    return isinstance(end, float) and bool(np.isinf(end))


def over_sites(z: Array, function: Callable[..., Array], *laws: Law) -> Array:
    """The average of a function of independent traits over their laws, in the shape of z.

    What it depends on besides the traits has the shape of z: groups of sites stand on an axis in front.
    """
    weights, values = laws[0].weights, [laws[0].values]
    for law in laws[1:]:
        values = [*(x.repeat(len(law.weights)) for x in values), (0 * weights[:, None] + law.values).ravel()]
        weights = (weights[:, None] * law.weights).ravel()
    found = function(*(x[:, None] for x in values))
    if hasattr(found, "averaged"):  # numbers with their derivatives
        return found.averaged(weights)
    average = weights @ found
    return average.reshape(np.shape(z)) if isinstance(average, np.ndarray) else jnp.reshape(average, jnp.shape(z))


# -- what is asked before anything is solved, in NumPy


def integral(function: Callable[[Array], Array], low: Any, high: Any) -> float:
    """The integral of a density; NaN if it is infinite, or the density negative somewhere."""
    with np.errstate(all="ignore"):
        found = [rule(function, low, high, nodes, np)[2] for nodes in (FINE // 2, FINE)]
    totals = [float(np.sum(shares)) for shares in found]
    settled = abs(totals[1] - totals[0]) <= 1e-9 * abs(totals[1])
    return totals[1] if settled and bool(np.all(found[1] >= 0)) else float("nan")


def extent(function: Callable[..., Array], *laws: Law) -> float:
    """The largest size of a function of traits over their values; NaN if it has no value somewhere."""
    grids = np.meshgrid(*(np.asarray(law.values)[np.asarray(law.weights) > 0] for law in laws))
    with np.errstate(all="ignore"):
        found = np.abs(np.asarray(function(*grids), float))
    return float(np.max(found)) if np.all(np.isfinite(found)) else float("nan")
