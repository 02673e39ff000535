"""Linear algebra of the sampled forward pass: truncated Gram-Schmidt bases over sites, responses, tangents.

The values of a field at one time are an array of sites x labels; a field without labels has one column. A basis (span)
holds orthonormal directions over the sites. Coordinates of a field at one time are labels x directions, and those of
all times are stacked along the rows. The noise of a random matrix has one standard normal per site and direction. The
response of a field to it is the mean derivative with respect to these normals, from correlations (Stein's lemma) or
from pathwise tangents (sites x labels x slots, one slot per normal).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from .arrays import module_of
from .operators import BlockDiagonal, Operator, block

Array = Any


# -- directions


class Basis(NamedTuple):
    """Truncated Gram-Schmidt basis over the sites.

    Attributes:
        fields: sites x directions; each column adds one direction to those before it.
        factor: Cholesky factor L of the Gram matrix, fields = directions @ L^T; zero for unused directions.
        used: rank so far.
        lost: largest truncated fraction of the variance of a field.
        full: whether a direction found no space.
        slopes: tangents of the fields along every slot, if they are propagated.
    """

    fields: Array
    factor: Array
    used: Array
    lost: Array
    full: Array
    slopes: Array | None = None


class BasisReport(NamedTuple):
    """The largest truncated fraction of a variance, the largest rank, and whether some basis was full."""

    lost: Array
    directions: Array
    full: Array


def room(entries: int, rank: int | None) -> int:
    """Return the rank of a basis for this many directions."""
    return entries if rank is None else min(entries, rank)


def beyond(rank: int | None, entries: int, labels: int) -> int:
    """Return the number of normals for the truncated part of a field; zero at full rank."""
    return labels if room(entries, rank) < entries else 0


def empty_span(sites: int, size: int, slots: int | None = None) -> Basis:
    """Return a basis of rank zero with space for `size` directions."""
    slopes = None if slots is None else jnp.zeros((sites, size, slots))
    start = jnp.zeros((), int), jnp.zeros(()), jnp.zeros((), bool)
    return Basis(jnp.zeros((sites, size)), jnp.zeros((size, size)), *start, slopes)


def emptied(span: Basis) -> Basis:
    """Return a basis reset to rank zero."""
    slopes = None if span.slopes is None else jnp.zeros_like(span.slopes)
    kept = jnp.zeros_like(span.used), span.lost, span.full
    return Basis(jnp.zeros_like(span.fields), jnp.zeros_like(span.factor), *kept, slopes)


def pivoted(gram: Array, floor: Array) -> tuple[Array, Array, Array]:
    """Return the pivoted Cholesky factor of a Gram matrix down to the floor, the pivot order, and the pivots.

    Of pivots that are equal up to rounding, as those of equivalent labels are, the first is taken, so that no machine
    permutes the labels.
    """
    size = gram.shape[0]

    def one(k: Array, state: Any) -> Any:
        left, factor, chosen, remainders, free = state
        candidates = jnp.where(free, jnp.diagonal(left), -1.0)
        i = jnp.argmax(candidates >= (1 - EQUAL) * jnp.max(candidates))
        take = candidates[i] > floor
        column = jnp.where(take, left[:, i], 0.0) / jnp.sqrt(jnp.where(take, candidates[i], 1.0))
        left = left - column[:, None] * column[None, :]
        pivots = remainders.at[k].set(jnp.where(take, candidates[i], 0.0))
        return left, factor.at[:, k].set(column), chosen.at[k].set(i), pivots, free.at[i].set(False)

    start = gram, jnp.zeros_like(gram), jnp.zeros(size, int), jnp.zeros(size), jnp.ones(size, bool)
    _, factor, chosen, remainders, _ = jax.lax.fori_loop(0, size, one, start)
    return factor, chosen, remainders


ROUNDING = 1e-14
"""Relative variance below which a new direction is rounding error."""
EQUAL = 1e-10
"""Relative difference of pivots below which they are equal: far above rounding errors, which are about 1e-15."""
BY_SQUARES = 1e-2
"""Relative variance above which the Gram matrix of new directions is a difference of mean squares. Below it the field
is orthogonalised explicitly: nearly parallel fields would make the factor ill-conditioned."""


def met(values: Array, others: Array) -> Array:
    """Return the means over sites of products of values with others: labels x columns of the others."""
    # the compiler would fold the transposition into the product, which takes longer where labels are few
    turned = jax.lax.optimization_barrier(values.T)  # type: ignore[no-untyped-call]  # JAX gives it no types
    return turned @ others / values.shape[0]


def extend(
    span: Basis, values: Array, tolerance: Array = 0.0, slopes: Array | None = None
) -> tuple[Array, Array, Basis]:
    """Orthogonalise values against a basis and extend it.

    A direction below the relative variance cutoff `tolerance` is truncated, as is a direction for which there is no
    space. With two cutoffs, directions below the second are truncated, and places are reserved for those above the
    first. Passes with different second cutoffs thus share the normals of common directions.

    Returns:
        The coordinates of the values, a factor of the covariance of the truncated part (labels x labels), and the
        extended basis.
    """
    assert (span.slopes is None) == (slopes is None), "a span with slopes is joined by values with slopes"
    shares = jnp.broadcast_to(jnp.asarray(tolerance, float), (2,))
    rows, rest, joined = _extended(span, values, shares, slopes)
    return rows, rest, joined


@jax.jit  # traced once for all spans of one shape
def _extended(span: Basis, values: Array, tolerances: Array, slopes: Array | None) -> tuple[Array, Array, Basis]:
    """Orthogonalise and extend, with both cutoffs given."""
    most, labels = span.fields.shape[1], values.shape[1]
    squares = overlaps(values, values)
    variances = jnp.diagonal(squares)
    size = jnp.max(variances)
    placed, least = jnp.maximum(tolerances, ROUNDING)
    rows = seen_from(span, values)
    gram = squares - rows @ rows.T

    def projected() -> Any:
        """Return the orthogonal remainder of the values; the projection is repeated against rounding (twice is
        enough)."""
        left = values - expressed(span, rows)
        # twice is enough (Kahan): one projection leaves rounding errors along directions nearly parallel to the values
        again = seen_from(span, left)
        left, there = left - expressed(span, again), rows + again
        moved = None if slopes is None else slopes - expressed_slopes(span, there)
        return left, there, there, overlaps(left, left), moved

    def factored(again: Array, state: Any) -> Any:
        """Factor the Gram matrix of the remainder; if it is small, that of the explicitly orthogonalised remainder."""
        remainders = state[1][2]
        unsure = (remainders > 0.1 * placed * size) & (remainders < BY_SQUARES * size)
        joining = jax.lax.cond((again > 0) & jnp.any(unsure), projected, lambda: state[0])
        return joining, pivoted(joining[3], ROUNDING * size)

    # one loop over both variants, so that the factorisation is compiled once
    nothing = jnp.zeros_like(gram), jnp.zeros(labels, int), jnp.zeros(labels)
    start = (values, jnp.zeros_like(rows), rows, gram, slopes), nothing
    (joining, projections, rows, _, moved), (factor, chosen, remainders) = jax.lax.fori_loop(0, 2, factored, start)
    wanted = remainders > placed * size  # a leading segment, because pivots descend
    room = span.used + jnp.arange(labels)
    taken = (remainders > least * size) & (room < most)
    places = jnp.where(taken, room, most)
    rows = rows.at[:, places].add(factor, mode="drop")
    rest = jnp.where(taken, 0.0, factor)
    share = jnp.sum(rest**2) / jnp.maximum(jnp.sum(variances), 1e-300)
    return (
        rows,
        rest,
        Basis(
            span.fields.at[:, places].set(joining[:, chosen], mode="drop"),
            span.factor.at[places].set((rows - projections)[chosen], mode="drop"),
            span.used + jnp.sum(wanted & (room < most)),
            jnp.maximum(span.lost, share),
            span.full | jnp.any(wanted & (room >= most)),
            None if span.slopes is None else span.slopes.at[:, places].set(moved[:, chosen], mode="drop"),
        ),
    )


def expressed(span: Basis, rows: Array) -> Array:
    """Return the values with these coordinates: sites x labels."""
    return span.fields @ _weights(span, rows).T


def expressed_slopes(span: Basis, rows: Array) -> Array:
    """Return the tangents of the values with these coordinates."""
    return jnp.einsum("ck,mkn->mcn", _weights(span, rows), span.slopes)


def seen_from(span: Basis, values: Array) -> Array:
    """Return the projections of values on the directions of a basis: labels x directions."""
    return _coordinates(span, met(values, span.fields))


def between(left: Basis, right: Basis) -> Array:
    """Return the overlaps of the directions of two bases."""
    return _coordinates(left, _coordinates(right, met(left.fields, right.fields)).T).T


def _coordinates(span: Basis, products: Array) -> Array:
    """Return projections on orthonormal directions, from products with the fields of a basis."""
    return solve_triangular(_filled(span), products.T, lower=True).T


def _weights(span: Basis, rows: Array) -> Array:
    """Return coefficients of the fields of a basis, from coordinates in orthonormal directions."""
    return solve_triangular(_filled(span), rows.T, lower=True, trans=1).T


def _filled(span: Basis) -> Array:
    """Return the factor with ones on the diagonal for unused directions, which makes it invertible."""
    return span.factor + jnp.diag(jnp.diagonal(span.factor) == 0)


def scaled_rows(factor: Array, rows: Array) -> Array:
    """Return coordinates, or a covariance factor, times a number or times one number per label."""
    return jnp.reshape(jnp.asarray(factor), (-1, 1)) * rows


def repeated(rows: Array, times: int) -> Array:
    """Return constant coordinates, repeated at all times."""
    return jnp.tile(rows, (times, 1))


def stacked(*rows: Array) -> Array:
    """Return coordinates of several fields stacked along the rows."""
    if any(isinstance(one, Operator) for one in rows):
        return block([[one] for one in rows], [one.shape[0] for one in rows], [rows[0].shape[1]])
    return jnp.concatenate(rows)


def report_on(kept: tuple[Basis, ...], fresh: tuple[Basis, ...] = ()) -> BasisReport:
    """Return rank and truncation of the bases of a pass."""
    lost = jnp.stack([jnp.zeros(()), *(span.lost for span in (*kept, *fresh))])
    used = jnp.stack([jnp.zeros((), int), *(span.used for span in kept)])
    full = jnp.stack([jnp.zeros((), bool), *(span.full for span in kept)])
    return BasisReport(jnp.max(lost), jnp.max(used), jnp.any(full))


# -- values


def drawn(normals: Array) -> Array:
    """Return normals that are drawn once, as sites x labels."""
    return normals.reshape(normals.shape[0], -1)


def drawn_at(normals: Array, t: Array, lag: int = 0) -> Array:
    """Return normals that are drawn at every time, `lag` steps before t; zero before the start."""
    return jnp.where(t >= lag, drawn(normals[:, t - lag]), 0.0)


def ones(sites: int, t: Array = 0, lag: int = 0) -> Array:
    """Return the constant one, `lag` steps before t; zero before the start."""
    return jnp.where(t >= lag, jnp.ones((sites, 1)), 0.0)


def overlaps(left: Array, right: Array) -> Array:
    """Return the means over sites of products: labels of the first x labels of the second."""
    return met(left, right)


def total(values: Array) -> Array:
    """Return the sum over labels of values or of their tangents."""
    return jnp.sum(values, axis=1, keepdims=True)


def noise(normals: Array, rows: Array, beyond: Array | None = None, rest: Array | None = None) -> Array:
    """Return the Gaussian part of a random matrix times a field with these coordinates: sites x labels.

    rest: factor of the covariance of the truncated part of the field; beyond: normals for it.
    """
    values = normals @ rows.T
    return values if beyond is None or rest is None else values + beyond @ rest[:, : beyond.shape[1]].T


def store_rest(past: Array, rest: Array, t: Array) -> Array:
    """Return the covariance factors of truncated parts at all times, with that of time t inserted."""
    return past.at[t].set(rest[:, : past.shape[2]])


def with_rest(covariance: Array, left: Array, right: Array, count: int) -> Array:
    """Return a covariance over the first times plus that of the truncated parts at equal times.

    left, right: covariance factors of the truncated parts, times x labels x labels.
    """
    if left.shape[2] == 0:
        return covariance
    if isinstance(covariance, Operator):
        return covariance + BlockDiagonal(left[:count], right[:count])
    blocks = jnp.einsum("tck,tdk->tcd", left[:count], right[:count])
    shape = (count, blocks.shape[1], count, blocks.shape[2])
    when = jnp.arange(count)
    return covariance.reshape(shape).at[when, :, when, :].add(blocks).reshape(covariance.shape)


def answers(values: Array, normals: Array, span: Basis) -> Array:
    """Return the mean derivatives of values with respect to the normals of a random matrix, by Stein's lemma: labels x
    directions."""
    live = jnp.arange(normals.shape[1]) < span.used
    return met(values, normals) * live


def record(table: Array, value: Array, t: Array) -> Array:
    """Return a table over times with the row of time t inserted."""
    return table.at[t].set(jnp.reshape(value, table.shape[1:]))


# -- slopes


def law_and_slopes(
    law: Callable[..., Any], values: tuple[Array, ...], slopes: tuple[Array, ...]
) -> tuple[Array, Array]:
    """Return a law at the given values and its JVP along every slot."""
    value, push = jax.linearize(law, *values)
    return value, jax.vmap(push, in_axes=-1, out_axes=-1)(*slopes)


def no_slopes(values: Array, slots: int) -> Array:
    """Return zero tangents."""
    return jnp.zeros((*values.shape, slots))


def noise_slopes(rows: Array, start: int, slots: int, sites: int) -> Array:
    """Return the tangents of a noise with these coordinates, whose normals occupy the slots from `start` on."""
    labels, size = rows.shape
    inside = jnp.zeros((labels, slots)).at[:, start : start + size].set(rows)
    return jnp.broadcast_to(inside, (sites, labels, slots))


def mean_slopes(slopes: Array, start: int, size: int) -> Array:
    """Return the mean derivatives with respect to the normals of a random matrix: labels x directions."""
    return slopes[:, :, start : start + size].mean(axis=0)


def mixed_slopes(slopes: Array, table: Array) -> Array:
    """Return the tangents of values @ table."""
    return jnp.einsum("mbn,bc->mcn", slopes, table)


def forgotten(slopes: Array, start: int, size: int) -> Array:
    """Return tangents with those along the normals of a redrawn random matrix set to zero."""
    return slopes.at[:, :, start : start + size].set(0.0)


def forgetting(span: Basis, start: int, size: int) -> Basis:
    """Return a basis without tangents along the normals of a redrawn random matrix."""
    return span._replace(slopes=forgotten(span.slopes, start, size))


# -- time


class Carried:
    """Arrays by name, as a pytree: `state.span_W`."""

    def __init__(self, /, **values: Any) -> None:
        self.__dict__.update(values)


def _flatten(state: Carried) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    return tuple(vars(state).values()), tuple(vars(state))


def _unflatten(names: tuple[str, ...], values: Iterable[Any]) -> Carried:
    return Carried(**dict(zip(names, values, strict=True)))


jax.tree_util.register_pytree_node(Carried, _flatten, _unflatten)

STAGED, SHARES = 96, (0.25, 0.5, 0.75)
"""Rank (in directions) from which a basis grows in stages, and the fractions of the rank in the first stages. Trades
compile time for time per step."""


def narrowed(
    normals: Mapping[str, Array], shapes: Mapping[str, tuple[int, ...]], names: tuple[str, ...]
) -> dict[str, Array]:
    """Return the normals of random matrices for the leading directions."""
    return {name: normals[name][:, *(slice(size) for size in shapes[name])] for name in names}


# -- responses


class Entries(NamedTuple):
    """Index set of a field, or of a noise, in a matrix over times.

    Attributes:
        times: number of times; None for a vector without time.
        labels: number of labels.
        lag: smallest delay after which the field responds to the noise; None if it never does.
    """

    times: int | None
    labels: int
    lag: int | None = 0

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.labels if self.times is None else self.times * self.labels

    def when(self, otherwise: int) -> np.ndarray:
        """Return the time of each entry."""
        return np.full(self.labels, otherwise) if self.times is None else np.repeat(np.arange(self.times), self.labels)


class Factored(NamedTuple):
    """Noises in causal order, with a triangular factor of their covariance.

    Attributes:
        which: positions of the noises; positions beyond the last are padding.
        entries: their times.
        reach: smallest delay of a response to each.
        lower: the factor.
        taken: whether each noise carries responses.
    """

    which: Array
    entries: Array
    reach: Array
    lower: Array
    taken: Array


class Resolved:
    """A selection of noises that carry responses, in place of a tolerance. A pytree.

    Perturbed order parameters use the selection of those around which they are expanded.

    Attributes:
        chosen: for each factor the positions of the noises, padded with positions beyond the last, and lower bounds of
            their conditional variances. The tolerance decides where a bound is NaN, and on further factors.
        columns: if given, correlations with noises, covariances and responses have only these columns, and positions
            refer to them; there must be one response matrix per factor.
        tolerance: as for `response_matrix`.
        noted: for each factor the positions of the noises, whether they are kept, and their conditional variances.
    """

    def __init__(
        self, chosen: Iterable[tuple[Array, Array]] = (), columns: Array | None = None, tolerance: Array = 0.0
    ) -> None:
        self.chosen, self.columns, self.tolerance = tuple(chosen), columns, tolerance
        self.made: dict[Any, Factored] = {}
        self.noted: list[tuple[Array, Array, Array]] = []

    def factored(self, noise: Array, entries: Array, reach: Array) -> Factored:
        """Factor the covariance of the selected noises, and record the selection in `noted`."""
        # by first response time, so that the noises that may act at any time form a leading block
        first, count = entries + reach, noise.shape[0]
        sequence = module_of(first).argsort(first, stable=True)
        free = sequence, jnp.full(count, jnp.nan)
        which, least = free if len(self.made) >= len(self.chosen) else self.chosen[len(self.made)]
        if len(which) == count:
            which = jnp.where(jnp.isnan(least), sequence, which)
        there = which < count
        places = jnp.where(there, which, 0)
        covariance = jnp.where(there[:, None] & there, noise[places][:, places], 0.0)
        factor, taken = _factor_in_sequence(covariance, self.tolerance, jnp.where(there, least, 0.0))
        lower = _filled_up(factor, taken)
        self.noted.append((which, taken, jnp.diagonal(lower) ** 2))
        return Factored(which, jnp.asarray(entries)[places], jnp.asarray(reach)[places], lower, taken)


jax.tree_util.register_pytree_node(
    Resolved,
    lambda resolved: ((resolved.chosen, resolved.columns, resolved.tolerance), None),
    lambda _, children: Resolved(*children),
)


def responses(
    seen: Array, noise: Array, field: Entries, noises: tuple[Entries, ...], last: int, tolerance: Any
) -> tuple[Array, ...]:
    """Return the responses of a field to the noises of one random matrix, one matrix per noise.

    Args:
        seen: correlations with the noises.
        noise: covariance of the noises.
        field: entries of the field.
        noises: entries of each noise.
        last: a time after all others.
        tolerance: as for `response_matrix`, or a `Resolved`.
    """
    entries: Array = np.concatenate([one.when(-1) for one in noises])
    reach: Array = np.concatenate([np.full(one.size, last + 1 if one.lag is None else one.lag) for one in noises])
    name = id(noise), noises
    differentiable = seen, noise
    implicitly = isinstance(tolerance, Resolved)
    resolved = tolerance if implicitly else Resolved(tolerance=tolerance)
    if implicitly:
        seen, noise = jax.lax.stop_gradient(differentiable)
    columns = resolved.columns
    if columns is not None:
        if len(noises) > 1:
            raise ValueError("a selection of columns requires the noises of a single field")
        noise, entries, reach = noise[columns], jnp.asarray(entries)[columns], jnp.asarray(reach)[columns]
        differentiable = differentiable[0], differentiable[1][columns]
    if name not in resolved.made:  # fields that respond to the same noises share a factor
        resolved.made[name] = resolved.factored(noise, entries, reach)
    factored = resolved.made[name]
    whole = _responses(seen, field.when(last), factored)
    if implicitly:
        whole = _with_derivatives(whole, *differentiable, field.when(last), factored)
    if columns is not None:
        return (whole,)
    parts, start = [], 0
    for one in noises:
        parts.append(whole[:, start : start + one.size])
        start += one.size
    return tuple(parts)


def _with_derivatives(response: Array, seen: Array, noise: Array, rows: Array, factored: Factored) -> Array:
    """Return responses with their derivatives with respect to correlations and covariance (implicit differentiation).

    From R noise = seen follows (dR) noise = d seen - R (d noise), with the same selection of noises and the same causal
    structure.
    """
    places = _inside(factored, noise)
    columns, corner = seen[:, places], noise[places][:, places]
    fixed = jax.lax.stop_gradient((columns, corner))
    answering = response[:, places] * factored.taken  # responses to other noises are zero
    moved = (columns - fixed[0]) - answering @ (corner - fixed[1])  # zero; only its derivative matters
    return response + _answers(moved, jnp.zeros_like(seen), rows, factored)


def _inside(factored: Factored, noise: Array) -> Array:
    """Return the positions of noises, with padding replaced by zero."""
    return jnp.where(factored.which < noise.shape[0], factored.which, 0)


def response_matrix(seen: Array, noise: Array, rows: Array, entries: Array, reach: Array, tolerance: Array) -> Array:
    """Return the causal responses R that solve seen = R noise.

    Args:
        seen: correlations of fields with noises.
        noise: covariance of the noises.
        rows: times of the fields.
        entries: times of the noises.
        reach: smallest delay of a response.
        tolerance: noises whose conditional variance, given earlier ones, is below this fraction of their variance carry
            no response.
    """
    return _responses(seen, rows, Resolved(tolerance=tolerance).factored(noise, entries, reach))


def _filled_up(factor: Array, taken: Array) -> Array:
    """Return the factor with the identity for noises that carry no response."""
    return jnp.where(taken[:, None] & taken[None, :], factor, jnp.eye(len(factor)))


def _responses(seen: Array, rows: Array, factored: Factored) -> Array:
    """Return the causal responses from correlations and a factored covariance."""
    return _answers(seen[:, _inside(factored, seen.T)], jnp.zeros_like(seen), rows, factored)


def _answers(columns: Array, empty: Array, rows: Array, factored: Factored) -> Array:
    """Return causal responses by two triangular solves, inserted into a matrix of zeros."""
    which, entries, reach, lower, taken = factored
    solved = solve_triangular(lower, (columns * taken).T, lower=True).T
    causal = entries[None, :] + reach[None, :] <= rows[:, None]
    solved = solve_triangular(lower.T, (solved * causal * taken).T, lower=False).T
    return empty.at[:, which].set(solved * taken, mode="drop")


BLOCK = 32
"""Columns of a covariance that are factored together (blocked Cholesky). Trades loop overhead for wasted work in the
last block."""


def _factor_in_sequence(covariance: Array, tolerance: Array, least: Array) -> tuple[Array, Array]:
    """Return a Cholesky factor in the given order, and which columns it keeps.

    Columns whose pivot is below the fraction `tolerance` of their variance are skipped. Where `least` is a number, it
    decides instead: columns with a positive entry are kept, and the entry is a lower bound of the pivot.
    """
    count = covariance.shape[0]
    width = min(BLOCK, count)
    blocks = -(-count // width)
    padding = blocks * width - count
    whole = jnp.pad(covariance, ((0, padding), (0, padding)))  # padded columns have zero variance and are skipped
    floor = jnp.pad(least, (0, padding))

    def block(k: Array, state: Any) -> Any:
        factor, taken = state
        start = k * width
        before = jax.lax.dynamic_slice_in_dim(factor, start, width)
        left = jax.lax.dynamic_slice_in_dim(whole, start, width, axis=1) - factor @ before.T
        variances = jax.lax.dynamic_slice_in_dim(jnp.diagonal(whole), start, width)
        floors = jax.lax.dynamic_slice_in_dim(floor, start, width)

        def column(j: Array, state: Any) -> Any:
            rest, corner, here = state
            free = jnp.isnan(floors[j])
            take = jnp.where(free, rest[j, j] > tolerance * variances[j], floors[j] > 0)
            pivot = jnp.where(free, rest[j, j], jnp.maximum(rest[j, j], floors[j]))
            below = rest[:, j].at[j].set(pivot)
            factor_column = jnp.where(take, below / jnp.sqrt(jnp.where(take, pivot, 1.0)), 0.0)
            return (
                rest - factor_column[:, None] * factor_column[None, :],
                corner.at[:, j].set(factor_column),
                here.at[j].set(take),
            )

        rest = jax.lax.dynamic_slice_in_dim(left, start, width)
        empty = jnp.zeros_like(rest), jnp.zeros(width, bool)
        _, corner, here = jax.lax.fori_loop(0, width, column, (rest, *empty))
        inverse = solve_triangular(jnp.where(here[:, None] & here, corner, jnp.eye(width)), jnp.eye(width), lower=True)
        panel = jax.lax.dynamic_update_slice_in_dim((left * here) @ inverse.T * here, corner, start, axis=0)
        factor = jax.lax.dynamic_update_slice_in_dim(factor, panel, start, axis=1)
        return factor, jax.lax.dynamic_update_slice_in_dim(taken, here, start, axis=0)

    start = jnp.zeros_like(whole), jnp.zeros(blocks * width, bool)
    factor, taken = jax.lax.fori_loop(0, blocks, block, start)
    return factor[:count, :count], taken[:count]
