"""Linear algebra of the exact forward pass: fields as coefficient rows over the Gaussian variables of a site.

If all laws are linear, a field at one time is a linear combination of the Gaussian variables of its site: the noises of
random matrices, and the drawn variables. Its coefficients are a row per label. The rows of all times, stacked, are the
past of the field. The noises of one random matrix have a covariance matrix; drawn variables are independent with
variance one.

If sites have traits, sites with equal traits form a group. All groups have the same variables and separate rows, which
are concatenated. A mean over sites is the weighted mean over groups.
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
"""Work (stored floats times steps) from which a pass runs in two stages. Trades compile time for time per step."""

NEXT_STAGE = 8
"""Factor in work per further stage (doubling the steps multiplies work by it). Each stage is compiled separately."""

MOST_STAGES = 4
"""Largest number of stages. Each further stage saves less: the cost tends to about a third of that of one stage."""

FEW_LINES = 4
"""Number of rows up to which scalar products with a past are computed one by one: a matrix product would copy the
past."""


@dataclass(frozen=True)
class NoiseBlock:
    """Position of a noise or source with times x labels entries: they begin at `start` in a row of length `size`, and
    at `place` in the covariance of the random matrix.
    """

    start: int
    place: int
    times: int
    labels: int
    size: int
    weights: Array = None
    """Weights of the groups of sites; None if all sites are equivalent."""

    @property
    def length(self) -> int:
        """Number of entries."""
        return self.times * self.labels

    @property
    def groups(self) -> int:
        """Number of groups of sites."""
        return 1 if self.weights is None else len(self.weights)


@dataclass(frozen=True)
class InGroups:
    """An axis whose parts repeat for every group of sites."""

    groups: int
    parts: tuple[int, ...]


Axis = tuple[int, ...] | InGroups
"""The lengths of the parts of an axis."""


@dataclass(frozen=True)
class Site:
    """The Gaussian variables of a site: noises of each random matrix, drawn variables, then impulses.

    Impulses are sources of variance zero; a row's coefficient on one is the impulse response.
    """

    channels: tuple[tuple[NoiseBlock, ...], ...]
    drawn: tuple[NoiseBlock, ...]
    kicks: tuple[NoiseBlock, ...]
    size: int
    weights: Array = None
    traits: tuple[Array, ...] = ()
    """For each trait one value per group."""

    @property
    def groups(self) -> int:
        """Number of groups of sites."""
        return 1 if self.weights is None else len(self.weights)

    def along(self, trait: int) -> Array:
        """Return the values of a trait along a row."""
        return jnp.repeat(self.traits[trait], self.size // self.groups)[None, :]

    def __iter__(self) -> Iterator[NoiseBlock]:
        for channel in self.channels:
            yield from channel
        yield from self.drawn
        yield from self.kicks

    @property
    def parts(self) -> Axis:
        """Lengths of the parts of a row."""
        own = tuple(block.length for block in self)
        return own if self.weights is None else InGroups(self.groups, own)

    def extent(self, channel: int) -> tuple[int, ...]:
        """Return the lengths of the parts of the covariance of one random matrix."""
        return tuple(block.length for block in self.channels[channel])


def site(
    *channels: tuple[tuple[int, int], ...],
    drawn: tuple[tuple[int, int], ...] = (),
    kicks: tuple[tuple[int, int], ...] = (),
    traits: tuple[TraitValues, ...] = (),
) -> Site:
    """Lay out the variables of a site.

    Args:
        channels: for each random matrix the (times, labels) of its noises.
        drawn: (times, labels) of drawn variables.
        kicks: (times, labels) of impulses.
        traits: laws of independent traits; every combination of values is a group.
    """
    size = sum(times * labels for group in (*channels, drawn, kicks) for times, labels in group)
    weights, values = _groups(traits)
    size *= 1 if weights is None else len(weights)
    start = 0
    groups = []
    for group in (*channels, drawn, kicks):
        place, blocks = 0, []
        for times, labels in group:
            blocks.append(NoiseBlock(start, place, times, labels, size, weights))
            start, place = start + times * labels, place + times * labels
        groups.append(tuple(blocks))
    return Site(tuple(groups[:-2]), groups[-2], groups[-1], size, weights, values)


def _groups(traits: tuple[TraitValues, ...]) -> tuple[Array, tuple[Array, ...]]:
    """Return the weights of all groups, and for each trait its values in them."""
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
    """Return the mean over sites of a function of all their traits."""
    return jnp.sum(place.weights * function(*place.traits))


# -- rows


def unit(block: NoiseBlock, t: Array = 0) -> Array:
    """Return the unit rows of a noise or source at one time; zero before the start."""
    columns = block.start + t * block.labels + jnp.arange(block.labels)
    own = ((columns[:, None] == jnp.arange(block.size // block.groups)) & (jnp.asarray(t) >= 0)).astype(float)
    return own if block.weights is None else jnp.tile(own, (1, block.groups))


def kick(block: NoiseBlock, t: Array = 0) -> Array:
    """Return the unit rows of an impulse at one time; zero if the impulse is not requested."""
    return unit(block, t) if block.times else jnp.zeros((block.labels, block.size))


def units(block: NoiseBlock) -> Array:
    """Return the unit rows of a noise or source at all times."""
    own = jnp.eye(block.length, block.size // block.groups, block.start)
    return own if block.weights is None else jnp.tile(own, (1, block.groups))


def part(rows: Array, block: NoiseBlock) -> Array:
    """Return the coefficients of rows on one noise or source, averaged over groups: the response to it."""
    return part_before(rows, block, block.length)


def delayed(past: Array, labels: int, lag: int) -> Array:
    """Return the rows of all times, delayed by `lag` steps."""
    shift = min(lag * labels, past.shape[0])
    return jnp.concatenate([jnp.zeros_like(past[:shift]), past[: past.shape[0] - shift]])


def past_sum(weights: Array, past: Array, labels: int) -> Array:
    """Return the sum over times of weight * rows."""
    times, size = past.shape[0] // labels, past.shape[1]
    return (weights @ past.reshape(times, labels * size)).reshape(labels, size)


def weighted(overlaps: Array, weights: Array, labels: int) -> Array:
    """Return overlaps with the rows of all times, times a weight per time."""
    return overlaps * jnp.broadcast_to(weights[:, None], (weights.shape[0], labels)).reshape(-1)


def store(past: Array, rows: Array, t: Array) -> Array:
    """Return the past with the rows of time t inserted."""
    return jax.lax.dynamic_update_slice_in_dim(past, rows, t * rows.shape[0], axis=0)


def stored(past: Array, labels: int, t: Array) -> Array:
    """Return the rows of time t from a past."""
    return jax.lax.dynamic_slice_in_dim(past, t * labels, labels)


# -- means over sites


def dual(rows: Array, place: Site, *covariances: Array) -> Array:
    """Return rows times the covariance of the site's variables, whose scalar product with other rows is a mean over
    sites. Rows of a group include its weight."""
    if place.weights is not None:
        each = rows.reshape(len(rows) * place.groups, place.size // place.groups)
        seen = _dual(each, place, covariances).reshape(len(rows), place.groups, -1)
        return (place.weights[:, None] * seen).reshape(rows.shape)
    return _dual(rows, place, covariances)


def _dual(rows: Array, place: Site, covariances: tuple[Array, ...]) -> Array:
    """Multiply rows by the block-diagonal covariance of a site."""
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
    """Return means of products of a field, with dual rows `seen`, with another field at all times."""
    if 1 < len(seen) <= FEW_LINES:
        return jax.lax.map(partial(jnp.matmul, past), seen)
    return (past @ seen.T).T  # the small factor is the one that is transposed


def products(seen: Array, rows: Array) -> Array:
    """Return means of products of two fields, label by label, as a column."""
    return jnp.sum(seen * rows, axis=1, keepdims=True)


def put(covariance: Array, a: NoiseBlock, t: Array, b: NoiseBlock, s: Array | None, values: Array) -> Array:
    """Return the covariance with the block of noise a at time t and noise b (at all times, or at time s) inserted
    symmetrically."""
    row = a.place + t * a.labels
    column = b.place + (0 if s is None else s * b.labels)
    if covariance.ndim == 3:  # one per group of sites
        covariance = jax.lax.dynamic_update_slice(covariance, values, (0, row, column))
        return jax.lax.dynamic_update_slice(covariance, jnp.swapaxes(values, 1, 2), (0, column, row))
    covariance = jax.lax.dynamic_update_slice(covariance, values, (row, column))
    return jax.lax.dynamic_update_slice(covariance, values.T, (column, row))


# -- time


def stages(times: int, numbers: int) -> tuple[tuple[int, int], ...]:
    """Return the first and last time of each stage, for the number of floats stored at the end."""
    count, work = 1, numbers * times
    while work >= STAGE and count < min(MOST_STAGES, times):
        count, work = count + 1, work // NEXT_STAGE
    ends = [times * (i + 1) // count for i in range(count)]
    return tuple(zip((0, *ends[:-1]), ends, strict=True))


Axes = tuple[Axis, ...]
"""The axes of an array, each as the lengths of its parts."""


def shape_of(axes: Axes) -> tuple[int, ...]:
    """Return the length of each axis."""
    return tuple(axis.groups * sum(axis.parts) if isinstance(axis, InGroups) else sum(axis) for axis in axes)


def grow(array: Array, before: Axes, after: Axes) -> Array:
    """Pad every part of every axis with zeros."""
    for axis, (old, new) in enumerate(zip(before, after, strict=True)):
        array = lengthened(array, axis, old, new)
    return array


def lengthened(array: Array, axis: int, old: Axis, new: Axis) -> Array:
    """Pad every part of one axis with zeros."""
    if old == new:
        return array
    match old, new:
        case InGroups(), InGroups():
            shape = array.shape
            each = array.reshape(*shape[:axis], old.groups, sum(old.parts), *shape[axis + 1 :])
            padded = _longer(each, axis + 1, old.parts, new.parts)
            return padded.reshape(*shape[:axis], new.groups * sum(new.parts), *shape[axis + 1 :])
        case tuple(), tuple():
            return _longer(array, axis, old, new)
    raise TypeError("an axis has groups before or after, but not both")


def _longer(array: Array, axis: int, old: tuple[int, ...], new: tuple[int, ...]) -> Array:
    """Pad the parts of one axis without groups."""
    pieces, start = [], 0
    for short, long in zip(old, new, strict=True):
        piece = jax.lax.slice_in_dim(array, start, start + short, axis=axis)
        room = [(0, long - short if i == axis else 0) for i in range(array.ndim)]
        pieces.append(jnp.pad(piece, room))
        start += short
    return jnp.concatenate(pieces, axis=axis)


# -- numbers of labels and times


def part_before(rows: Array, block: NoiseBlock, count: int) -> Array:
    """Return the coefficients of rows on the first entries of a noise or source, averaged over groups."""
    if block.weights is None:
        return rows[:, block.start : block.start + count]
    each = rows.reshape(len(rows), block.groups, block.size // block.groups)
    return jnp.einsum("lgk,g->lk", each[:, :, block.start : block.start + count], block.weights)


def part_by_group(rows: Array, block: NoiseBlock, count: int) -> Array:
    """Return the coefficients of rows on a noise or source per group, times the weight of the group: groups x rows x
    entries.
    """
    each = rows.reshape(len(rows), block.groups, block.size // block.groups)
    return jnp.einsum("lgk,g->glk", each[:, :, block.start : block.start + count], block.weights)


def products_by_group(seen: Array, rows: Array, place: Site) -> Array:
    """Return means of products of two fields over the sites of each group, times its weight: groups x rows of the first
    x rows of the second. seen: dual rows of the first."""
    first, second = (x.reshape(len(x), place.groups, place.size // place.groups) for x in (seen, rows))
    return jnp.einsum("agk,bgk->gab", first, second)


def law_of_groups(place: Site, *along: Array) -> Array:
    """Return numbers given along a row, with the weight of each group."""
    each = [x[0, :: place.size // place.groups] for x in along]
    return jnp.stack([*each, place.weights], axis=1)


def covariance_before(covariance: Array, block: NoiseBlock, count: int) -> Array:
    """Return the covariance of the first entries of one noise."""
    return covariance[block.place : block.place + count, block.place : block.place + count]


def given(data: Array, t: Array | None, lag: int) -> Array:
    """Return data at a time, or without one, as a matrix; zero before the start."""
    value = jnp.asarray(data) if t is None else jnp.where(t >= lag, jnp.asarray(data)[t - lag], 0.0)
    return value if value.ndim == 2 else value[:, None]


def root(table: Array) -> Array:
    """Return the symmetric square root of a covariance matrix of data; no derivative is propagated."""
    values, vectors = jnp.linalg.eigh(jax.lax.stop_gradient(table))
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0)) @ vectors.T


def selection(rows: tuple[int, ...], columns: tuple[int, ...], places: tuple[int, ...]) -> Array:
    """Return the 0-1 matrix that is one where labels of rows and columns agree along matching axes. places: for each
    axis of the columns its axis in the rows, negative for none."""
    own, others = (np.indices(sizes).reshape(len(sizes), -1) for sizes in (rows, columns))
    agree = np.ones((own.shape[1], others.shape[1]))
    for place, labels in zip(places, others, strict=True):
        if place >= 0:
            agree *= own[place][:, None] == labels[None, :]
    return jnp.asarray(agree)


def softmax(column: Array, size: int, behind: int) -> Array:
    """Return exp over its sum along an axis of `size` labels, with `behind` labels along later axes."""
    return jax.nn.softmax(column.reshape(-1, size, behind), axis=1).reshape(column.shape)


def apart(table: Array, sizes: tuple[int, ...]) -> Array:
    """Split the last axis of a table into axes of these sizes."""
    return table.reshape(*table.shape[:-1], *sizes)


def listed(table: Array) -> Array:
    """Return the entries of a table as a column."""
    return table.reshape(-1, 1)


def given_series(data: Array, timed: int, lag: int, turned: int | None = None) -> Array:
    """Return data along labels at all times: one row per time. turned: for a table, whether to list it by columns."""
    values = jnp.asarray(data) if timed else jnp.asarray(data)[None]
    if turned is not None:
        values = (jnp.swapaxes(values, 1, 2) if turned else values).reshape(len(values), -1)
    return delayed(values, 1, lag) if timed else values


def total(column: Array) -> Array:
    """Return the sum over labels."""
    return jnp.sum(column, axis=0, keepdims=True)


def mean_of_labels(table: Array) -> Array:
    """Return the mean over labels at each time."""
    return jnp.mean(table, axis=1, keepdims=True)


def total_of_labels(table: Array) -> Array:
    """Return the sum over labels at each time."""
    return jnp.sum(table, axis=1, keepdims=True)


def series(table: Array) -> Array:
    """Return a table with one column, or a number, as a vector over times."""
    return jnp.asarray(table, float).reshape(-1)
