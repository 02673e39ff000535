"""Moments of sampled passes, and order parameters computed from their means.

Responses are nonlinear in the moments, so that moments of several passes are averaged first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import diagonals
from .point import Point
from .program import Channel, SitesOf, Training
from .sampled import Entries, responses, stacked, with_rest
from .sizes import Sizes

Array = Any


def reach_at(one: SitesOf, p: Point) -> Array:
    """Return the range of the diagonal entries: from the laws of traits, or as measured in one pass."""
    if one.reach is not None:
        return getattr(p, one.reach)
    assert one.laws is not None
    return diagonals.reach_known(diagonals.grouped(*one.laws(p)), one.entries)


def first_times(sizes: Sizes, past: Array, name: str) -> Array:
    """Return the rows of the times before the last update."""
    if not sizes.vectors[name].timed:
        return past
    return past[: sizes.training.before(sizes.p) * sizes.labels[name]]


def noise_rows(sizes: Sizes, channel: Channel, state: Mapping[str, Array]) -> Array:
    """Return the coordinates of the noises of a random matrix in its normals."""
    rows = []
    for name in channel.products:
        product = sizes.products[name]
        assert product.strength is not None
        argument = sizes.vectors[product.argument]
        past = state[f"past {argument.name}" if argument.timed else f"rows {argument.name} {channel.span}"]
        rows.append(product.strength(sizes.p) * first_times(sizes, past, argument.name))
    return rows[0] if len(rows) == 1 else stacked(*rows)


def table_key(sector: str, left: tuple[str, str], right: tuple[str, str]) -> str:
    """Return the key of a table of averages by value of the diagonal entries."""
    return f"sites {sector} {' '.join(left)} {' '.join(right)}"


class NeededMoments:
    """Dependency analysis: records which moments the order parameters read."""

    def __init__(self, training: Training, p: Point):
        self.training, self.p = training, p
        self.channel_of = {name: channel.name for channel in training.channels for name in channel.products}
        pairs: dict[tuple[str, str], None] = {}
        answering: dict[tuple[str, str], None] = {}
        self._pairs, self._responding = pairs, answering
        self._tables: dict[tuple[str, tuple[str, str], tuple[str, str]], None] = {}
        training.order(p, self)
        self.correlations, self.tables = tuple(pairs), tuple(self._tables)
        self.answers = tuple(sorted(answering))
        at_sites = (name for _, *ends in self.tables for kind, name in ends if kind == "R")
        self.channels = tuple(dict.fromkeys((*(channel for _, channel in self.answers), *at_sites)))

    def correlation(self, a: str, b: str) -> None:
        """Record a correlation."""
        self._pairs.setdefault((a, b))

    def response(self, a: str, noise: str) -> None:
        """Record a response."""
        self._responding.setdefault((a, self.channel_of[noise]))

    def by_value(self, sector: str, *ends: str) -> None:
        """Record a table by value of the diagonal entries."""
        left, right = (
            (kind, name if kind == "C" else self.channel_of[name])
            for kind, name in zip(ends[::2], ends[1::2], strict=True)
        )
        self._tables.setdefault((sector, left, right))

    def ignored(self, *_: Any) -> None:
        """Order parameters that need no further moments."""

    series = series_before = law_of_sites = ignored


class OrderFromMoments(Sizes):
    """Order parameters from averaged moments. tolerance: see `responses`."""

    def __init__(self, training: Training, p: Point, moments: Mapping[Any, Array], tolerance: Any):
        super().__init__(training, p, None)
        self.moments, self.tolerance = moments, tolerance
        self.reach = {(a, noise): lag for a, noise, lag in training.lags}
        self.made: dict[tuple[str, str], tuple[Array, ...]] = {}
        self.tables: dict[Any, Any] = {}

    def _entries(self, name: str, *lag: int | None) -> Entries:
        """Return the index set of a vector."""
        return Entries(self.training.before(self.p) if self.vectors[name].timed else None, self.labels[name], *lag)

    def correlation(self, a: str, b: str) -> Array:
        """Return C[a, b]."""
        return self.moments["C", a, b]

    def response(self, a: str, noise: str) -> Array:
        """Return R[a, noise]."""
        channel = self.channel_of[noise]
        if (a, channel.name) not in self.made:
            lags = [self.reach.get((a, j), 0 if not self.vectors[j].timed else None) for j in channel.products]
            noises = tuple(self._entries(j, lag) for j, lag in zip(channel.products, lags, strict=True))
            seen, covariance = self.moments["K", a, channel.name], self.moments["G", channel.name]
            self.made[a, channel.name] = responses(
                seen, covariance, self._entries(a), noises, self.times, self.tolerance
            )
        return self.made[a, channel.name][channel.products.index(noise)]

    def series(self, key: str) -> Array:
        """Return a recorded mean."""
        return self.moments[key[0], int(key[1:])]

    series_before = series

    def _sites(self, sector: str) -> SitesOf:
        """Return the diagonal entries of a sector."""
        return next(one for one in self.training.sites if one.sector == sector)

    def law_of_sites(self, sector: str, *_: Any) -> Array:
        """Return the law of the diagonal entries of a sector: values and weights."""
        one = self._sites(sector)
        if one.known:
            assert one.laws is not None
            return diagonals.law_of_known(diagonals.grouped(*one.laws(self.p)), one.entries)
        return diagonals.law_of_sites(self.moments["S", sector], reach_at(one, self.p))

    def by_value(self, sector: str, *ends: str) -> Array:
        """Return correlations or responses by value of the diagonal entries."""
        one, pairs = self._sites(sector), list(zip(ends[::2], ends[1::2], strict=True))
        channels = [self.channel_of[name] for kind, name in pairs if kind == "R"]
        key = (
            "W",
            sector,
            *(f"C {name}" if kind == "C" else f"R {self.channel_of[name].name}" for kind, name in pairs),
        )
        seen = self.moments[key]
        if one.known:
            assert one.laws is not None
            seen = diagonals.as_shared(seen, self.moments["S", sector], diagonals.grouped(*one.laws(self.p)))
        if not channels:
            return seen
        if key not in self.tables:
            noises = [tuple(self._entries(j, 0) for j in channel.products) for channel in channels]
            arguments: list[Any] = []
            for channel, entries in zip(channels, noises, strict=True):
                arguments += [self.moments["G", channel.name], entries]
            arguments += [self.times, self.tolerance]
            if len(channels) == 2:
                shares = self._shares(one)
                self.tables[key] = diagonals.twice_by_value(seen, shares, *arguments)
            else:
                self.tables[key] = diagonals.responses_by_value(seen, *arguments)
        places = tuple(
            c.products.index(name) for c, name in zip(channels, (n for k, n in pairs if k == "R"), strict=True)
        )
        return self.tables[key][places if len(places) == 2 else places[0]]

    def _shares(self, one: SitesOf) -> Array:
        """Return the weights of the values of the diagonal entries."""
        if one.known:
            assert one.laws is not None
            return diagonals.shares_known(diagonals.grouped(*one.laws(self.p)))
        return diagonals.shares_by_cubics(self.moments["S", one.sector], reach_at(one, self.p))


def moments_of(training: Training, p: Point, state: Mapping[str, Array]) -> dict[Any, Array]:
    """Return the moments of a pass from its stored arrays."""
    sizes, needed = Sizes(training, p, None), NeededMoments(training, p)

    def rows(name: str) -> Array:
        """Return the coordinates of a vector before the last update."""
        vector = sizes.vectors[name]
        return first_times(sizes, state[f"past {name}" if vector.timed else f"rows {name} {vector.home}"], name)

    moments: dict[Any, Array] = {}
    for a, b in needed.correlations:
        left = rows(a) @ state[f"between {a} {b}"] if f"between {a} {b}" in state else rows(a)
        value = left @ rows(b).T
        left_out, right_out = (state.get(f"rest {name}") for name in (a, b))
        if sizes.base(a) == sizes.base(b) and left_out is not None and right_out is not None:
            value = with_rest(value, left_out, right_out, training.before(p))
        moments["C", a, b] = value
    noises = {name: noise_rows(sizes, sizes.channels[name], state) for name in needed.channels}
    moments |= {("G", name): rows_of_noise @ rows_of_noise.T for name, rows_of_noise in noises.items()}
    for a, channel in needed.answers:
        timed = sizes.vectors[a].timed
        moments["K", a, channel] = (
            first_times(sizes, state[f"answer{'s' if timed else 'ed'} {a} {channel}"], a) @ noises[channel].T
        )
    for one in training.means:
        table = state[f"series {one.key}"]
        moments[one.key[0], int(one.key[1:])] = table[: training.before(p)] if one.key[0] == "M" else table
    for sites in training.sites:
        moments["S", sites.sector] = state[f"shares {sites.sector}"]
        if sites.reach is not None:
            moments["S", sites.sector, "reach"] = state[f"reach {sites.sector}"]
    for sector, left, right in needed.tables:
        moments["W", sector, " ".join(left), " ".join(right)] = state[table_key(sector, left, right)]
    return moments
