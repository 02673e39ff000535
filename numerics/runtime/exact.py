"""The exact forward pass: rows of coefficients over the noises and sources of a site.

Where all laws are linear, a field at one time is a row of coefficients over the Gaussian variables of its site: the
noises that stand for random matrices, and what is drawn. A row has one line per label; a field without labels
has one line. The rows of a field at all times stand below each other, time by time: that is its past. The noises of
one random matrix have a covariance of their own; what is drawn is independent and of variance one.

Where sites have traits, sites of one value are a group. All groups have the same variables, but rows of their own,
which stand beside each other in one long row; a mean over sites is a mean over the groups by their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .traits import TraitValues

Array = Any

STAGE = 200_000_000
"""Multiplications of a pass, all numbers that are carried at all times, from which on it has two stages."""

NEXT_STAGE = 8
"""So many times the work, as twice the times make it, take one more stage: every stage is compiled by itself."""

MOST_STAGES = 4
"""More stages win little. Of the time of one stage, products with pasts take 1/2 in two, 10/27 in three, 5/16 in four,
those with covariances 5/8, 14/27 and 15/32; both take 1/3 where arrays grow at every time."""

FEW_LINES = 4
"""So few scalar products with all rows of a past are faster one by one: matrix products first copy the past."""


@dataclass(frozen=True)
class NoiseBlock:
    """Where a noise or source stands: times x labels entries, from `start` on in a row of `size` entries, and from
    `place` on in the covariance of its random matrix."""

    start: int
    place: int
    times: int
    labels: int
    size: int
    weights: Array = None
    """Of the groups of sites; None where all sites are alike."""

    @property
    def length(self) -> int:
        return self.times * self.labels

    @property
    def groups(self) -> int:
        return 1 if self.weights is None else len(self.weights)


@dataclass(frozen=True)
class InGroups:
    """An axis whose parts are there again for every group of sites."""

    groups: int
    parts: tuple[int, ...]


Axis = tuple[int, ...] | InGroups
"""The lengths of the parts of an axis."""


@dataclass(frozen=True)
class Site:
    """The Gaussian variables of a site: the noises of each random matrix together, then what is drawn. Kicks stand
    behind them: sources that are zero, to whom rows say how they would answer."""

    channels: tuple[tuple[NoiseBlock, ...], ...]
    drawn: tuple[NoiseBlock, ...]
    kicks: tuple[NoiseBlock, ...]
    size: int
    weights: Array = None
    traits: tuple[Array, ...] = ()
    """Of each trait one value per group."""

    @property
    def groups(self) -> int:
        return 1 if self.weights is None else len(self.weights)

    def along(self, trait: int) -> Array:
        """The values of a trait, each as often as a row has entries for its group."""
        return jnp.repeat(self.traits[trait], self.size // self.groups)[None, :]

    def __iter__(self) -> Iterator[NoiseBlock]:
        for channel in self.channels:
            yield from channel
        yield from self.drawn
        yield from self.kicks

    @property
    def parts(self) -> Axis:
        """The lengths of the parts of a row."""
        own = tuple(block.length for block in self)
        return own if self.weights is None else InGroups(self.groups, own)

    def extent(self, channel: int) -> tuple[int, ...]:
        """The lengths of the parts of the covariance of one random matrix."""
        return tuple(block.length for block in self.channels[channel])


def site(
    *channels: tuple[tuple[int, int], ...],
    drawn: tuple[tuple[int, int], ...] = (),
    kicks: tuple[tuple[int, int], ...] = (),
    traits: tuple[TraitValues, ...] = (),
) -> Site:
    """A site whose noises and sources have so many times and labels, each given as (times, labels). Independent traits
    make one group for every combination of their values."""
    size = sum(times * labels for group in (*channels, drawn, kicks) for times, labels in group)
    weights, values = _groups(traits)
    size *= 1 if weights is None else len(weights)
    start = 0
    made = []
    for group in (*channels, drawn, kicks):
        place, blocks = 0, []
        for times, labels in group:
            blocks.append(NoiseBlock(start, place, times, labels, size, weights))
            start, place = start + times * labels, place + times * labels
        made.append(tuple(blocks))
    return Site(tuple(made[:-2]), made[-2], made[-1], size, weights, values)


def _groups(traits: tuple[TraitValues, ...]) -> tuple[Array, tuple[Array, ...]]:
    """The weights of all groups, and for each trait its values in them."""
    if not traits:
        return None, ()
    weights = jnp.ones(())
    for law in traits:
        weights = weights[..., None] * law.weights
    shape = weights.shape
    axes = [tuple(-1 if i == k else 1 for i in range(len(shape))) for k in range(len(shape))]
    values = (jnp.broadcast_to(law.values.reshape(a), shape).ravel() for law, a in zip(traits, axes, strict=True))
    return weights.ravel(), tuple(values)


def moment(place: Site, function: Callable[..., Array]) -> Array:
    """The mean over sites of a function of all their traits."""
    return jnp.sum(place.weights * function(*place.traits))


# -- rows


def unit(block: NoiseBlock, t: Array = 0) -> Array:
    """The rows that are a noise or source itself at one time; zero before the start."""
    columns = block.start + t * block.labels + jnp.arange(block.labels)
    own = ((columns[:, None] == jnp.arange(block.size // block.groups)) & (jnp.asarray(t) >= 0)).astype(float)
    return own if block.weights is None else jnp.tile(own, (1, block.groups))


def kick(block: NoiseBlock, t: Array = 0) -> Array:
    """The rows that are a kick at one time; zero if nobody asks for it, so that it has no place."""
    return unit(block, t) if block.times else jnp.zeros((block.labels, block.size))


def units(block: NoiseBlock) -> Array:
    """The rows that are a noise or source itself, at all times."""
    own = jnp.eye(block.length, block.size // block.groups, block.start)
    return own if block.weights is None else jnp.tile(own, (1, block.groups))


def part(rows: Array, block: NoiseBlock) -> Array:
    """What rows hold of one noise or source: the response to it, as a mean over the groups."""
    return part_before(rows, block, block.length)


def delayed(past: Array, labels: int, lag: int) -> Array:
    """The rows of all times, moved `lag` steps later."""
    shift = min(lag * labels, past.shape[0])
    return jnp.concatenate([jnp.zeros_like(past[:shift]), past[: past.shape[0] - shift]])


def past_sum(weights: Array, past: Array, labels: int) -> Array:
    """The sum over times of weight * rows."""
    times, size = past.shape[0] // labels, past.shape[1]
    return (weights @ past.reshape(times, labels * size)).reshape(labels, size)


def weighted(overlaps: Array, weights: Array, labels: int) -> Array:
    """Overlaps with the rows of all times, those of each time multiplied by its weight."""
    return overlaps * jnp.broadcast_to(weights[:, None], (weights.shape[0], labels)).reshape(-1)


def store(past: Array, rows: Array, t: Array) -> Array:
    """The past with the rows of time t in their place."""
    return jax.lax.dynamic_update_slice_in_dim(past, rows, t * rows.shape[0], axis=0)


def stored(past: Array, labels: int, t: Array) -> Array:
    """The rows of time t, as they stand in the past."""
    return jax.lax.dynamic_slice_in_dim(past, t * labels, labels)


# -- means over sites


def dual(rows: Array, place: Site, *covariances: Array) -> Array:
    """Rows times the covariance of the site's variables: their scalar product with other rows is a mean. Those of a
    group are multiplied by its weight."""
    if place.weights is not None:
        each = rows.reshape(len(rows) * place.groups, place.size // place.groups)
        seen = _dual(each, place, covariances).reshape(len(rows), place.groups, -1)
        return (place.weights[:, None] * seen).reshape(rows.shape)
    return _dual(rows, place, covariances)


def _dual(rows: Array, place: Site, covariances: tuple[Array, ...]) -> Array:
    pieces, start = [], 0
    for covariance in covariances:
        stop = start + covariance.shape[-1]
        if covariance.ndim == 3:  # one per group of sites
            each = rows[:, start:stop].reshape(-1, place.groups, stop - start)
            pieces.append(jnp.einsum("lgk,gkm->lgm", each, covariance).reshape(len(rows), stop - start))
        else:
            pieces.append(rows[:, start:stop] @ covariance)
        start = stop
    stop, size = start + sum(block.length for block in place.drawn), rows.shape[1]
    pieces += [rows[:, start:stop], *([jnp.zeros((len(rows), size - stop))] if stop < size else [])]
    return jnp.concatenate(pieces, axis=1)


def overlaps(seen: Array, past: Array) -> Array:
    """Means of the products of a field, whose dual rows are `seen`, with another at all times that are known."""
    if 1 < len(seen) <= FEW_LINES:
        return jax.lax.map(partial(jnp.matmul, past), seen)
    return (past @ seen.T).T  # the small factor is the one that is transposed


def products(seen: Array, rows: Array) -> Array:
    """Means of the products of two fields, label by label, as a column."""
    return jnp.sum(seen * rows, axis=1, keepdims=True)


def put(covariance: Array, a: NoiseBlock, t: Array, b: NoiseBlock, s: Array | None, values: Array) -> Array:
    """The covariance with that of noise a at time t and noise b, at all times or at time s, in its two places."""
    row = a.place + t * a.labels
    column = b.place + (0 if s is None else s * b.labels)
    if covariance.ndim == 3:  # one per group of sites
        covariance = jax.lax.dynamic_update_slice(covariance, values, (0, row, column))
        return jax.lax.dynamic_update_slice(covariance, jnp.swapaxes(values, 1, 2), (0, column, row))
    covariance = jax.lax.dynamic_update_slice(covariance, values, (row, column))
    return jax.lax.dynamic_update_slice(covariance, values.T, (column, row))


# -- time


def stages(times: int, numbers: int) -> tuple[tuple[int, int], ...]:
    """First and last time of each stage, for so many numbers that are carried in the end."""
    count, work = 1, numbers * times
    while work >= STAGE and count < min(MOST_STAGES, times):
        count, work = count + 1, work // NEXT_STAGE
    ends = [times * (i + 1) // count for i in range(count)]
    return tuple(zip((0, *ends[:-1]), ends, strict=True))


Axes = tuple[Axis, ...]
"""The axes of an array, each as the lengths of its parts."""


def shape_of(axes: Axes) -> tuple[int, ...]:
    """How long each axis is."""
    return tuple(axis.groups * sum(axis.parts) if isinstance(axis, InGroups) else sum(axis) for axis in axes)


def grow(array: Array, before: Axes, after: Axes) -> Array:
    """An array with every part of every axis made longer, filled with zeros."""
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        array = lengthened(array, axis, old, new)
    return array


def lengthened(array: Array, axis: int, old: Axis, new: Axis) -> Array:
    """An array with every part of one axis made longer, filled with zeros."""
    if old == new:
        return array
    if isinstance(old, InGroups) and isinstance(new, InGroups):
        shape = array.shape
        each = array.reshape(*shape[:axis], old.groups, sum(old.parts), *shape[axis + 1 :])
        made = _longer(each, axis + 1, old.parts, new.parts)
        return made.reshape(*shape[:axis], new.groups * sum(new.parts), *shape[axis + 1 :])
    assert not isinstance(old, InGroups) and not isinstance(new, InGroups)
    return _longer(array, axis, old, new)


def _longer(array: Array, axis: int, old: tuple[int, ...], new: tuple[int, ...]) -> Array:
    """An array with the parts of one axis made longer."""
    pieces, start = [], 0
    for short, long in zip(old, new, strict=True):
        piece = jax.lax.slice_in_dim(array, start, start + short, axis=axis)
        room = [(0, long - short if i == axis else 0) for i in range(array.ndim)]
        pieces.append(jnp.pad(piece, room))
        start += short
    return jnp.concatenate(pieces, axis=axis)


def after(t: Array, *rows: Array) -> Array:
    """The time t, known only when the rows are: the compiler then reads all pasts before it changes any in place."""
    return t + (sum(x[0, 0] for x in rows if x.size) < -jnp.inf)


# -- numbers of labels and times


def first(rows: Array, count: int) -> Array:
    """The first lines."""
    return rows[:count]


def part_before(rows: Array, block: NoiseBlock, count: int) -> Array:
    """What rows hold of the first entries of one noise or source, as a mean over the groups."""
    if block.weights is None:
        return rows[:, block.start : block.start + count]
    each = rows.reshape(len(rows), block.groups, block.size // block.groups)
    return jnp.einsum("lgk,g->lk", each[:, :, block.start : block.start + count], block.weights)


def part_by_group(rows: Array, block: NoiseBlock, count: int) -> Array:
    """The same for each group, times its weight: groups x rows x entries."""
    each = rows.reshape(len(rows), block.groups, block.size // block.groups)
    return jnp.einsum("lgk,g->glk", each[:, :, block.start : block.start + count], block.weights)


def products_by_group(seen: Array, rows: Array, place: Site) -> Array:
    """Means of the products of two fields, of the first its dual rows, over the sites of each group: groups x rows of
    the first x rows of the second. Those of a group are multiplied by its weight, as dual rows are."""
    first, second = (x.reshape(len(x), place.groups, place.size // place.groups) for x in (seen, rows))
    return jnp.einsum("agk,bgk->gab", first, second)


def law_of_groups(place: Site, *along: Array) -> Array:
    """Numbers of each group, given along a row, and behind them the share of the sites that is in it."""
    each = [x[0, :: place.size // place.groups] for x in along]
    return jnp.stack([*each, place.weights], axis=1)


def covariance_before(covariance: Array, block: NoiseBlock, count: int) -> Array:
    """The covariance of the first entries of one noise with each other."""
    return covariance[block.place : block.place + count, block.place : block.place + count]


def given(data: Array, t: Array | None, lag: int) -> Array:
    """Data at a time, or without one, as a matrix; zero before the start."""
    value = jnp.asarray(data) if t is None else jnp.where(t >= lag, jnp.asarray(data)[t - lag], 0.0)
    return value if value.ndim == 2 else value[:, None]


def root(table: Array) -> Array:
    """The symmetric square root of a table of covariances, which is given: nothing is differentiated by it."""
    values, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(table))
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0)) @ vectors.T


def selection(rows: tuple[int, ...], columns: tuple[int, ...], places: tuple[int, ...]) -> Array:
    """One where the label of the place-th axis of the rows is that of an axis of the columns, for all that have a place
    in the rows; zero elsewhere."""
    own, others = (np.indices(sizes).reshape(len(sizes), -1) for sizes in (rows, columns))
    agree = np.ones((own.shape[1], others.shape[1]))
    for place, labels in zip(places, others, strict=True):
        if place >= 0:
            agree *= own[place][:, None] == labels[None, :]
    return jnp.asarray(agree)


def softmax(column: Array, size: int, behind: int) -> Array:
    """exp over its sum along an axis of so many labels, of which so many stand behind it."""
    return jax.nn.softmax(column.reshape(-1, size, behind), axis=1).reshape(column.shape)


def apart(table: Array, sizes: tuple[int, ...]) -> Array:
    """A table with one axis of labels in place of each of these that it is made of."""
    return table.reshape(*table.shape[:-1], *sizes)


def listed(table: Array) -> Array:
    """The entries of a table below each other."""
    return table.reshape(-1, 1)


def given_series(data: Array, timed: int, lag: int, turned: int | None = None) -> Array:
    """Data with one axis of labels at all times: one row per time. turned: of a table, whether columns come first."""
    values = jnp.asarray(data) if timed else jnp.asarray(data)[None]
    if turned is not None:
        values = (jnp.swapaxes(values, 1, 2) if turned else values).reshape(len(values), -1)
    return delayed(values, 1, lag) if timed else values


def total(column: Array) -> Array:
    """The sum over labels."""
    return jnp.sum(column, axis=0, keepdims=True)


def mean_of_labels(table: Array) -> Array:
    return jnp.mean(table, axis=1, keepdims=True)


def total_of_labels(table: Array) -> Array:
    return jnp.sum(table, axis=1, keepdims=True)


def series(table: Array) -> Array:
    """A table with one column, or a number, as a series over times."""
    return jnp.asarray(table, float).reshape(-1)
