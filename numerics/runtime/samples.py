"""The sampled closure: a vector is its values at many sites, an array of sites x labels.

The past of the sites is stored as coordinates in a few orthonormal directions over the sites, a span: the coordinates
of a vector at one time are labels x directions, and those of all times are stacked. The noise of a random matrix has
one standard normal per site and direction. Responses are mean derivatives with respect to those normals, from
correlations with them (Stein's lemma) or from pathwise derivatives.

Tangents are derivatives along slots, sites x labels x slots: with respect to the normals of random matrices for
pathwise responses, and to random impulses for two-time functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from . import diagonals, two_time as kicks
from .closure import Closure
from .exact import past_sum, store, weighted
from .keys import OrderKey
from .moments import Asked, OrderFromMoments, first_times, moments_of, noise_rows, reach_at, table_key
from .point import Point
from .program import Channel, Memory, SpanOf, Training, Vector, Wanted, sizes_of
from .sampled import (
    SHARES,
    STAGED,
    BasisReport,
    Carried,
    answers,
    between,
    drawn,
    drawn_at,
    emptied,
    empty_span,
    expressed,
    expressed_slopes,
    extend,
    forgetting,
    forgotten,
    law_and_slopes,
    mean_slopes,
    mixed_slopes,
    narrowed,
    no_slopes,
    noise,
    noise_slopes,
    ones,
    overlaps,
    record,
    repeated,
    report_on,
    scaled_rows,
    seen_from,
    store_rest,
    total,
)
from .sizes import Sizes, groups_of

Array = Any
State = dict[str, Any]


class Values:
    """A vector over sites: values, and tangents if they are propagated. Combinations of the directions of a span are
    deferred until values are needed, so that each is computed once. name, lag: the vector and its delay."""

    __array_ufunc__ = None  # NumPy's numbers leave products to this class

    def __init__(
        self,
        closure: SampledClosure,
        dense: Array | None,
        slopes: Array | None = None,
        pending: Mapping[str, Array] | None = None,
        name: str | None = None,
        lag: int = 0,
    ):
        self.closure, self.dense, self.slopes, self.pending = closure, dense, slopes, dict(pending or {})
        self.name, self.lag = name, lag

    @property
    def values(self) -> Array:
        """The values themselves: sites x labels."""
        found = self.dense
        for span, rows in self.pending.items():
            part = expressed(self.closure.state[f"span {span}"], rows)
            found = part if found is None else found + part
        return found

    def __add__(self, other: Any) -> Values:
        if _is_zero(other):
            return self
        pending = dict(self.pending)
        for span, rows in other.pending.items():
            pending[span] = pending[span] + rows if span in pending and pending[span].shape == rows.shape else rows
            if span in self.pending and self.pending[span].shape != rows.shape:
                return Values(self.closure, self.values + other.values, _sum(self.slopes, other.slopes))
        dense = other.dense if self.dense is None else self.dense if other.dense is None else self.dense + other.dense
        return Values(self.closure, dense, _sum(self.slopes, other.slopes), pending)

    __radd__ = __add__

    def __neg__(self) -> Values:
        return self * -1.0

    def __mul__(self, other: Any) -> Values:
        if isinstance(other, Values):
            return Values(self.closure, self.values * other.values)
        factor = jnp.asarray(other)
        slopes = self.slopes
        if slopes is not None:
            slopes = (factor[..., None] if factor.ndim else factor) * slopes
        by_site = factor.ndim == 2 and factor.shape[0] != 1
        wider = factor.ndim == 2 and any(len(rows) not in (1, factor.shape[1]) for rows in self.pending.values())
        if self.pending and (by_site or wider):
            return Values(self.closure, factor * self.values, slopes)
        dense = None if self.dense is None else factor * self.dense
        rows = {span: factor.reshape(-1, 1) * rows for span, rows in self.pending.items()}
        return Values(self.closure, dense, slopes, rows)

    __rmul__ = __mul__


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def _sum(one: Array | None, other: Array | None) -> Array | None:
    return other if one is None else one if other is None else one + other


class SampledClosure(Closure, Sizes):
    """The closure over some sites. tolerance: relative variance below which a new direction is truncated."""

    def __init__(
        self,
        training: Training,
        p: Point,
        normals: Mapping[str, Array],
        rank: int | None,
        tolerance: Array,
        whole: int | None,
        wanted: Wanted = (),
    ):
        """rank: maximum rank of a span at this stage; whole: maximum rank at the last stage."""
        Sizes.__init__(self, training, p, rank, wanted)
        Closure.__init__(self, training, p, self.times)
        self.normals, self.tolerance = normals, tolerance
        self.whole = Sizes(training, p, whole, wanted)
        self.sites = next((len(x) for x in normals.values()), 1)
        self.noises = narrowed(normals, self.shapes(), tuple(self.channels))
        self.correlated: frozenset[str] = frozenset()
        self.begin(0, {})
        self.asked = Asked(training, p)
        self.correlated = frozenset(
            name for a, b in self.asked.correlations if self.base(a) == self.base(b) for name in (a, b)
        )

    # -- what is carried

    def empty(self) -> State:
        """Return the initial loop state."""
        state: State = {"finite": jnp.zeros((), int)}
        for span in self.training.spans:
            slots = self.slots(self.vectors[span.vectors[0]].group) if self.pathwise else None
            state[f"span {span.name}"] = empty_span(self.sites, self.size(span.name), slots)
        for vector in self.training.vectors:
            name, labels = vector.name, self.labels[vector.name]
            for k in range(1, vector.lags + 1):
                state[f"late {name} {k}"] = jnp.zeros((self.sites, labels))
                if self.sloped:
                    state[f"slopes {name} {k}"] = self._no_slopes(vector)
            if vector.past and vector.timed and vector.home:
                state[f"past {name}"] = jnp.zeros((self.times * labels, self.size(vector.home)))
            if name in self.correlated and vector.home and self._is_drawn_anew(name, self.spans[vector.home]):
                width = self.whole.beyond(self.base(name), self.spans[vector.home])
                state[f"rest {name}"] = jnp.zeros((self.times, labels, width))
            if self.wanted and vector.role in ("field", "product") and vector.timed:
                state[f"all {name}"] = kicks.room_for(self.wanted, name, self.times, self.sites, labels)
                if self.sloped:
                    state[f"all slopes {name}"] = kicks.no_slopes_yet(
                        self.times, self.sites, labels, self.slots(vector.group)
                    )
        for name, channel in self.asked.answers:
            if self.vectors[name].timed and not self.wanted:
                count = self.times * self.labels[name]
                state[f"answers {name} {channel}"] = jnp.zeros((count, self.size(self.channels[channel].span)))
        for one in (*(() if self.wanted else (*self.training.observables, *self.training.means)),):
            sizes = sizes_of(self.p, one.axes)
            state[f"series {one.key}"] = jnp.zeros(((self.times if one.timed else 1), math.prod(sizes)))
        return state | {f"kept {key}": jnp.zeros(self.times) for key in self.training.kept}

    def _no_slopes(self, vector: Vector) -> Array:
        return jnp.zeros((self.sites, self.labels[vector.name], self.slots(vector.group)))

    def _is_drawn_anew(self, name: str, span: SpanOf) -> bool:
        """Whether the truncated part of a vector is drawn as noise: if a random matrix acts on the vector, or a
        correlation needs it.
        """
        base = self.base(name)
        under = any(owner == base and self.channels[c].span == span.name for c, owner in self.beyonds)
        relatives = [f for f in (*self.correlated, base) if self.base(f) == base]
        correlated = any(f in self.correlated and self.vectors[f].home == span.name for f in relatives)
        return self.may_lack_room(name, span) and (under or correlated)

    # -- time

    def begin(self, t: Array, state: State) -> None:
        """Load the loop state at a time."""
        self.t, self.state = t, dict(state)
        self.now: dict[str, Values] = {}
        self.rows: dict[tuple[str, str], Array] = {}
        """Coordinates at the current time, by vector and span."""
        self.rests: dict[tuple[str, str], Array] = {}
        """Factors of the covariance of the truncated part of a vector at the current time."""
        self.answered: dict[tuple[str, str], Array] = {}
        self.factors: dict[str, Array] = {}
        """What multiples of other vectors are multiplied by."""
        self.defect: Array = 0.0

    def start(self) -> None:
        """Compute what does not depend on time: traits, and vectors drawn once."""
        for vector in self.training.vectors:
            if vector.role in ("normal", "constant") and not vector.timed:
                self._remember(vector, fresh=False)

    def begin_step(self) -> None:
        """Initialise a step: empty the spans of redrawn matrices, and store drawn vectors."""
        for span in self.training.spans:
            if span.fresh:
                self.state[f"span {span.name}"] = emptied(self.state[f"span {span.name}"])
        for vector in sorted(self.training.vectors, key=lambda v: v.role in ("field", "product")):
            if not vector.timed:
                self._remember(vector, fresh=True)
            elif vector.role in ("normal", "constant"):
                self._remember(vector)

    def end_step(self) -> State:
        """Return the loop state."""
        for vector in self.training.vectors:
            for k in range(vector.lags, 0, -1):
                self._carry_late(vector, k)
        if self.pathwise:
            for span in self.training.spans:
                anew = self._anew(self.vectors[span.vectors[0]].group) if not span.fresh else []
                for channel in anew:
                    key = f"span {span.name}"
                    self.state[key] = forgetting(self.state[key], *self.place(channel))
        finite = self.state["finite"]
        self.state["finite"] = jnp.where((finite == self.t) & jnp.isfinite(self.defect), self.t + 1, finite)
        return self.state

    def _carry_late(self, vector: Vector, k: int) -> None:
        name = vector.name
        if k > 1:
            self.state[f"late {name} {k}"] = self.state[f"late {name} {k - 1}"]
            if self.sloped:
                self.state[f"slopes {name} {k}"] = self.state[f"slopes {name} {k - 1}"]
            return
        now = self.now[name]
        self.state[f"late {name} 1"] = now.values
        if self.sloped:
            slopes = self._slopes_of(now, vector)
            for channel in self._anew(vector.group) if self.pathwise else ():
                slopes = forgotten(slopes, *self.place(channel))
            self.state[f"slopes {name} 1"] = slopes

    def _anew(self, group: int) -> list[Channel]:
        return [channel for channel in self.of_group(group) if channel.fresh]

    def _slopes_of(self, value: Values, vector: Vector) -> Array:
        return self._no_slopes(vector) if value.slopes is None else value.slopes

    # -- vectors

    def drawn(self, name: str, lag: int = 0) -> Values:
        """Return a drawn vector, with a delay."""
        vector = self.vectors[name]
        if vector.role == "constant":
            values = ones(self.sites, self.t, lag) if lag else ones(self.sites)
            return Values(self, values, name=name, lag=lag)
        normals = self.normals[name]
        values = drawn_at(normals, self.t, lag) if vector.timed else drawn(normals)
        values = values if vector.scale is None else vector.scale(self.p) * values
        return Values(self, values, self._kick(vector, lag), name=name, lag=lag)

    def _kick(self, vector: Vector, lag: int = 0) -> Array | None:
        """Return the contribution of an impulse in the equation of a vector to its tangents."""
        if not self.wanted or not self.sloped:
            return None
        when = (self.t, lag) if vector.timed else ()
        found = kicks.kick_at(self.wanted, vector.name, self.normals[f"kick {vector.name}"], *when)
        return found

    def earlier(self, name: str, lag: int) -> Values:
        """Return a vector with a delay; zero before the start."""
        slopes = self.state[f"slopes {name} {lag}"] if self.sloped else None
        return Values(self, self.state[f"late {name} {lag}"], slopes, name=name, lag=lag)

    def value(self, name: str) -> Values:
        """Return a vector without time."""
        return Values(self, self.state[f"value {name}"], self.state.get(f"slopes {name}"), name=name)

    def _value(self, name: str) -> Values:
        """Return a vector at the current time, or one without time."""
        if name in self.now:
            return self.now[name]
        return self.drawn(name) if self.vectors[name].role in ("normal", "constant") else self.value(name)

    def trait(self, name: str) -> Array:
        """Return the values of a trait at all sites."""
        trait = next(one for one in self.training.traits if one.name == name)
        assert trait.draw is not None
        return trait.draw(self.p, self.normals[f"traits_{trait.sector}"], self.traits[trait.sector].index(name))

    def starting(self, first: tuple[Any, ...], later: Any) -> Values:
        """Return one of the starting values at the first times, the later value at all others."""
        found, slopes = self._dense(later)
        for k, one in enumerate(first):
            at_start = jnp.equal(self.t, k)
            values, d_values = self._dense(one)
            found = jnp.where(at_start, values, found)
            if self.sloped:
                slopes, d_values = (0.0 if x is None else x for x in (slopes, d_values))
                slopes = jnp.where(at_start, d_values, slopes)
        return Values(self, found, slopes)

    def _dense(self, value: Any) -> tuple[Array, Array | None]:
        if _is_zero(value):
            return 0.0, None
        return (value.values, value.slopes) if isinstance(value, Values) else (value, None)

    def put(self, name: str, value: Any) -> Values:
        """Set the value of a field at the current time."""
        vector = self.vectors[name]
        values, slopes = self._dense(value)
        values = jnp.broadcast_to(jnp.asarray(values, float), (self.sites, self.labels[name]))
        self.defect = self.defect + (0.0 if vector.idle else jnp.sum(0.0 * values))
        if self.sloped:
            shape = (*values.shape, self.slots(vector.group))
            slopes = jnp.broadcast_to(0.0 if slopes is None else slopes, shape)
            impulse = self._kick(vector)
            slopes = slopes if impulse is None else slopes + impulse
        return self._known(vector, Values(self, values, slopes, name=name))

    def put_multiple(self, name: str, factor: Array, base: str) -> Values:
        """Set the value of a field that is a multiple of another and needs no directions of its own."""
        self.factors[name] = factor
        vector, found = self.vectors[name], self._value(base) * factor
        if self.sloped and self.wanted:
            return self.put(name, found)
        return self._known(vector, Values(self, found.values, found.slopes, name=name))

    def _known(self, vector: Vector, value: Values) -> Values:
        name = vector.name
        self.now[name] = value
        if not vector.timed:
            self.state[f"value {name}"] = value.values
            if self.sloped:
                self.state[f"slopes {name}"] = value.slopes
        elif self.wanted:
            self.state[f"all {name}"] = kicks.keep(self.state[f"all {name}"], value.values, self.t)
            if self.sloped:
                key = f"all slopes {name}"
                self.state[key] = kicks.keep(self.state[key], value.slopes, self.t)
        self._remember(vector)
        return value

    def total(self, value: Any) -> Any:
        """Return the sum over labels of a vector or of numbers."""
        if not isinstance(value, Values):
            return jnp.sum(value)
        slopes = None if value.slopes is None else total(value.slopes)
        return Values(self, total(value.values), slopes)

    def mixed(self, table: Array, value: Any, transposed: int) -> Any:
        """Return a table times the labels of a vector, or of numbers."""
        acting = table if transposed else table.T
        if not isinstance(value, Values):
            return value @ acting
        slopes = None if value.slopes is None else mixed_slopes(value.slopes, acting)
        return Values(self, value.values @ acting, slopes)

    def met(self, right: Values, left: Values, value: Values) -> Values:
        """Return C[right, left] at one time, times a vector over the labels of the left."""
        acting = overlaps(left.values, right.values)
        slopes = None if value.slopes is None else mixed_slopes(value.slopes, acting)
        return Values(self, value.values @ acting, slopes)

    def law(self, function: Callable[..., Array], *values: Values) -> Values:
        """Return a function of values, site by site."""
        if not self.sloped or not values:
            return Values(self, jnp.asarray(function(*(value.values for value in values)), float))
        slots = max((one.slopes.shape[-1] for one in values if one.slopes is not None), default=None)
        if slots is None:
            return Values(self, function(*(value.values for value in values)))
        slopes = tuple(no_slopes(v.values, slots) if v.slopes is None else v.slopes for v in values)
        return Values(self, *law_and_slopes(function, tuple(v.values for v in values), slopes))

    def past_sum(self, name: str, reach: int, weight: Any, left: str = "", right: Values | None = None) -> Values:
        """Return the sum over times s < t + reach of weight(s) * C[right, left](s) * the vector at s; C is omitted
        without a pair."""
        labels, home = self.labels[name], self.vectors[name].home
        when, last = jnp.arange(self.times), self.t + reach - 1
        values = weight(jnp.minimum(when, last)) if callable(weight) else weight
        weights, past = jnp.where(when <= last, values, 0.0), self._series(name)
        if right is None:
            rows, kernel = past_sum(weights, past, labels), weights
        else:
            kernel = weighted(self._coordinates(right, left) @ self._series(left).T, weights, labels)
            rows = kernel @ past
        slopes = None
        if self.pathwise:
            slopes = expressed_slopes(self.state[f"span {home}"], rows)
        elif self.sloped:
            slopes = kicks.past_slopes(kernel, self._all_slopes(name), self.times)
        return Values(self, None, slopes, {home: rows})

    def _past(self, name: str) -> Array:
        """Return the coordinates of a vector at all times up to the current one."""
        vector = self.vectors[name]
        return self.state[f"past {name}"] if vector.timed else self._rows(name, vector.home)

    def _rows(self, name: str, span: str) -> Array:
        return self.rows[name, span] if (name, span) in self.rows else self.state[f"rows {name} {span}"]

    def _series(self, name: str) -> Array:
        """Return the coordinates of a vector in a sum over times; a vector without time is repeated."""
        past = self._past(name)
        return past if self.vectors[name].timed else repeated(past, self.times)

    def _coordinates(self, value: Values, other: str) -> Array:
        """Return the coordinates of a value in the span that stores the past of another vector."""
        span = self.vectors[other].home
        if value.lag == 0 and value.name is not None:
            if (value.name, span) in self.rows or f"rows {value.name} {span}" in self.state:
                return self._rows(value.name, span)
        return seen_from(self.state[f"span {span}"], value.values)

    # -- random matrices

    def product(self, name: str, memories: tuple[Array, ...], coefficients: tuple[Array, ...]) -> Values:
        """Return a random matrix times a vector: its noise, and its memory of the vectors that have responded to it.

        memories: by matrix and by responding vector, in units of the strength of the noise. coefficients: of each
        memory.
        """
        made, channel = self.products[name], self.channel_of[name]
        assert made.strength is not None
        strength, argument = made.strength(self.p), made.argument
        rows = self._rows(argument, channel.span)
        found: Values = Values(self, self._noise(channel, argument, rows)) * strength
        slopes: list[Array] = []
        slots = self.slots(self.vectors[name].group) if self.sloped else 0
        if self.pathwise:
            slopes.append(strength * noise_slopes(rows, self.place(channel)[0], slots, self.sites))
        for scale, (a, other) in zip(memories, self._answering(name), strict=True):
            span = self.channels[other].span
            answering = self._answers(a, self.channels[other])
            found = found + Values(self, None, None, {span: answering}) * scale
            if self.pathwise:
                slopes.append(scale * expressed_slopes(self.state[f"span {span}"], answering))
        if self.wanted and self.sloped:
            shape = (self.sites, self.labels[name], slots)
            slopes = [jnp.zeros(shape)]
            for number, memory in zip(coefficients, made.memories, strict=True):
                slopes.append(number * self._memory_slopes(memory))
        found.slopes = sum(slopes[1:], slopes[0]) if slopes else None
        return found

    def _answering(self, name: str) -> list[tuple[str, str]]:
        """Return which vectors have responded to which matrices in the memories of a product."""
        memories = self.products[name].memories
        return list(dict.fromkeys((m.a, self.channel_of[m.noise].name) for m in memories))

    def _memory_slopes(self, memory: Memory) -> Array:
        """Return the tangents of the memory of a vector: responses, from the impulses of the noise, times the tangents
        of the vector at all times. The coordinates in the basis of the past do not suffice: they miss the impulse of a
        vector that adds no direction."""
        a, on = self._value(memory.a), memory.on
        slopes = self._slopes_of(a, self.vectors[memory.a])
        timed = self.vectors[memory.a].timed and self.vectors[memory.noise].timed
        impulses = self.normals[f"kick {memory.noise}"]
        return kicks.memory_slopes(
            self.wanted,
            memory.noise,
            slopes,
            impulses,
            self._all_slopes(on),
            self.t if timed else None,
            int(memory.fresh),
            memory.lag,
        )

    def _all_slopes(self, name: str) -> Array:
        """Return the tangents of a vector at all times so far: times x sites x labels x slots."""
        vector = self.vectors[name]
        if vector.role == "normal":
            times = self.times if vector.timed else 1
            return kicks.drawn_slopes(self.wanted, name, self.normals[f"kick {name}"], times)
        if vector.role == "constant":
            return jnp.zeros((1, self.sites, 1, self.slots(vector.group)))
        return self.state[f"all slopes {name}"] if vector.timed else self.state[f"slopes {name}"][None]

    def _normals_now(self, channel: Channel) -> Array:
        normals = self.noises[channel.name]
        return drawn_at(normals, self.t) if channel.fresh else normals

    def _noise(self, channel: Channel, argument: str, rows: Array) -> Array:
        """Return the noise of a random matrix times its argument: from its coordinates, and from the part outside its
        span."""
        rest = self.rests.get((argument, channel.span))
        outside: tuple[Array, ...] = ()
        if rest is not None:
            outside = drawn_at(self.normals[self.beyonds[channel.name, self.base(argument)]], self.t), rest
        return noise(self._normals_now(channel), rows, *outside)

    def _answers(self, name: str, channel: Channel) -> Array:
        """Return the mean derivatives of a vector with respect to the normals of a random matrix."""
        key = name, channel.name
        if key not in self.answered:
            base = self.vectors[name].multiple_of
            if base and (base, channel.name) in self.answered:
                self.answered[key] = scaled_rows(self.factors[name], self.answered[base, channel.name])
            elif self.pathwise:
                slopes = self._slopes_of(self._value(name), self.vectors[name])
                self.answered[key] = mean_slopes(slopes, *self.place(channel))
            elif f"answered {name} {channel.name}" in self.state:
                return self.state[f"answered {name} {channel.name}"]
            else:
                span = self.state[f"span {channel.span}"]
                self.answered[key] = answers(self._value(name).values, self._normals_now(channel), span)
        return self.answered[key]

    def _remember(self, vector: Vector, fresh: bool | None = None) -> None:
        """Store the coordinates of a new value in its spans, and its responses to the noises so far. fresh: whether to
        store them only in spans that restart at every time, or only in the others.
        """
        name = vector.name
        for span in vector.spans:
            if fresh is None or self.spans[span].fresh == fresh:
                self._join(vector, self.spans[span])
        if fresh or self.wanted:
            return
        for channel in (channel for a, channel in self.asked.answers if a == name):
            rows = self._answers(name, self.channels[channel])
            if vector.timed:
                key = f"answers {name} {channel}"
                self.state[key] = store(self.state[key], rows, self.t)
            else:
                self.state[f"answered {name} {channel}"] = rows

    def _join(self, vector: Vector, span: SpanOf) -> None:
        name, key = vector.name, f"span {span.name}"
        drawn_anew = self._is_drawn_anew(name, span)
        if not vector.multiple_of:
            value = self._value(name)
            least = self.tolerance if self.may_lack_room(name, span) else 0.0
            slopes = (self._slopes_of(value, vector),) if self.pathwise else ()
            rows, rest, self.state[key] = extend(self.state[key], value.values, least, *slopes)
        else:
            base, factor = vector.multiple_of, self.factors[name]
            rows = scaled_rows(factor, self._rows(base, span.name))
            rest = scaled_rows(factor, self.rests[base, span.name]) if drawn_anew else None
        self.rows[name, span.name] = rows
        if not vector.timed and not span.fresh:
            self.state[f"rows {name} {span.name}"] = rows
        if drawn_anew:
            self.rests[name, span.name] = rest
            if f"rest {name}" in self.state and vector.home == span.name:
                self.state[f"rest {name}"] = store_rest(self.state[f"rest {name}"], rest, self.t)
        if vector.timed and vector.home == span.name and f"past {name}" in self.state:
            self.state[f"past {name}"] = store(self.state[f"past {name}"], rows, self.t)

    # -- averages and numbers with labels, as rows

    def mean(self, value: Values, labelled: int) -> Array:
        """Return the mean over sites, as a row over labels or as a number."""
        values = value.values
        return jnp.mean(values, axis=0, keepdims=True) if labelled else jnp.mean(values)

    def average(self, function: Callable[..., Array], values: tuple[Values, ...], labelled: int) -> Array:
        """Return the mean over sites of a function of values."""
        found = function(*(value.values for value in values))
        return jnp.mean(found, axis=0, keepdims=True) if labelled else jnp.mean(found)

    def moment(self, sector: str, function: Callable[..., Array], *names: str) -> Array:
        """Return the mean over sites of a function of traits."""
        return jnp.mean(function(*map(self.trait, names)))

    def oriented(self, numbers: Array) -> Array:
        return numbers.reshape(1, -1)

    def record(self, key: str, value: Array) -> None:
        if not self.wanted:
            table = self.state[f"series {key}"]
            self.state[f"series {key}"] = record(table, value, self.t if self.recorded[key].timed else 0)

    # -- after the last time

    def report(self) -> BasisReport:
        """Return the report on the bases of the pass."""
        spans = [(span, self.state[f"span {span.name}"]) for span in self.training.spans]
        kept, anew = (tuple(one for span, one in spans if span.fresh == fresh) for fresh in (False, True))
        return report_on(kept, anew)

    def two_time(self) -> dict[Any, Array]:
        """Return the requested two-time functions."""
        return kicks.sampled_two_time(self.wanted, {v.name: self._followed(v) for v in self.impulses})

    def _followed(self, vector: Vector) -> kicks.RecordedField:
        name = vector.name
        if vector.role == "normal":
            scale = 1.0 if vector.scale is None else vector.scale(self.p)
            values = kicks.drawn_values(self.normals[name], scale, self.times if vector.timed else 1)
        else:
            values = self.state[f"all {name}"] if vector.timed else self.state[f"value {name}"][None]
        if not self.sloped:
            return kicks.RecordedField(values, None, None, ())
        delays = tuple((b.name, delay) for b in self.impulses for a, delay in self.training.delays(b.name) if a == name)
        return kicks.RecordedField(values, self._all_slopes(name), self.normals[f"kick {name}"], delays)

    def what_is_kept(self) -> Carried:
        """Return the quantities from which moments are computed."""
        names = [f"series {one.key}" for one in self.training.means]
        for a, b in self.asked.correlations:
            for name in (a, b):
                vector = self.vectors[name]
                names.append(f"past {name}" if vector.timed else f"rows {name} {vector.home}")
                names += [f"rest {name}"] if f"rest {name}" in self.state else []
        found = {}
        for a, b in self.asked.correlations:
            homes = self.vectors[a].home, self.vectors[b].home
            if homes[0] != homes[1]:
                found[f"between {a} {b}"] = between(*(self.state[f"span {home}"] for home in homes))
        for a, channel in self.asked.answers:
            names.append(f"answer{'s' if self.vectors[a].timed else 'ed'} {a} {channel}")
        for channel in self.asked.channels:
            for product in self.channels[channel].products:
                argument = self.vectors[self.products[product].argument]
                home = self.channels[channel].span
                names.append(f"past {argument.name}" if argument.timed else f"rows {argument.name} {home}")
        found |= {name: self.state[name] for name in dict.fromkeys(names)}
        return Carried(**found, **self._of_sites())

    def _of_sites(self) -> dict[str, Array]:
        """Return averages over sites for each value of the diagonal entries."""
        found: dict[str, Array] = {}
        weights: dict[str, Array] = {}
        for one in self.training.sites:
            times = one.times(self.p)
            values = [self._taken(name, time) for name, time in zip(one.values, times, strict=True)]
            if one.known:
                assert one.laws is not None
                weights[one.sector] = diagonals.belonging_to(diagonals.grouped(*one.laws(self.p)), *values)
                found[f"shares {one.sector}"] = diagonals.shares_seen(weights[one.sector])
                continue
            entries = tuple(jnp.broadcast_to(x, (self.sites, 1)) for x in one.entries(*values))
            reach = reach_at(one, self.p)
            weights[one.sector] = diagonals.belonging(entries, reach)
            if one.reach is not None:
                found[f"reach {one.sector}"] = diagonals.reach_of(entries)
            found[f"shares {one.sector}"] = diagonals.shares_of(entries, reach)
        for sector, left, right in self.asked.tables:
            ends = (self._at_sites(*end) for end in (left, right))
            found[table_key(sector, left, right)] = diagonals.by_value(weights[sector], *ends)
        return found

    def _taken(self, name: str, time: Any) -> Array:
        """Return a trait, or a vector at all sites at the time at which it is a diagonal entry."""
        vector = self.vectors.get(name)
        if vector is None:
            return self.trait(name)
        if vector.role == "constant":
            return ones(self.sites)
        rows = self._past(name)
        if vector.timed:
            rows = diagonals.rows_at(rows, time, self.labels[name])
        return expressed(self.state[f"span {vector.home}"], rows)

    def _at_sites(self, kind: str, name: str) -> Array:
        """Return a vector at all sites and all times before the last update, or the noises of a random matrix."""
        if kind == "C":
            vector = self.vectors[name]
            return expressed(self.state[f"span {vector.home}"], first_times(self, self._past(name), name))
        return self.normals[name] @ noise_rows(self, self.channels[name], self.state).T


class SampledPass:
    """The functions of a sampled forward pass. wanted: two-time functions, which replace observables."""

    def __init__(self, training: Training, wanted: Wanted = ()):
        self.training, self.wanted = training, wanted
        self.paired, self.responses = training.paired, training.responses
        self.strides, self.extents = training.strides, training.extents
        self.ranges = tuple(
            (s.reach, OrderKey("S", s.sector, "reach"), s.count) for s in training.sites if s.reach is not None
        )

    def shapes(self, p: Point, rank: int | None = None) -> dict[str, tuple[int, ...]]:
        """Return the shape of each kind of standard normals, for one site."""
        return Sizes(self.training, p, rank, self.wanted).shapes()

    def footprint(self, p: Point, rank: int | None = None) -> int:
        """Return the number of floats stored per site of each kind."""
        return Sizes(self.training, p, rank, self.wanted).footprint()

    def is_light(self, p: Point, rank: int | None, sites: int) -> bool:
        """Return whether compiling a pass over this many sites takes longer than running all of its replicates."""
        return Sizes(self.training, p, rank, self.wanted).is_light(sites)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Return normals that belong to the same sites."""
        return groups_of(self.training, self.wanted)

    def forward_pass(
        self, p: Point, normals: Mapping[str, Array], rank: int | None = None, tolerance: Array = 1e-12
    ) -> tuple[Carried, dict[Any, Array], Array, BasisReport]:
        """Return the quantities from which moments are computed, observables at all times, the number of times before
        the first overflow, and a report on the bases.

        normals: with the shapes of `shapes` and a leading axis of sites. rank: maximum rank of each span, full if None.
        tolerance: relative variance below which a new direction is truncated.
        """
        training = self.training
        tables = () if training.tables is None else training.tables(p)

        def closure(most: int | None) -> SampledClosure:
            x = SampledClosure(training, p, normals, most, tolerance, rank, self.wanted)
            x.tables = tables
            return x

        x = _run(training, p, rank, closure)
        if self.wanted:
            return Carried(), x.two_time(), x.state["finite"], x.report()
        observables = {}
        for one in training.observables:
            table = x.state[f"series {one.key}"]
            observables[one.key] = table.reshape(len(table), *sizes_of(p, one.axes))
        finite = x.state["finite"] if training.step is not None else 1
        return x.what_is_kept(), observables, finite, x.report()

    def moments_of(self, p: Point, kept: Carried) -> dict[OrderKey, Array]:
        """Return the averages for order parameters from the stored results of a pass."""
        return {} if self.wanted else moments_of(self.training, p, vars(kept))

    def order_parameters(
        self, moments: Mapping[OrderKey, Array], p: Point, tolerance: Any = 1e-12
    ) -> Mapping[OrderKey, Array]:
        """Return correlations, responses and means before the last update, times by times, from averaged moments."""
        if self.wanted:
            return {}
        return self.training.order_parameters(p, OrderFromMoments(self.training, p, moments, tolerance))


def _run(
    training: Training, p: Point, rank: int | None, closure: Callable[[int | None], SampledClosure]
) -> SampledClosure:
    """Return the closure after the last time.

    Spans are widened in a few stages, because unused width costs as much as used width. Each width is compiled
    separately, which takes longer than running a light pass. With one width the loop has a fixed length and can be
    differentiated in reverse; with several, only in forward mode.
    """

    def begun(most: int | None) -> State:
        x = closure(most)
        x.begin(0, x.empty())
        x.start()
        if training.start is not None:
            training.start(p, x)
        return x.state

    def step(x: SampledClosure, t: Array, state: State) -> State:
        x.begin(t, state)
        x.begin_step()
        assert training.step is not None
        training.step(p, x, t)
        return x.end_step()

    last = closure(rank)
    times = training.times(p)
    if training.step is None:
        last.begin(0, begun(rank))
        return last
    staged = [span for span in training.spans if not span.fresh and not last.pathwise]
    joining = {span.name: (last.joining(span, True), last.joining(span, False)) for span in staged}
    widest = max((last.size(name) for name in joining), default=0)
    least = max((now + before for now, before in joining.values()), default=0)
    in_stages = widest >= STAGED and not last.is_light(last.sites)
    widths = [math.ceil(share * widest) for share in SHARES] if in_stages else []
    widths = [width for width in widths if width >= least]
    if not widths:
        state = jax.lax.fori_loop(0, times, partial(step, last), begun(rank))
        last.begin(times, state)
        return last
    t: Array = jnp.zeros((), int)
    state = begun(widths[0])
    for most in (*widths, rank):
        x = closure(most)
        state = _widened(state, jax.eval_shape(partial(begun, most)))
        narrow = [name for name in joining if x.size(name) < last.size(name)]
        limits = {f"span {name}": x.size(name) - joining[name][0] for name in narrow}

        def go_on(now: tuple[Array, State], limits: dict[str, int] = limits) -> Array:
            t, state = now
            return jnp.all(jnp.stack([t < times, *(state[name].used <= k for name, k in limits.items())]))

        def go(now: tuple[Array, State], x: SampledClosure = x) -> tuple[Array, State]:
            t, state = now
            return t + 1, step(x, t, state)

        t, state = jax.lax.while_loop(go_on, go, (t, state))
    last.begin(times, state)
    return last


def _widened(state: State, shapes: State) -> State:
    """Return the state padded with zeros to the new widths."""

    def wide(x: Array, shape: jax.ShapeDtypeStruct) -> Array:
        missing = [(0, new - old) for old, new in zip(x.shape, shape.shape, strict=True)]
        return x if x.shape == shape.shape else jnp.pad(x, missing)

    widened: State = jax.tree.map(wide, state, shapes)
    return widened
