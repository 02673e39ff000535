"""Two-time functions of fields, from their rows or from their values at sampled sites.

C[a, b](t, s) is the mean over sites of a(t) b(s). R[a, b](t, s) is the mean over sites of the derivative of a(t) by a
source that is added to the right side of the equation of b at time s, on the same site. Both are arrays of times of a x
labels of a x times of b x labels of b; what has no time or no labels has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from .exact import Block, Site, dual

Array = Any
Wanted = tuple[tuple[str, str, str], ...]
"""What is asked for: ("C", a, b) and ("R", a, b)."""


def is_kicked(wanted: Wanted, name: str) -> bool:
    """Whether somebody asks how fields answer to a source in this one."""
    return any(kind == "R" and b == name for kind, _, b in wanted)


def kicked(wanted: Wanted, name: str, times: int) -> int:
    """How many times a field is kicked."""
    return times if is_kicked(wanted, name) else 0


# -- exactly


class Rows(NamedTuple):
    """A field at all times over the Gaussian variables of its site, whose random matrices have these covariances.
    source: what stands for a source in its equation; scale: how large that is."""

    rows: Array
    labels: int
    source: Block
    scale: Array
    site: Site
    covariances: tuple[Array, ...]


def two_time(wanted: Wanted, fields: Mapping[str, Rows]) -> dict[tuple[str, str, str], Array]:
    """Two-time functions from rows."""
    found = {}
    for kind, name, other in wanted:
        a, b = fields[name], fields[other]
        if kind == "C":
            table = dual(a.rows, a.site, *a.covariances) @ b.rows.T
        else:
            table = a.rows[:, b.source.start : b.source.start + b.source.length] / b.scale
        found[kind, name, other] = table.reshape(-1, a.labels, table.shape[1] // b.labels, b.labels)
    return found


# -- by sampling


class Kept(NamedTuple):
    """A field at all times and sites, times x sites x labels, its slopes, which have one more axis, and the kicks in
    its equation, sites x times x labels. Empty where nobody asks for them."""

    values: Array
    slopes: Array
    kicks: Array


def tangents(wanted: Wanted) -> int:
    """How many slopes a site has: one, along all its kicks at once, or none."""
    return int(any(kind == "R" for kind, _, _ in wanted))


def room_for(wanted: Wanted, name: str, times: int, sites: int, labels: int) -> Array:
    """Where the values of a field will be kept."""
    asked = any(kind == "C" and name in (a, b) for kind, a, b in wanted)
    return jnp.zeros((times, sites if asked else 0, labels))


def room_for_slopes(wanted: Wanted, name: str, times: int, sites: int, labels: int) -> Array:
    """Where the slopes of a field will be kept."""
    asked = any(kind == "R" and name == a for kind, a, _ in wanted)
    return jnp.zeros((times, sites if asked else 0, labels, 1))


def numbers_kept(wanted: Wanted, name: str, numbers: int) -> int:
    """How many numbers are kept of each site, for a field with so many times and labels together."""
    values = any(kind == "C" and name in (a, b) for kind, a, b in wanted)
    slopes = any(kind == "R" and name == a for kind, a, _ in wanted)
    return numbers * (values + slopes + is_kicked(wanted, name))


def keep(table: Array, values: Array, t: Array = 0) -> Array:
    """The table with the values of time t in their place, if there is room for them."""
    return table.at[t].set(values) if table.shape[1] else table


def kept_once(values: Array) -> Array:
    """What has no time, as a table of one time."""
    return values[None]


def kick_at(kicks: Array, slots: int, t: Array = 0, lag: int = 0) -> Array:
    """The slopes of a source that is kicked, `lag` steps before t: sites x labels x slots."""
    sites, times, labels = kicks.shape
    if not times or not slots:
        return jnp.zeros((sites, labels, slots))
    return jnp.where(jnp.asarray(t) >= lag, kicks[:, t - lag], 0.0)[:, :, None]


def drawn_values(normals: Array, scale: Array, times: int) -> Array:
    """What was drawn, as times x sites x labels."""
    return scale * jnp.moveaxis(jnp.reshape(normals, (normals.shape[0], times, -1)), 1, 0)


def drawn_slopes(kicks: Array, times: int) -> Array:
    """The slopes of what was drawn: it answers to its own kicks alone."""
    sites, kicked_times, labels = kicks.shape
    return jnp.moveaxis(kicks, 1, 0)[..., None] if kicked_times else jnp.zeros((times, sites, labels, 1))


def sampled_two_time(wanted: Wanted, fields: Mapping[str, Kept]) -> dict[tuple[str, str, str], Array]:
    """Two-time functions from values at sites. A kick is a random vector, so that slopes regressed on the kicks of all
    times up to their own are mean responses."""
    found = {}
    for kind, a, b in wanted:
        if kind == "C":
            left, right = fields[a].values, fields[b].values
            found[kind, a, b] = jnp.einsum("tic,sid->tcsd", left, right) / left.shape[1]
        else:
            found[kind, a, b] = _regressed(fields[a].slopes[..., 0], fields[b].kicks)
    return found


def _regressed(slopes: Array, kicks: Array) -> Array:
    """Responses from slopes, times x sites x labels, along kicks, sites x times x labels: those up to their own time
    where both have times, and zero after."""
    (times, sites, labels), (_, kicked_times, kicked_labels) = slopes.shape, kicks.shape
    flat = kicks.reshape(sites, -1)
    lower = jnp.linalg.cholesky(flat.T @ flat / sites)
    seen = jnp.einsum("tic,ik->tck", slopes, flat).reshape(times * labels, -1) / sites
    along = solve_triangular(lower, seen.T, lower=True).T
    if times > 1 and kicked_times > 1:
        when, then = jnp.repeat(jnp.arange(times), labels), jnp.repeat(jnp.arange(kicked_times), kicked_labels)
        along = along * (then[None, :] <= when[:, None])
    found = solve_triangular(lower.T, along.T, lower=False).T
    return found.reshape(times, labels, kicked_times, kicked_labels)
