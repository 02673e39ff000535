"""The exact closure: a vector is a set of rows of coefficients over the Gaussian variables of a site.

If laws are linear, a field at one time is a row of coefficients over the noises of random matrices and drawn variables,
one row per label. The rows of a field at all times, stacked in order of time, are its past. Noises of one random matrix
have their own covariance; drawn variables are independent with variance one.

Sites with equal traits form a group. All groups have the same variables and separate rows, which are concatenated; a
mean over sites is the weighted mean over groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .closure import Closure
from .exact import (
    Axes as Extents,
    NoiseBlock,
    Site,
    covariance_before,
    dual,
    grow,
    kick,
    law_of_groups,
    part,
    part_before,
    part_by_group,
    products,
    products_by_group,
    put,
    shape_of,
    site,
    stages,
    store,
    stored,
    total,
    unit,
    units,
    weighted,
)
from .keys import OrderKey
from .labels import ComponentTable, OrderByComponents, components_at
from .pasts import PastPiece, TriangularPast
from .point import Point
from .program import Recorded, Training, Vector, Wanted, size_of, sizes_of
from .two_time import GaussianRows as Followed, kicked, two_time

Array = Any
NODES = 128
"""Default number of nodes."""


class Rows:
    """A vector over the sites of one sector.

    Products with the past of a field are deferred until the rows are needed, so that products with the same past can be
    merged. name, lag: the field and its delay; None if it is not a field.
    """

    __array_ufunc__ = None  # NumPy's numbers leave products to this class

    def __init__(
        self,
        closure: ExactClosure,
        dense: Array | None,
        kernels: Mapping[str, Array] | None = None,
        name: str | None = None,
        lag: int = 0,
    ):
        self.closure, self.dense, self.kernels = closure, dense, dict(kernels or {})
        self.name, self.lag = name, lag

    @property
    def rows(self) -> Array:
        """The rows themselves, one per label."""
        for name, kernel in self.kernels.items():
            product = self.closure.read(name, self.closure.past(name).combine(kernel))
            self.dense = self.closure.added(self.dense, product)
        self.kernels = {}
        return self.dense

    def __add__(self, other: Any) -> Rows:
        if _is_zero(other):
            return self
        kernels = dict(self.kernels)
        for name, kernel in other.kernels.items():
            kernels[name] = self.closure.added(kernels.get(name), kernel)
        return Rows(self.closure, self.closure.added(self.dense, other.dense), kernels)

    __radd__ = __add__

    def __neg__(self) -> Rows:
        return self.scaled(-1.0)

    def __mul__(self, other: Any) -> Any:
        return Quadratic(((None, self, other),)) if isinstance(other, Rows) else self.scaled(other)

    __rmul__ = __mul__

    def scaled(self, factor: Any) -> Rows:
        """Return the vector times a number, which may depend on labels or groups of sites."""
        if not isinstance(factor, (int, float)):
            factor = self.closure.of_one_label(jnp.asarray(factor))
            if factor.ndim == 2 and factor.shape[1] != 1 and self.kernels:  # differs from group to group
                return Rows(self.closure, factor * self.rows)
        dense = None if self.dense is None else factor * self.dense
        return Rows(self.closure, dense, {name: factor * kernel for name, kernel in self.kernels.items()})


class Quadratic:
    """A sum of products of two vectors with coefficients, to be averaged."""

    __array_ufunc__ = None

    def __init__(self, terms: tuple[tuple[Any, Rows, Rows], ...]):
        self.terms = terms

    def __add__(self, other: Any) -> Quadratic:
        return self if _is_zero(other) else Quadratic((*self.terms, *other.terms))

    __radd__ = __add__

    def __neg__(self) -> Quadratic:
        return self * -1.0

    def __mul__(self, factor: Any) -> Quadratic:
        return Quadratic(tuple((factor if c is None else factor * c, a, b) for c, a, b in self.terms))

    __rmul__ = __mul__


def channel_of_laws(sector: str) -> str:
    """The name of the covariance of nonlinear laws among those of random matrices, whose names contain no spaces."""
    return f"laws of {sector}"


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


class ExactClosure(Closure):
    """The closure at one point, with space for a number of times.

    wanted: requested two-time functions; fields to which they respond have impulses in their equations.
    nodes: number of nodes of a density.

    If it continues the closure of an earlier stage, first is its first time, and frozen contains the pasts of the
    preceding times.
    """

    def __init__(self, training: Training, p: Point, times: int, wanted: Wanted = (), nodes: int = 1):
        super().__init__(training, p, times)
        self.wanted, self.nodes = wanted, nodes
        self.alike = components_at(training, p)
        if self.alike is not None:
            components = self.alike.components
            self.labels = {vector.name: components if vector.axes else 1 for vector in training.vectors}
        self.asked = {name for _, a, b in wanted for name in (a, b)}
        self.sites: dict[str, Site] = {}
        self.blocks: dict[str, NoiseBlock] = {}
        self.channels: dict[str, tuple[str, int]] = {}
        """Of each random matrix the sector of its products, and its place among those of that sector."""
        for sector in dict.fromkeys(vector.sector for vector in training.vectors):
            self._lay_out(sector)
        self.first = 0
        self.frozen: dict[str, tuple[PastPiece, ...]] = {}
        self.begin(0, {})

    # -- the variables of a site

    def _lay_out(self, sector: str) -> None:
        mine = [vector for vector in self.training.vectors if vector.sector == sector]
        channels: dict[str, list[str]] = {}
        for vector in mine:
            if vector.role == "product":
                channels.setdefault(self.products[vector.name].matrix, []).append(vector.name)
            elif vector.role == "law":
                channels.setdefault(channel_of_laws(sector), []).append(vector.name)
        drawn = [vector.name for vector in mine if vector.role in ("normal", "constant")]
        silent = [vector.name for vector in mine if vector.role == "field"] if self.wanted else []

        def extent(name: str) -> tuple[int, int]:
            return (self.times if self.vectors[name].timed else 1), self.labels[name]

        kicks = tuple((kicked(self.wanted, name, extent(name)[0]), extent(name)[1]) for name in silent)
        laws = tuple(trait.law(self.p, self.nodes) for trait in self.training.traits if trait.sector == sector)
        groups = (tuple(map(extent, names)) for names in channels.values())
        made = self.sites[sector] = site(*groups, drawn=tuple(map(extent, drawn)), kicks=kicks, traits=laws)
        names = [*(name for group in channels.values() for name in group), *drawn, *silent]
        self.blocks.update(zip(names, made, strict=True))
        self.channels.update({matrix: (sector, number) for number, matrix in enumerate(channels)})

    def site_of(self, name: str) -> Site:
        return self.sites[self.vectors[name].sector]

    def covariances_of(self, sector: str) -> tuple[Array, ...]:
        return tuple(self.state[f"covariance {m}"] for m, (home, _) in self.channels.items() if home == sector)

    def carried(self) -> dict[str, Extents]:
        """The axes of the loop state, each as the lengths of its parts."""
        found: dict[str, Extents] = {}
        for vector in self.training.vectors:
            if vector.role not in ("field", "product"):
                continue
            name, row = vector.name, self.site_of(vector.name).parts
            if self._is_kept(vector):
                found[f"past {name}"] = ((self._lines_of(name) - self._first(name) * self.labels[name],), row)
            for k in range(1, vector.lags + 1):
                found[f"late {name} {k}"] = ((self.labels[name],), row)
            for other in self._deferred(vector):
                found[f"kernel {name} {other}"] = ((self.labels[name],), (self._lines_of(other),))
        for a, b in self.training.overlaps:
            found[f"overlaps {a} {b}"] = ((self.labels[a],), (self._lines_of(b),))
        for matrix, (sector, number) in self.channels.items():
            extent = self.sites[sector].extent(number)
            found[f"covariance {matrix}"] = (extent, extent)
        for one in (*self.training.observables, *self.training.means):
            found[f"series {one.key}"] = ((self.times if one.timed else 1,), (size_of(self.p, one.axes),))
        return {**found, **{f"kept {key}": ((self.times,),) for key in self.training.kept}, "finite": ()}

    def _lines_of(self, name: str) -> int:
        """Return the number of rows in the past of a vector."""
        return self.labels[name] * (self.times if self.vectors[name].timed else 1)

    def _is_kept(self, vector: Vector) -> bool:
        return vector.past or not vector.timed or vector.name in self.asked

    def _deferred(self, vector: Vector) -> tuple[str, ...]:
        """The fields whose products with kernels are deferred to the next time, where other kernels may join them."""
        if vector.role != "product" or vector.lags != 1 or self._is_kept(vector):
            return ()
        return tuple(dict.fromkeys(memory.on for memory in self.products[vector.name].memories if not memory.fresh))

    # -- stages

    def follow(self, before: ExactClosure, state: Mapping[str, Array]) -> dict[str, Array]:
        """Take over the loop state of another closure; its pasts are frozen if all sites are equivalent."""
        extents, found = before.carried(), dict(state)
        self.first = before.times
        for vector in self.training.vectors:
            key, place = f"past {vector.name}", before.sites[vector.sector]
            if key in found and vector.timed and place.weights is None:
                if before.times:
                    self.frozen[vector.name] = (*before.frozen.get(vector.name, ()), PastPiece(found[key], place.parts))
                extents[key], found[key] = ((0,), place.parts), found[key][:0]
        return {name: grow(found[name], extents[name], axes) for name, axes in self.carried().items()}

    def _first(self, name: str) -> int:
        """Return the first stored time of the past of a field."""
        return self.first if name in self.frozen else 0

    # -- time

    def begin(self, t: Array, state: Mapping[str, Array]) -> None:
        """Load the loop state at a time."""
        self.t, self.state = t, dict(state)
        self.now: dict[str, Rows] = {}
        self.late: dict[str, Array] = {}
        """What the next time needs of this one, by its name in the state."""
        self.duals: dict[tuple[str, int], tuple[int, Array]] = {}
        self.overlaps: dict[tuple[str, int, str, bool], Array] = {}
        self.reads: dict[str, list[Array]] = {}
        self.known: dict[str, int] = dict.fromkeys(self.sites, 0)
        """How many noises of a sector have their covariances of the current time."""
        self.known_after: dict[str, int] = {}
        """The same, with the last noise that the rows of a field hold."""
        self.watched: list[Array] = []
        """Numbers that results depend on."""

    def end(self) -> dict[str, Array]:
        """Return the loop state."""
        finite = self.state["finite"]
        self.state["finite"] = jnp.where((finite == self.t) & jnp.isfinite(self._defect()), self.t + 1.0, finite)
        for a, b in self.training.overlaps:
            self.late[f"overlaps {a} {b}"] = self.with_past(self._value(a), b)
        self.state.update(self.late)
        return self.state

    # -- vectors

    def past(self, name: str) -> TriangularPast:
        """Return the rows of a field at all known times; for drawn vectors at all times."""
        drawn = self.vectors[name].role in ("normal", "constant")
        rows = self._scaled(name, units(self.blocks[name])) if drawn else self.state[f"past {name}"]
        return TriangularPast((*self.frozen.get(name, ()), PastPiece(rows, self.site_of(name).parts)))

    def read(self, name: str, found: Array) -> Array:
        """Force results that depend on a past before the past is changed in place."""
        if name not in self.now:
            self.reads.setdefault(name, []).append(found)
        return found

    def drawn(self, name: str, lag: int = 0) -> Rows:
        """Return a drawn vector, with a delay."""
        when = self.t - lag if self.vectors[name].timed else 0
        return Rows(self, self._scaled(name, unit(self.blocks[name], when)), name=name, lag=lag)

    def _scaled(self, name: str, rows: Array) -> Array:
        """Return the rows of a drawn vector times its standard deviation."""
        scale = self.vectors[name].scale
        return rows if scale is None else scale(self.p) * rows

    def earlier(self, name: str, lag: int) -> Rows:
        """Return a field with a delay; zero before the start."""
        kernels = {other: self.state[f"kernel {name} {other}"] for other in self._deferred(self.vectors[name])}
        return Rows(self, self.state[f"late {name} {lag}"], kernels, name, lag)

    def value(self, name: str) -> Rows:
        """Return a field without time."""
        return Rows(self, self.past(name).whole(), name=name)

    def trait(self, name: str) -> Array:
        """Return the values of a trait along a row."""
        sector = next(trait.sector for trait in self.training.traits if trait.name == name)
        return self.sites[sector].along(self._place(sector, name))

    def _place(self, sector: str, name: str) -> int:
        return [trait.name for trait in self.training.traits if trait.sector == sector].index(name)

    def starting(self, first: tuple[Any, ...], later: Any) -> Rows:
        """Return one of the starting values at the first times, the later value at all others."""
        values: list[Array] = [0.0 if _is_zero(one) else one.rows for one in (later, *first)]
        most = max((len(rows) for rows in values if jnp.ndim(rows)), default=1)
        found, *early = (self.spread(rows, most) for rows in values)
        for k, one in enumerate(early):
            found = jnp.where(jnp.equal(self.t, k), one, found)
        return Rows(self, found)

    def put(self, name: str, value: Any) -> Rows:
        """Set the value of a field at the current time."""
        vector, labels, place = self.vectors[name], self.labels[name], self.site_of(name)
        if vector.role == "product" and not self._is_kept(vector):  # kernels wait for those that join them
            found = Rows(self, value.dense, value.kernels, name)
            self._pass_on(vector, found)
        else:
            rows = self.spread(0.0 if _is_zero(value) else value.rows, labels)
            rows = jnp.broadcast_to(rows, (labels, place.size))
            if vector.role == "field" and self.wanted:
                rows = rows + kick(self.blocks[name], self.t if vector.timed else 0)
            self._pass_on(vector, Rows(self, rows))  # not as they stand in the past, which would be copied for that
            found = Rows(self, self._store(vector, rows) if self._is_kept(vector) else rows, name=name)
        self.now[name] = found
        self.known_after[name] = self.known[vector.sector] + (vector.role == "product")  # its own noise follows
        for numbers in (found.dense, *found.kernels.values()):
            self._watch(name, numbers)
        if vector.role == "product":
            self._put_covariances(name)
        return found

    def _pass_on(self, vector: Vector, found: Rows) -> None:
        """Pass single values to the times that need them."""
        if not vector.lags:
            return
        name = vector.name
        deferred = self._deferred(vector)
        self.late |= {f"kernel {name} {other}": found.kernels[other] for other in deferred}
        self.late[f"late {name} 1"] = found.dense if deferred else found.rows
        for k in range(2, vector.lags + 1):
            self.late[f"late {name} {k}"] = self.state[f"late {name} {k - 1}"]

    def _watch(self, name: str, numbers: Array) -> None:
        """Check that the entries of a vector are finite, unless no result depends on it."""
        if not self.vectors[name].idle or name in self.asked:
            self.watched.append(numbers)

    def _defect(self) -> Array:
        """Return zero, or not a number if an entry of the vectors of this time is not finite.

        Vectors of one shape are summed first, because each sum over entries is compiled separately.
        """
        shapes = dict.fromkeys(x.shape for x in self.watched)
        return sum(jnp.sum(sum(0.0 * x for x in self.watched if x.shape == shape)) for shape in shapes)

    def _store(self, vector: Vector, rows: Array) -> Array:
        key = f"past {vector.name}"
        if not vector.timed:
            self.state[key] = rows
            return rows
        read = [x for x in self.reads.pop(vector.name, []) if x.size]
        place = self.t - self._first(vector.name)
        when = place + (sum(x[0, 0] for x in read) < -jnp.inf) if read else place
        self.state[key] = store(self.state[key], rows, when)
        return stored(self.state[key], self.labels[vector.name], place)

    def total(self, value: Any) -> Any:
        """Return the sum over labels of a vector or of numbers."""
        if self.alike is not None and isinstance(value, Rows):
            return Rows(self, self.alike.total(value.rows))
        return Rows(self, total(value.rows)) if isinstance(value, Rows) else total(value)

    def mixed(self, table: Array, value: Any, transposed: int) -> Any:
        """Return a table times the labels of a vector, or of numbers."""
        acting = table.T if transposed else table
        return Rows(self, acting @ value.rows) if isinstance(value, Rows) else acting @ value

    def met(self, right: Rows, left: Rows, value: Rows) -> Rows:
        """Return C[right, left] at one time, times a vector over the labels of the left."""
        return Rows(self, (self.dual(right, left) @ left.rows.T) @ value.rows)

    def past_sum(self, name: str, reach: int, weight: Any, left: str = "", right: Rows | None = None) -> Rows:
        """Return the sum over times s < t + reach of weight(s) * C[right, left](s) * the field at s; C is omitted
        without a pair."""
        labels, when, last = self.labels[name], jnp.arange(self.times), self.t + reach - 1
        values = weight(jnp.minimum(when, last)) if callable(weight) else weight
        weights = jnp.where(when <= last, values, 0.0)
        if right is not None:
            return Rows(self, None, {name: weighted(self.with_past(right, left), weights, labels)})
        if labels == 1:
            return Rows(self, None, {name: weights[None, :]})
        return Rows(self, self.read(name, self.past(name).weigh(weights, labels)))

    def product(self, name: str, memories: tuple[Array, ...], covariances: tuple[Array, ...]) -> Rows:
        """Return a random matrix times a field: its noise, and its memory of other fields."""
        vector, made = self.vectors[name], self.products[name]
        self.pending = name, covariances
        found = Rows(self, unit(self.blocks[name], self.t if vector.timed else 0))
        for factor, memory in zip(memories, made.memories, strict=True):
            kernel = part(self._value(memory.a).rows, self.blocks[memory.noise])
            if memory.fresh:
                labels = self.labels[memory.noise]
                here = jax.lax.dynamic_slice_in_dim(kernel, self.t * labels, labels, axis=1)
                found = found + Rows(self, here @ self._value(memory.on).rows) * factor
            else:
                found = found + Rows(self, None, {memory.on: kernel}) * factor
        return found

    def _value(self, name: str) -> Rows:
        """Return a vector at the current time, or one without time."""
        if name in self.now:
            return self.now[name]
        return self.drawn(name) if self.vectors[name].role in ("normal", "constant") else self.value(name)

    def _put_covariances(self, name: str) -> None:
        """Insert the covariance of a new noise with all known noises, in both orders."""
        vector, made, (named, numbers) = self.vectors[name], self.products[name], self.pending
        assert named == name
        key = f"covariance {made.matrix}"
        for number, one in zip(numbers, made.covariances, strict=True):
            other = self.vectors[one.right]
            if (other.timed and not vector.timed) or (one.fresh and one.right not in self.now):
                continue
            a, column = self._value(one.a), None
            if one.fresh:
                b = self._value(one.b)
                values, column = self.dual(a, b) @ b.rows.T, self.t
            else:
                values = self.with_past(a, one.b)
            places = self.blocks[name], self.t if vector.timed else 0, self.blocks[one.right], column
            values = self.of_one_label(number) * values
            self.state[key] = put(self.state[key], *places, values)
            if one.right == name:  # a variance may overflow where rows do not
                self._watch(name, values)
        self.known[vector.sector] += 1

    # -- averages

    def dual(self, value: Rows, other: Rows | str) -> Array:
        """Return rows times the covariance of the variables of a site: their scalar product with other rows is a mean.

        It is recomputed only if the other vector contains noises whose covariances were unknown before.
        """
        key = (value.name or "", value.lag)
        needed = self.known_after.get(other if isinstance(other, str) else other.name or "", 0)
        sector = self.vectors[key[0]].sector
        if key not in self.duals or self.duals[key][0] < needed:
            self.duals[key] = (self.known[sector], self._dual(value.rows, sector))
        return self.duals[key][1]

    def _dual(self, rows: Array, sector: str) -> Array:
        return dual(rows, self.sites[sector], *self.covariances_of(sector))

    def with_past(self, value: Rows, name: str) -> Array:
        """Return means of products of a value with a vector at all known times."""
        key = (value.name or "", value.lag, name, name in self.now)
        if key[1:] == (1, name, False) and (key[0], name) in self.training.overlaps:
            return self.state[f"overlaps {key[0]} {name}"]
        if key not in self.overlaps:
            self.overlaps[key] = self.read(name, self.past(name).overlap(self.dual(value, name)))
        return self.overlaps[key]

    def mean(self, value: Any, labelled: int) -> Array:
        """Return the mean over sites, as a column over labels or as a number."""
        found: Array = jnp.zeros((1, 1))
        for factor, a, b in value.terms:
            seen = self.dual(a, b)
            inside = factor is not None and jnp.ndim(factor) == 2 and factor.shape[1] != 1  # of traits
            column = products(self.of_one_label(factor) * seen if inside else seen, b.rows)
            if self.alike is not None:
                column = self.alike.mean(column, *(self._has_labels(x.name or "") for x in (a, b)))
            found = found + (column if inside or factor is None else factor * column)
        return found if labelled else found.reshape(())

    def moment(self, sector: str, function: Callable[..., Array], *names: str) -> Array:
        """Return the mean over sites of a function of traits."""
        place = self.sites[sector]
        return jnp.sum(place.weights * function(*(place.traits[self._place(sector, name)] for name in names)))

    # -- labels that are alike: vectors have components, numbers keep all labels

    def _has_labels(self, name: str) -> bool:
        return bool(self.vectors[name].axes)

    def of_one_label(self, factor: Array) -> Array:
        """For equivalent labels, return the factor that multiplies the components of a vector: that of any label."""
        if self.alike is None or jnp.ndim(factor) != 2 or factor.shape[0] != self.alike.labels:
            return factor
        return factor[:1]

    def spread(self, rows: Array, lines: int) -> Array:
        """Return rows, or kernels, of a vector without labels as components; others are unchanged."""
        if self.alike is None or not jnp.ndim(rows) or len(rows) == lines:
            return rows
        return self.alike.spread(rows)

    def added(self, one: Array | None, other: Array | None) -> Array | None:
        """Return the sum of rows or kernels, one of which may have no labels; None counts as zero."""
        if one is None or other is None:
            return other if one is None else one
        lines = max(len(one), len(other))
        return self.spread(one, lines) + self.spread(other, lines)

    def by_label(self, table: Array, a: str, b: str) -> Array | ComponentTable:
        """Return a table of two vectors, which is by components if labels are equivalent, as one by labels."""
        return table if self.alike is None else ComponentTable(table, self.alike, *map(self._has_labels, (a, b)))

    # -- numbers with labels, as columns

    def oriented(self, numbers: Array) -> Array:
        return numbers.reshape(-1, 1)

    def record(self, key: str, value: Array) -> None:
        table = self.state[f"series {key}"]
        row = jnp.broadcast_to(jnp.asarray(value, float).reshape(1, -1), (1, table.shape[1]))
        self.state[f"series {key}"] = store(table, row, self.t if self.recorded[key].timed else 0)

    # -- order parameters

    def _before(self, name: str, time: Array | None = None) -> Array:
        """Return the rows of a field at the times of order parameters, or at one time."""
        past, labels = self.past(name).whole(), self.labels[name]
        if not self.vectors[name].timed:
            return past
        if time is not None:
            return stored(past, labels, time)
        return past[: self.training.before(self.p) * labels]

    def _count(self, name: str) -> int:
        return self.labels[name] * (self.training.before(self.p) if self.vectors[name].timed else 1)

    def correlation(self, a: str, b: str, time: Array | None = None) -> Array | ComponentTable:
        """Return C[a, b]; with a time, one column of it."""
        return self.by_label(self._dual(self._before(a), self.vectors[a].sector) @ self._before(b, time).T, a, b)

    def response(self, a: str, noise: str, time: Array | None = None) -> Array | ComponentTable:
        """Return R[a, noise]; with a time, one row of it."""
        found = part_before(self._before(a, time), self.blocks[noise], self._count(noise))
        return self.by_label(found, a, noise)

    def covariance(self, name: str) -> Array | ComponentTable:
        """Return the covariance of a noise."""
        matrix = self.products[name].matrix
        found = covariance_before(self.state[f"covariance {matrix}"], self.blocks[name], self._count(name))
        return self.by_label(found, name, name)

    def series(self, key: str) -> Array:
        """Return a recorded number at all times."""
        return self.state[f"series {key}"]

    def series_before(self, key: str) -> Array:
        """Return a recorded number at the times of order parameters."""
        return self.series(key)[: self.training.before(self.p)]

    def law_of_sites(self, sector: str, *entries: Array) -> Array:
        """Return the diagonal entries of each group of sites, with the weights of the groups."""
        return law_of_groups(self.sites[sector], *entries)

    def by_value(self, sector: str, _: str, left: str, kind: str, right: str) -> Array:
        """Return means of products, or responses, in each group of sites."""
        rows = self._before(left)
        if kind == "C":
            found = products_by_group(self._dual(rows, sector), self._before(right), self.sites[sector])
        else:
            found = part_by_group(rows, self.blocks[right], self._count(right))
        if self.alike is None:
            return found
        return jax.vmap(lambda table: self.by_label(table, left, right).expand())(found)

    def two_time(self) -> dict[Any, Array]:
        """Return the requested two-time functions."""
        found = two_time(self.wanted, {name: self._followed(name) for name in self.asked})
        if self.alike is None:
            return found
        return {
            (kind, a, b): self.alike.expand(table, self._has_labels(a), self._has_labels(b))
            for (kind, a, b), table in found.items()
        }

    def _followed(self, name: str) -> Followed:
        vector = self.vectors[name]
        covariances = self.covariances_of(vector.sector)
        scale = 1.0 if vector.scale is None else vector.scale(self.p)
        rows = self.past(name).whole()
        return Followed(rows, self.labels[name], self.blocks[name], scale, self.site_of(name), covariances)


def run(training: Training, p: Point, closure: Callable[[int], ExactClosure]) -> ExactClosure:
    """Return the closure after the last time. Arrays grow in a few stages, so that early times cost less."""
    times = training.times(p)
    tables = () if training.tables is None else training.tables(p)
    numbers = sum(math.prod(shape_of(axes)) for axes in closure(times).carried().values())
    x = closure(0)
    state = {name: jnp.zeros(shape_of(axes)) for name, axes in x.carried().items()}
    for begin, end in stages(times, numbers):
        before, x = x, closure(end)
        state = x.follow(before, state)
        x.tables = tables
        if begin == 0 and training.start is not None:
            x.begin(0, state)
            training.start(p, x)
            state = x.state
        if training.step is not None:
            state = jax.lax.fori_loop(begin, end, partial(_step, training, p, x), state)
    x.begin(times, state)
    return x


def _step(training: Training, p: Point, x: ExactClosure, t: Array, state: dict[str, Array]) -> dict[str, Array]:
    assert training.step is not None
    x.begin(t, state)
    training.step(p, x, t)
    return x.end()


class RowsPass:
    """The functions of a forward pass over rows."""

    def __init__(self, training: Training, closure: type[ExactClosure] = ExactClosure):
        self.training, self.closure, self.strides = training, closure, training.strides

    def forward_pass(self, p: Point, nodes: int = NODES) -> tuple[Mapping[OrderKey, Array], dict[str, Array], Array]:
        """Return order parameters before the last update, observables at all times, and the number of times without
        overflow.

        nodes: of the quadratures, if any. Integer parameters determine shapes.
        """
        training = self.training
        x = run(training, p, lambda times: self.closure(training, p, times, nodes=nodes))
        observables = {one.key: _series(x, one) for one in training.observables}
        order: Mapping[OrderKey, Array] = training.order_parameters(p, x)
        if x.alike is not None:
            order = OrderByComponents(order)
        return order, observables, self._finite(x)

    def two_time(self, p: Point, wanted: Wanted, nodes: int = NODES) -> tuple[dict[Any, Array], Array]:
        """Return the requested two-time functions, each as times of a x labels of a x times of b x labels of b, and the
        number of times without overflow."""
        x = run(self.training, p, lambda times: self.closure(self.training, p, times, wanted, nodes))
        return x.two_time(), self._finite(x)

    def _finite(self, x: ExactClosure) -> Array:
        return x.state["finite"].astype(int) if self.training.step is not None else 1


def _series(x: ExactClosure, one: Recorded) -> Array:
    table = x.series(one.key)
    return table.reshape(len(table), *sizes_of(x.p, one.axes))
