"""Two-time functions of fields, from coefficient rows or from sampled values.

C[a, b](t, s) is the mean over sites of a(t) b(s). R[a, b](t, s) is the impulse response: the mean derivative of a(t) by
a source added to the equation of b at time s, on the same site. Both are arrays of times of a x labels of a x times of
b x labels of b; a field without times or labels has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .exact import NoiseBlock, Site, dual, part

Array = Any
Wanted = tuple[tuple[str, str, str], ...]
"""What is asked for: ("C", a, b) and ("R", a, b); with ("K", b, b) the field b is kicked all the same."""


def kicked_fields(wanted: Wanted) -> tuple[str, ...]:
    """Return the fields with impulses in their equations."""
    return tuple(dict.fromkeys(b for kind, _, b in wanted if kind in ("R", "K")))


def kicked(wanted: Wanted, name: str, times: int) -> int:
    """Return the number of times at which a field gets an impulse."""
    return times if name in kicked_fields(wanted) else 0


# -- exactly


class GaussianRows(NamedTuple):
    """A field at all times as rows over the Gaussian variables of its site, with the covariances of random matrices.
    source: the variable that acts as a source in its equation; scale: its standard deviation."""

    rows: Array
    labels: int
    source: NoiseBlock
    scale: Array
    site: Site
    covariances: tuple[Array, ...]


def two_time(wanted: Wanted, fields: Mapping[str, GaussianRows]) -> dict[tuple[str, str, str], Array]:
    """Return two-time functions from coefficient rows."""
    functions = {}
    for kind, name, other in wanted:
        a, b = fields[name], fields[other]
        correlation = kind == "C"
        table = dual(a.rows, a.site, *a.covariances) @ b.rows.T if correlation else part(a.rows, b.source) / b.scale
        functions[kind, name, other] = table.reshape(-1, a.labels, table.shape[1] // b.labels, b.labels)
    return functions


# -- by sampling


class RecordedField(NamedTuple):
    """A field at all times and sites.

    Attributes:
        values: times x sites x labels; empty where they are not needed.
        slopes: tangents, with one more axis; None without impulses.
        kicks: impulses in its equation, sites x times x labels.
        delays: fields whose impulses it responds to, by name, with the smallest delay.
    """

    values: Array
    slopes: Array | None
    kicks: Array | None
    delays: tuple[tuple[str, int], ...]


def tangents(wanted: Wanted) -> int:
    """Return the number of tangents of a value: one per field with impulses, along its impulses of all times."""
    return len(kicked_fields(wanted))


def room_for(wanted: Wanted, name: str, times: int, sites: int, labels: int) -> Array:
    """Allocate the values of a field."""
    needed = any(kind == "C" and name in (a, b) for kind, a, b in wanted)
    return jnp.zeros((times, sites if needed else 0, labels))


def no_slopes_yet(times: int, sites: int, labels: int, slots: int) -> Array:
    """Allocate the tangents of a field."""
    return jnp.zeros((times, sites, labels, slots))


def numbers_kept(wanted: Wanted, name: str, numbers: int) -> int:
    """Return the number of floats stored per site for a field with this many times and labels."""
    values = any(kind == "C" and name in (a, b) for kind, a, b in wanted)
    return numbers * (values + tangents(wanted) + (name in kicked_fields(wanted)))


def keep(table: Array, values: Array, t: Array = 0) -> Array:
    """Return the table with the values of time t inserted, if it is allocated."""
    return table.at[t].set(values) if table.size else table


def kick_at(wanted: Wanted, name: str, kicks: Array, t: Array = 0, lag: int = 0) -> Array:
    """Return the tangents that the impulse of a field adds, `lag` steps before t: sites x labels x tangents."""
    sites, times, labels = kicks.shape
    slopes = jnp.zeros((sites, labels, tangents(wanted)))
    if not times:
        return slopes
    now = jnp.where(jnp.asarray(t) >= lag, kicks[:, t - lag], 0.0)
    return slopes.at[:, :, kicked_fields(wanted).index(name)].set(now)


def drawn_values(normals: Array, scale: Array, times: int) -> Array:
    """Return drawn normals as times x sites x labels."""
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
    label. slopes: at all times, or of a vector without time."""
    slopes = jnp.broadcast_to(slopes, (times, *slopes.shape[1:]))
    if weights.ndim == 1:
        return jnp.einsum("t,tmcn->mcn", weights, slopes)
    return jnp.einsum("ktc,tmcn->mkn", weights.reshape(-1, times, slopes.shape[2]), slopes)


def memory_slopes(
    wanted: Wanted, name: str, answering: Array, kicks: Array, slopes: Array, t: Array | None, fresh: int, delay: int
) -> Array:
    """Return the tangents of a memory term: mean responses, by regression of tangents on the impulses of the noise,
    times the tangents of the remembered vector.

    t: current time; None where either has no times. fresh: whether the matrix is redrawn at every time. delay: smallest
    delay of the response.
    """
    if not answering.shape[2]:
        return answering
    along = answering[None, :, :, kicked_fields(wanted).index(name)]
    then = jnp.arange(kicks.shape[1])
    there = jnp.ones_like(then) if t is None else (then == t) if fresh else (then + delay <= t)
    response = _regressed(along, kicks, there.astype(float)[None])[0]
    return jnp.einsum("ctd,tmdn->mcn", response, slopes)


def sampled_two_time(wanted: Wanted, fields: Mapping[str, RecordedField]) -> dict[tuple[str, str, str], Array]:
    """Return two-time functions from sampled values.

    An impulse is a random vector. Tangents regressed on the impulses of all earlier times give mean responses. The
    equal-time response of a field to its own impulse is one and is added later (`with_own`), so that it carries no
    noise.
    """
    functions = {}
    for kind, a, b in wanted:
        if kind == "C":
            left, right = fields[a].values, fields[b].values
            functions[kind, a, b] = jnp.einsum("tic,sid->tcsd", left, right) / left.shape[1]
        if kind == "R":
            functions[kind, a, b] = _response(a, b, fields, kicked_fields(wanted).index(b))
    return functions


def _response(a: str, b: str, fields: Mapping[str, RecordedField], slot: int) -> Array:
    """Return R[a, b] without the equal-time response of a field to its own impulse; zero before the delay."""
    slopes, kicks, delay = fields[a].slopes, fields[b].kicks, dict(fields[a].delays).get(b)
    assert slopes is not None and kicks is not None, "responses are refused where no slopes are followed"
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
    """Return a two-time function of all passes, with the equal-time response of a field to its own impulse added."""
    kind, a, b = name
    if kind != "R" or a != b:
        return table
    times, labels, *_ = table.shape
    return table + jnp.eye(times * labels).reshape(table.shape)


def _regressed(slopes: Array, kicks: Array, there: Array) -> Array:
    """Return responses by regression of tangents, times x sites x labels, on impulses, sites x times x labels. there:
    for each time of the tangents, the times of impulses that may have a response, earlier ones first."""
    (times, sites, labels), (_, kicked_times, kicked_labels) = slopes.shape, kicks.shape
    flat = kicks.reshape(sites, -1)
    lower = jnp.linalg.cholesky(flat.T @ flat / sites)
    seen = jnp.einsum("tic,ik->tck", slopes, flat).reshape(times * labels, -1) / sites
    along = solve_triangular(lower, seen.T, lower=True).T
    mask = jnp.repeat(jnp.repeat(there, kicked_labels, axis=1), labels, axis=0)
    responses = solve_triangular(lower.T, (along * mask).T, lower=False).T * mask
    return responses.reshape(times, labels, kicked_times, kicked_labels)
