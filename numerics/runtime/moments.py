"""Averages over sampled sites, and the order parameters computed from them.

Averages of several passes are averaged before responses are computed, because responses are nonlinear in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import diagonals
from .keys import OrderKey
from .point import Point
from .program import Channel, SitesOf, Training
from .sampled import Entries, responses, stacked, with_rest
from .sizes import Sizes

Array = Any


def reach_at(one: SitesOf, p: Point) -> Array:
    """Return the range of the diagonal entries: that of the traits, or the one measured in a pass."""
    if one.reach is not None:
        return getattr(p, one.reach)
    assert one.laws is not None
    return diagonals.reach_known(diagonals.grouped(*one.laws(p)), one.entries)


def first_times(sizes: Sizes, past: Array, name: str) -> Array:
    """Return the entries before the last update."""
    if not sizes.vectors[name].timed:
        return past
    return past[: sizes.training.before(sizes.p) * sizes.labels[name]]


def noise_rows(sizes: Sizes, channel: Channel, state: Mapping[str, Array]) -> Array:
    """Return the noises of a random matrix in terms of its standard normals."""
    found = []
    for name in channel.products:
        product = sizes.products[name]
        assert product.strength is not None
        argument = sizes.vectors[product.argument]
        past = state[f"past {argument.name}" if argument.timed else f"rows {argument.name} {channel.span}"]
        found.append(product.strength(sizes.p) * first_times(sizes, past, argument.name))
    return found[0] if len(found) == 1 else stacked(*found)


def table_key(sector: str, left: tuple[str, str], right: tuple[str, str]) -> str:
    return f"sites {sector} {' '.join(left)} {' '.join(right)}"


class Asked:
    """Records, through attribute access, which averages order parameters need."""

    def __init__(self, training: Training, p: Point):
        self.training, self.p = training, p
        self.channel_of = {name: channel.name for channel in training.channels for name in channel.products}
        pairs: dict[tuple[str, str], None] = {}
        answering: dict[tuple[str, str], None] = {}
        self._pairs, self._answering = pairs, answering
        self._tables: dict[tuple[str, tuple[str, str], tuple[str, str]], None] = {}
        training.order(p, self)
        self.correlations, self.tables = tuple(pairs), tuple(self._tables)
        self.answers = tuple(sorted(answering))
        at_sites = (name for _, *ends in self.tables for kind, name in ends if kind == "R")
        self.channels = tuple(dict.fromkeys((*(channel for _, channel in self.answers), *at_sites)))

    def correlation(self, a: str, b: str) -> None:
        self._pairs.setdefault((a, b))

    def response(self, a: str, noise: str) -> None:
        self._answering.setdefault((a, self.channel_of[noise]))

    def by_value(self, sector: str, *ends: str) -> None:
        left, right = (
            (kind, name if kind == "C" else self.channel_of[name])
            for kind, name in zip(ends[::2], ends[1::2], strict=True)
        )
        self._tables.setdefault((sector, left, right))

    def ignored(self, *_: Any) -> None:
        """Return a placeholder for quantities that do not depend on such averages."""

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
        return Entries(self.training.before(self.p) if self.vectors[name].timed else None, self.labels[name], *lag)

    def correlation(self, a: str, b: str) -> Array:
        return self.moments[OrderKey("C", a, b)]

    def response(self, a: str, noise: str) -> Array:
        channel = self.channel_of[noise]
        if (a, channel.name) not in self.made:
            lags = [self.reach.get((a, j), 0 if not self.vectors[j].timed else None) for j in channel.products]
            noises = tuple(self._entries(j, lag) for j, lag in zip(channel.products, lags, strict=True))
            seen, covariance = self.moments[OrderKey("K", a, channel.name)], self.moments[OrderKey("G", channel.name)]
            self.made[a, channel.name] = responses(
                seen, covariance, self._entries(a), noises, self.times, self.tolerance
            )
        return self.made[a, channel.name][channel.products.index(noise)]

    def series(self, key: str) -> Array:
        return self.moments[_mean(key)]

    series_before = series

    def _sites(self, sector: str) -> SitesOf:
        return next(one for one in self.training.sites if one.sector == sector)

    def law_of_sites(self, sector: str, *_: Any) -> Array:
        one = self._sites(sector)
        if one.known:
            assert one.laws is not None
            return diagonals.law_of_known(diagonals.grouped(*one.laws(self.p)), one.entries)
        return diagonals.law_of_sites(self.moments[OrderKey("S", sector)], reach_at(one, self.p))

    def by_value(self, sector: str, *ends: str) -> Array:
        one, pairs = self._sites(sector), list(zip(ends[::2], ends[1::2], strict=True))
        channels = [self.channel_of[name] for kind, name in pairs if kind == "R"]
        key = OrderKey(
            "W",
            sector,
            *(f"C {name}" if kind == "C" else f"R {self.channel_of[name].name}" for kind, name in pairs),
        )
        seen = self.moments[key]
        if one.known:
            assert one.laws is not None
            seen = diagonals.as_shared(seen, self.moments[OrderKey("S", sector)], diagonals.grouped(*one.laws(self.p)))
        if not channels:
            return seen
        if key not in self.tables:
            noises = [tuple(self._entries(j, 0) for j in channel.products) for channel in channels]
            given: list[Any] = []
            for channel, some in zip(channels, noises, strict=True):
                given += [self.moments[OrderKey("G", channel.name)], some]
            given += [self.times, self.tolerance]
            if len(channels) == 2:
                shares = self._shares(one)
                self.tables[key] = diagonals.twice_by_value(seen, shares, *given)
            else:
                self.tables[key] = diagonals.responses_by_value(seen, *given)
        places = tuple(
            c.products.index(name) for c, name in zip(channels, (n for k, n in pairs if k == "R"), strict=True)
        )
        return self.tables[key][places if len(places) == 2 else places[0]]

    def _shares(self, one: SitesOf) -> Array:
        if one.known:
            assert one.laws is not None
            return diagonals.shares_known(diagonals.grouped(*one.laws(self.p)))
        return diagonals.shares_by_cubics(self.moments[OrderKey("S", one.sector)], reach_at(one, self.p))


def _mean(name: str) -> OrderKey:
    """Return the key of a recorded mean such as "M 0"."""
    return OrderKey(name[0], int(name[1:]))


def moments_of(training: Training, p: Point, state: Mapping[str, Array]) -> dict[OrderKey, Array]:
    """Return the averages for order parameters from the stored results of a pass."""
    sizes, asked = Sizes(training, p, None), Asked(training, p)

    def rows(name: str) -> Array:
        vector = sizes.vectors[name]
        return first_times(sizes, state[f"past {name}" if vector.timed else f"rows {name} {vector.home}"], name)

    found: dict[OrderKey, Array] = {}
    for a, b in asked.correlations:
        left = rows(a) @ state[f"between {a} {b}"] if f"between {a} {b}" in state else rows(a)
        value = left @ rows(b).T
        left_out, right_out = (state.get(f"rest {name}") for name in (a, b))
        if sizes.base(a) == sizes.base(b) and left_out is not None and right_out is not None:
            value = with_rest(value, left_out, right_out, training.before(p))
        found[OrderKey("C", a, b)] = value
    noises = {name: noise_rows(sizes, sizes.channels[name], state) for name in asked.channels}
    found |= {OrderKey("G", name): made @ made.T for name, made in noises.items()}
    for a, channel in asked.answers:
        timed = sizes.vectors[a].timed
        found[OrderKey("K", a, channel)] = (
            first_times(sizes, state[f"answer{'s' if timed else 'ed'} {a} {channel}"], a) @ noises[channel].T
        )
    for one in training.means:
        table = state[f"series {one.key}"]
        key = _mean(one.key)
        found[key] = table[: training.before(p)] if key.kind == "M" else table
    for sites in training.sites:
        found[OrderKey("S", sites.sector)] = state[f"shares {sites.sector}"]
        if sites.reach is not None:
            found[OrderKey("S", sites.sector, "reach")] = state[f"reach {sites.sector}"]
    for sector, left, right in asked.tables:
        found[OrderKey("W", sector, " ".join(left), " ".join(right))] = state[table_key(sector, left, right)]
    return found
