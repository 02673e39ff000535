"""Sampled sites with different diagonal entries: averages over sites by value of the entries.

The range of a diagonal entry is divided into cells with four nodes each, ends included (Gauss-Lobatto). A site
contributes to the nodes of its cell with the weights of cubic Lagrange interpolation. An average over sites of a smooth
function of the entry is then a sum over nodes, to fourth order in the cell width, and the function may be chosen after
sampling. Point masses (values that many sites share) have nodes of their own.

`reach` has a column per diagonal entry: minimum, maximum, then the point masses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .sampled import Entries, responses
from .traits import TraitValues

Array = Any
CELLS = (32, 8)
"""Cells per diagonal entry of a sector with one entry, and with two. Trades interpolation error for memory and noise
per node."""
SAME, FEW, BEYOND = 1e-3, 2, 0.25
"""Ends of the range: distance from an end (fraction of the range), number of sites, margin (fraction of the range). If
no more than FEW sites lie within SAME of an end, the end is a tail and the range is extended by BEYOND. A wide margin
wastes nodes, a narrow one clips sites of other passes."""
ALIKE, OFTEN, MOST_ALIKE = 1e-10, 1e-3, (16, 8)
"""Point masses: distance (fraction of the range) below which values are equal, smallest fraction of the sites, and
largest number for one and for two entries per sector."""
WITHIN = np.array([-1.0, -1 / np.sqrt(5), 1 / np.sqrt(5), 1.0])
"""Gauss-Lobatto nodes of a cell on [-1, 1]."""


def _ends(count: int) -> np.ndarray:
    """Return the cell boundaries as fractions of the range, denser at the ends (Chebyshev), where saturating functions
    accumulate sites."""
    ends: np.ndarray = (1 - np.cos(np.pi * np.arange(count + 1) / count)) / 2
    return ends


def _in_cells(reach: Array) -> Array:
    """Return the nodes of all cells, one column per diagonal entry."""
    ends = _ends(CELLS[reach.shape[1] - 1])
    inside = ends[:-1, None] + np.diff(ends)[:, None] * (WITHIN[:-1] + 1) / 2
    share = np.append(inside.ravel(), 1.0)
    return reach[0] + jnp.asarray(share)[:, None] * (reach[1] - reach[0])


def _places(reach: Array) -> Array:
    """Return all nodes, those of cells and those of point masses, one column per diagonal entry."""
    return jnp.concatenate([_in_cells(reach), jnp.where(jnp.isnan(reach[2:]), reach[0], reach[2:])])


def no_reach(count: int) -> np.ndarray:
    """Return a placeholder for the range before it is measured."""
    return np.concatenate([np.zeros((2, count)), np.full((MOST_ALIKE[count - 1], count), np.nan)])


def reach_of(entries: tuple[Array, ...]) -> Array:
    """Return, for each diagonal entry, its minimum and maximum over the sites, the number of sites near either end, the
    number of point masses, and the largest of them.
    """
    whole = jnp.concatenate([jnp.reshape(x, (-1, 1)) for x in entries], axis=1)
    low, high = jnp.min(whole, axis=0), jnp.max(whole, axis=0)
    near = SAME * (high - low)
    ends = [low, high, jnp.sum(whole <= low + near, axis=0), jnp.sum(whole >= high - near, axis=0)]
    most = MOST_ALIKE[len(entries) - 1]
    often = [_often(column, most) for column in whole.T]
    return jnp.concatenate([jnp.stack(ends), jnp.stack(often, axis=1)])


def _often(numbers: Array, most: int) -> Array:
    """Return the number of point masses and the largest of them, padded with NaN."""
    ordered = jnp.sort(numbers)
    first = jnp.searchsorted(ordered, ordered - ALIKE / 2 * (ordered[-1] - ordered[0]), side="left")
    places = jnp.arange(ordered.size)
    begins = first == places
    count = jnp.zeros(ordered.size).at[first].add(1.0) * begins
    enough = count >= jnp.maximum(OFTEN * ordered.size, FEW + 1)
    order = jnp.argsort(-jnp.where(enough, count, 0.0))[:most]
    masses = jnp.where(enough[order], ordered[order], jnp.nan)
    room = jnp.full(max(0, most - ordered.size), jnp.nan)
    return jnp.concatenate([jnp.sum(enough)[None].astype(float), masses, room])


def widened(reach: np.ndarray) -> np.ndarray:
    """Return the range used in all passes from that of one pass; an end with few sites is moved outwards."""
    low, high, lowest, highest, often, *alike = np.asarray(reach)
    if np.any(often > len(alike)):
        raise ValueError(f"{int(np.max(often))} different numbers")
    more = BEYOND * (high - low)
    ends = low - np.where(lowest > FEW, 0.0, more), high + np.where(highest > FEW, 0.0, more)
    return np.stack([*ends, *alike])


class _Slots(NamedTuple):
    """Interpolation weights of every site: the first slot of its cell, cubic weights and piecewise-linear (hat)
    weights.

    Cubic weights are more accurate; hat weights are non-negative. A point mass takes the first slot of a cell of its
    own.
    """

    first: Array
    by_cubics: Array
    by_hats: Array


def _slots(entry: Array, reach: Array, k: int) -> _Slots:
    """Return the interpolation weights of the sites for diagonal entry k."""
    ends = jnp.asarray(_ends(CELLS[reach.shape[1] - 1]))
    width = reach[1, k] - reach[0, k]
    share = jnp.clip((jnp.reshape(entry, (-1,)) - reach[0, k]) / jnp.where(width > 0, width, 1.0), 0.0, 1.0)
    cell = jnp.clip(jnp.searchsorted(ends, share, side="right") - 1, 0, len(ends) - 2)
    place = 2 * (share - ends[cell]) / (ends[cell + 1] - ends[cell]) - 1
    cubics, hats = [], []
    for j, own in enumerate(WITHIN):
        cubics.append(math.prod((place - other) / (own - other) for other in WITHIN if other != own))
        hats.append(jnp.interp(place, WITHIN, np.eye(len(WITHIN))[j]))
    by_cubics, by_hats = (jnp.stack(weights, axis=1) for weights in (cubics, hats))
    if reach.shape[0] > 2:
        off = jnp.abs(jnp.reshape(entry, (-1, 1)) - reach[2:, k])
        alike = off <= ALIKE * width
        weights, alone = jnp.any(alike, axis=1), jnp.eye(len(WITHIN))[0]
        cell = jnp.where(weights, len(ends) - 1 + jnp.argmax(alike, axis=1), cell)
        by_cubics, by_hats = (jnp.where(weights[:, None], alone, x) for x in (by_cubics, by_hats))
    return _Slots(len(WITHIN) * cell, by_cubics, by_hats)


def _value_of_slot(reach: Array) -> np.ndarray:
    """Return the node of each slot; neighbouring cells share a node."""
    cells, alike = CELLS[reach.shape[1] - 1], reach.shape[0] - 2
    inside = 3 * np.arange(cells)[:, None] + np.arange(len(WITHIN))
    own = np.repeat(3 * cells + 1 + np.arange(alike), len(WITHIN))
    return np.concatenate([inside.ravel(), own])


def belonging(entries: tuple[Array, ...], reach: Array) -> Array:
    """Return the weight of each site at each node, or pair of nodes: sites x nodes."""
    value, weights = jnp.asarray(_value_of_slot(reach)), None
    for k, entry in enumerate(entries):
        slots = _slots(entry, reach, k)
        rows = jnp.arange(slots.first.shape[0])
        own = jnp.zeros((rows.size, _in_cells(reach).shape[0] + reach.shape[0] - 2))
        for j in range(len(WITHIN)):
            own = own.at[rows, value[slots.first + j]].add(slots.by_cubics[:, j])
        weights = own if weights is None else (weights[:, :, None] * own[:, None, :]).reshape(rows.size, -1)
    return weights


def shares_of(entries: tuple[Array, ...], reach: Array) -> Array:
    """Return the fraction of the sites in each slot, or pair of slots, by cubic and by hat weights."""
    slots = [_slots(entry, reach, k) for k, entry in enumerate(entries)]
    size, count = _value_of_slot(reach).size, slots[0].first.shape[0]
    place: Array = jnp.zeros((count, 1), int)
    weights: list[Array] = [jnp.ones((count, 1))] * 2
    for one in slots:
        place = (place[:, :, None] * size + one.first[:, None, None] + jnp.arange(len(WITHIN))).reshape(count, -1)
        weights = [
            (before[:, :, None] * by[:, None, :]).reshape(count, -1)
            for before, by in zip(weights, (one.by_cubics, one.by_hats), strict=True)
        ]
    return jnp.stack([jnp.zeros(size ** len(slots)).at[place].add(by / count) for by in weights])


def _by_value(shares: Array, reach: Array) -> Array:
    """Add up the weights of the slots of each node."""
    value = _value_of_slot(reach)
    count = _in_cells(reach).shape[0] + reach.shape[0] - 2
    for _ in range(reach.shape[1] - 1):
        value = (value[:, None] * count + _value_of_slot(reach)).ravel()
    return jnp.zeros(count ** reach.shape[1]).at[jnp.asarray(value)].add(shares)


def shares_by_cubics(shares: Array, reach: Array) -> Array:
    """Return the weight of each node by cubic interpolation; weights may be negative."""
    return _by_value(shares[0], reach)


def _positive(shares: Array, reach: Array) -> Array:
    """Return non-negative weights: cubic ones, blended with hat weights in cells where a cubic weight is negative.

    A bulk requires a probability measure. Cells with many sites need no blending.
    """
    axes = reach.shape[1]
    each = (_value_of_slot(reach).size // len(WITHIN), len(WITHIN)) * axes
    cubics, hats = (part.reshape(each) for part in shares)
    wanting = cubics < 0
    needed = jnp.where(wanting, -cubics / jnp.where(wanting, hats - cubics, 1.0), 0.0)
    part = jax.lax.stop_gradient(jnp.max(needed, axis=tuple(range(1, 2 * axes, 2)), keepdims=True))
    weights = jnp.maximum(_by_value(((1 - part) * cubics + part * hats).ravel(), reach), 0.0)
    return weights / jnp.sum(weights)


def grouped(*laws: TraitValues) -> TraitValues:
    """Return the product law of independent traits: one column of values per trait, and the weight of each group."""
    values, weights = jnp.meshgrid(*(law.values for law in laws), indexing="ij"), laws[0].weights
    for law in laws[1:]:
        weights = weights[..., None] * law.weights
    return TraitValues(jnp.stack([x.ravel() for x in values], axis=1), weights.ravel())


def belonging_to(groups: TraitValues, *values: Array) -> Array:
    """Return the indicator of the group of each site: sites x groups. Groups with equal values share their sites
    evenly."""
    indicator = jnp.ones((values[0].shape[0], groups.weights.shape[0]))
    for k, value in enumerate(values):
        off = jnp.abs(jnp.reshape(value, (-1, 1)) - groups.values[:, k])
        indicator = indicator * (off == jnp.min(off, axis=1, keepdims=True))
    return indicator / jnp.sum(indicator, axis=1, keepdims=True)


def shares_seen(weights: Array) -> Array:
    """Return the fraction of the sampled sites in each group."""
    return jnp.mean(weights, axis=0)


def shares_known(groups: TraitValues) -> Array:
    """Return the declared weight of each group."""
    return groups.weights


def as_shared(seen: Array, shares: Array, groups: TraitValues) -> Array:
    """Reweight sampled group averages to the declared weights; a group without sites contributes zero."""
    missing = shares <= 0
    return seen * jnp.where(missing, 0.0, groups.weights / jnp.where(missing, 1.0, shares))[:, None, None]


def reach_known(groups: TraitValues, entries: Callable[..., tuple[Array, ...]]) -> Array:
    """Return the minimum and maximum of each diagonal entry over the groups."""
    numbers = jnp.stack([jnp.broadcast_to(x, groups.weights.shape) for x in entries(*groups.values.T)], axis=1)
    return jnp.stack([jnp.min(numbers, axis=0), jnp.max(numbers, axis=0)])


def law_of_known(groups: TraitValues, entries: Callable[..., tuple[Array, ...]]) -> Array:
    """Return the diagonal entries of each group and its weight, one row per group."""
    numbers = entries(*groups.values.T)
    return jnp.stack([*(jnp.broadcast_to(x, groups.weights.shape) for x in numbers), groups.weights], axis=1)


def by_value(weights: Array, left: Array, right: Array) -> Array:
    """Return averages over sites of products, by node: nodes x columns of the first x columns of the second."""
    # one value after the other: all at once would take as much memory as there are values times sites times columns
    return jax.lax.map(lambda share: (left * share[:, None]).T @ right, weights.T) / weights.shape[0]


def rows_at(past: Array, time: Any, labels: int) -> Array:
    """Return the coordinates of a field at one time."""
    return past.reshape(-1, labels, past.shape[1])[time]


def law_of_sites(shares: Array, reach: Array) -> Array:
    """Return the nodes and their weights, one row per node."""
    places = _places(reach)
    columns = [places[:, k] for k in range(places.shape[1])]
    if len(columns) > 1:
        columns = [x.reshape(-1) for x in jnp.meshgrid(*columns, indexing="ij")]
    return jnp.stack([*columns, _positive(shares, reach)], axis=1)


def responses_by_value(
    seen: Array, noise: Array, noises: tuple[Entries, ...], last: int, tolerance: Any
) -> tuple[Array, ...]:
    """Return the responses to the noises of a random matrix by node, one table per noise. A diagonal entry may respond
    to noises of all times."""
    values, rows, columns = seen.shape
    tables = responses(
        seen.reshape(values * rows, columns), noise, Entries(None, values * rows), noises, last, tolerance
    )
    return tuple(one.reshape(values, rows, -1) for one in tables)


def twice_by_value(
    seen: Array,
    shares: Array,
    left: Array,
    left_noises: tuple[Entries, ...],
    right: Array,
    right_noises: tuple[Entries, ...],
    last: int,
    tolerance: Any,
) -> dict[tuple[int, int], Array]:
    """Return mean second derivatives with respect to the noises of one or two random matrices by node, for each pair of
    noises.

    The covariance of the noises, the same at all sites, is subtracted: it is not a derivative.
    """
    beyond = seen - shares[:, None, None] * jnp.sum(seen, axis=0)
    by_right = responses_by_value(beyond, right, right_noises, last, tolerance)
    tables = {}
    for j, one in enumerate(by_right):
        by_left = responses_by_value(jnp.swapaxes(one, 1, 2), left, left_noises, last, tolerance)
        tables.update({(i, j): jnp.swapaxes(both, 1, 2) for i, both in enumerate(by_left)})
    return tables
