"""Two-time functions of fields, from their rows or from their values at sampled sites.

C[a, b](t, s) is the mean over sites of a(t) b(s). R[a, b](t, s) is the mean over sites of the derivative of a(t) with
respect to a source on the right side of the equation of b at time s, on the same site. Both are arrays of times of a x
labels of a x times of b x labels of b; vectors without time or labels have one of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .exact import NoiseBlock, Site, dual, part
from .keys import OrderKey

Array = Any
Wanted = tuple[OrderKey, ...]
"""Requested functions: C[a,b] and R[a,b]; K[b,b] only adds impulses to the equation of b."""


def kicked_fields(wanted: Wanted) -> tuple[str, ...]:
    """Return the fields whose equations have sources."""
    return tuple(dict.fromkeys(b for kind, _, b in wanted if kind in ("R", "K")))


def kicked(wanted: Wanted, name: str, times: int) -> int:
    """Return the number of impulses of a field."""
    return times if name in kicked_fields(wanted) else 0


# -- exactly


class GaussianRows(NamedTuple):
    """A field at all times over the Gaussian variables of its site, whose random matrices have these covariances.
    source: the variable that represents a source in its equation; scale: its size."""

    rows: Array
    labels: int
    source: NoiseBlock
    scale: Array
    site: Site
    covariances: tuple[Array, ...]


def two_time(wanted: Wanted, fields: Mapping[str, GaussianRows]) -> dict[OrderKey, Array]:
    """Return two-time functions from rows."""
    found = {}
    for kind, name, other in wanted:
        a, b = fields[name], fields[other]
        correlation = kind == "C"
        table = dual(a.rows, a.site, *a.covariances) @ b.rows.T if correlation else part(a.rows, b.source) / b.scale
        found[OrderKey(kind, name, other)] = table.reshape(-1, a.labels, table.shape[1] // b.labels, b.labels)
    return found


# -- by sampling


class RecordedField(NamedTuple):
    """A field at all times and sites, times x sites x labels, its tangents, which have one more axis, and the impulses
    in its equation, sites x times x labels. Values are empty if they are not requested; tangents are None if they are
    not propagated. delays: the fields to whose impulses it responds, by name, with the smallest delays."""

    values: Array
    slopes: Array | None
    kicks: Array | None
    delays: tuple[tuple[str, int], ...]


def tangents(wanted: Wanted) -> int:
    """Return the number of tangents per value: one for each field with impulses, along its impulses of all times at
    once."""
    return len(kicked_fields(wanted))


def room_for(wanted: Wanted, name: str, times: int, sites: int, labels: int) -> Array:
    """Return an array for the values of a field."""
    asked = any(kind == "C" and name in (a, b) for kind, a, b in wanted)
    return jnp.zeros((times, sites if asked else 0, labels))


def no_slopes_yet(times: int, sites: int, labels: int, slots: int) -> Array:
    """Return an array for the tangents of a field."""
    return jnp.zeros((times, sites, labels, slots))


def numbers_kept(wanted: Wanted, name: str, numbers: int) -> int:
    """Return the number of floats stored per site, for a field with a given number of times and labels together."""
    values = any(kind == "C" and name in (a, b) for kind, a, b in wanted)
    return numbers * (values + tangents(wanted) + (name in kicked_fields(wanted)))


def keep(table: Array, values: Array, t: Array = 0) -> Array:
    """Return the table with the values of time t inserted, if it has space for them."""
    return table.at[t].set(values) if table.size else table


def kick_at(wanted: Wanted, name: str, kicks: Array, t: Array = 0, lag: int = 0) -> Array:
    """Return the contribution of the impulse of a field to its tangents, `lag` steps before t: sites x labels x
    tangents."""
    sites, times, labels = kicks.shape
    slopes = jnp.zeros((sites, labels, tangents(wanted)))
    if not times:
        return slopes
    now = jnp.where(jnp.asarray(t) >= lag, kicks[:, t - lag], 0.0)
    return slopes.at[:, :, kicked_fields(wanted).index(name)].set(now)


def drawn_values(normals: Array, scale: Array, times: int) -> Array:
    """Return a drawn vector as times x sites x labels."""
    return scale * jnp.moveaxis(jnp.reshape(normals, (normals.shape[0], times, -1)), 1, 0)


def drawn_slopes(wanted: Wanted, name: str, kicks: Array, times: int) -> Array:
    """Return the tangents of a drawn vector, which responds to its own impulses alone."""
    sites, kicked_times, labels = kicks.shape
    slopes = jnp.zeros((times, sites, labels, tangents(wanted)))
    if not kicked_times:
        return slopes
    return slopes.at[..., kicked_fields(wanted).index(name)].set(jnp.moveaxis(kicks, 1, 0))


def past_slopes(weights: Array, slopes: Array, times: int) -> Array:
    """Return the tangents of a sum over all times. weights: one per time, or for each label of the sum one per time and
    label.
    slopes: at all times, or of a vector without time."""
    slopes = jnp.broadcast_to(slopes, (times, *slopes.shape[1:]))
    if weights.ndim == 1:
        return jnp.einsum("t,tmcn->mcn", weights, slopes)
    return jnp.einsum("ktc,tmcn->mkn", weights.reshape(-1, times, slopes.shape[2]), slopes)


def memory_slopes(
    wanted: Wanted, name: str, answering: Array, kicks: Array, slopes: Array, t: Array | None, fresh: int, delay: int
) -> Array:
    """Return the tangents of a memory term: mean responses to the noise of a field, from the tangents of the responding
    field along its impulses, times the tangents of the remembered field.

    t: the current time, None if one of the two has no times. fresh: whether the matrix is drawn anew at every time.
    delay: the smallest delay of a response to an impulse.
    """
    if not answering.shape[2]:
        return answering
    along = answering[None, :, :, kicked_fields(wanted).index(name)]
    then = jnp.arange(kicks.shape[1])
    there = jnp.ones_like(then) if t is None else (then == t) if fresh else (then + delay <= t)
    response = _regressed(along, kicks, there.astype(float)[None])[0]
    return jnp.einsum("ctd,tmdn->mcn", response, slopes)


def sampled_two_time(wanted: Wanted, fields: Mapping[str, RecordedField]) -> dict[OrderKey, Array]:
    """Return two-time functions from values at sites. An impulse is a random vector, so that regressing tangents on the
    impulses of all earlier times gives mean responses. The response of a field to its own impulse excludes equal times
    (`with_own` adds it), because it is known exactly."""
    found = {}
    for kind, a, b in wanted:
        if kind == "C":
            left, right = fields[a].values, fields[b].values
            found[OrderKey(kind, a, b)] = jnp.einsum("tic,sid->tcsd", left, right) / left.shape[1]
        if kind == "R":
            found[OrderKey(kind, a, b)] = _response(a, b, fields, kicked_fields(wanted).index(b))
    return found


def _response(a: str, b: str, fields: Mapping[str, RecordedField], slot: int) -> Array:
    """Return R[a, b] without the instantaneous response of a field to its own impulse; zero before the delay."""
    slopes, kicks, delay = fields[a].slopes, fields[b].kicks, dict(fields[a].delays).get(b)
    assert slopes is not None and kicks is not None, "responses need slopes"
    (times, _, labels, _), (_, kicked_times, kicked_labels) = slopes.shape, kicks.shape
    if delay is None:
        return jnp.zeros((times, labels, kicked_times, kicked_labels))
    along, timed = slopes[..., slot], times > 1 and kicked_times > 1
    if a == b:
        along, delay, timed = along - jnp.moveaxis(kicks, 1, 0), 1, True
    when, then = jnp.arange(times), jnp.arange(kicked_times)
    there = then[None, :] + delay <= when[:, None] if timed else jnp.ones((times, kicked_times))
    return _regressed(along, kicks, there.astype(float))


def with_own(name: tuple[str, str, str], table: Any) -> Any:
    """Return a two-time function of all passes; a response includes the instantaneous response of a field to its own
    impulse."""
    kind, a, b = name
    if kind != "R" or a != b:
        return table
    times, labels, *_ = table.shape
    return table + jnp.eye(times * labels).reshape(table.shape)


def _regressed(slopes: Array, kicks: Array, there: Array) -> Array:
    """Return responses from tangents, times x sites x labels, along impulses, sites x times x labels. there: for each
    time of the tangents, the times of the impulses with responses, in ascending order.
    """
    (times, sites, labels), (_, kicked_times, kicked_labels) = slopes.shape, kicks.shape
    flat = kicks.reshape(sites, -1)
    lower = jnp.linalg.cholesky(flat.T @ flat / sites)
    seen = jnp.einsum("tic,ik->tck", slopes, flat).reshape(times * labels, -1) / sites
    along = solve_triangular(lower, seen.T, lower=True).T
    mask = jnp.repeat(jnp.repeat(there, kicked_labels, axis=1), labels, axis=0)
    found = solve_triangular(lower.T, (along * mask).T, lower=False).T * mask
    return found.reshape(times, labels, kicked_times, kicked_labels)
